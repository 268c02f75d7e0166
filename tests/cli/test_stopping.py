"""`debate stopping`: what it prints of a run, and the settings that it tries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from debate import DebateEvaluator
from tests.command_line import debate
from tests.meta_evaluation import silent_judge
from tests.meta_evaluation.silent_judge import silent_run
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


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("silent")
    silent_run(folder, silent_judge.tasks(100), DebateEvaluator("general", rounds=1, silent_readouts=True))
    return folder


def test_a_threshold_is_said_with_its_promise_and_written(
    silent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settle.yaml"
    given = ("--settle-error", "0.05", "--rule", "rounds=1", "--out", file)
    assert debate(monkeypatch, "stopping", silent, *given) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "settles 80 of 100 tasks (80%) without a debate" in shown
    assert "0 of the 80 among 100 are wrong" in shown
    assert yaml.safe_load(file.read_text())["settle"].startswith("p_best=0.9")
    assert debate(monkeypatch, "stopping", silent, *given) == 2
    assert "exists already" in capsys.readouterr().err


def test_silent_rounds_alone_are_enough_for_a_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = tmp_path / "run", tmp_path / "settle.yaml"
    sure = [task for n, task in enumerate(silent_judge.tasks(125)) if n % silent_judge.DOUBT]
    silent_run(folder, sure, DebateEvaluator("general", settle="p_best=0.000001"))
    assert debate(monkeypatch, "stopping", folder, "--settle-error", "0.05", "--out", file) == 0
    assert "settles 100 of 100 tasks (100%) without a debate" in " ".join(capsys.readouterr().out.split())
    assert yaml.safe_load(file.read_text())["settle"].startswith("p_best=0.9")
    assert debate(monkeypatch, "stopping", folder, "--settle-error", "0.05", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"settling"}
    assert debate(monkeypatch, "stopping", folder, "--settle-error", "0.01", "--out", tmp_path / "none.yaml") == 0
    assert "Nothing is written: no threshold can be promised." in capsys.readouterr().err
    assert debate(monkeypatch, "stopping", folder, "--settle-error", "0.05", "--rule", "ranking") == 2
    assert "holds no debates" in capsys.readouterr().err


def test_what_cannot_be_promised_is_said_and_not_written(
    silent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settle.yaml"
    assert debate(monkeypatch, "stopping", silent, "--settle-error", "0.01", "--rule", "none", "--out", file) == 0
    told = capsys.readouterr()
    assert "No threshold of p_best can be promised" in told.out
    assert "Nothing is written" in told.err
    assert not file.exists()


def test_a_threshold_needs_silent_rounds(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, "stopping", run, "--settle-error", "0.05") == 2
    assert "has no silent round" in capsys.readouterr().err


def test_both_parts_stand_in_the_page_of_agreement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    silent_run(tmp_path, silent_judge.tasks(20), DebateEvaluator("general", rounds=1, settle="p_best=0.8"))
    assert debate(monkeypatch, "agree", tmp_path) == 0
    shown = capsys.readouterr().out
    assert "Settled and debated" in shown
    assert "By the rule p_best=0.8." in shown
    assert debate(monkeypatch, "show", tmp_path, "t1") == 0
    assert "Silent round" in capsys.readouterr().out
    assert debate(monkeypatch, "fit", tmp_path, "--settle-error", "0.25") == 0
    assert "what a silent round may settle" in capsys.readouterr().out
