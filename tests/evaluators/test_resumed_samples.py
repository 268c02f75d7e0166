"""A run of samples or ballots goes on under more or fewer of them, and nobody's answer is taken for another's."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from debate import Engine, StepEvaluator, Task, ValueEvaluator, VoteEvaluator
from debate.backends import Call, Scripted
from debate.errors import BackendUnavailableError
from debate.evaluators.base import Evaluator
from debate.evaluators.steps.prompted import PromptedSteps
from debate.testing import Recorder, reply_for

WORTH = {"good": 9, "bad": 1, "fair": 5}
TASK = Task("Which is best?", list(WORTH), id="t")


def judge(call: Call) -> str:
    """Values each candidate by its worth, however often it is asked."""
    text = call.messages[-1]["content"]
    worth = next(worth for name, worth in WORTH.items() if name in text)
    return json.dumps({"reasoning": "so it is", "value": worth})


def lost_after(n: int) -> Any:
    """The same judge, which is gone after so many answers."""
    left = [n]

    def script(call: Call) -> str:
        left[0] -= 1
        if left[0] < 0:
            raise BackendUnavailableError("the server is gone")
        return judge(call)

    return script


def scores(evaluator: Any, store: Path, script: Any) -> Any:
    with Engine(Scripted(script), store=f"sqlite:///{store}", max_concurrency=1) as engine:
        return engine.evaluate_batch([TASK], evaluator, run="r")[0].scores.tolist()


@pytest.mark.parametrize("first", [1, 2, 4])
@pytest.mark.parametrize("answered", range(1, 8))
def test_more_samples_after_an_interruption_are_each_candidates_own(tmp_path: Path, first: int, answered: int) -> None:
    store = tmp_path / "s.sqlite"
    with suppress(BackendUnavailableError):
        scores(ValueEvaluator(samples=first), store, lost_after(answered))
    assert scores(ValueEvaluator(samples=4), store, judge) == [9, 1, 5]


def test_another_number_of_samples_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    asked: list[int] = []
    for samples in (2, 4, 1):
        script = Recorder(judge)
        assert scores(ValueEvaluator(samples=samples), store, script) == [9, 1, 5]
        asked.append(len(script.calls))
    assert asked == [6, 6, 0]


def of_pairs(n: int) -> Evaluator:
    return VoteEvaluator(ballots=n, ballot="pairwise", quorum=1)


def of_steps(n: int) -> Evaluator:
    return StepEvaluator(judge=PromptedSteps(samples=n), split="\n")


@pytest.mark.parametrize("of", [of_pairs, of_steps])
def test_ballots_and_samples_of_steps_go_on_in_the_same_way(tmp_path: Path, of: Callable[[int], Evaluator]) -> None:
    task, found = Task("Which?", ["a\nb", "c\nd", "e\nf"], id="t"), list[int]()
    for n in (1, 3, 2):
        script = Recorder(reply_for)
        with Engine(Scripted(script), store=f"sqlite:///{tmp_path / 's.sqlite'}") as engine:
            assert engine.evaluate_batch([task], of(n), run="r")[0].status == "ok"
        found.append(len(script.calls))
    assert found[0] > 0
    assert found[1:] == [2 * found[0], 0]
