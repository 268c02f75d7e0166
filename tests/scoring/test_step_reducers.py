"""Scores of steps put together, and where a line of reasoning first goes wrong."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.scoring.reducers import StepReduction, first_wrong_step, reduce_steps, step_accuracy

NAN = float("nan")
no_deadline = settings(deadline=None)  # a slow machine is not a failing test

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=8)
reductions = st.sampled_from(get_args(StepReduction))


@pytest.mark.parametrize(("how", "expected"), [("min", 0.5), ("mean", 2.2 / 3), ("product", 0.36), ("last", 0.8)])
def test_each_reduction_in_figures(how: StepReduction, expected: float) -> None:
    assert reduce_steps([0.9, 0.5, 0.8], how) == pytest.approx(expected)


@pytest.mark.parametrize("how", get_args(StepReduction))
def test_no_steps_have_no_score(how: StepReduction) -> None:
    assert math.isnan(reduce_steps([], how))


def test_an_unscored_step_leaves_the_whole_unscored_unless_only_the_last_counts() -> None:
    for how in ("min", "mean", "product"):
        assert math.isnan(reduce_steps([0.9, None, 0.8], how))
    assert reduce_steps([0.9, None, 0.8], "last") == 0.8
    assert math.isnan(reduce_steps([0.9, NAN], "last"))


@no_deadline
@given(probabilities, reductions)
def test_a_reduction_of_probabilities_is_a_probability_no_better_than_the_best(
    scores: list[float], how: StepReduction
) -> None:
    assert 0 <= reduce_steps(scores, how) <= max(scores) + 1e-12


@no_deadline
@given(probabilities, reductions, st.integers(0, 7), st.floats(0, 1))
def test_a_better_step_never_makes_the_whole_worse(
    scores: list[float], how: StepReduction, at: int, better: float
) -> None:
    improved = list(scores)
    improved[at % len(scores)] = max(better, scores[at % len(scores)])
    assert reduce_steps(improved, how) >= reduce_steps(scores, how) - 1e-12


def test_what_cannot_be_reduced_is_refused() -> None:
    unknown: Any = "max"
    with pytest.raises(ValueError, match="unknown reduction 'max'"):
        reduce_steps([0.5], unknown)
    with pytest.raises(ValueError, match=r"in 0\.\.1"):
        reduce_steps([-50, 80], "product")
    with pytest.raises(ValueError, match="finite"):
        reduce_steps([0.5, math.inf])


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.9, 0.4, 0.1], 1),
        ([0.9, 0.5], -1),  # at the threshold is not below it
        ([], -1),
        ([0.9, None, 0.1], None),
        ([0.1, None], 0),
        ([NAN], None),
    ],
)
def test_the_first_wrong_step_is_the_first_below_the_threshold(
    scores: list[float | None], expected: int | None
) -> None:
    assert first_wrong_step(scores) == expected


def test_the_threshold_is_on_the_scale_of_the_scores() -> None:
    assert first_wrong_step([80, -20], threshold=0) == 1


def test_accuracy_is_that_of_processbench() -> None:
    found = step_accuracy([1, 0, -1, -1, 3], [1, 2, -1, -1, -1])
    assert (found.error_accuracy, found.correct_accuracy) == pytest.approx((50.0, 200 / 3))
    assert found.f1 == pytest.approx(400 / 7)


def test_no_prediction_is_never_right() -> None:
    found = step_accuracy([None, None], [0, -1])
    assert (found.error_accuracy, found.correct_accuracy, found.f1) == (0.0, 0.0, 0.0)


def test_without_wrong_solutions_there_is_no_accuracy_on_them() -> None:
    found = step_accuracy([-1], [-1])
    assert found.correct_accuracy == 100.0
    assert math.isnan(found.error_accuracy)
    assert math.isnan(found.f1)


def test_every_label_needs_a_prediction() -> None:
    with pytest.raises(ValueError, match="zip"):
        step_accuracy([1], [1, 2])
