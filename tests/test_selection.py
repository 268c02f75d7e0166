"""Who is chosen: the best, a draw, the best n, and who was tied with them."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from debate.scoring.tensor import normalize_tensor, softmax
from debate.selection import all_best, argmax, keep_best, level_ties, ranks, sample, tied_at_cut, tied_best

NAN = float("nan")
no_deadline = settings(deadline=None)  # a slow machine is not a failing test

few_values = st.integers(0, 4) | st.sampled_from([0.5, 1.5, NAN, None])  # few, so that ties are frequent
score_lists = st.lists(few_values, max_size=8)


def is_scored(score: float | None) -> bool:
    return score is not None and not np.isnan(score)


# The best


def test_the_highest_score_is_chosen() -> None:
    assert argmax([3.0, 9.0, 5.0]) == 1
    assert argmax(np.array([3, 9, 5])) == 1
    assert tied_best([3.0, 9.0, 5.0]) == ()


def test_a_tie_goes_to_the_lowest_index_and_is_reported() -> None:
    assert argmax([1.0, 9.0, NAN, 9.0]) == 1
    assert tied_best([1.0, 9.0, NAN, 9.0]) == (1, 3)


def test_scores_equal_to_within_rounding_tie() -> None:
    assert tied_best([0.3, 0.1 + 0.2]) == (0, 1)
    assert argmax([0.3, 0.1 + 0.2]) == 0
    assert tied_best([0.3, 0.3 + 1e-8]) == ()


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([5.0, 9.0, None, 5.0, 1.0], [2, 1, None, 2, 4]),
        ([0.3, 0.1 + 0.2, NAN], [1, 1, None]),
        ([], []),
    ],
)
def test_ranks_begin_at_one_and_are_shared_by_ties(scores: Any, expected: list[int | None]) -> None:
    assert ranks(scores) == expected
    assert ranks([None if each is None else -each for each in scores], higher_is_better=False) == expected


def test_tied_scores_are_leveled_to_the_highest_of_them() -> None:
    leveled = level_ties(np.array([0.3, 0.1 + 0.2, NAN, 0.2]))
    assert leveled.tolist()[:2] == [0.1 + 0.2] * 2
    assert (np.isnan(leveled[2]), leveled[3]) == (True, 0.2)


def test_near_ties_do_not_chain() -> None:
    step = 0.8e-9
    assert tied_best([1.0, 1.0 + step, 1.0 + 2 * step]) == (1, 2)


@pytest.mark.parametrize("scores", [[], [NAN, NAN], [None, NAN], np.array([]), np.array([NAN])])
def test_nothing_scored_has_no_best(scores: Any) -> None:
    assert argmax(scores) is None
    assert argmax(scores, ties="seeded") is None
    assert tied_best(scores) == ()


def test_the_seed_breaks_ties_evenly_and_repeatably() -> None:
    scores = [7.0, 2.0, 7.0, 7.0]
    drawn = Counter(argmax(scores, ties="seeded", seed=seed) for seed in range(600))
    assert drawn == Counter(argmax(scores, ties="seeded", seed=seed) for seed in range(600))
    assert set(drawn) == {0, 2, 3}
    assert all(140 < count < 260 for count in drawn.values())


def test_a_seed_changes_nothing_where_one_is_best() -> None:
    assert {argmax([1.0, 8.0, 3.0], ties="seeded", seed=seed) for seed in range(20)} == {1}


def test_candidates_scored_alike_tie_through_the_whole_sum() -> None:
    S = np.random.default_rng(0).uniform(0, 10, (3, 4, 5, 6))
    S[:, :, 3] = S[:, :, 1] = S.max(axis=2)
    assert tied_best(normalize_tensor(S, np.linspace(0.1, 1, 6))) == (1, 3)


@no_deadline
@given(score_lists)
def test_the_best_is_scored_and_no_score_is_higher(scores: list[float | None]) -> None:
    known = {index: score for index, score in enumerate(scores) if score is not None and is_scored(score)}
    best = argmax(scores)
    assert (best is None) == (not known)
    if best is not None:
        top = [index for index, score in known.items() if score == max(known.values())]
        assert best == top[0]
        assert tied_best(scores) == (tuple(top) if len(top) > 1 else ())
        assert all_best(scores) == tuple(top)


@no_deadline
@given(score_lists, st.booleans())
def test_an_array_is_taken_like_the_list_of_its_values(scores: list[float | None], higher: bool) -> None:
    array = np.array(scores, dtype=np.float64)
    assert all_best(array) == all_best(scores)
    assert ranks(array, higher) == ranks(scores, higher)
    assert len(level_ties(array)) == len(scores)


@no_deadline
@given(st.lists(st.integers(0, 10) | st.just(NAN), max_size=8), st.floats(0.1, 10))
def test_no_softmax_temperature_changes_the_argmax(scores: list[float], temperature: float) -> None:
    assume(any(is_scored(score) for score in scores))
    assert argmax(softmax(scores, temperature)) == argmax(scores)
    assert tied_best(softmax(scores, temperature)) == tied_best(scores)


# A draw


def test_a_draw_is_repeatable() -> None:
    draws = [sample([0.2, 0.3, 0.5], seed) for seed in range(50)]
    assert draws == [sample([0.2, 0.3, 0.5], seed) for seed in range(50)]
    assert len(set(draws)) == 3


def test_nothing_can_be_drawn_from_zeros() -> None:
    for nothing in ([0.0, 0.0], list[float]()):
        with pytest.raises(ValueError, match="all probabilities are 0"):
            sample(nothing, seed=1)


def test_draws_over_many_seeds_follow_the_probabilities() -> None:
    probabilities = softmax([5.0, NAN, 6.0, 5.5])
    drawn = Counter(sample(probabilities, seed) for seed in range(2000))
    frequencies = [drawn[index] / 2000 for index in range(4)]
    assert frequencies == pytest.approx(probabilities.tolist(), abs=0.05)  # over four standard errors
    assert drawn[1] == 0


@no_deadline
@given(st.lists(st.sampled_from([0.0, 5e-324, 1e-9, 0.3, 1.0, 1e308]), max_size=6), st.integers(0, 2**63))
def test_a_candidate_of_probability_zero_is_never_drawn(probabilities: list[float], seed: int) -> None:
    assume(any(probabilities))
    assert probabilities[sample(probabilities, seed)] > 0


@pytest.mark.parametrize("probabilities", [[0.5, NAN], [1.5, -0.5], [np.inf, 0.0], [[0.5, 0.5]]])
def test_what_is_no_probability_is_refused(probabilities: Any) -> None:
    with pytest.raises(ValueError, match="probabilities must"):
        sample(probabilities, seed=0)


# The best n


@pytest.mark.parametrize(
    ("scores", "n", "higher_is_better", "kept", "tied"),
    [
        ([3, 9, 5], 2, True, [1, 2], []),
        ([3, 9, 5], 2, False, [0, 2], []),
        ([2, 7, 2, 7], 1, True, [1], [1, 3]),
        ([2, 7, 2, 7], 2, True, [1, 3], []),
        ([2, 7, 2, 7], 3, True, [1, 3, 0], [0, 2]),
        ([4, 4.0, 4], 2, False, [0, 1], [0, 1, 2]),
        ([4, 4], 5, True, [0, 1], []),
        ([None, 1, NAN, 0.5], 3, True, [1, 3], []),
        ([None, NAN], 1, True, [], []),
        ([], 1, True, [], []),
        ([np.int64(3), np.float32(8.0), 5], 2, False, [0, 2], []),
        ([10**9, 10**9 + 1], 1, True, [1], []),
        ([0.1 + 0.2, 0.3], 1, False, [0], [0, 1]),
        (np.array([0, 300, 0, 2]), 3, False, [0, 2, 3], []),
        (np.array([1.0, NAN, 1.0]), 1, True, [0], [0, 2]),
    ],
)
def test_the_best_are_kept(scores: Any, n: int, higher_is_better: bool, kept: list[int], tied: list[int]) -> None:
    assert keep_best(scores, n, higher_is_better) == kept
    assert tied_at_cut(scores, n, higher_is_better) == tied


@no_deadline
@given(score_lists, st.integers(1, 9), st.booleans())
def test_keeping_is_a_stable_sort_of_the_scored(scores: list[float | None], n: int, higher: bool) -> None:
    known = [(index, score) for index, score in enumerate(scores) if score is not None and is_scored(score)]
    ranked = sorted(known, key=lambda pair: -pair[1] if higher else pair[1])
    assert keep_best(scores, n, higher) == [index for index, _ in ranked][:n]


@no_deadline
@given(score_lists, st.integers(1, 9), st.booleans())
def test_a_tie_at_the_cut_names_all_who_share_the_score(scores: list[float | None], n: int, higher: bool) -> None:
    ranked = keep_best(scores, len(scores) + 1, higher)
    cut_inside_tie = n < len(ranked) and scores[ranked[n - 1]] == scores[ranked[n]]
    expected = [index for index, score in enumerate(scores) if cut_inside_tie and score == scores[ranked[n - 1]]]
    assert tied_at_cut(scores, n, higher) == expected


@no_deadline
@given(score_lists)
def test_the_best_one_kept_is_the_argmax(scores: list[float | None]) -> None:
    assert (keep_best(scores, 1) or [None])[0] == argmax(scores)
    assert tuple(tied_at_cut(scores, 1)) == tied_best(scores)


def test_an_unscored_candidate_may_be_refused_instead_of_dropped() -> None:
    assert keep_best([2.0, None, 1], 2, higher_is_better=False) == [2, 0]
    assert keep_best([2, 1], 1, missing="raise") == [0]
    for scores in ([2.0, None, 1], [2.0, NAN, 1]):
        with pytest.raises(ValueError, match="1 of 3 candidates are not scored"):
            keep_best(scores, 2, missing="raise")


# What is refused


@pytest.mark.parametrize("n", [0, -1])
def test_keeping_none_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="n must be at least 1"):
        keep_best([1, 2], n)
    with pytest.raises(ValueError, match="n must be at least 1"):
        tied_at_cut([1, 2], n)


@pytest.mark.parametrize("scores", [[1, True], ["7"], [[1.0, 2.0]], np.array([True, False]), np.ones((2, 2))])
def test_a_score_that_is_no_number_is_refused(scores: Any) -> None:
    for choose in (argmax, tied_best, partial(keep_best, n=1), partial(tied_at_cut, n=1)):
        with pytest.raises(TypeError, match="must be a number or None"):
            choose(scores)


def test_an_unknown_rule_for_ties_is_refused() -> None:
    rule: Any = "last"
    with pytest.raises(ValueError, match="unknown ties 'last'"):
        argmax([1.0], ties=rule)
    with pytest.raises(ValueError, match="unknown ties 'last'"):
        keep_best([1.0], 1, ties=rule)
    with pytest.raises(ValueError, match="unknown missing 'last'"):
        keep_best([1.0], 1, missing=rule)
