"""Figures with their intervals, against those that statsmodels and scipy compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.evaluation import plain
from debate.statistics import (
    Accuracy,
    bootstrap,
    clustered_mean,
    false_discovery,
    mcnemar,
    paired_difference,
    share,
    smallest_difference,
    wilson,
)
from debate.statistics.intervals import t_quantile, t_tail
from debate.types import FloatArray
from tests.statistics.oracles import NAN

quick = settings(deadline=None, max_examples=30)

Y = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1]
GROUPS = ["a"] * 3 + ["b"] * 3 + ["c"] * 3 + ["d"] * 3
values = st.lists(st.tuples(st.integers(-3, 3).map(float) | st.just(NAN), st.integers(0, 3)), min_size=1, max_size=12)


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


# ---- shares over clusters


def test_a_share_of_single_items_is_wilsons() -> None:
    found = share([1.0] * 43 + [0.0] * 7)
    assert (found.estimate, found.interval) == (0.86, pytest.approx(wilson(43, 50).interval))


def test_items_that_repeat_within_clusters_tell_no_more_than_the_clusters() -> None:
    hits = np.repeat([1.0] * 43 + [0.0] * 7, 10)
    found = share(hits, np.repeat(np.arange(50), 10))
    assert (found.n, found.clusters) == (500, 50)
    assert found.interval == pytest.approx(wilson(43, 50).interval)
    assert share(np.ones(500), np.repeat(np.arange(50), 10)).interval == pytest.approx(wilson(50, 50).interval)


def test_a_share_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="hits must lie"):
        share([0.0, 2.0])


# ---- means


def test_the_standard_errors_of_a_mean_are_those_of_statsmodels() -> None:
    clustered, single = clustered_mean(Y, GROUPS), clustered_mean(Y)
    assert clustered.estimate == pytest.approx(0.666667, abs=5e-7)
    assert clustered.standard_error == pytest.approx(0.117851, abs=5e-7)
    assert single.standard_error * math.sqrt(12 / 11) == pytest.approx(0.142134, abs=5e-7)
    assert (clustered.clusters, single.clusters) == (4, 12)


def test_single_items_have_the_usual_t_interval() -> None:
    low, high = clustered_mean([1, 2, 3, 4, 5]).interval
    half = 2.776445 * math.sqrt(2.5 / 5)
    assert (low, high) == pytest.approx((3 - half, 3 + half), abs=1e-6)


def test_a_paired_difference_is_the_mean_of_the_differences() -> None:
    found = paired_difference([3, 5, NAN, 8], [1, 2, 2, NAN])
    assert (found.estimate, found.n, found.left_out) == (2.5, 2, 2)
    same = paired_difference(np.arange(9.0) + 1, np.arange(9.0))
    assert same.interval == (1.0, 1.0)


@quick
@given(values)
def test_a_missing_value_counts_like_one_that_is_not_there(rows: list[tuple[float, int]]) -> None:
    y, clusters = np.array(rows).T
    known = ~np.isnan(y)
    found, shorter = clustered_mean(y, clusters), clustered_mean(y[known], clusters[known])
    assert found.left_out == int((~known).sum())
    np.testing.assert_allclose([found.estimate, *found.interval], [shorter.estimate, *shorter.interval])


@quick
@given(values, st.floats(-50, 50), st.randoms())
def test_a_mean_moves_with_its_values_and_ignores_their_order(
    rows: list[tuple[float, int]], shift: float, random: Any
) -> None:
    shuffled = random.sample(rows, len(rows))
    (y, clusters), (other, names) = np.array(rows).T, np.array(shuffled).T
    found, moved = clustered_mean(y, clusters), clustered_mean(other + shift, 7 - names)
    expected = [found.estimate + shift, *(end + shift for end in found.interval), found.standard_error]
    np.testing.assert_allclose([moved.estimate, *moved.interval, moved.standard_error], expected, atol=1e-8)


def test_what_is_undefined_has_a_reason() -> None:
    assert clustered_mean([NAN]).reason == "no observations"
    one = clustered_mean([1, 2], ["a", "a"])
    assert (one.estimate, one.reason) == (1.5, "an interval takes two clusters")
    assert math.isnan(one.interval[0])


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="clusters must have shape"):
        clustered_mean([1, 2], ["a"])
    with pytest.raises(ValueError, match="one length"):
        paired_difference([1], [1, 2])


# ---- tests and their power


def test_mcnemar_is_exact() -> None:
    found = mcnemar(12, 5)
    assert found.p_value == pytest.approx(0.143463, abs=5e-7)
    assert (found.estimate, found.n) == (12 / 17, 17)
    assert mcnemar(5, 12).p_value == found.p_value
    assert mcnemar(6, 6).p_value == mcnemar(0, 0).p_value == 1.0
    assert mcnemar(3000, 2000).p_value < 1e-40


@pytest.mark.parametrize(("n", "points"), [(1000, 0.035), (200, 0.08)])
def test_the_smallest_difference_of_accuracies_near_80_percent(n: int, points: float) -> None:
    assert smallest_difference(math.sqrt(2 * 0.8 * 0.2 * 0.5 / n)) == pytest.approx(points, abs=1e-3)
    assert smallest_difference(1.0) == pytest.approx(2.8, abs=0.002)


def test_p_values_are_adjusted_as_scipy_does() -> None:
    given_p = [0.03, NAN, 0.01, 0.5, 0.02]
    np.testing.assert_allclose(false_discovery(given_p), [0.04, NAN, 0.04, 0.5, 0.04])
    np.testing.assert_allclose(false_discovery(given_p, "by"), [1 / 12, NAN, 1 / 12, 1, 1 / 12])


@pytest.mark.parametrize(("freedom", "expected"), [(1, 12.706205), (2, 4.302653), (9, 2.262157), (99, 1.984217)])
def test_the_quantiles_of_t_are_those_of_scipy(freedom: int, expected: float) -> None:
    assert t_quantile(0.95, freedom) == pytest.approx(expected, abs=5e-7)
    assert t_tail(expected, freedom) == pytest.approx(0.025, abs=1e-7)
    assert t_tail(-expected, freedom) == pytest.approx(0.975, abs=1e-7)


# ---- bootstrap


def test_the_bootstrap_of_a_mean_gives_nearly_its_formula() -> None:
    y = np.random.default_rng(1).normal(size=200)

    def mean(weights: FloatArray) -> float:
        return float(weights @ y / weights.sum())

    found = bootstrap(mean, 200, draws=1000)
    assert found.estimate == pytest.approx(float(y.mean()))
    assert found.interval == pytest.approx(clustered_mean(y).interval, abs=0.02)
    assert found == bootstrap(mean, 200, draws=1000)


def test_a_statistic_that_most_draws_leave_undefined_has_no_interval() -> None:
    found = bootstrap(lambda weights: 1.0 if (weights == 1).all() else math.nan, 10, draws=50)
    assert found.estimate == 1.0 and math.isnan(found.interval[0])
    assert found.reason is not None and found.reason.startswith("undefined in")


# ---- as plain data


def test_what_is_undefined_is_null_in_plain_data() -> None:
    undefined = plain(clustered_mean([]))
    assert (undefined["estimate"], undefined["interval"], undefined["standard_error"]) == (None, [None, None], None)
    assert undefined["reason"] == "no observations"
    assert plain(wilson(1, 2))["estimate"] == 0.5
