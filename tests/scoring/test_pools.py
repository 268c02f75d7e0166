"""Groups that share anchors: every candidate is in one, and planted qualities come back whatever each group's bias."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.scoring.pools import align_groups, fit_on_scale, plan_groups
from debate.types import FloatArray

NAN = float("nan")


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 120), st.integers(2, 12), st.integers(1, 11), st.integers(0, 9))
def test_every_candidate_is_in_one_group_and_the_anchors_in_all(n: int, size: int, anchors: int, seed: int) -> None:
    anchors = min(anchors, size - 1)
    groups = plan_groups(n, size, anchors, seed)
    assert groups == plan_groups(n, size, anchors, seed)
    assert all(len({*group}) == len(group) <= size for group in groups)
    assert sorted({j for group in groups for j in group}) == list(range(n))
    if n <= size:
        assert groups == [list(range(n))]
    else:
        shared = [j for j in groups[0] if all(j in group for group in groups)]
        assert len(shared) == anchors or len(groups) == 1
        assert sum(map(len, groups)) == n + anchors * (len(groups) - 1)
        assert len(groups) == -(-(n - anchors) // (size - anchors))
        assert max(map(len, groups)) - min(map(len, groups)) <= 1


@pytest.mark.parametrize(("size", "anchors"), [(8, 0), (8, 8), (1, 1)])
def test_a_group_needs_an_anchor_and_room_beside_it(size: int, anchors: int) -> None:
    with pytest.raises(ValueError, match="anchors must be at least 1"):
        plan_groups(20, size, anchors)


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 60), st.integers(3, 9), st.integers(1, 2), st.integers(0, 10**6))
def test_without_noise_the_planted_qualities_come_back_up_to_a_number(
    n: int, size: int, anchors: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    quality, groups = rng.uniform(0, 10, n), plan_groups(n, size, anchors, seed)
    biases = rng.normal(0, 5, len(groups))
    aligned = align_groups(groups, [quality[group] + bias for group, bias in zip(groups, biases, strict=True)], n)
    np.testing.assert_allclose(aligned.scores - aligned.scores.mean(), quality - quality.mean(), atol=1e-9)
    np.testing.assert_allclose(aligned.offsets, biases - biases.mean(), atol=1e-9)


def test_with_noise_the_estimate_is_that_of_least_squares() -> None:
    rng, n = np.random.default_rng(3), 20
    groups = plan_groups(n, 6, 2, 1)
    scores = [rng.normal(5, 2, len(group)) for group in groups]
    rows: list[FloatArray] = []
    told: list[float] = []
    for g, (group, found) in enumerate(zip(groups, scores, strict=True)):
        for j, score in zip(group, found, strict=True):
            row = np.zeros(n + len(groups))
            row[j] = row[n + g] = 1.0
            rows.append(row)
            told.append(float(score))
    rows.append(np.concatenate([np.zeros(n), np.ones(len(groups))]))  # the offsets sum to 0
    expected = np.linalg.lstsq(np.array(rows), np.array([*told, 0.0]), rcond=None)[0]
    aligned = align_groups(groups, scores, n)
    np.testing.assert_allclose(aligned.scores, expected[:n], atol=1e-9)
    np.testing.assert_allclose(aligned.offsets, expected[n:], atol=1e-9)


def test_what_is_unscored_or_linked_to_nothing_stays_unscored() -> None:
    groups = [[0, 1, 2], [0, 1, 3], [0, 1, 4], [0, 1, 5]]
    scores = [[5.0, NAN, 7.0], [6.0, 3.0, NAN], [NAN, NAN, 9.0], [NAN, NAN, NAN]]
    aligned = align_groups(groups, scores, 6)
    np.testing.assert_allclose(aligned.scores, [5.5, 2.5, 7.5, NAN, NAN, NAN])
    np.testing.assert_allclose(aligned.offsets, [-0.5, 0.5, NAN, NAN])
    nothing = align_groups([[0, 1]], [[NAN, NAN]], 2)
    assert np.isnan(nothing.scores).all()


def test_scores_and_groups_must_fit() -> None:
    with pytest.raises(ValueError, match="group 0 has 2 candidates and 1 scores"):
        align_groups([[0, 1]], [[1.0]], 2)


@pytest.mark.parametrize(
    ("scores", "fitted"),
    [
        ([1.0, NAN, 9.0], [1.0, NAN, 9.0]),
        ([4.0, 12.0], [2.0, 10.0]),
        ([-3.0, 5.0], [0.0, 8.0]),
        ([-5.0, 5.0, 15.0], [0.0, 5.0, 10.0]),
        ([NAN], [NAN]),
    ],
)
def test_scores_are_brought_onto_the_scale_by_as_little_as_can_be(scores: list[float], fitted: list[float]) -> None:
    np.testing.assert_allclose(fit_on_scale(np.array(scores), 0.0, 10.0), fitted)
