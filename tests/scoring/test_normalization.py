"""Scores on 0..10: the seed's figures, what is unscored, and that no method changes the order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.scoring.normalization import Normalization, normalize_scores
from debate.selection import keep_best
from debate.types import Scale

NAN = float("nan")
no_deadline = settings(deadline=None)  # a slow machine is not a failing test

WIDE = Scale(-1000, 1000)
methods = st.sampled_from(get_args(Normalization))
finite = st.floats(-1000, 1000) | st.integers(-3, 3)
score_lists = st.lists(finite | st.none(), max_size=8)


def normalized(scores: Any, method: Normalization, **options: Any) -> Any:
    return normalize_scores(scores, method, WIDE, **options)


@pytest.mark.parametrize(
    ("method", "scores", "expected"),
    [
        ("minmax", [4, 4.0011], [0.0, 10.0]),
        ("minmax", [4, 4.0009], [5.0, 5.0]),
        ("minmax", [2, 4, 10], [0.0, 2.5, 10.0]),
        ("minmax", [7], [5.0]),
        ("zscore", [0, 10], [10 / 3, 20 / 3]),
        ("zscore", [0] * 20 + [100], [*[10 * (3 - 20**-0.5) / 6] * 20, 10.0]),
        ("zscore", [7, 7.0001], [5.0, 5.0]),
        ("sigmoid", [0, 2], [10 / (1 + np.e), 10 / (1 + 1 / np.e)]),
        ("sigmoid", [0, 5000], [0.0, 10.0]),
        ("sigmoid", [7], [5.0]),
        ("rank", [3, 1, 2], [10.0, 0.0, 5.0]),
        ("rank", [3, 1, 3], [7.5, 0.0, 7.5]),
        ("rank", [7], [5.0]),
        ("rank", [7, 7, 7], [5.0, 5.0, 5.0]),
    ],
)
def test_each_method_in_figures(method: Normalization, scores: list[float], expected: list[float]) -> None:
    assert normalize_scores(scores, method) == pytest.approx(expected)


def test_by_scale_a_score_keeps_its_place_whoever_stands_beside_it() -> None:
    assert normalize_scores([-100, 0, NAN, 100], "scale", Scale(-100, 100)) == pytest.approx(
        [0.0, 5.0, NAN, 10.0], nan_ok=True
    )
    assert normalize_scores([50.0], "scale", Scale(-100, 100)).tolist() == [7.5]


@pytest.mark.parametrize("method", get_args(Normalization))
def test_ten_is_best_also_where_lower_is_better(method: Normalization) -> None:
    fewer_errors_first = normalize_scores([0, 3, 10], method, Scale(0, 10, higher_is_better=False))
    assert fewer_errors_first[0] > fewer_errors_first[1] > fewer_errors_first[2]


def test_the_range_that_counts_as_none_can_be_set() -> None:
    assert normalize_scores([0.1, 0.1005], "minmax", flat=0).tolist() == [0.0, 10.0]
    assert normalize_scores([0.1] * 3, "minmax", flat=0).tolist() == [5.0] * 3
    assert normalize_scores([0.1] * 3, "zscore", flat=0).tolist() == [5.0] * 3


def test_sigmoid_takes_scores_of_any_size() -> None:
    assert normalize_scores([-1.7e308, 1.7e308], "sigmoid").tolist() == [0.0, 10.0]


@pytest.mark.parametrize("method", ["minmax", "zscore", "rank"])
def test_scores_of_any_size_are_normalized(method: Normalization) -> None:
    low, middle, high = normalize_scores([-1.7e308, 0.0, 1.7e308], method)
    assert 0 <= low < middle == pytest.approx(5.0)
    assert middle < high <= 10


@no_deadline
@given(score_lists, methods)
def test_normalization_keeps_the_order_and_stays_in_range(scores: list[float | None], method: Normalization) -> None:
    result = normalized(scores, method)
    pairs = sorted((score, place) for score, place in zip(scores, result, strict=True) if score is not None)
    assert all(lower[1] <= higher[1] + 1e-12 for lower, higher in pairwise(pairs))
    assert all(0 <= place <= 10 + 1e-9 for _, place in pairs)


@no_deadline
@given(score_lists, methods, st.randoms(use_true_random=False))
def test_permuting_candidates_permutes_the_scores(scores: list[Any], method: Normalization, rng: Any) -> None:
    order = rng.sample(range(len(scores)), len(scores))
    permuted = normalized([scores[j] for j in order], method)
    np.testing.assert_allclose(permuted, normalized(scores, method)[order], atol=1e-6)


@no_deadline
@given(score_lists, methods, st.integers(0, 8))
def test_an_unscored_candidate_stays_unscored_and_moves_no_other(
    scores: list[float | None], method: Normalization, at: int
) -> None:
    with_one = normalized([*scores[:at], None, *scores[at:]], method)
    np.testing.assert_array_equal(np.delete(with_one, min(at, len(scores))), normalized(scores, method))
    assert np.isnan(with_one).tolist() == [score is None for score in [*scores[:at], None, *scores[at:]]]


@no_deadline
@given(score_lists, methods)
def test_an_unscored_candidate_never_ranks_above_a_scored_one(
    scores: list[float | None], method: Normalization
) -> None:
    kept = keep_best(normalized(scores, method), len(scores) + 1)
    assert sorted(kept) == [j for j, score in enumerate(scores) if score is not None]


@pytest.mark.parametrize(
    ("scores", "method", "scale", "message"),
    [
        ([1.0, np.inf], "minmax", None, "finite"),
        ([[1.0, 2.0]], "minmax", None, "shape"),
        ([1.0], "softmax", None, "unknown method 'softmax'"),
        ([1.0], "scale", None, "needs a scale"),
        ([1.0], "scale", Scale(0, np.inf, higher_is_better=False), "without end"),
        ([11.0], "scale", Scale(), "must lie on the scale"),
    ],
)
def test_what_cannot_be_normalized_is_refused(scores: Any, method: Any, scale: Scale | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        normalize_scores(scores, method, scale)
