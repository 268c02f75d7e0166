"""Scores of functions: how they are called, what they may return, what becomes of one that fails."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import CallbackEvaluator, Engine, Evaluation, Scale, Task
from debate.backends import Scripted
from debate.errors import ConfigError
from debate.evaluators.callback import Penalty
from debate.scorers import ERRORS, keyword_count_errors, set_intersection_errors, sorting_errors
from debate.selection import keep_best
from debate.types import Candidate
from tests.judges import judged

TEN = Scale(0, 10)


def returning(answer: Any) -> Callable[[str, Any], Any]:
    """A function that returns the same for everything."""
    return lambda x, given: answer


def length(x: str, answer: str) -> int:
    return len(answer)


async def async_length(x: str, answer: str) -> int:
    await asyncio.sleep(0)
    return len(answer)


def lengths(x: str, answers: Sequence[str]) -> list[int]:
    return [len(answer) for answer in answers]


async def async_lengths(x: str, answers: Sequence[str]) -> tuple[int, ...]:
    await asyncio.sleep(0)
    return tuple(len(answer) for answer in answers)


class Length:
    """A callable without a name."""

    async def __call__(self, x: str, answer: str) -> int:
        return len(answer)


def picky(x: str, answer: str) -> float:
    """Raises for `bad`, returns what is no score for others, or the number."""
    if answer == "bad":
        raise ValueError("cannot read it")
    odd: dict[str, Any] = {"none": None, "text": "7", "true": True, "nan": np.nan, "inf": np.inf}
    return odd[answer] if answer in odd else float(answer)


def unasked(call: object) -> str:
    raise AssertionError("a callback asks no model")


def by_engine(evaluator: CallbackEvaluator, task: Task) -> Evaluation:
    with Engine(Scripted(unasked)) as engine:
        return engine.evaluate(task, evaluator)


@pytest.mark.parametrize(
    ("function", "combined"),
    [(length, False), (async_length, False), (lengths, True), (async_lengths, True), (Length(), False)],
)
def test_a_function_is_plain_or_async_of_one_or_of_all(function: Any, combined: bool) -> None:
    evaluator = CallbackEvaluator(function, scale=TEN, combined=combined)
    task = Task("x", ["a", "aaa", "aa"])
    for evaluation in (by_engine(evaluator, task), judged(evaluator, task)):
        assert evaluation.scores.tolist() == [1, 3, 2]
        assert (evaluation.status, evaluation.selected, evaluation.usage.calls) == ("ok", 1, 0)
        assert [sample.value for sample in evaluation.judgments] == [1, 3, 2]


@pytest.mark.parametrize("combined", [False, True])
def test_it_may_take_the_task_itself(combined: bool) -> None:
    def one(task: Task, candidate: Candidate) -> int:
        return candidate.metadata["n"] + len(task.context)

    def all_of(task: Task, candidates: Sequence[Candidate]) -> list[int]:
        return [one(task, candidate) for candidate in candidates]

    task = Task("x", [Candidate("a", metadata={"n": 3}), Candidate("b", metadata={"n": 1})], context=["c"])
    function = all_of if combined else one
    evaluation = judged(CallbackEvaluator(function, scale=TEN, takes="task", combined=combined), task)
    assert evaluation.scores.tolist() == [4, 2]


def test_errors_are_better_the_fewer_and_no_int_is_dropped() -> None:
    answers = ["[1, 3, 2]", "[1, 2, 3]", "[3, 2, 1]", "[1, 2, 3, 4]"]
    evaluation = judged(CallbackEvaluator(sorting_errors), Task("[3, 1, 2]", answers))
    assert evaluation.scale == ERRORS
    assert evaluation.scores[1] == 0
    assert evaluation.selected == 1
    assert keep_best(evaluation.scores, 4, evaluation.scale.higher_is_better)[0] == 1
    assert evaluation.probabilities.argmax() == 1
    assert evaluation.feedback(1).startswith("Candidate 2 of 4: 0.00")
    assert "rank 1" in evaluation.feedback(1)


def test_the_ready_scorers_carry_their_scale() -> None:
    for scorer in (sorting_errors, set_intersection_errors, keyword_count_errors):
        assert CallbackEvaluator(scorer).scale == ERRORS
    with pytest.raises(ConfigError):
        CallbackEvaluator(length)


@pytest.mark.parametrize("penalty", [None, 0.0, 4.0])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("bad", "raised"),
        ("none", "not_a_number"),
        ("text", "not_a_number"),
        ("true", "not_a_number"),
        ("nan", "not_a_number"),
        ("inf", "not_a_number"),
        ("10.5", "out_of_range"),
        ("-1", "out_of_range"),
    ],
)
def test_a_failure_is_recorded_and_worth_nothing_unless_declared(bad: str, reason: str, penalty: float | None) -> None:
    declared = None if penalty is None else Penalty(penalty)
    evaluation = judged(CallbackEvaluator(picky, scale=TEN, on_error=declared), Task("x", ["2", bad, "3"]))
    assert [failure.reason for failure in evaluation.failures] == [reason]
    assert evaluation.judgments[1].failure == evaluation.failures[0]
    assert evaluation.status == "partial"
    assert evaluation.scores[[0, 2]].tolist() == [2, 3]
    if penalty is None:
        assert evaluation.statuses == ("ok", "failed", "ok")
        assert np.isnan(evaluation.scores[1])
        assert evaluation.selected == 2
        assert "was not scored" in evaluation.feedback(1)
    else:
        assert evaluation.statuses == ("ok", "penalty", "ok")
        assert evaluation.scores[1] == penalty
        assert evaluation.selected == (1 if penalty == 4 else 2)


def test_the_message_says_what_was_raised_and_by_what() -> None:
    evaluation = by_engine(CallbackEvaluator(picky, scale=TEN), Task("x", ["bad"]))
    assert evaluation.failures[0].message == "picky raised ValueError: cannot read it"
    assert (evaluation.status, evaluation.error) == ("failed", evaluation.failures[0].message)


def test_numbers_of_any_kind_are_numbers() -> None:
    found: dict[str, Any] = {"a": 3, "b": np.float32(2.5), "c": np.int64(7), "d": Fraction(1, 2), "e": 0}

    def look_up(x: str, answer: str) -> Any:
        return found[answer]

    evaluation = judged(CallbackEvaluator(look_up, scale=TEN), Task("x", list(found)))
    assert evaluation.scores.tolist() == [3, 2.5, 7, 0.5, 0]
    assert evaluation.status == "ok"


@pytest.mark.parametrize("returned", [[1], [1, 2, 3], [], 5, None, {"a": 1}])
def test_a_wrong_count_fails_all(returned: Any) -> None:
    evaluation = judged(CallbackEvaluator(returning(returned), scale=TEN, combined=True), Task("x", ["a", "b"]))
    assert evaluation.status == "failed"
    assert {failure.reason for failure in evaluation.failures} == {"wrong_count"}
    assert evaluation.statuses == ("failed", "failed")


def test_one_bad_number_of_a_combined_function_is_that_candidates_alone() -> None:
    evaluator = CallbackEvaluator(returning(np.array([1.0, np.nan, 3.0])), scale=TEN, combined=True)
    evaluation = judged(evaluator, Task("x", ["a", "b", "c"]))
    assert evaluation.statuses == ("ok", "failed", "ok")


def test_a_combined_function_that_raises_fails_all_or_costs_the_penalty() -> None:
    def raises(x: str, answers: Sequence[str]) -> list[float]:
        raise KeyError("x")

    failed = by_engine(CallbackEvaluator(raises, scale=TEN, combined=True), Task("x", ["a", "b"]))
    assert failed.status == "failed"
    worth = by_engine(CallbackEvaluator(raises, scale=TEN, combined=True, on_error=Penalty(1)), Task("x", ["a", "b"]))
    assert (worth.scores.tolist(), worth.statuses, worth.status) == ([1, 1], ("penalty", "penalty"), "partial")


@pytest.mark.parametrize("is_async", [False, True])
def test_one_that_takes_too_long_fails_and_the_others_do_not(is_async: bool) -> None:
    let_go = threading.Event()

    def slow(x: str, answer: str) -> int:
        if answer == "slow":
            let_go.wait(5)
        return 1

    async def slow_async(x: str, answer: str) -> int:
        await asyncio.sleep(5 if answer == "slow" else 0)
        return 1

    evaluator = CallbackEvaluator(slow_async if is_async else slow, scale=TEN, seconds=0.5)
    began = time.monotonic()
    with Engine(Scripted(unasked)) as engine:
        evaluation = engine.evaluate(Task("x", ["a", "slow", "b"]), evaluator)
        assert time.monotonic() - began < 4
        let_go.set()
    assert evaluation.statuses == ("ok", "failed", "ok")
    assert [failure.reason for failure in evaluation.failures] == ["timeout"]
    assert "0.5 s" in evaluation.failures[0].message


def test_a_timeout_of_the_functions_own_is_something_it_raised() -> None:
    def raises(x: str, answer: str) -> int:
        raise TimeoutError("my own")

    evaluation = by_engine(CallbackEvaluator(raises, scale=TEN, seconds=30), Task("x", ["a"]))
    assert [failure.reason for failure in evaluation.failures] == ["raised"]


@given(
    values=st.lists(st.sampled_from(["bad", "nan", "0", "1", "5", "5", "9"]), min_size=2, max_size=6),
    lower=st.booleans(),
    data=st.data(),
)
@settings(max_examples=50, deadline=None)
def test_permuting_the_candidates_permutes_the_results_and_failed_is_never_above_ok(
    values: list[str], lower: bool, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(values))))
    scale = Scale(0, 10, higher_is_better=not lower)
    plainly = judged(CallbackEvaluator(picky, scale=scale), Task("x", values))
    permuted = judged(CallbackEvaluator(picky, scale=scale), Task("x", [values[j] for j in order]))
    np.testing.assert_array_equal(permuted.scores, plainly.scores[order])
    np.testing.assert_allclose(permuted.probabilities, plainly.probabilities[order])
    assert permuted.statuses == tuple(plainly.statuses[j] for j in order)
    failed = {j for j, value in enumerate(values) if value in ("bad", "nan")}
    assert not failed & {*keep_best(plainly.scores, len(values), not lower), plainly.selected}
    assert len(failed) == len(plainly.failures)
    if plainly.selected is not None:
        best = min if lower else max
        assert plainly.scores[plainly.selected] == best(float(v) for v in values if v not in ("bad", "nan"))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"takes": "all"}, "takes"),
        ({"on_error": Penalty(11)}, "on_error"),
        ({"on_error": 0.0}, "on_error"),
    ],
)
def test_settings_that_cannot_work_are_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        CallbackEvaluator(length, scale=TEN, **options)
    assert refused.value.field == field


@pytest.mark.parametrize("score", ["0", None, float("nan"), float("inf")])
def test_a_penalty_is_a_finite_number(score: Any) -> None:
    with pytest.raises(ConfigError, match=r"on_error\.score: must be a number"):
        Penalty(score)


def test_its_description_names_the_function_and_the_scale() -> None:
    described = CallbackEvaluator(sorting_errors).describe()
    assert described["function"].endswith(":sorting_errors")
    assert described["scale"] == [0, None, False]


def test_the_time_of_a_call_does_not_count_its_wait_for_a_thread() -> None:
    def slow(x: str, answer: str) -> float:
        time.sleep(0.05)
        return 1.0

    evaluator = CallbackEvaluator(slow, scale=Scale(), seconds=2.0)
    with Engine(Scripted(lambda call: "")) as engine:
        evaluation = engine.evaluate(Task("x", [str(n) for n in range(100)]), evaluator)
    assert evaluation.status == "ok"


def test_a_function_that_never_ends_holds_up_neither_the_others_nor_the_end_of_the_engine() -> None:
    ended = threading.Event()

    def stuck(x: str, answer: str) -> float:
        if answer == "stuck":
            ended.wait(60)
        return 1.0

    evaluator = CallbackEvaluator(stuck, scale=Scale(), seconds=0.2)
    began = time.monotonic()
    with Engine(Scripted(lambda call: "")) as engine:
        evaluation = engine.evaluate(Task("x", ["stuck", "quick"]), evaluator)
    assert time.monotonic() - began < 30
    ended.set()
    assert evaluation.statuses == ("failed", "ok")
    assert evaluation.failures[0].reason == "timeout"


def test_a_number_beyond_all_floats_and_a_list_that_breaks_off_are_failures_that_a_penalty_covers() -> None:
    def broken(x: str, answers: list[str]) -> Iterator[float]:
        yield 1.0
        raise ValueError("half way")

    def beyond(x: str, answer: str) -> int:
        return 10**400

    huge = CallbackEvaluator(beyond, scale=ERRORS, on_error=Penalty(7.0))
    cases = (huge, CallbackEvaluator(broken, scale=ERRORS, combined=True, on_error=Penalty(7.0)))
    with Engine(Scripted(lambda call: "")) as engine:
        for evaluator in cases:
            evaluation = engine.evaluate(Task("x", ["a", "b"]), evaluator)
            assert evaluation.scores.tolist() == [7.0, 7.0]
            assert evaluation.statuses == ("penalty", "penalty")


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"selection": "best"}, "selection"),
        ({"ties": "last"}, "ties"),
        ({"softmax_temperature": 0.0}, "softmax_temperature"),
        ({"function": 3}, "function"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        given: dict[str, Any] = {"function": len, "scale": ERRORS, **settings}
        CallbackEvaluator(**given)
    assert refused.value.field == field
