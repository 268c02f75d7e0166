"""The eval set of a run is read once, and a fault in it leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debate import CallbackEvaluator, Scale
from debate.backends import Scripted
from debate.bundled_judge import model_path
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.dataset.readers import RecordFile
from debate.errors import TaskError
from debate.evaluators.base import Evaluator
from debate.jobs.run import Run
from debate.jobs.run_directory import RunDirectory
from debate.store import Store
from debate.testing import SilentListener, reply_for
from tests.small_flows import debates


def write(path: Path, n: int, **last: Any) -> Path:
    tasks: list[dict[str, Any]] = [{"id": f"t{k}", "x": "?", "candidates": ["a", "b"]} for k in range(n)]
    tasks[-1] |= last
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return path


def execute(evalset: Path, out: Path, **settings: Any) -> int:
    job = Run(evalset=EvalSet(evalset), folder=out, evaluator=debates(rounds=1), settings=RunSettings(**settings))
    return job.execute({"scripted": Scripted(reply_for)}, SilentListener())[1].n_evaluated


def test_a_new_run_opens_its_eval_set_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    first = RecordFile.__init__

    def counted(self: RecordFile, path: Path) -> None:
        opened.append(path)
        first(self, path)

    monkeypatch.setattr(RecordFile, "__init__", counted)
    assert execute(write(tmp_path / "tasks.jsonl", 3), tmp_path / "out") == 3
    assert len(opened) == 1


def test_a_broken_eval_set_leaves_nothing_behind(tmp_path: Path) -> None:
    evalset = write(tmp_path / "tasks.jsonl", 3, candidates=[])
    with pytest.raises(TaskError, match=r"tasks\.jsonl:3"):
        execute(evalset, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_store_of_before_stays_when_the_eval_set_is_broken(tmp_path: Path) -> None:
    evalset, store = write(tmp_path / "tasks.jsonl", 3, candidates=[]), tmp_path / "s.sqlite"
    with pytest.raises(TaskError):
        execute(evalset, tmp_path / "out", store=str(store))
    with Store(store) as opened:
        assert opened.runs() == []


def test_an_eval_set_that_changed_is_read_again_and_a_fault_in_it_keeps_the_run(tmp_path: Path) -> None:
    evalset, out = write(tmp_path / "tasks.jsonl", 3), tmp_path / "out"
    execute(evalset, out)
    with pytest.raises(TaskError):
        execute(write(evalset, 4, candidates=[]), out)
    assert execute(write(evalset, 4), out) == 4


class Noting(SilentListener):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_folder_says_nothing_that_its_store_does_not_know_and_keeps_what_the_run_was_begun_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[str]] = []
    write_down = RunDirectory.write

    def watched(self: RunDirectory, **more: Any) -> None:
        write_down(self, **more)
        written.append(RunDirectory.existing(self.path).changes())

    monkeypatch.setattr(RunDirectory, "write", watched)
    evalset, out = write(tmp_path / "tasks.jsonl", 3), tmp_path / "out"
    execute(evalset, out, max_concurrency=2)
    execute(evalset, out, max_concurrency=3)
    resumed = Run(evalset=None, folder=out, evaluator=debates(rounds=1), settings=RunSettings(max_concurrency=4))
    resumed.execute({"scripted": Scripted(reply_for)}, SilentListener())
    assert written == [[], [], []]
    assert RunDirectory.existing(out).settings == {"max_concurrency": 3}


def equal(x: str, text: str) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("evaluator", "expected"),
    [
        (debates(rounds=1), ["the same candidate stands twice in 2 of", "nothing to compare, in 1 of"]),
        (CallbackEvaluator(equal, scale=Scale(0, 9)), ["the same candidate stands twice in 2 of"]),
    ],
)
def test_candidates_that_are_probably_a_mistake_are_noted_once(
    tmp_path: Path, evaluator: Evaluator, expected: list[str]
) -> None:
    given = [["a", "b"], ["a", "a"], ["a"], ["b", "a", "b"]]
    rows = [{"id": f"t{n}", "x": "?", "candidates": candidates} for n, candidates in enumerate(given)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = Run(evalset=EvalSet(tmp_path / "t.jsonl"), folder=tmp_path / "out", evaluator=evaluator)
    first, again = Noting(), Noting()
    job.execute({"scripted": Scripted(reply_for)}, first)
    assert [any(text in note for note in first.notes) for text in expected] == [True] * len(expected)
    assert len(first.notes) == len(expected)
    assert first.notes[0].endswith("t.jsonl:2")
    job.execute({"scripted": Scripted(reply_for)}, again)
    assert again.notes == []


OUTSIDE = "outside of the bundled judge's world (sums, differences, the largest, sorting), so that"


@pytest.mark.parametrize(
    ("evaluator", "model", "expected"),
    [
        (debates(rounds=1, abstain=True), str(model_path()), [f"{OUTSIDE} it abstains, in 2 of the tasks, first "]),
        (debates(rounds=1), str(model_path()), [f"{OUTSIDE} its scores are noise, in 2 of the tasks, first "]),
        (debates(rounds=1, abstain=True), "another", []),
        (CallbackEvaluator(equal, scale=Scale(0, 9)), str(model_path()), []),
    ],
    ids=["abstains", "cannot abstain", "another model", "no model"],
)
def test_tasks_outside_of_the_bundled_judges_world_are_noted_once(
    tmp_path: Path, evaluator: Evaluator, model: str, expected: list[str]
) -> None:
    given = ["17+25?", "Which caption is best?", "Sort 3 1 2.", "Write a poem."]
    rows = [{"id": f"t{n}", "x": x, "candidates": ["a", "b"]} for n, x in enumerate(given)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = Run(evalset=EvalSet(tmp_path / "t.jsonl"), folder=tmp_path / "out", evaluator=evaluator)
    first, again = Noting(), Noting()
    for noting in (first, again):
        job.execute({model: Scripted(reply_for, model=model)}, noting)
    assert [any(text in note for note in first.notes) for text in expected] == [True] * len(expected)
    assert len(first.notes) == len(expected)
    assert again.notes == []
