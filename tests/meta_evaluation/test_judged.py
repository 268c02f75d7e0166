"""A run is read as arrays that say what its evaluations say, with the labels of its tasks or of a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import DebateEvaluator
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.errors import BackendUnavailableError, InputError, TaskError
from debate.jobs.run import Run
from debate.meta_evaluation.judged import read_run
from debate.testing import SilentListener, reply_for
from tests.small_flows import debates

ROWS: list[dict[str, Any]] = [
    {"id": "t0", "best": "B", "metadata": {"group": "sums", "votes": [{"by": "anna", "best": "b"}]}},
    {"id": "t1", "metadata": {"ranking": [1, 1]}},
    {"id": "t2"},
]


def run(folder: Path, evaluator: DebateEvaluator | None = None, script: Callable[[Call], str] = reply_for) -> Path:
    evalset = folder / "tasks.jsonl"
    shown = {"x": "?", "candidates": [{"text": "one", "id": "a"}, {"text": "other", "id": "b", "generator": "m"}]}
    evalset.write_text("".join(json.dumps({**shown, **row}) + "\n" for row in ROWS))
    job = Run(
        evalset=EvalSet(evalset),
        folder=folder / "out",
        evaluator=evaluator or debates(rounds=2),
        settings=RunSettings(),
    )
    job.execute({"scripted": Scripted(script)}, SilentListener())
    return folder / "out"


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    file = folder / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("run"))


def test_a_run_as_arrays_says_what_its_evaluations_say(out: Path) -> None:
    found = read_run(out)
    assert [each.task_id for each in found.tasks] == ["t0", "t1", "t2"]
    for each in found.tasks:
        task, evaluation = found.evaluation(each.task_id)
        for name in ("scores", "probabilities", "tensor", "cv"):
            assert np.array_equal(getattr(each, name), getattr(evaluation, name), equal_nan=True), name
        for name in ("choice", "status", "agents", "components", "scale", "order_agreement", "usage"):
            assert getattr(each, name) == getattr(evaluation, name), name
        assert [(turn.round, each.agents[turn.agent], turn.order) for turn in each.turns] == [
            (turn.round, turn.agent, tuple(turn.labels.values())) for turn in evaluation.transcript
        ]
        assert each.generators == ("", "m")
        assert each.lengths.tolist() == [len(candidate.text) for candidate in task.candidates]
        assert each.verdict == evaluation.verdict(task.best)


def test_labels_of_the_tasks_are_there_and_a_file_takes_their_place(tmp_path: Path, out: Path) -> None:
    first, tie, bare = read_run(out).tasks
    assert (first.group, first.labels.together.best, first.labels.votes[0].best) == ("sums", (1,), (1,))
    assert (tie.labels.together.choice, tie.verdict, bool(bare.labels)) == ((0, 1), None, False)
    labels = written(tmp_path, {"task_id": "t2", "best": "m"}, {"task_id": "elsewhere", "best": 0})
    found = read_run(out, labels)
    assert [each.labels.together.best for each in found.tasks] == [(), (), (1,)]
    assert found.unknown_labels == ("elsewhere",)


def test_the_members_of_a_balanced_debate_have_the_labels_too(tmp_path: Path) -> None:
    out = run(tmp_path, debates(rounds=1, candidate_order="balanced"))
    assert [member.labels.together.best for member in read_run(out).tasks[0].members] == [(1,), (1,)]
    found = read_run(out, written(tmp_path, {"task_id": "t0", "best": 0}))
    assert [member.labels.together.best for member in found.tasks[0].members] == [(0,), (0,)]


def test_labels_in_tasks_that_are_in_another_form_do_not_keep_those_of_a_file_from_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unchecked(*_: object) -> None:
        """As eval sets were read before labels had a form."""

    monkeypatch.setattr("debate.dataset.build.labels_of", unchecked)
    monkeypatch.setitem(ROWS[2], "metadata", {"votes": 12})
    out = run(tmp_path)
    with pytest.raises(TaskError, match=r"metadata\.votes: task 't2': must be a list"):
        read_run(out)
    assert read_run(out, written(tmp_path, {"task_id": "t2", "best": 0})).tasks[2].labels.together.best == (0,)


def test_unread_turns_are_told_and_their_cells_are_unscored(tmp_path: Path) -> None:
    def script(call: Call) -> str:
        return "garbage" if (call.info["task_id"], call.info["agent"]) == ("t1", "Critic") else reply_for(call)

    found = read_run(run(tmp_path, debates(rounds=1, retries=0, quorum=1), script)).tasks[1]
    assert [turn.is_unread for turn in found.turns] == [True, False]
    assert found.tensor is not None
    assert np.isnan(found.tensor).all(axis=(2, 3)).tolist() == [[True, False]]


def test_a_run_that_evaluated_nothing_is_refused(tmp_path: Path) -> None:
    def script(_: Call) -> str:
        raise BackendUnavailableError("the server is down")

    with pytest.raises(BackendUnavailableError):
        run(tmp_path, script=script)
    with pytest.raises(InputError, match="holds no evaluation yet"):
        read_run(tmp_path / "out")
