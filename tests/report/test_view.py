"""A store as it is served: who is refused, what is answered, and that nothing in it is ever written."""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from debate import VoteEvaluator
from debate.cli.report import worth_of
from debate.errors import ConfigError, StoreError
from debate.jobs.run_directory import RunDirectory
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.report import view, write_report
from debate.report.rows import FILTERS, indexed
from debate.report.serving import ViewServer
from debate.report.trees import level_of
from debate.report.view import Viewer
from debate.store import Store
from debate.store.pages import QUESTIONS
from tests.report.pages import debated, doubtful, evaluated, tasks


@contextmanager
def served(store: Path, first: RunDirectory | None = None) -> Generator[ViewServer]:
    """A server of a store, in a thread."""
    with Viewer(partial(Store, store, read_only=True), first, worth_of) as viewer, ViewServer(viewer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server: ViewServer, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of an answer; a path without a slash at its beginning is below the token."""
    at = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(at.netloc), timeout=20)
    with closing(connection):
        connection.request(method, path if path.startswith("/") else at.path + path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()


def asked(server: ViewServer, what: str, **query: Any) -> Any:
    """What the server answers, which must be good."""
    code, _, body = ask(server, f"api/{what}?{urlencode(query)}")
    assert code == 200, body
    return json.loads(body)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return debated(tmp_path_factory.mktemp("view") / "run", tasks(30)).directory.path


@pytest.fixture(scope="module")
def store(folder: Path) -> Path:
    return folder / "run.sqlite"


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[ViewServer]:
    with served(store) as found:
        yield found


@pytest.mark.parametrize("path", ["/", "/wrong/", "/wrong/api/runs", "/api/runs", "/%00/api/runs"])
def test_without_its_token_nothing_is_answered(server: ViewServer, path: str) -> None:
    code, headers, body = ask(server, path)
    assert code == 401
    assert json.loads(body) == {"error": "Unauthorized"}
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}])
def test_another_host_or_origin_is_refused_with_the_token_too(server: ViewServer, headers: dict[str, str]) -> None:
    assert ask(server, "", **headers)[0] == 403
    assert ask(server, "api/runs", **headers)[0] == 403


def test_methods_that_change_something_are_not_there(server: ViewServer) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        code, headers, _ = ask(server, "api/runs", method)
        assert code == 501
        assert "Access-Control-Allow-Origin" not in headers


def test_every_answer_carries_the_headers_that_keep_it_where_it_is(server: ViewServer) -> None:
    for path in ("", "api/runs", "api/nothing", "/wrong/"):
        headers = ask(server, path)[1]
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "Python" not in headers["Server"]
    assert server.page not in ask(server, "api/nothing")[2]


def test_pages_go_on_from_a_position_and_hold_all_tasks_once(server: ViewServer, folder: Path) -> None:
    ids, after = list[str](), -1
    while True:
        found = asked(server, "rows", run=str(folder), after=after, limit=7)
        ids += found["columns"]["id"]
        if found["is_end"]:
            break
        after = found["columns"]["position"][-1]
    assert ids == [f"t{n}" for n in range(30)]


def test_each_filter_shows_as_many_tasks_as_are_counted(server: ViewServer, folder: Path) -> None:
    counts = asked(server, "counts", run=str(folder))
    assert counts["evaluated"] == 30
    assert counts["questions"]["right"] + counts["questions"]["wrong"] <= 30
    for name in QUESTIONS:
        found = asked(server, "rows", run=str(folder), f=name)["columns"]
        assert len(found["id"]) == counts["questions"][name]
    assert set(asked(server, "rows", run=str(folder), f="wrong")["columns"]["verdict"]) == {"wrong"}
    assert counts["groups"] == {"odd": 15, "even": 15}
    assert asked(server, "rows", run=str(folder), g="odd", q="T1")["columns"]["id"] == [
        "t1", "t11", "t13", "t15", "t17", "t19"
    ]  # fmt: skip
    assert sum(counts["rounds"].values()) == 30
    for taken, count in counts["rounds"].items():
        assert len(asked(server, "rows", run=str(folder), r=taken)["columns"]["id"]) == count
    for stop, count in counts["stops"].items():
        assert len(asked(server, "rows", run=str(folder), x=stop)["columns"]["id"]) == count


@pytest.mark.parametrize("make", [debated, doubtful])
def test_a_filter_of_a_view_shows_the_tasks_that_it_shows_in_a_report(
    make: Callable[[Path], JudgedRun], tmp_path: Path
) -> None:
    run = make(tmp_path / "run")
    rows = indexed(run)
    # The store tells a flip by plain means, a report by the weights of the run.
    shared = [each for each in FILTERS if each.name in QUESTIONS and (make is debated or each.name != "flipped")]
    assert {each.name for each in FILTERS} - QUESTIONS.keys() == {"lost", "won", "rechosen"}  # those of two runs
    with served(tmp_path / "run" / "run.sqlite") as server:
        for each in shared:
            found = asked(server, "rows", run=run.directory.name, f=each.name)["columns"]["id"]
            assert found == [row.task.task_id for row in rows if each.holds(row)], each.name
        if make is doubtful:
            counts = asked(server, "counts", run=run.directory.name)["questions"]
            assert counts["unscored"] == 4
            assert 0 < counts["order"] < 12


def test_what_the_judge_is_worth_is_as_in_a_report(folder: Path, store: Path, tmp_path: Path) -> None:
    run = read_run(folder)
    write_report(run, tmp_path / "r.html", worth_of(run))
    before = contents(folder)
    with served(store, RunDirectory.existing(folder)) as server:
        found = asked(server, "worth", run=str(folder))
    assert found["problem"] == ""
    assert "30 labeled" in found["html"]
    assert found["html"].count("<figure>") >= 3
    assert found["html"] in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert contents(folder) == before


def test_what_a_run_of_a_store_is_worth_is_worked_out_without_its_folder(server: ViewServer, folder: Path) -> None:
    found = asked(server, "worth", run=str(folder))
    assert found["problem"] == ""
    assert "30 labeled" in found["html"]


def test_of_a_larger_run_it_is_said_what_works_it_out(
    folder: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MOST_JUDGED", 29)
    with served(store, RunDirectory.existing(folder)) as server:
        found = asked(server, "worth", run=str(folder))
    assert found["html"] == ""
    assert found["problem"].startswith("30 tasks are evaluated; here these figures are worked out of up to 29.")
    assert f"`debate agree {folder}`" in found["problem"]
    with served(store) as server:
        assert asked(server, "worth", run=str(folder))["problem"].endswith(", where RUN is the run's folder.")


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"parents": [None], "width": 1},
        {"parents": [None, None], "width": "x"},
        {"parents": [None, None], "width": 0},
        {"parents": [None, 3], "width": 1},
        {"parents": 5, "width": 1},
    ],
)
def test_what_is_no_record_of_a_search_is_no_level(said: Any) -> None:
    evaluation = {"scores": [1.0, None], "scale": {"low": 0, "high": 10, "higher_is_better": True}}
    task = {"candidates": [{"text": "a"}, {"text": "b" * 500}], "metadata": {"search": said}}
    assert level_of("t", task, json.dumps(evaluation)) is None
    task["metadata"] = {"search": {"parents": [None, ["s", 1]], "width": 3}}
    found = level_of("t", task, json.dumps(evaluation))
    assert found is not None
    assert (found["parents"], found["kept"], len(found["texts"][1])) == ([None, "s/1"], [0], 404)


def test_runs_are_named_at_once_and_their_sizes_are_counted_apart(server: ViewServer, folder: Path) -> None:
    assert [each["name"] for each in asked(server, "runs")["runs"]] == [str(folder)]
    assert asked(server, "sizes") == {str(folder): [30, 30]}


def test_a_percent_sign_is_searched_for_as_it_stands(server: ViewServer, folder: Path) -> None:
    assert asked(server, "rows", run=str(folder), q="%")["columns"]["id"] == []


def test_prompts_are_made_again_from_the_record(server: ViewServer, folder: Path) -> None:
    found = asked(server, "prompts", run=str(folder), task="t3")
    assert found["problem"] == ""
    assert len(found["calls"]) == 6
    assert all([each["role"] for each in call["messages"]] == ["system", "user"] for call in found["calls"])
    assert all("Question 3?" in call["messages"][1]["content"] for call in found["calls"])
    assert asked(server, "prompts", run=str(folder), task="nobody") == {"calls": [], "problem": ""}
    assert ask(server, "api/prompts?run=nobody")[0] == 404
    assert (
        ask(server, f"api/prompts?{urlencode({'run': folder, 'task': 't3'})}", Origin="http://evil.example")[0] == 403
    )


def test_why_prompts_cannot_be_shown_is_said(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", VoteEvaluator(ballots=2)).directory
    with served(run.path / "run.sqlite") as server:
        found = asked(server, "prompts", run=run.name, task="t1")
    assert found["calls"] == []
    assert "it was begun in Python" in found["problem"]
    with served(run.path / "run.sqlite", run) as server:
        assert len(asked(server, "prompts", run=run.name, task="t1")["calls"]) == 2


def test_one_evaluation_is_as_the_store_has_it(server: ViewServer, folder: Path, store: Path) -> None:
    found = asked(server, "one", run=str(folder), task="t3")
    with Store(store, read_only=True) as opened:
        recorded = {name: json.loads(data) for name, _, data in opened.read().result_data()}
    assert found["evaluation"] == recorded["t3"]
    assert found["task"]["x"] == "Question 3?"
    assert found["row"]["id"] == "t3"


def test_what_is_not_there_is_said_in_a_sentence(server: ViewServer, folder: Path) -> None:
    for what, query, words in (
        ("one", {"run": str(folder), "task": "t99"}, "no evaluation of the task 't99'"),
        ("rows", {"run": "none"}, "there is no run 'none'"),
        ("rows", {"run": str(folder), "f": "wrnog"}, "no filter 'wrnog'"),
        ("rows", {"run": str(folder), "after": "x"}, "whole number"),
        ("progress", {"run": "none"}, "there is no run 'none'"),
    ):
        code, _, body = ask(server, f"api/{what}?{urlencode(query)}")
        assert code == 404
        assert words in json.loads(body)["error"]


def contents(folder: Path) -> dict[str, str]:
    """A digest of every file of a folder."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.is_file()}


def test_a_store_that_is_looked_at_stays_byte_for_byte_and_alone_in_its_folder(folder: Path, store: Path) -> None:
    before = contents(folder)
    with served(store) as found:
        for what in ("runs", "sizes", "rows", "progress", "counts", "figures"):
            asked(found, what, run=str(folder))
    assert contents(folder) == before


def test_a_read_only_store_refuses_to_write(store: Path) -> None:
    with Store(store, read_only=True) as opened, pytest.raises(StoreError, match="readonly"):
        opened.read().note(label="changed")


def test_what_is_written_while_a_store_is_looked_at_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "s.sqlite"
    Store(file).close()
    with Store(file, read_only=True) as looks:
        assert looks.listed() == []
        with Store(file) as writes:
            writes.run("first", {})
            assert [each.name for each in looks.listed()] == ["first"]
        assert [each.name for each in looks.listed()] == ["first"]


def test_an_older_store_is_left_as_it_is_and_the_way_out_is_named(tmp_path: Path) -> None:
    file = tmp_path / "s.sqlite"
    Store(file).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0005'")
        connection.commit()
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"(?s)schema 0005, this one reads .*debate workers RUN"):
        Store(file, read_only=True)
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["s.sqlite"]


