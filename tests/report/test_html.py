"""The file of a report, read as text: what it holds, that no foreign script can run, that it is the same each time."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from debate import DebateEvaluator
from debate.errors import ConfigError, InputError
from debate.meta_evaluation.judged import read_run
from debate.profiles import Profile, load_profile
from debate.report import FILTERS, Paragraph, Section, Tabular, write_report
from debate.report.html import BLOCK
from tests.report.pages import debated, evaluated, tasks, unpacked


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = debated(tmp_path / "run")
    for name in ("a.html", "b.html"):
        write_report(run, tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_policy_names_the_pages_own_script_and_styles_by_their_hashes(tmp_path: Path) -> None:
    write_report(debated(tmp_path / "run", tasks(2)), tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    allowed = html.unescape(page.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0])
    for name, tag in (("script", "<script>"), ("style", "<style>")):
        text = page.split(tag)[1].split(f"</{name}>")[0]
        coded = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{coded}'" in allowed
    assert allowed.startswith("default-src 'none';")
    assert "unsafe" not in allowed
    assert page.count("<script>") == 1
    assert not re.search(r'(src|href)="(?!#)', page)


def test_every_evaluation_is_in_the_file_as_the_store_has_it(tmp_path: Path) -> None:
    run = debated(tmp_path / "run", tasks(BLOCK + 3), rounds=1)
    written = write_report(run, tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert (written.evaluations, written.size) == (BLOCK + 3, (tmp_path / "run.html").stat().st_size)
    held = [*unpacked(page, "b0"), *unpacked(page, "b1")]
    assert len(held) == BLOCK + 3
    with run.directory.open_store() as store:
        for found, (_, task, data) in zip(held, store.read(run.directory.name).result_data(), strict=True):
            assert found == {"task": task, "evaluation": json.loads(data)}
    index = unpacked(page, "index")
    assert index["columns"]["id"] == [f"t{n}" for n in range(BLOCK + 3)]
    assert {len(column) for column in index["columns"].values()} == {BLOCK + 3}


def test_the_index_marks_what_each_filter_shows(tmp_path: Path) -> None:
    run = debated(tmp_path / "run")
    write_report(run, tmp_path / "run.html")
    index = unpacked((tmp_path / "run.html").read_text(encoding="utf-8"), "index")
    places = {each["name"]: n for n, each in enumerate(index["filters"])}
    assert list(places) == [each.name for each in FILTERS]
    for name in ("wrong", "right", "tied"):
        shown = [bool(mark >> places[name] & 1) for mark in index["columns"]["marks"]]
        meant = [len(t.choice) > 1 if name == "tied" else t.verdict == name for t in run.tasks]
        assert shown == meant
        assert index["filters"][places[name]]["count"] == sum(meant)


def test_the_head_is_read_without_a_script(tmp_path: Path) -> None:
    section = Section("What people say", (Tabular(("a", "b"), (("<b>", "2"),), (1,)), Paragraph("Said & done.")))
    run = debated(tmp_path / "my run")
    write_report(run, tmp_path / "run.html", [section])
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    head = page[: page.index('<section id="list"')]
    right = sum(task.verdict == "right" for task in run.tasks)
    for said in (
        "my run",
        f"{right} of 12 right",
        "What people say",
        "&lt;b&gt;",
        "Said &amp; done.",
        "<svg",
        "12 of 12",
    ):
        assert said in head
    assert str(tmp_path) not in page


def test_a_report_of_some_tasks_keeps_the_figures_of_all(tmp_path: Path) -> None:
    run = debated(tmp_path / "run")
    wrong = [task.task_id for task in run.tasks if task.verdict == "wrong"]
    written = write_report(run, tmp_path / "run.html", only=["wrong"])
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert written.evaluations == len(wrong) > 0
    assert unpacked(page, "index")["columns"]["id"] == wrong
    assert "12 of 12 evaluated" in page


def test_a_filter_that_is_not_known_is_refused_and_no_file_is_left(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no filter 'wrnog'"):
        write_report(debated(tmp_path / "run", tasks(2)), tmp_path / "run.html", only=["wrnog"])
    assert not (tmp_path / "run.html").exists()


def test_two_runs_are_joined_by_what_both_were_asked(tmp_path: Path) -> None:
    first = debated(tmp_path / "first", tasks(6))
    changed = [task | {"x": "Another question?"} if task["id"] == "t2" else task for task in reversed(tasks(6))]
    second = debated(tmp_path / "second", changed, rounds=1)
    write_report(first, tmp_path / "both.html", other=second)
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    index, held = unpacked(page, "index"), unpacked(page, "b0")
    assert index["runs"] == ["first", "second"]
    assert index["columns"]["id"] == ["t0", "t1", "t3", "t4", "t5"]
    assert [each["evaluation"]["task_id"] for each in held] == [each["other"]["task_id"] for each in held]
    assert {each["other"]["rounds_run"] for each in held} == {1}
    for n, name in enumerate(index["columns"]["id"]):
        one, two = (next(task for task in run.tasks if task.task_id == name) for run in (first, second))
        lost = one.verdict == "right" and two.verdict != "right"
        assert (index["columns"]["change"][n] == "lost") == lost


def test_runs_without_a_common_task_are_refused(tmp_path: Path) -> None:
    others = [task | {"id": f"other {n}"} for n, task in enumerate(tasks(2))]
    runs = debated(tmp_path / "a", tasks(2)), debated(tmp_path / "b", others)
    with pytest.raises(InputError, match="no task in common"):
        write_report(runs[0], tmp_path / "both.html", other=runs[1])


def head_of(file: Path) -> str:
    """The page above the table of tasks."""
    page = file.read_text(encoding="utf-8")
    return page[: page.index('<section id="list"')]


@pytest.mark.parametrize("is_beside", [False, True], ids=["alone", "beside another"])
def test_labels_of_a_file_count_in_the_head_as_in_the_table(tmp_path: Path, is_beside: bool) -> None:
    run = debated(tmp_path / "run", tasks(6))
    decided = [task for task in run.tasks if len(task.choice) == 1]
    labels = [{"task_id": task.task_id, "best": (task.choice[0] + (n == 0)) % 3} for n, task in enumerate(decided)]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    joined = read_run(run.directory.path, tmp_path / "labels.jsonl")
    other = debated(tmp_path / "other", tasks(6), rounds=1) if is_beside else None
    write_report(joined, tmp_path / "run.html", other=other)
    head = head_of(tmp_path / "run.html")
    right = len(decided) - 1
    assert f"{right} of {len(decided)} right" in head
    assert f"<strong>{right}</strong> right" in head


@pytest.mark.parametrize("order", ["shuffle", "balanced"])
def test_rounds_are_those_that_were_debated_and_bars_count_their_tasks(tmp_path: Path, order: str) -> None:
    settle = {"shuffle": "agreement=0.6", "balanced": "agreement=0.3"}[order]
    run = debated(tmp_path / "run", settle=settle, candidate_order=order)
    write_report(run, tmp_path / "run.html")
    found = unpacked((tmp_path / "run.html").read_text(encoding="utf-8"), "index")["columns"]
    settled = [stop == "settled" for stop in found["stop"]]
    assert 0 < sum(settled) < 12
    assert found["rounds"] == [0 if is_settled else 2 for is_settled in settled]
    head = head_of(tmp_path / "run.html")
    assert f'<a href="#r=2" aria-label="round 2: {12 - sum(settled)}">' in head
    assert '<a href="#r=1" aria-label="round 1: 0">' in head


def test_agreement_that_is_not_defined_is_not_drawn(tmp_path: Path) -> None:
    title = "Mean coefficient of variation"
    for name, profile in (("several", "general"), ("alone", alone())):
        evaluator = DebateEvaluator(profile, rounds=2, convergence=None)
        write_report(evaluated(tmp_path / name, evaluator), tmp_path / f"{name}.html")
        assert (title in head_of(tmp_path / f"{name}.html")) == (name == "several")
        assert "Debates by rounds taken" in head_of(tmp_path / f"{name}.html")


def alone() -> Profile:
    """A profile of one agent."""
    general = load_profile("general")
    return replace(general, personas=general.personas[:1])


def test_a_run_named_as_the_place_of_the_debates_has_a_report(tmp_path: Path) -> None:
    write_report(debated(tmp_path / "DEBATES_STAND_HERE", tasks(2)), tmp_path / "run.html")
    assert "<h1>DEBATES_STAND_HERE</h1>" in head_of(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert [each["task"]["x"] for each in unpacked(page, "b0")] == ["Question 0?", "Question 1?"]
    assert page.index('<section id="list"') < page.index('id="b0"') < page.index("<script>")


def test_a_run_without_labels_has_a_report(tmp_path: Path) -> None:
    bare = [{key: value for key, value in task.items() if key != "metadata"} for task in tasks(3)]
    write_report(debated(tmp_path / "run", bare), tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "accuracy" not in page.split("What ran")[1].split("</dl>")[0]
