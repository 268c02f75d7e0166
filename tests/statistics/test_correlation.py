"""Correlations and accuracies over pairs, against scipy's and mt-metrics-eval's figures."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.statistics import bias, correlation, held_out_accuracy, pair_accuracy, pairwise_accuracy, tie_calibration
from debate.voting import rank_correlation
from tests.statistics.oracles import HUMAN, JUDGE, NAN

quick = settings(deadline=None, max_examples=30)

cell = st.integers(0, 4).map(float) | st.just(NAN)
rows = st.lists(st.tuples(cell, cell), min_size=1, max_size=9)


# ---- figures of other libraries


@pytest.mark.parametrize(
    ("method", "expected"),
    [("spearman", 0.935495), ("pearson", 0.943971), ("kendall", 0.848528), ("kendall_c", 0.9)],
)
def test_a_correlation_is_that_of_scipy(method: Any, expected: float) -> None:
    found = correlation(HUMAN, JUDGE, method)
    assert found.estimate == pytest.approx(expected, abs=5e-7)
    assert found.interval[0] < found.estimate < found.interval[1] < 1


def test_pairwise_accuracy_with_ties_is_that_of_wmt() -> None:
    found = pairwise_accuracy(HUMAN, JUDGE)
    assert found.estimate == pytest.approx(0.844444, abs=5e-7)
    assert found.n == 45


def test_calibrated_ties_are_those_of_wmt() -> None:
    human, judge = [1, 1, 2, 2, 3, 3], [1, 1.05, 2, 2.04, 3, 2.93]
    assert pairwise_accuracy(human, judge).estimate == pytest.approx(0.8)
    found = tie_calibration(human, judge)
    assert found.estimate == 1.0
    assert found.eps == pytest.approx(0.07)


def test_thresholds_of_ties_come_from_the_other_half() -> None:
    draw = np.random.default_rng(4)
    human = draw.integers(0, 3, size=600).astype(float)
    groups = np.repeat(np.arange(120), 5)
    judge = human + draw.uniform(-0.2, 0.2, size=600)
    found = held_out_accuracy(human, judge, groups, seed=1)
    halves = np.random.default_rng(1).permutation(120)[groups] < 60
    parts = [(half, tie_calibration(human[~half], judge[~half], groups[~half]).eps) for half in (halves, ~halves)]
    each = [pairwise_accuracy(human[half], judge[half], groups[half], eps=eps) for half, eps in parts]
    assert found.eps == tuple(eps for _, eps in parts)
    assert found.estimate == pytest.approx(sum(part.estimate * part.n for part in each) / 1200)
    assert pairwise_accuracy(human, judge, groups).estimate < 0.75 < found.estimate
    assert found.interval[0] < found.estimate < found.interval[1]


# ---- pairs of votes

VOTES = [1, 1, -1, 0, 0, 1, NAN], [1, 0, 1, 0, -1, 1, 1]


@pytest.mark.parametrize(("ties", "share", "n"), [("dropped", 2 / 3, 3), ("class", 3 / 6, 6), ("half", 4 / 6, 6)])
def test_ties_are_dropped_or_a_class_or_half_right(ties: Any, share: float, n: int) -> None:
    found = pair_accuracy(*VOTES, ties)
    assert (found.estimate, found.n) == (pytest.approx(share), n)


def test_bias_is_how_much_higher_the_judge_scores() -> None:
    assert bias([1, 2, 3, NAN], [3, 4, 5, 5]).estimate == 2.0


# ---- groups and clusters


def test_pairs_are_made_within_groups_only() -> None:
    human, judge = [1, 2, 2, 9, 1, 1], [5, 6, 1, 0, 3, 4]
    found = pairwise_accuracy(human, judge, groups=["a", "a", "b", "b", "c", "c"])
    assert (found.estimate, found.n) == (pytest.approx(1 / 3), 3)


def test_the_interval_over_groups_of_two_is_that_of_a_share() -> None:
    rng = np.random.default_rng(5)
    human, judge, groups = rng.normal(size=400), rng.normal(size=400), np.repeat(np.arange(200), 2)
    found = pairwise_accuracy(human, judge, groups)
    half = 1.959964 * math.sqrt(found.estimate * (1 - found.estimate) / 200)
    assert found.interval == pytest.approx((found.estimate - half, found.estimate + half))


@pytest.mark.parametrize("method", ["pearson", "spearman", "kendall"])
def test_the_bootstrap_of_single_items_gives_nearly_the_formula(method: Any) -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=80)
    b = a + rng.normal(size=80)
    drawn = correlation(a, b, method, clusters=np.arange(80), draws=200).interval
    assert drawn == pytest.approx(correlation(a, b, method).interval, abs=0.07)


# ---- what is undefined, and what is refused


def test_a_correlation_is_undefined_where_one_side_is_constant_or_missing() -> None:
    for found, reason in (
        (correlation([1, 1, 1], [1, 2, 3]), "one side is constant"),
        (correlation([1, NAN, 2], [NAN, 1, 3], "pearson"), "fewer than two items"),
        (pairwise_accuracy([1, NAN], [1, 2]), "no group has two scored items"),
    ):
        assert math.isnan(found.estimate)
        assert found.reason == reason


def test_too_many_pairs_are_refused_and_groups_make_fewer() -> None:
    scores = np.arange(4000.0) % 7
    with pytest.raises(ValueError, match="pairs are too many"):
        pairwise_accuracy(scores, scores)
    assert pairwise_accuracy(scores, scores, groups=np.arange(4000) // 4).n == 6000


def test_a_negative_threshold_of_ties_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        pairwise_accuracy([1, 2], [1, 2], eps=-1)


# ---- properties


@quick
@given(rows)
def test_kendall_and_spearman_are_what_voting_has_for_rankings(table: list[tuple[float, float]]) -> None:
    a, b = np.array(table).T
    for method in ("kendall", "spearman"):
        np.testing.assert_allclose(correlation(a, b, method).estimate, float(rank_correlation(a, b, method)))


@quick
@given(rows)
def test_pairwise_accuracy_is_a_count_over_all_pairs(table: list[tuple[float, float]]) -> None:
    known = [row for row in table if not any(math.isnan(value) for value in row)]
    right = [np.sign(a[0] - b[0]) == np.sign(a[1] - b[1]) for a, b in combinations(known, 2)]
    found = pairwise_accuracy(*np.array(table).T)
    assert (found.n, found.left_out) == (len(right), len(table) - len(known))
    np.testing.assert_allclose(found.estimate, np.mean(right) if right else NAN)


@quick
@given(rows)
def test_calibrated_ties_are_at_least_as_good_as_any_other_threshold(table: list[tuple[float, float]]) -> None:
    human, judge = np.array(table).T
    best = tie_calibration(human, judge)
    for eps in (0, 1, 2, 3, 4):
        other = pairwise_accuracy(human, judge, eps=eps).estimate
        assert math.isnan(other) or best.estimate >= other - 1e-12


@quick
@given(rows, st.sampled_from(["dropped", "class", "half"]))
def test_swapping_the_answers_of_all_pairs_changes_no_accuracy(table: list[tuple[float, float]], ties: Any) -> None:
    human, judge = np.array(table).T - 2
    assert repr(pair_accuracy(human, judge, ties)) == repr(pair_accuracy(-human, -judge, ties))
