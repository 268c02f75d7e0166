"""Figures with their intervals, against those that statsmodels computes."""

from __future__ import annotations

import math

import pytest

from debate.statistics import Accuracy, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(0, 20, 0.0, 0.161125), (9, 10, 0.59585, 0.982124), (43, 50, 0.738138, 0.930492), (864, 1000, 0.841356, 0.883858)],
)
def test_a_share_has_the_interval_that_statsmodels_computes(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert (found.estimate, found.n) == (successes / n, n)
    assert found.interval == pytest.approx((low, high), abs=6e-7)


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_the_interval_of_none_and_of_all_ends_at_0_and_1_exactly(n: int) -> None:
    none, every = wilson(0, n).interval, wilson(n, n).interval
    assert none[0] == 0.0 and every[1] == 1.0
    assert none[1] == pytest.approx(1 - every[0])


def test_more_confidence_takes_a_wider_interval() -> None:
    narrow, wide = wilson(43, 50, 0.9).interval, wilson(43, 50, 0.99).interval
    assert wide[0] < wilson(43, 50).interval[0] < narrow[0] < 0.86 < narrow[1] < wilson(43, 50).interval[1] < wide[1]


def test_without_observations_there_is_no_estimate_and_the_interval_is_everything() -> None:
    found = wilson(0, 0)
    assert math.isnan(found.estimate)
    assert (found.interval, found.n) == ((0.0, 1.0), 0)


@pytest.mark.parametrize(("successes", "n", "confidence"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0), (1, 2, 0.0)])
def test_numbers_outside_their_ranges_are_refused(successes: int, n: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="must lie in"):
        wilson(successes, n, confidence)


def test_an_accuracy_is_the_share_of_the_right_among_all_labeled() -> None:
    found = Accuracy(labeled=50, right=43, tied=4, unscored=1, chance=0.25).share
    assert (found.estimate, found.n) == (0.86, 50)
    assert found.interval == pytest.approx((0.738138, 0.930492), abs=6e-7)