def test_an_older_store_is_read_as_it_is_without_the_filters_it_has_no_columns_for(
    folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "run.sqlite"
    shutil.copy(folder / "run.sqlite", file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP INDEX task_ids")
        connection.execute("DROP INDEX evaluations_at_a_glance")
        for name in ("unscored", "orders_disagree"):
            connection.execute(f"ALTER TABLE evaluations DROP COLUMN {name}")
        connection.execute("UPDATE alembic_version SET version_num = '0006'")
    before = contents(tmp_path)
    with served(file) as found:
        offered = {each["name"] for each in asked(found, "runs")["filters"]}
        assert (
            offered
            == QUESTIONS.keys() - {"unscored", "order"}
            == asked(found, "counts", run=str(folder))["questions"].keys()
        )
        assert "no filter 'order'" in ask(found, "api/rows?f=order")[2]
        assert asked(found, "rows", run=str(folder), g="odd", q="T11")["columns"]["id"] == ["t11"]
        assert asked(found, "counts", run=str(folder))["evaluated"] == 30
    assert contents(tmp_path) == before


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        Store(tmp_path / "s.sqlite", read_only=True)
    with pytest.raises(ConfigError, match="in memory"):
        Store("sqlite://", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_a_sentence(server: ViewServer, store: Path) -> None:
    with Viewer(partial(Store, store, read_only=True)) as viewer, pytest.raises(ConfigError, match="cannot listen on"):
        ViewServer(viewer, port=int(server.server_address[1]))
