"""Thresholds of certainty, and whether their promise holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.statistics import least_tasks, selective_threshold

DRAWS = 1000


def drawn(rng: np.random.Generator, n: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Certainties on 0..1, and choices of which 2 % are wrong down to a certainty of 0.5, and half below it."""
    certainty = rng.random(n)
    return certainty, rng.random(n) < np.where(certainty >= 0.5, 0.02 + shift, 0.5)


def error_above(threshold: float, shift: float = 0.0) -> float:
    """The true share of wrong choices at or above a threshold."""
    below = max(0.5 - threshold, 0.0)
    return ((0.02 + shift) * min(1 - threshold, 0.5) + 0.5 * below) / (1 - threshold)


def test_as_many_right_choices_are_needed_as_the_binomial_says() -> None:
    assert least_tasks(0.05) == 59
    assert least_tasks(0.1) == 29
    assert 0.95**59 <= 0.05 < 0.95**58


def test_all_right_choices_are_kept_down_to_the_least_certain() -> None:
    found = selective_threshold(np.linspace(0.2, 1, 60), np.zeros(60), 0.05)
    assert (found.threshold, found.kept, found.wrong) == (pytest.approx(0.2), 60, 0)
    assert found.bound == pytest.approx(1 - 0.05 ** (1 / 60))
    assert found.bound <= 0.05


def test_with_too_few_tasks_the_reason_says_how_many_are_needed() -> None:
    found = selective_threshold(np.linspace(0.2, 1, 58), np.zeros(58), 0.05)
    assert math.isnan(found.threshold)
    assert found.reason == "an error of 0.05 can be shown on 59 tasks at least, and 58 have a certainty"


def test_confident_errors_leave_no_threshold() -> None:
    wrong = np.arange(200) % 4 == 0
    found = selective_threshold(np.ones(200), wrong, 0.05)
    assert math.isnan(found.threshold)
    assert "are wrong too often, on these 200 tasks" in str(found.reason)


def test_tasks_of_the_same_certainty_are_kept_or_left_together() -> None:
    certainty = np.repeat([0.9, 0.5], 100)
    found = selective_threshold(certainty, np.repeat([0, 1], 100), 0.05)
    assert (found.threshold, found.kept) == (0.9, 100)


def test_a_task_without_a_certainty_stands_above_no_threshold() -> None:
    certainty = np.concatenate([np.full(100, 0.9), np.full(50, np.nan)])
    found = selective_threshold(certainty, np.repeat([0, 1], [100, 50]), 0.05)
    assert (found.n, found.kept, found.wrong) == (150, 100, 0)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=150), st.floats(0.02, 0.5))
def test_what_is_kept_has_shown_its_error(tasks: list[tuple[float, bool]], error: float) -> None:
    certainty, wrong = np.array([each[0] for each in tasks]), np.array([each[1] for each in tasks], dtype=float)
    found = selective_threshold(certainty, wrong, error)
    above = certainty >= found.threshold
    assert (above.sum(), wrong[above].sum()) == (found.kept, found.wrong)
    assert (found.reason is None) == (found.kept > 0)
    assert found.reason or found.bound <= error + 1e-9


@pytest.mark.parametrize("n", [300, 600])
def test_the_promised_error_is_exceeded_in_no_more_draws_than_stated(n: int) -> None:
    rng = np.random.default_rng(n)
    found = [selective_threshold(*drawn(rng, n), 0.1) for _ in range(DRAWS)]
    exceeded = [each.reason is None and error_above(each.threshold) > 0.1 for each in found]
    # 3.3 standard errors above the 5 % that are stated: a right procedure is failed once in 2,000 times.
    assert np.mean(exceeded) <= 0.05 + 3.3 * math.sqrt(0.05 * 0.95 / DRAWS)
    assert np.mean([each.reason is None for each in found]) > 0.8


def test_choosing_the_threshold_by_the_observed_error_alone_breaks_the_promise() -> None:
    rng = np.random.default_rng(1)
    exceeded = 0
    for _ in range(200):
        certainty, wrong = drawn(rng, 300)
        order = np.argsort(-certainty)
        shares = np.cumsum(wrong[order]) / np.arange(1, 301)
        exceeded += error_above(float(certainty[order][np.flatnonzero(shares <= 0.1)[-1]])) > 0.1
    assert exceeded / 200 > 0.3


def test_under_a_shift_the_promise_does_not_hold() -> None:
    rng = np.random.default_rng(2)
    found = [selective_threshold(*drawn(rng, 300), 0.1) for _ in range(200)]
    exceeded = [error_above(each.threshold, shift=0.1) > 0.1 for each in found]
    assert np.mean(exceeded) > 0.5


@pytest.mark.parametrize(("error", "confidence"), [(0, 0.95), (1, 0.95), (0.05, 0), (0.05, 1)])
def test_an_error_or_confidence_out_of_range_is_refused(error: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        selective_threshold([0.5], [0], error, confidence)


def test_wrong_choices_are_marked_by_0_or_1_for_each_task() -> None:
    with pytest.raises(ValueError, match="wrong must have shape"):
        selective_threshold([0.5, 0.6], [0], 0.05)
