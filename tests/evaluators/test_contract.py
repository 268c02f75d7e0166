"""What an evaluator of somebody else's may get wrong: one task fails with a sentence, and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import Engine, Evaluation, Scale, Task, ValueEvaluator
from debate.backends import Scripted
from debate.errors import ConfigError
from debate.flow import Flow, RunContext
from debate.testing import reply_for
from tests.small_flows import FlowEvaluator, asks, scored, tasks

Body = Callable[[Task, RunContext], Any]


def returns(change: Callable[[Evaluation], Any]) -> Body:
    """A flow that returns a changed evaluation."""

    def flow(task: Task, run: RunContext) -> Flow[Any]:
        yield from ()
        return change(scored(task, 1.0))

    return flow


MEMBER = {"members": (scored(Task("x", ["a"]), 1.0, details={"deep": object()}),)}
FAULTS: dict[str, tuple[Body, str]] = {
    "no generator": (lambda task, run: 7, "`flow` returned int, not a generator"),
    "None": (returns(lambda found: None), "the flow returned NoneType, not an Evaluation"),
    "too few scores": (
        returns(lambda found: replace(found, scores=found.scores[:1])),
        "`scores` has shape (1,), not (2,)",
    ),
    "a list of scores": (
        returns(lambda found: replace(found, scores=[1.0, 2.0])),
        "`scores` must be an array of numbers",
    ),
    "texts for scores": (
        returns(lambda found: replace(found, scores=np.array(["a", "b"]))),
        "`scores` must be an array of numbers",
    ),
    "probabilities of another length": (
        returns(lambda found: replace(found, probabilities=np.ones(3))),
        "`probabilities` has shape (3,), not (2,)",
    ),
    "statuses of another length": (
        returns(lambda found: replace(found, statuses=("ok",))),
        "there are 1 `statuses` for 2 candidates",
    ),
    "beyond the scale": (
        returns(lambda found: replace(found, scale=Scale(0, 10), scores=np.array([1.0, 10.5]))),
        "the score of candidate 2 is 10.5, not in 0 to 10",
    ),
    "infinite": (
        returns(lambda found: replace(found, scale=Scale(0, np.inf), scores=np.array([np.inf, 1.0]))),
        "the score of candidate 1 is inf, not in 0 to inf",
    ),
    "a numpy index": (
        returns(lambda found: replace(found, selected=np.int64(1))),
        "`selected` is np.int64(1), not int | None",
    ),
    "True for an index": (returns(lambda found: replace(found, selected=True)), "`selected` is True, not int | None"),
    "a status of its own": (returns(lambda found: replace(found, status="great")), "`status` is 'great', not Status"),
    "no name": (returns(lambda found: replace(found, evaluator=None)), "`evaluator` is None, not str"),
    "a list of failures": (returns(lambda found: replace(found, failures=["x"])), "`failures` is ['x'], not tuple["),
    "texts for failures": (returns(lambda found: replace(found, failures=("x",))), "`failures` is ('x',), not tuple["),
    "no members": (returns(lambda found: replace(found, members=(None,))), "`members` is (None,), not tuple["),
    "a tensor of lists": (returns(lambda found: replace(found, tensor=[[[[1.0]]]])), "`tensor` is [[[[1.0]]]], not"),
    "no scale": (returns(lambda found: replace(found, scale=(0, 10))), "`scale` is (0, 10), not Scale"),
    "tied with nobody": (returns(lambda found: replace(found, tied=(0, 2))), "`tied` is (0, 2), not some candidates'"),
    "numbers as keys": (
        returns(lambda found: replace(found, details={1: 2})),
        "`details` must have texts as keys, got [1]",
    ),
    "no such candidate": (returns(lambda found: replace(found, selected=2)), "`selected` is 2, no candidate's index"),
    "another task": (returns(lambda found: replace(found, task_id="t9")), "the evaluation is of the task 't9', not"),
    "a set in details": (returns(lambda found: replace(found, details={"seen": {1}})), "`details` must be plain data"),
    "an object in a member's details": (returns(lambda found: replace(found, **MEMBER)), "`details` must be plain"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("is_stored", [False, True], ids=["unrecorded", "recorded"])
def test_a_fault_of_an_evaluator_fails_its_own_task_with_a_sentence(
    fault: str, is_stored: bool, tmp_path: Path
) -> None:
    body, message = FAULTS[fault]
    store = tmp_path / "s.sqlite" if is_stored else None
    with Engine(Scripted(reply_for), store=store) as engine:
        good, bad = engine.evaluate_batch(tasks(2), [asks(1), FlowEvaluator(body, name="faulty")])
        (alone,) = engine.iter_evaluate(tasks(1), FlowEvaluator(body, name="faulty"))
    assert good.status == "ok"
    for failed in (bad, alone):
        assert failed.status == "failed"
        assert failed.error is not None and failed.error.startswith(f"EvaluatorError: {message}")
        assert np.isnan(failed.scores).tolist() == [True, True]


@pytest.mark.parametrize("footprint", [None, 7])
def test_what_is_no_footprint_fails_its_own_task(footprint: Any) -> None:
    faulty = FlowEvaluator(asks(1).body, size=lambda task: footprint)
    with Engine(Scripted(reply_for)) as engine:
        good, bad = engine.evaluate_batch(tasks(2), [asks(1), faulty])
    assert good.status == "ok"
    assert bad.error == f"EvaluatorError: `footprint` returned {type(footprint).__name__}, not a Footprint"


def test_a_score_off_the_scale_by_rounding_is_on_it() -> None:
    body = returns(lambda found: replace(found, scale=Scale(0, 10), scores=np.array([10.000000000000002, np.nan])))
    with Engine(Scripted(reply_for)) as engine:
        assert engine.evaluate(tasks(1)[0], FlowEvaluator(body)).status == "ok"


class Partial:
    """An evaluator that lacks one of its members."""

    def __init__(self, missing: str) -> None:
        whole = asks(1)
        for name in ("name", "scale", "models", "flow", "footprint", "check", "describe"):
            if name != missing:
                setattr(self, name, getattr(whole, name))


@pytest.mark.parametrize("missing", ["name", "scale", "models", "flow", "footprint", "check", "describe"])
def test_an_evaluator_that_lacks_a_member_is_refused_before_anything_is_asked(missing: str) -> None:
    lacking: Any = Partial(missing)
    with Engine(Scripted(reply_for)) as engine:
        assert engine.evaluate(tasks(1)[0], Partial("")).status == "ok"  # pyright: ignore[reportArgumentType]
        for evaluate in (engine.evaluate_batch, engine.iter_evaluate):
            with pytest.raises(ConfigError, match=f"evaluator: Partial is no evaluator: it has no `{missing}`"):
                list(evaluate(tasks(2), lacking))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ValueEvaluator, "ValueEvaluator is a class, not an evaluator"),
        (FlowEvaluator(asks(1).body, models=None), "`models` of FlowEvaluator must be a frozenset of names, not None"),  # pyright: ignore[reportArgumentType]
        (7, "int is no evaluator"),
    ],
)
def test_what_is_no_evaluator_is_refused_before_anything_is_asked(given: Any, message: str) -> None:
    with Engine(Scripted(reply_for)) as engine:
        for evaluate in (lambda: engine.evaluate_batch(tasks(1), [given]), lambda: engine.evaluate(tasks(1)[0], given)):
            with pytest.raises(ConfigError, match=message):
                evaluate()


class Numpy(FlowEvaluator):
    """Its settings are no plain data."""

    def describe(self) -> dict[str, Any]:
        return {"samples": np.int64(3)}


def test_a_flow_that_returns_nothing_ends_no_stream() -> None:
    empty = FlowEvaluator(returns(lambda found: None), name="empty")
    with Engine(Scripted(reply_for)) as engine:
        found = list(engine.iter_evaluate(tasks(3), empty))
    assert sorted((each.task_id, each.status) for each in found) == [(f"t{n}", "failed") for n in range(3)]


def test_settings_that_are_no_plain_data_are_refused_where_they_would_be_recorded(tmp_path: Path) -> None:
    with (
        Engine(Scripted(reply_for), store=tmp_path / "s.sqlite") as engine,
        pytest.raises(ConfigError, match="`describe` of Numpy must return plain data"),
    ):
        engine.evaluate(tasks(1)[0], Numpy(asks(1).body))
