"""What a run would ask, found by rehearsal: a run with other replies asks something in between."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import (
    CallbackEvaluator,
    DebateEvaluator,
    Engine,
    PanelEvaluator,
    Scale,
    Task,
    ValueEvaluator,
    VoteEvaluator,
)
from debate.backends import Scripted
from debate.evaluation import Evaluation
from debate.evaluators.base import BaseEvaluator, Evaluator, RunContext
from debate.evaluators.value import EarlyStop
from debate.flow import Flow
from debate.jobs.estimate import _FILLER, _longest, estimate, evenly  # pyright: ignore[reportPrivateUsage]
from debate.parsing.schema import bounded_text
from debate.testing import reply_for
from debate.types import Usage


def one(x: str, text: str) -> float:
    return 1.0


TASKS = [Task(f"What is {n} + {n}?", ["It is small.", f"It is {2 * n}.", "Who knows?"][: 2 + n % 2]) for n in range(5)]
EVALUATORS: list[Evaluator] = [
    DebateEvaluator("general"),
    DebateEvaluator("general", rounds=1),
    DebateEvaluator("general", convergence=None, reply="compact", abstain=True),
    DebateEvaluator("general", candidate_order="balanced", stop_rule="ranking"),
    DebateEvaluator("general", readout="cells", silent_readouts=True),
    DebateEvaluator("general", rounds=2, settle="p_best=0.5"),
    DebateEvaluator("general", readout="expected", mode="simultaneous"),
    ValueEvaluator(),
    ValueEvaluator(early_stop=EarlyStop()),
    VoteEvaluator(),
    VoteEvaluator(ballot="pairwise"),
    PanelEvaluator(members={"debate": DebateEvaluator("general"), "vote": VoteEvaluator(ballots=2)}),
]


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda each: each.name)
def test_what_is_asked_with_other_replies_lies_between_the_least_and_the_most(evaluator: Evaluator) -> None:
    found = estimate(evaluator, TASKS)
    assert found is not None
    assert found.rehearsed == len(TASKS)
    with Engine(Scripted(reply_for)) as engine:
        asked = sum((each.usage for each in engine.evaluate_batch(TASKS, evaluator)), Usage())
    for name in ("calls", "prompt_tokens", "completion_tokens"):
        assert getattr(found.least, name) <= getattr(asked, name) <= getattr(found.most, name), name


@pytest.mark.parametrize(
    ("evaluator", "least", "most"),
    [
        (DebateEvaluator("general", rounds=4), 3, 12),
        (DebateEvaluator("general", rounds=4, min_rounds=2), 6, 12),
        (DebateEvaluator("general", rounds=4, convergence=None), 12, 12),
        (DebateEvaluator("general", rounds=2, candidate_order="balanced"), 6, 12),
        (DebateEvaluator("general", rounds=3, stop_rule="rounds=2"), 6, 9),
        (ValueEvaluator(samples=3), 6, 6),
        (VoteEvaluator(ballots=4), 4, 4),
        (CallbackEvaluator(one, scale=Scale(0, 1)), 0, 0),
    ],
    ids=lambda each: getattr(each, "name", each),
)
def test_calls_are_those_of_all_agents_in_one_round_or_in_all(evaluator: Evaluator, least: int, most: int) -> None:
    found = estimate(evaluator, [Task("q", ["a", "b"])])
    assert found is not None
    assert (found.least.calls, found.most.calls) == (least, most)


def test_the_longest_replies_fill_what_the_schema_allows() -> None:
    short, long = (
        estimate(DebateEvaluator("general", rounds=1, comment_chars=chars, overall_chars=chars), [Task("q", ["a"])])
        for chars in (100, 1000)
    )
    assert short is not None
    assert long is not None
    assert long.most.completion_tokens - short.most.completion_tokens == pytest.approx(3 * 2 * 900 / 4, rel=0.02)
    assert long.least.completion_tokens == short.least.completion_tokens


def test_of_many_tasks_some_stand_for_the_others() -> None:
    found = estimate(VoteEvaluator(ballots=2), (Task(f"q{n}", ["a", "b"]) for n in range(1000)))
    assert found is not None
    assert found.rehearsed == 50
    assert found.most.calls == 2000


def test_no_function_is_called_and_nothing_is_known_of_an_evaluator_that_raises() -> None:
    called: list[str] = []

    def function(x: str, text: str) -> float:
        called.append(x)
        return 1.0

    assert estimate(CallbackEvaluator(function, scale=Scale(0, 1)), TASKS) is not None
    assert called == []
    assert estimate(Raising(), TASKS) is None


@dataclass(frozen=True, kw_only=True)
class Raising(BaseEvaluator):
    """Cannot be rehearsed."""

    name: str = field(default="raising", init=False)

    @property
    def scale(self) -> Scale:
        return Scale(0, 1)

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        raise RuntimeError("of its own")
        yield


@given(st.integers(0, 400), st.integers(1, 20))
def test_a_sample_lies_evenly_in_order_and_is_no_larger_than_it_may_be(n: int, most: int) -> None:
    tasks: Any = range(n)
    sample: list[Any]
    sample, count = evenly(tasks, most)
    assert count == n
    assert len(sample) == min(n, most)
    assert sample == sorted(set(sample))
    gaps = [b - a for a, b in itertools.pairwise(sample)]
    assert max(gaps, default=1) <= 3 * (n / most + 1)


@given(st.integers(1, 2000))
def test_the_longest_text_under_a_bound_is_found(chars: int) -> None:
    pattern = str(bounded_text(chars)["pattern"])
    assert _longest(pattern, 0, len(_FILLER)) == chars
    assert re.search(pattern, _FILLER[:chars])


def test_a_pattern_that_bounds_no_text_is_none() -> None:
    assert _longest("^(A|B)( > (A|B)){2}$", 0, 100) is None


def test_where_silent_rounds_settle_the_least_is_a_silent_round_and_the_most_a_whole_debate_after_it() -> None:
    found = estimate(DebateEvaluator("general", rounds=2, settle="p_best=0.99"), [Task("q", ["a", "b"])])
    assert found is not None
    assert (found.least.calls, found.most.calls) == (3, 3 + 2 * 3)
