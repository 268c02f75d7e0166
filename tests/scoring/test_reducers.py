"""Repeated samples and steps of reasoning: reduced to one value, and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean, median, pstdev
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.scoring.reducers import (
    Reduction,
    StepReduction,
    confidence,
    first_wrong_step,
    reduce_samples,
    reduce_steps,
    step_accuracy,
    summarize,
)
from debate.selection import keep_best
from debate.types import Scale

NAN = float("nan")
no_deadline = settings(deadline=None)  # a slow machine is not a failing test

values = st.floats(-100, 100)
sample_lists = st.lists(values | st.none() | st.just(NAN), max_size=8)
reductions = st.sampled_from(get_args(Reduction))


def ok(samples: list[float | None]) -> list[float]:
    return [sample for sample in samples if sample is not None and not math.isnan(sample)]


@no_deadline
@given(sample_lists)
def test_a_reduction_is_that_of_the_samples_that_did_not_fail(samples: list[float | None]) -> None:
    oracles: dict[Reduction, Callable[[list[float]], float]] = {"mean": fmean, "sum": math.fsum, "median": median}
    for how, plain in oracles.items():
        expected = plain(ok(samples)) if ok(samples) else NAN
        assert reduce_samples(samples, how) == pytest.approx(expected, nan_ok=True, abs=1e-9)
    summary = summarize(samples)
    assert (summary.n_ok, summary.n_failed) == (len(ok(samples)), len(samples) - len(ok(samples)))
    assert summary.std == pytest.approx(pstdev(ok(samples)) if ok(samples) else NAN, nan_ok=True, abs=1e-9)


@no_deadline
@given(sample_lists, reductions, st.integers(0, 8), st.sampled_from([None, NAN]))
def test_a_failed_sample_more_changes_no_value(
    samples: list[float | None], how: Reduction, at: int, failed: float | None
) -> None:
    more = [*samples[:at], failed, *samples[at:]]
    assert reduce_samples(more, how) == pytest.approx(reduce_samples(samples, how), nan_ok=True, rel=0)
    assert confidence(more) == pytest.approx(confidence(samples), nan_ok=True, rel=0)


@no_deadline
@given(st.lists(sample_lists, min_size=1, max_size=5), reductions, st.booleans())
def test_a_candidate_whose_samples_all_failed_ranks_nowhere(
    candidates: list[list[float | None]], how: Reduction, higher: bool
) -> None:
    scores = [reduce_samples(samples, how) for samples in candidates]
    kept = keep_best(scores, len(scores), higher)
    assert sorted(kept) == [j for j, samples in enumerate(candidates) if ok(samples)]


def test_equal_samples_have_exactly_their_value_and_no_spread() -> None:
    assert reduce_samples([0.1] * 3) == 0.1
    assert confidence([0.1] * 3) == 1.0


def test_what_cannot_be_reduced_is_refused() -> None:
    unknown: Any = "mode"
    with pytest.raises(ValueError, match="unknown reduction 'mode'"):
        reduce_samples([1.0], unknown)
    with pytest.raises(ValueError, match="finite"):
        reduce_samples([1.0, math.inf])


# Confidence


def test_confidence_falls_with_the_spread() -> None:
    assert confidence([1, 7]) == 0.25
    assert confidence([8.5, 8.3, 8.7]) == pytest.approx(1 / (1 + pstdev([8.5, 8.3, 8.7])))


def test_one_sample_says_nothing_of_agreement() -> None:
    assert math.isnan(confidence([5]))
    assert math.isnan(confidence([5, None, NAN]))
    assert math.isnan(confidence([]))


def test_with_a_scale_confidence_does_not_depend_on_the_unit() -> None:
    assert confidence([0.1, 0.7], Scale(0, 1)) == pytest.approx(confidence([1, 7], Scale(0, 10))) == pytest.approx(0.4)
    assert confidence([-100, 100], Scale(-100, 100)) == 0.0
    with pytest.raises(ValueError, match="without end"):
        confidence([1, 7], Scale(0, math.inf))


# ---- steps


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=8)
step_reductions = st.sampled_from(get_args(StepReduction))


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
@given(probabilities, step_reductions)
def test_a_reduction_of_probabilities_is_a_probability_no_better_than_the_best(
    scores: list[float], how: StepReduction
) -> None:
    assert 0 <= reduce_steps(scores, how) <= max(scores) + 1e-12


@no_deadline
@given(probabilities, step_reductions, st.integers(0, 7), st.floats(0, 1))
def test_a_better_step_never_makes_the_whole_worse(
    scores: list[float], how: StepReduction, at: int, better: float
) -> None:
    improved = list(scores)
    improved[at % len(scores)] = max(better, scores[at % len(scores)])
    assert reduce_steps(improved, how) >= reduce_steps(scores, how) - 1e-12


def test_steps_that_cannot_be_reduced_are_refused() -> None:
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
