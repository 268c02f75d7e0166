"""`debate stopping`: what it prints of a run, and the settings that it tries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debate import DebateEvaluator
from tests.command_line import debate
from tests.meta_evaluation.small_runs import scripted_run

TASKS = [{"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b", "c"], "metadata": {"best": n % 3}} for n in range(8)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    scripted_run(folder, TASKS, DebateEvaluator("general", convergence=None))
    return folder


def test_each_rule_has_a_line_and_one_is_named_the_cheapest(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = ("--rule", "ranking", "--rule", "cv=0.5,over=pooled", "--agents", "1")
    assert debate(monkeypatch, "stopping", run, *rules) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for text in ("as recorded", "ranking", "cv=0.5,over=pooled", "first 1: ranking*", "8 debated tasks, 8 of them"):
        assert text in shown
    assert "Cheapest within one point of the best" in shown
    assert "these agents had heard those that are left out" in shown


def test_everything_is_there_as_json(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, "stopping", run, "--rule", "rounds=1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    [trial] = found["trials"]
    assert (trial["rule"], trial["rounds"], trial["undecided"], found["recorded"]["rule"]) == ("rounds=1", 1, 0, "none")
    assert 0 < trial["tokens"] < found["recorded"]["tokens"]


def test_labels_of_a_file_stand_in_place_of_those_of_the_tasks(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "labels.jsonl").write_text('{"task_id": "t0", "best": 1}\n{"task_id": "other", "best": 1}\n')
    assert debate(monkeypatch, "stopping", run, "--rule", "rounds=1", "--labels", tmp_path / "labels.jsonl") == 0
    told = capsys.readouterr().out
    assert "8 debated tasks, 1 of them labeled" in told
    assert "Labels of 1 tasks are left out, which the run does not have: other" in told


def test_a_rule_that_there_is_not_is_bad_input(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, "stopping", run, "--rule", "boredom") == 2
    assert "--rule: there is no rule 'boredom'" in capsys.readouterr().err


def test_debate_run_takes_a_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS[:2]))
    asked = ("run", tmp_path / "tasks.jsonl", "--backend", "debate.testing:reply_for", "--out", tmp_path / "out")
    assert debate(monkeypatch, *asked, "--stop-rule", "rounds=2") == 0
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert [(line["rounds_run"], line["stop_reason"]) for line in lines] == [(2, "stop_rule")] * 2
