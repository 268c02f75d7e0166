"""What a panel is worth, on small tables with a known answer and on planted correlations."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from debate.statistics import (
    conformity,
    effective_judges,
    flips,
    independence_gap,
    length_slope,
    oracle_gap,
    position,
    wilson,
)
from debate.types import FloatArray
from tests.statistics.oracles import NAN

quick = settings(deadline=None, max_examples=30)

ERRORS = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1]])
tables = arrays(np.float64, st.tuples(st.integers(2, 9), st.integers(2, 4)), elements=st.sampled_from([0.0, 1.0, NAN]))
wins = st.lists(st.tuples(*[st.sampled_from([1.0, 0.0, -1.0, NAN])] * 2), min_size=1, max_size=9)


# ---- how many judges


def test_the_effective_number_of_judges_is_that_of_the_paper() -> None:
    found = effective_judges(ERRORS, draws=0)
    assert found.correlation == pytest.approx(0.288889, abs=5e-7)
    assert found.estimate == pytest.approx(1.901408, abs=5e-7)
    pairs = [effective_judges(ERRORS[:, each], draws=0).correlation for each in ([0, 1], [0, 2], [1, 2])]
    assert pairs == pytest.approx([0.466667, 0.466667, -0.066667], abs=5e-7)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_a_planted_correlation_of_scores_is_found(rho: float) -> None:
    rng = np.random.default_rng(4)
    shared, own = rng.normal(size=(4000, 1)), rng.normal(size=(4000, 5))
    found = effective_judges(math.sqrt(rho) * shared + math.sqrt(1 - rho) * own, draws=0)
    assert found.estimate == pytest.approx(5 / (1 + 4 * rho), rel=0.06)


def test_judges_who_err_alike_are_one_and_those_who_err_in_turn_are_all() -> None:
    once = np.array([1, 0, 1, 0, 0, 0])
    assert effective_judges(np.stack([once] * 4, axis=1), draws=0).estimate == pytest.approx(1)
    assert effective_judges(np.eye(3), draws=0).estimate == 3.0


def test_a_judge_who_is_never_wrong_is_left_out_of_the_pairs() -> None:
    errors = np.column_stack([ERRORS[:, :2], np.zeros(8)])
    found = effective_judges(errors, draws=0)
    assert (found.pairs_left_out, found.correlation) == (2, pytest.approx(0.466667, abs=5e-7))
    nothing = effective_judges(np.zeros((8, 3)))
    assert math.isnan(nothing.estimate) and nothing.reason is not None


@quick
@given(tables)
def test_the_effective_number_lies_between_one_and_all_whatever_the_order(errors: FloatArray) -> None:
    found = effective_judges(errors, draws=0)
    judges = errors.shape[1]
    assert math.isnan(found.estimate) or 1 - 1e-9 <= found.estimate <= judges + 1e-9
    turned = effective_judges(errors[::-1, ::-1], draws=0)
    np.testing.assert_allclose([turned.estimate, turned.correlation], [found.estimate, found.correlation], atol=1e-9)


# ---- independence


def test_independent_judges_leave_no_gap() -> None:
    """Every combination of right and wrong as often as three independent judges of 3/4 make it."""
    table = [row for row in product([0, 1], repeat=3) for _ in range(3 ** sum(row))]
    assert independence_gap(table, draws=0).estimate == pytest.approx(0, abs=1e-12)


def test_judges_who_copy_each_other_lose_what_independence_would_gain() -> None:
    table = np.repeat([[1, 1, 1]] * 3 + [[0, 0, 0]], 5, axis=0)
    found = independence_gap(table, draws=200)
    assert found.estimate == pytest.approx(27 / 64 + 27 / 64 - 3 / 4)
    assert found.interval[0] < found.estimate < found.interval[1]


def test_a_tied_vote_is_half_right() -> None:
    assert independence_gap([[1, 0], [0, 1]], draws=0).estimate == pytest.approx(0.5 - 0.5)


# ---- position and length


def test_position_is_counted_over_pairs_and_judgments() -> None:
    #        both A   both first  both first  both second  tie, A   missing
    first = [1, 1, 3, -1, 0, NAN]
    second = [2, -1, -1, 1, 1, 1]
    found = position(first, second)
    assert (found.consistency.estimate, found.consistency.n) == (pytest.approx(1 / 5), 5)
    assert found.consistency.left_out == found.preference.left_out == 1
    # first place won: A in the first order 3 times, B in the second 2 times; 9 judgments are not ties
    assert (found.preference.estimate, found.preference.n) == (pytest.approx(5 / 9 - 1 / 2), 9)
    assert (found.first_of_inconsistent.estimate, found.first_of_inconsistent.n) == (pytest.approx(2 / 3), 3)


def test_both_orders_of_a_pair_are_no_two_independent_judgments() -> None:
    """Such a judge prefers a place in a whole pair or in none, so that 60 judgments tell as much as 30 pairs."""
    places = np.array([1.0] * 18 + [-1.0] * 12)
    found = position(places, -places).preference
    low, high = wilson(18, 30).interval
    assert (found.estimate, found.n) == (pytest.approx(0.1), 60)
    assert found.interval == pytest.approx((low - 0.5, high - 0.5))


@quick
@given(wins)
def test_calling_the_answers_the_other_way_round_changes_nothing(table: list[tuple[float, float]]) -> None:
    first, second = np.array(table).T
    assert repr(position(first, second)) == repr(position(-second, -first))


def test_a_judge_who_follows_length_is_found_out_at_equal_labels() -> None:
    rng = np.random.default_rng(6)
    people, lengths = rng.normal(size=300), rng.normal(size=300) * 40
    scores = 2 * people + 0.02 * lengths + rng.normal(size=300)
    found = length_slope(scores, lengths + 10 * people, people)
    assert found.estimate == pytest.approx(0.8, abs=0.2)
    assert 0 < found.interval[0] < 0.8 < found.interval[1]
    honest = length_slope(2 * people + rng.normal(size=300), lengths + 10 * people, people)
    assert honest.interval[0] < 0 < honest.interval[1]


def test_a_slope_is_undefined_where_lengths_tell_nothing_of_their_own() -> None:
    people = [1.0, -1.0, 1.0, 0.0, 1.0]
    same = length_slope([1, 2, 3, 4, 5], np.array(people) * 7, people)
    assert math.isnan(same.estimate) and same.reason == "the lengths say the same as the labels"
    assert math.isnan(length_slope([1, 2, 3, 4, 5], [3] * 5, people).estimate)


# ---- what debating changes


def test_conformity_is_the_share_of_changes_toward_the_mean() -> None:
    before = [[2, 4, 9], [5, 5, NAN], [1, 9, 5]]  # means 5, 5, 5
    after = [[3, 4, 10], [5, NAN, 4], [1, 6, 8]]
    found = conformity(before, after)
    # changed: 2 to 3 (nearer), 9 to 10 (farther), 9 to 6 (nearer), 5 to 8 (farther)
    assert (found.estimate, found.n, found.clusters) == (0.5, 4, 2)
    assert found.left_out == 2


def test_agents_who_change_nothing_have_no_conformity() -> None:
    found = conformity([[1, 2]], [[1, 2]])
    assert math.isnan(found.estimate) and found.reason == "no score was changed"


def test_flips_are_shares_of_those_that_could_flip() -> None:
    found = flips([1, 1, 1, 1, 0, 0, NAN, 1], [1, 1, 1, 0, 1, 0, 1, NAN])
    assert (found.lost.estimate, found.lost.n) == (0.25, 4)
    assert (found.gained.estimate, found.gained.n) == (0.5, 2)
    assert (found.net.estimate, found.net.n, found.net.left_out) == (0.0, 6, 2)


def test_the_gap_to_the_best_agent_and_to_any_agent() -> None:
    agents = [[1, 0], [1, 0], [0, 1], [0, 0], [1, NAN]]
    found = oracle_gap(agents, [1, 0, 0, 0, 1], draws=200)
    assert (found.to_best.estimate, found.to_best.n, found.to_best.left_out) == (0.25, 4, 1)
    assert (found.to_any.estimate, found.to_any.n, found.to_any.left_out) == (0.5, 4, 1)
    assert found.to_best.interval[0] <= 0.25 <= found.to_best.interval[1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="right and wrong are 1 and 0"):
        flips([0.5], [1])
    with pytest.raises(ValueError, match="one shape"):
        conformity([[1, 2]], [[1, 2, 3]])
    with pytest.raises(ValueError, match="two judges"):
        effective_judges([[1], [0]])
    with pytest.raises(ValueError, match="one length"):
        oracle_gap([[1, 0]], [1, 0])
