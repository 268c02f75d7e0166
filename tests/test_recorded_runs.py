"""Runs that an earlier version recorded: gone on with, shown, exported, put together anew; see `recorded_runs`."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from debate.testing.fake_server import FakeServer
from tests.golden_cases import with_new_keys
from tests.recorded_runs import (
    CHECKOUT,
    FINISHED,
    OF_THE_INTERRUPTED,
    OTHER_SETTINGS,
    RUNS,
    TASKS,
    Counted,
    called,
    check_out,
    command,
    results,
    written,
)

EVERY_RUN = ("interrupted", *FINISHED)


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """A folder with the eval set, the recorded runs, `other.yaml` and a checkout, to work in."""
    for name in EVERY_RUN:
        shutil.copytree(RUNS / name, tmp_path / name)
    shutil.copy(RUNS / TASKS, tmp_path / TASKS)
    (tmp_path / "other.yaml").write_text(OTHER_SETTINGS, encoding="utf-8")
    check_out(tmp_path / CHECKOUT)
    return tmp_path


def kept(name: str) -> str:
    return (RUNS / name).read_text(encoding="utf-8")


def kept_results(name: str) -> str:
    """Results that an earlier version kept, with the keys of now, and the end of the scale that the weights give."""
    found = [with_new_keys(json.loads(line)) for line in kept(name).splitlines()]
    for each in found if name == "undisturbed.jsonl" else []:  # by the article, with the weights 1, 0.5 and 0.5
        each["scale"]["high"] = 20 / 3
    return written(found)


def assert_gone_on(cwd: Path, counted: Counted) -> None:
    """Only what was missing was asked, once, and the results are those of a run that nothing disturbed."""
    calls = json.loads(kept("answered.json"))
    assert not {*counted.answered} & {*calls["answered"]}
    assert sorted([*counted.answered, *calls["answered"]]) == calls["all"]
    assert written(results(cwd / "interrupted")) == kept_results("undisturbed.jsonl")


def test_an_interrupted_run_is_half_done(cwd: Path) -> None:
    with closing(sqlite3.connect(cwd / "interrupted" / "run.sqlite")) as connection:
        query = "SELECT position, count(*) FROM calls WHERE kind = 'generate' AND attempt = 0 GROUP BY position"
        calls = dict(connection.execute(query).fetchall())
        done = {position for (position,) in connection.execute("SELECT position FROM evaluations")}
        positions = {position for (position,) in connection.execute("SELECT position FROM tasks")}
    assert done
    assert {*calls} - done
    assert positions - {*calls}
    assert len(done) == len(results(cwd / "interrupted"))


def test_the_same_command_goes_on_with_an_interrupted_run(cwd: Path) -> None:
    counted = Counted()
    with FakeServer(counted) as server:
        done = called(command("interrupted", server.url, *OF_THE_INTERRUPTED), cwd)
    assert done.returncode in (0, 3), done.stderr
    assert_gone_on(cwd, counted)


def test_an_interrupted_run_is_resumed_without_its_eval_set(cwd: Path) -> None:
    (cwd / TASKS).unlink()
    counted = Counted()
    with FakeServer(counted) as server:
        record = json.loads((cwd / "interrupted" / "run.json").read_text(encoding="utf-8"))
        record["settings"]["base_url"] = f"{server.url}/v1"
        (cwd / "interrupted" / "run.json").write_text(json.dumps(record), encoding="utf-8")
        done = called(["resume", "interrupted"], cwd)
    assert done.returncode in (0, 3), done.stderr
    assert_gone_on(cwd, counted)


def test_a_run_keeps_the_method_it_was_recorded_with_until_another_is_given(cwd: Path) -> None:
    with FakeServer(Counted()) as server:
        same = command("interrupted", server.url, *OF_THE_INTERRUPTED)
        first = called(same, cwd)
        by_article = results(cwd / "interrupted")
        asked = len(server.requests)
        given = called([*same, "--method", "weighted_mean"], cwd)
        by_weighted_mean = results(cwd / "interrupted")
        again = called(same, cwd)
        assert len(server.requests) == asked
    assert {first.returncode, given.returncode, again.returncode} <= {0, 3}, (first.stderr, given.stderr, again.stderr)
    for old, new in zip(by_article, by_weighted_mean, strict=True):
        assert (old["scale"]["high"], new["scale"]["high"]) == (20 / 3, 10)
        assert new["scores"] == pytest.approx([1.5 * score for score in old["scores"]])
    assert written(results(cwd / "interrupted")) == written(by_weighted_mean)
    assert "made anew" not in again.stderr


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_run_says_so_without_a_call(cwd: Path, name: str) -> None:
    with FakeServer() as server:
        done = called(command(name, server.url, *FINISHED[name][0]), cwd)
        assert server.requests == []
    assert done.returncode in (0, 3), done.stderr
    n = len(results(RUNS / name))
    assert f"{n} of {n} tasks have a result already" in done.stderr
    assert written(results(cwd / name)) == written(results(RUNS / name))


@pytest.mark.parametrize("name", FINISHED)
def test_lost_results_are_made_again_from_the_store(cwd: Path, name: str) -> None:
    (cwd / name / "results.jsonl").unlink()
    with FakeServer() as server:
        done = called(command(name, server.url, *FINISHED[name][0]), cwd)
        assert server.requests == []
    assert done.returncode in (0, 3), done.stderr
    assert written(results(cwd / name)) == written(results(RUNS / name))


@pytest.mark.parametrize("name", FINISHED)
def test_the_answers_of_a_finished_run_are_put_together_in_another_way_without_a_call(cwd: Path, name: str) -> None:
    arguments, other = FINISHED[name]
    with FakeServer() as server:
        done = called(command(name, server.url, *arguments, *other), cwd)
        assert server.requests == []
    assert done.returncode in (0, 3), done.stderr
    found = written(results(cwd / name))
    assert found == kept_results(f"{name}.other.jsonl")
    assert found != written(results(RUNS / name))


@pytest.mark.parametrize("name", EVERY_RUN)
def test_a_recorded_run_is_shown(cwd: Path, name: str) -> None:
    expected = results(RUNS / name)
    listed = called(["show", name, "--list"], cwd)
    assert listed.returncode == 0, listed.stderr
    assert all(each["task_id"] in listed.stdout for each in expected)
    one = called(["show", name, expected[0]["task_id"], "--raw"], cwd)
    assert one.returncode == 0, one.stderr
    assert "What is " in one.stdout  # the task, out of the store


@pytest.mark.parametrize("name", EVERY_RUN)
def test_a_recorded_run_is_exported(cwd: Path, name: str) -> None:
    formats = ("preferences", "inspect", "alpaca_eval")
    done = called(["export", name, *(part for each in formats for part in ("--to", each)), "--out", "."], cwd)
    assert done.returncode == 0, done.stderr
    assert (cwd / "preferences.jsonl").read_text(encoding="utf-8") == kept(f"{name}.preferences.jsonl")


def test_nothing_recorded_names_a_machine() -> None:
    for name in EVERY_RUN:
        with closing(sqlite3.connect(f"file:{RUNS / name / 'run.sqlite'}?mode=ro&immutable=1", uri=True)) as store:
            assert store.execute("SELECT name FROM runs").fetchall() == [(f"runs/{name}",)]
            assert "elsewhere" in store.execute("SELECT holder FROM runs").fetchone()[0]
    for file in RUNS.rglob("*"):
        assert file.is_dir() or not any(root in file.read_bytes() for root in (b"/tmp/", b"/home/", b"/Users/")), file
