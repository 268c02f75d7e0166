"""A panel's agreement, and the score it comes to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from debate.scoring.agreement import agreement, combine, consensus
from debate.types import FloatArray, Scale

NAN = float("nan")
no_deadline = settings(deadline=None)  # a slow machine is not a failing test

cells = st.integers(0, 10).map(float) | st.just(NAN)
panels = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=4), elements=cells)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(9, 3, 1 / 3), (10, 8, 0.8), (0, 0, 1.0), (0.1, 0.9, 0.2), (-50, 50, -1.0), (-100, -1, -98.0)],
)
def test_agreement_by_the_seed(a: float, b: float, expected: float) -> None:
    assert agreement([[a], [b]]) == pytest.approx([expected])


@pytest.mark.parametrize(
    ("a", "b", "scale", "expected"),
    [(9, 3, Scale(0, 10), 0.4), (0.1, 0.9, Scale(0, 1), 0.2), (-50, 50, Scale(-100, 100), 0.5)],
)
def test_agreement_on_a_scale_lies_between_0_and_1(a: float, b: float, scale: Scale, expected: float) -> None:
    assert agreement([[a], [b]], scale) == pytest.approx([expected])


def test_agreement_takes_two_who_scored() -> None:
    np.testing.assert_array_equal(agreement([[5.0, 5.0, NAN], [NAN, 5.0, NAN]]), [NAN, 1.0, NAN])


def test_values_are_combined_as_the_seed_has_it() -> None:
    members = [[9.0, 10.0, 10.0], [3.0, 8.0, 9.0]]
    panel = combine(members, agreement(members), 0.8)
    assert panel.rules == ("worst", "worst", "mean")  # an agreement of exactly 0.8 is not above it
    assert panel.scores.tolist() == [3.0, 8.0, 9.5]


def test_votes_are_combined_as_the_seed_has_it() -> None:
    high, low = [[10.0, 5.0, 0.0], [8.0, 6.0, 1.0]], [[10.0, 5.0, 0.0], [0.0, 10.0, 5.0]]
    weights = (0.6, 0.4)
    alike = combine(high, consensus(high), 0.7, below="weighted", weights=weights)
    assert alike.scores == pytest.approx([9.0, 5.5, 0.5])
    unlike = combine(low, consensus(low), 0.7, below="weighted", weights=weights)
    assert unlike.scores == pytest.approx([6.0, 7.0, 2.0])
    assert unlike.rules == ("weighted",) * 3


def test_the_most_conservative_score_is_the_highest_where_lower_is_better() -> None:
    assert combine([[2.0], [7.0]], 0.0, 0.5, higher_is_better=False).scores.tolist() == [7.0]


def test_an_undefined_consensus_is_not_above_any_threshold_and_is_kept() -> None:
    members = [[5.0, 5.0], [1.0, 2.0]]
    agreed = consensus(members)
    assert math.isnan(agreed)
    assert agreed.reason == "constant"
    panel = combine(members, agreed, -1.0)
    assert panel.rules == ("worst", "worst")
    assert np.isnan(panel.agreement).all()


def test_a_consensus_of_many_is_the_mean_over_the_pairs_that_have_one() -> None:
    members = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [4.0, 4.0, 4.0]]
    assert consensus(members) == pytest.approx((1 - 1 - 1) / 3)


def test_weights_are_shared_among_the_members_that_scored() -> None:
    panel = combine([[4.0, 4.0], [NAN, 8.0], [10.0, 10.0]], 0.0, 0.5, below="weighted", weights=[1, 5, 2])
    assert panel.scores == pytest.approx([8.0, 8.0])


@no_deadline
@given(panels, st.sampled_from(["mean", "weighted", "worst"]), st.booleans(), st.randoms(use_true_random=False))
def test_permuting_candidates_permutes_the_panels_scores(
    members: FloatArray, rule: Any, higher: bool, rng: Any
) -> None:
    order: list[int] = rng.sample(range(members.shape[1]), members.shape[1])
    options: Any = {"below": rule, "weights": range(1, len(members) + 1), "higher_is_better": higher}
    panel = combine(members, agreement(members), 0.8, **options)
    permuted = combine(members[:, order], agreement(members[:, order]), 0.8, **options)
    np.testing.assert_array_equal(permuted.scores, panel.scores[order])
    assert permuted.rules == tuple(panel.rules[j] for j in order)


@no_deadline
@given(panels, st.sampled_from(["mean", "weighted", "worst"]), st.booleans())
def test_a_member_that_scored_nobody_changes_nothing(members: FloatArray, rule: Any, higher: bool) -> None:
    more = np.vstack([members, np.full(members.shape[1], NAN)])
    weights = list(range(1, len(more) + 1))
    options: Any = {"above": rule, "below": rule, "higher_is_better": higher}
    before = combine(members, agreement(members), 0.8, weights=weights[:-1], **options)
    after = combine(more, agreement(more), 0.8, weights=weights, **options)
    np.testing.assert_array_equal(after.scores, before.scores)
    np.testing.assert_array_equal(after.agreement, before.agreement)


@no_deadline
@given(panels, st.sampled_from(["mean", "weighted", "worst"]))
def test_a_panels_score_lies_among_those_of_its_members(members: FloatArray, rule: Any) -> None:
    scores = combine(members, 0.0, 0.5, below=rule, weights=np.ones(len(members))).scores
    for score, column in zip(scores, members.T, strict=True):
        given_ones = column[~np.isnan(column)]
        assert math.isnan(score) == (not given_ones.size)
        if given_ones.size:
            assert given_ones.min() - 1e-9 <= score <= given_ones.max() + 1e-9


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([1.0, 2.0], {}, "shape"),
        (np.empty((0, 2)), {}, "shape"),
        ([[np.inf]], {}, "finite"),
        ([[1.0]], {"below": "best"}, "unknown rule 'best'"),
        ([[1.0]], {"below": "weighted"}, "needs weights"),
        ([[1.0]], {"below": "weighted", "weights": [1, 2]}, "weights must have shape"),
        ([[1.0]], {"below": "weighted", "weights": [0]}, "finite and positive"),
    ],
)
def test_a_panel_that_cannot_be_combined_is_refused(scores: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        combine(scores, 0.0, 0.5, **options)


def test_agreement_and_consensus_refuse_what_has_no_meaning() -> None:
    with pytest.raises(ValueError, match="on the scale"):
        agreement([[11.0], [5.0]], Scale(0, 10))
    with pytest.raises(ValueError, match="without end"):
        agreement([[11.0], [5.0]], Scale(0, np.inf))
    with pytest.raises(ValueError, match="two members"):
        consensus([[1.0, 2.0]])
