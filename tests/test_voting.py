"""From ballots to scores: what counts, how it is added up, how far two votes agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.scoring.agreement import RankMethod
from debate.voting import (
    Comparison,
    RejectionReason,
    borda_count,
    check_ballots,
    copeland_score,
    pairwise_wins,
    plurality_count,
    rank_correlation,
    wins_of_rankings,
)

NAN = float("nan")
no_deadline = settings(deadline=None)  # a slow machine is not a failing test

J = 5
rankings = st.permutations(range(J)).flatmap(lambda order: st.integers(1, J).map(lambda n: list(order[:n])))
full_rankings = st.permutations(range(J)).map(list)
any_ballots = st.lists(st.lists(st.integers(-2, J + 1), max_size=J + 1), max_size=6)
scores = st.lists(st.integers(0, 4) | st.none(), min_size=6, max_size=6)


# Which ballots count


@pytest.mark.parametrize(
    ("ballot", "reason"),
    [
        ([], "empty"),
        ([0, 1, 2, 0], "too_long"),
        ([0, 0, 1], "duplicate"),
        ([3, 1, 2], "out_of_range"),  # counted from 1
        ([-1, 0, 1], "negative"),
        ([0, 1.0, 2], "not_an_index"),
        ([True, 0], "not_an_index"),
        (["0"], "not_an_index"),
    ],
)
def test_a_ballot_that_is_no_ranking_is_rejected_with_a_reason(ballot: list[Any], reason: RejectionReason) -> None:
    checked = check_ballots([[2, 0, 1], ballot], 3)
    assert checked.valid == ((2, 0, 1),)
    assert checked.reasons == {reason: 1}
    assert checked.rejected[0].index == 1


def test_a_partial_ballot_counts_unless_all_must_be_ranked() -> None:
    assert check_ballots([[1]], 3).valid == ((1,),)
    assert check_ballots([[1]], 3, partial=False).reasons == {"partial": 1}


def test_indices_of_numpy_are_indices() -> None:
    assert check_ballots(np.array([[1, 0]]), 2).valid == ((1, 0),)


@no_deadline
@given(any_ballots)
def test_every_ballot_is_either_counted_or_rejected(ballots: list[list[int]]) -> None:
    checked = check_ballots(ballots, J)
    assert len(checked.valid) + len(checked.rejected) == len(ballots)
    kept = [tuple(ballot) for n, ballot in enumerate(ballots) if n not in {each.index for each in checked.rejected}]
    assert list(checked.valid) == kept


def test_there_must_be_a_candidate() -> None:
    with pytest.raises(ValueError, match="at least one candidate"):
        borda_count([], 0)


# Borda


def test_borda_from_one_gives_a_last_place_points_too() -> None:
    assert borda_count([[2, 0, 1], [0, 2, 1]], 3) == pytest.approx([25 / 3, 10 / 3, 25 / 3])


def test_borda_from_zero_gives_a_unanimous_last_place_nothing() -> None:
    assert borda_count([[2, 0, 1], [0, 2, 1]], 3, "from_zero").tolist() == [7.5, 0.0, 7.5]


def test_equal_points_are_equal_scores_to_the_last_digit() -> None:
    counted = borda_count([[0, 1, 2], [1, 2, 0], [2, 0, 1]], 3)
    assert counted[0] == counted[1] == counted[2]


def test_a_partial_ballot_gives_the_others_nothing_or_shares_what_is_left() -> None:
    assert borda_count([[0]], 3).tolist() == [10.0, 0.0, 0.0]
    assert borda_count([[0]], 3, unranked="share") == pytest.approx([10.0, 5.0, 5.0])
    assert borda_count([[0]], 3, "from_zero", "share") == pytest.approx([10.0, 2.5, 2.5])


@pytest.mark.parametrize("ballots", [[], [[0, 0, 0]], [[3, 1, 2]]])
def test_without_a_ballot_that_counts_nobody_has_a_score(ballots: list[list[int]]) -> None:
    assert np.isnan(borda_count(ballots, 3)).tolist() == [True] * 3


def test_a_single_candidate_wins_every_ballot() -> None:
    assert borda_count([[0]], 1).tolist() == borda_count([[0]], 1, "from_zero").tolist() == [10.0]


def test_an_unknown_option_is_refused() -> None:
    option: Any = "mine"
    for arguments in ({"counting": option}, {"unranked": option}):
        with pytest.raises(ValueError, match=r"unknown .* 'mine'"):
            borda_count([[0]], 1, **arguments)


@no_deadline
@given(st.lists(full_rankings, min_size=1, max_size=6), st.sampled_from(["from_one", "from_zero"]))
def test_complete_ballots_score_by_their_mean_place(ballots: list[list[int]], counting: Any) -> None:
    scores = borda_count(ballots, J, counting)
    places = np.array([[ballot.index(j) for ballot in ballots] for j in range(J)])  # (J, ballots)
    last = 1 if counting == "from_one" else 0
    np.testing.assert_allclose(scores, 10 * (J - 1 + last - places.mean(axis=1)) / (J - 1 + last))


@no_deadline
@given(st.lists(rankings, min_size=1, max_size=6), st.sampled_from(["from_one", "from_zero"]))
def test_sharing_keeps_the_sum_of_the_scores(ballots: list[list[int]], counting: Any) -> None:
    complete = borda_count([list(range(J))], J, counting).sum()
    assert borda_count(ballots, J, counting, "share").sum() == pytest.approx(complete)
    assert borda_count(ballots, J, counting, "zero").sum() <= complete + 1e-9


@no_deadline
@given(any_ballots, full_rankings, st.sampled_from(["zero", "share"]))
def test_permuting_candidates_permutes_the_scores(ballots: list[list[int]], order: list[int], unranked: Any) -> None:
    valid = check_ballots(ballots, J).valid
    renamed = [[order.index(j) for j in ballot] for ballot in valid]
    for counting in ("from_one", "from_zero"):
        counted = borda_count(valid, J, counting, unranked)
        np.testing.assert_array_equal(borda_count(renamed, J, counting, unranked), counted[order])
    copeland = copeland_score(wins_of_rankings(valid, J))
    np.testing.assert_array_equal(copeland_score(wins_of_rankings(renamed, J)), copeland[order])


@no_deadline
@given(any_ballots, any_ballots)
def test_a_ballot_that_does_not_count_changes_no_score(ballots: list[list[int]], others: list[list[int]]) -> None:
    rejected = [others[each.index] for each in check_ballots(others, J).rejected]
    np.testing.assert_array_equal(borda_count([*ballots, *rejected], J), borda_count(ballots, J))


# Plurality


def test_plurality_counts_the_votes() -> None:
    assert plurality_count([1, 1, 0, None, 7, -1], 3).tolist() == [1.0, 2.0, 0.0]


def test_without_a_vote_nobody_has_a_count() -> None:
    assert np.isnan(plurality_count([None, 9], 2)).tolist() == [True, True]


# Pairs


def test_a_tie_is_half_a_win_for_each() -> None:
    wins = pairwise_wins([Comparison(0, 1, 0), Comparison(1, 0, 1), Comparison(0, 1, None)], 2)
    assert wins.tolist() == [[0.0, 1.5], [1.5, 0.0]]
    assert copeland_score(wins).tolist() == [5.0, 5.0]


@pytest.mark.parametrize("comparison", [Comparison(0, 0, 0), Comparison(0, 3, 0), Comparison(-1, 0, 0)])
def test_a_comparison_is_between_two_candidates(comparison: Comparison) -> None:
    with pytest.raises(ValueError, match="not between two"):
        pairwise_wins([comparison], 3)


def test_a_comparison_prefers_one_of_its_two() -> None:
    with pytest.raises(ValueError, match="prefers 2"):
        pairwise_wins([Comparison(0, 1, 2)], 3)


def test_copeland_counts_opponents_beaten_not_votes() -> None:
    # Candidate 1 has the most votes in all, and loses to 0.
    wins = np.array([[0.0, 3.0, 2.0], [2.0, 0.0, 5.0], [3.0, 0.0, 0.0]])
    assert copeland_score(wins).tolist() == [5.0, 5.0, 5.0]
    assert copeland_score(np.array([[0.0, 3.0], [2.0, 0.0]])).tolist() == [10.0, 0.0]


def test_opponents_never_met_do_not_count_and_who_met_nobody_is_unscored() -> None:
    np.testing.assert_array_equal(copeland_score(pairwise_wins([Comparison(0, 2, 2)], 4)), [0.0, NAN, 10.0, NAN])


def test_what_a_ballot_names_comes_before_what_it_leaves_out() -> None:
    assert wins_of_rankings([[2, 0]], 4).tolist() == [
        [0.0, 1.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 0.0],
        [1.0, 1.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 0.0],
    ]


@no_deadline
@given(st.lists(full_rankings, min_size=1, max_size=5))
def test_who_beats_all_others_has_copelands_highest_score(ballots: list[list[int]]) -> None:
    wins = wins_of_rankings(ballots, J)
    beats_all = [j for j in range(J) if all(wins[j, other] > wins[other, j] for other in range(J) if other != j)]
    copeland = copeland_score(wins)
    assert [j for j in range(J) if copeland[j] == 10.0] == beats_all


# Rank correlation


def known_pairs(a: list[Any], b: list[Any]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]


def spearman(pairs: list[tuple[float, float]]) -> float:
    """The textbook way: ranks counted out, then Pearson."""
    sides: list[list[float]] = []
    for side in zip(*pairs, strict=True):
        ranks = [sum(x < value for x in side) + (sum(x == value for x in side) - 1) / 2 for value in side]
        sides.append([rank - sum(ranks) / len(ranks) for rank in ranks])
    dot = [sum(x * y for x, y in zip(left, right, strict=True)) for left in sides for right in sides]
    return dot[1] / math.sqrt(dot[0] * dot[3])


def tau_b(pairs: list[tuple[float, float]]) -> float:
    steps = [(x2 - x1, y2 - y1) for (x1, y1), (x2, y2) in combinations(pairs, 2)]
    agreeing = sum(dx * dy > 0 for dx, dy in steps) - sum(dx * dy < 0 for dx, dy in steps)
    return agreeing / math.sqrt(sum(dx != 0 for dx, _ in steps) * sum(dy != 0 for _, dy in steps))


@no_deadline
@given(scores, scores)
def test_rank_correlations_are_those_of_the_textbook(a: list[int | None], b: list[int | None]) -> None:
    pairs = known_pairs(a, b)
    varied = len(pairs) > 1 and all(len(set(side)) > 1 for side in zip(*pairs, strict=True))
    oracles: dict[RankMethod, Callable[..., float]] = {"spearman": spearman, "kendall": tau_b}
    for method, expected in oracles.items():
        found = rank_correlation(a, b, method)
        assert rank_correlation(b, a, method) == pytest.approx(found, nan_ok=True)
        assert (found.reason is None) == varied
        if varied:
            assert found == pytest.approx(expected(pairs))
            assert -1 <= found <= 1
        else:
            assert math.isnan(found)


@pytest.mark.parametrize("method", ["spearman", "kendall"])
def test_scores_that_differ_by_rounding_alone_are_tied_in_a_rank_correlation(method: Any) -> None:
    exact, rounded = [0.3, 0.3, 0.9], [0.3, 0.1 + 0.2, 0.9]
    assert rank_correlation(rounded, [1.0, 2.0, 3.0], method) == rank_correlation(exact, [1.0, 2.0, 3.0], method)
    assert rank_correlation([0.3, 0.1 + 0.2], [1.0, 2.0], method).reason == "constant"


@pytest.mark.parametrize("method", ["spearman", "kendall"])
def test_the_same_order_is_exactly_one_and_the_reverse_minus_one(method: Any) -> None:
    assert rank_correlation([1.0, 5.0, 7.0, 30.0], [0.1, 0.2, 0.3, 0.4], method) == 1.0
    assert rank_correlation([1.0, 5.0, 7.0, 30.0], [4, 3, 2, 1], method) == -1.0


def test_where_there_is_no_correlation_it_says_why() -> None:
    assert rank_correlation([1.0, NAN], [1.0, 2.0]).reason == "too_few"
    assert rank_correlation([], []).reason == "too_few"
    assert rank_correlation([5.0, 5.0, 5.0], [1.0, 2.0, 3.0]).reason == "constant"
    assert math.isnan(rank_correlation([5.0, 5.0, 5.0], [1.0, 2.0, 3.0]))


def test_what_cannot_be_correlated_is_refused() -> None:
    method: Any = "pearson"
    with pytest.raises(ValueError, match="unknown method 'pearson'"):
        rank_correlation([1.0, 2.0], [1.0, 2.0], method)
    with pytest.raises(ValueError, match="finite"):
        rank_correlation([1.0, np.inf], [1.0, 2.0])
    with pytest.raises(ValueError, match="shape"):
        rank_correlation([[1.0, 2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="same number"):
        rank_correlation([1.0, 2.0], [1.0, 2.0, 3.0])
