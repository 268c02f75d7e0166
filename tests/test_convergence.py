"""The coefficient of variation of a round in its three definitions, and the rule that stops a debate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from debate.convergence import Over, coefficient_of_variation, has_converged
from debate.types import FloatArray

RUN1 = Path(__file__).resolve().parents[2] / "shared" / "data" / "textevolve" / "run1.json"
DEFINITIONS: tuple[Over, ...] = get_args(Over)
NAN = float("nan")
INF = float("inf")

no_deadline = settings(deadline=None)  # a slow machine is not a failing test

shapes = array_shapes(min_dims=3, max_dims=3, min_side=2, max_side=4)
rounds = arrays(np.float64, shapes, elements=st.floats(0.125, 10, width=32))
definitions = st.sampled_from(DEFINITIONS)
for_each_definition = pytest.mark.parametrize("over", DEFINITIONS)


@pytest.fixture(scope="module")
def run1() -> dict[str, Any]:
    if not RUN1.exists():
        pytest.skip("the article's run is not beside this checkout")
    return cast("dict[str, Any]", json.loads(RUN1.read_text(encoding="utf-8")))


def two_agents(first: list[float], second: list[float]) -> FloatArray:
    """A round of two agents who score each candidate on one component."""
    return np.array([first, second])[:, :, None]  # (I=2, J, K=1)


# Worked cases


def test_pooled_is_what_the_article_printed(run1: dict[str, Any]) -> None:
    cvs = [coefficient_of_variation(S_round, over="pooled") for S_round in run1["S"]]
    assert cvs == pytest.approx(run1["cv_population"], rel=0, abs=1e-8)
    assert [round(cv, 4) for cv in cvs] == run1["cv_printed"]


@pytest.mark.parametrize(("over", "expected"), [("pooled", 0.636), ("agents", 0.0), ("cells", 0.0)])
def test_perfect_agreement_on_9_and_2_is_disagreement_only_when_pooled(over: Over, expected: float) -> None:
    assert round(coefficient_of_variation(two_agents([9.0, 2.0], [9.0, 2.0]), over), 3) == expected


@for_each_definition
def test_opposite_rankings_within_two_tenths_of_a_point_look_like_agreement(over: Over) -> None:
    cv = coefficient_of_variation(two_agents([6.0, 6.2], [6.2, 6.0]), over)
    assert round(cv, 3) == 0.016
    assert has_converged(cv, 0.1)


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ("agents", (1.0 + 1.0) / 2 / 5.5),  # stds 1 and 1, level 5.5
        ("cells", (1 / 9 + 1 / 2) / 2),  # the bad candidate's 1/2 dominates
        ("pooled", np.sqrt(13.25) / 5.5),
    ],
)
def test_the_definitions_differ_by_what_they_average(over: Over, expected: float) -> None:
    assert coefficient_of_variation(two_agents([10.0, 1.0], [8.0, 3.0]), over) == pytest.approx(expected)


def test_agents_is_the_default() -> None:
    S_round = two_agents([10.0, 1.0], [8.0, 3.0])
    assert coefficient_of_variation(S_round) == coefficient_of_variation(S_round, "agents")


# A mean of 0


@for_each_definition
def test_agreement_on_zero_is_agreement(over: Over) -> None:
    assert coefficient_of_variation(np.zeros((3, 2, 2)), over) == 0.0


@for_each_definition
def test_disagreement_around_zero_is_infinite(over: Over) -> None:
    assert coefficient_of_variation(two_agents([1.0, -1.0], [-1.0, 1.0]), over) == INF


def test_the_rule_for_zero_is_applied_cell_by_cell() -> None:
    S_round = two_agents([2.0, 0.0, -3.0], [4.0, 0.0, -3.0])  # all scores together have the mean 0
    assert coefficient_of_variation(S_round, "cells") == pytest.approx((1 / 3 + 0 + 0) / 3)
    assert coefficient_of_variation(S_round, "agents") == INF
    assert coefficient_of_variation(S_round, "pooled") == INF


@for_each_definition
def test_a_negative_level_counts_by_its_size(over: Over) -> None:
    S_round = two_agents([10.0, 1.0], [8.0, 3.0])
    assert coefficient_of_variation(-S_round, over) == pytest.approx(coefficient_of_variation(S_round, over))


# Missing cells


@for_each_definition
def test_an_agent_with_a_missing_cell_does_not_count(over: Over) -> None:
    complete = np.array([[[7.0, 5.0]], [[6.0, 8.0]]])  # (I=2, J=1, K=2)
    partial = np.array([[[1.0, NAN]]])
    with_partial = np.concatenate([complete, partial])
    assert coefficient_of_variation(with_partial, over) == coefficient_of_variation(complete, over)


@for_each_definition
@pytest.mark.parametrize("agents", [0, 1])
def test_fewer_than_two_agents_have_no_cv(over: Over, agents: int) -> None:
    assert np.isnan(coefficient_of_variation(np.full((agents, 2, 2), 5.0), over, quorum=1))


@for_each_definition
def test_a_round_below_quorum_has_no_cv(over: Over) -> None:
    S_round = np.full((4, 2, 2), 5.0)
    S_round[0, 0, 0] = NAN
    assert coefficient_of_variation(S_round, over, quorum=3) == 0.0
    assert np.isnan(coefficient_of_variation(S_round, over, quorum=4))


@for_each_definition
@pytest.mark.parametrize("shape", [(3, 0, 2), (3, 2, 0)])
def test_a_round_without_cells_has_no_cv(over: Over, shape: tuple[int, ...]) -> None:
    assert np.isnan(coefficient_of_variation(np.empty(shape), over))


@pytest.mark.parametrize(
    ("S_round", "over", "message"),
    [
        (np.ones((2, 3)), "agents", "S_round must have shape"),
        (np.ones((1, 2, 3, 4)), "agents", "S_round must have shape"),
        (np.full((2, 1, 1), INF), "agents", "finite"),
        (np.ones((2, 1, 1)), "rounds", "unknown definition 'rounds'"),
    ],
)
def test_what_has_no_cv_is_refused(S_round: FloatArray, over: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coefficient_of_variation(S_round, over)


@for_each_definition
def test_scores_too_large_for_a_cv_never_converge(over: Over) -> None:
    S_round = two_agents([1e308, 1e308], [-1e308, 1e300])
    assert not has_converged(coefficient_of_variation(S_round, over), 0.1)


# The stop rule


def test_the_threshold_itself_is_converged() -> None:
    cv = coefficient_of_variation(two_agents([9.0], [11.0]))
    assert cv == 0.1
    assert has_converged(cv, 0.1)
    assert not has_converged(cv, 0.0999)


@pytest.mark.parametrize(("cv", "threshold"), [(0.0, None), (NAN, 0.1), (NAN, INF), (0.1, NAN), (INF, 10.0)])
def test_no_threshold_and_no_cv_never_converge(cv: float, threshold: float | None) -> None:
    assert not has_converged(cv, threshold)


# Whatever the round


@no_deadline
@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(0, 10)), st.integers(2, 7)
)
def test_agents_who_agree_exactly_converge_at_a_threshold_of_zero(scores: FloatArray, agents: int) -> None:
    S_round = np.repeat(scores[None], agents, axis=0)  # (I, J, K)
    assert has_converged(coefficient_of_variation(S_round, "agents"), 0.0)
    assert has_converged(coefficient_of_variation(S_round, "cells"), 0.0)


@no_deadline
@given(rounds, definitions, st.randoms(use_true_random=False))
def test_no_order_of_agents_candidates_or_components_matters(S_round: FloatArray, over: Over, rng: Any) -> None:
    agents, candidates, components = (rng.sample(range(size), size) for size in S_round.shape)
    permuted = S_round[agents][:, candidates][:, :, components]
    expected = coefficient_of_variation(S_round, over)
    assert coefficient_of_variation(permuted, over) == pytest.approx(expected, abs=1e-12)


@no_deadline
@given(rounds, definitions, st.integers(2, 4))
def test_a_failed_agent_more_changes_nothing(S_round: FloatArray, over: Over, quorum: int) -> None:
    failed = np.full((1, *S_round.shape[1:]), NAN)
    expected = coefficient_of_variation(S_round, over, quorum)
    actual = coefficient_of_variation(np.concatenate([failed, S_round]), over, quorum)
    assert actual == pytest.approx(expected, abs=1e-12, nan_ok=True)


@no_deadline
@given(rounds, definitions, st.floats(0.01, 100))
def test_the_unit_of_the_scores_does_not_matter(S_round: FloatArray, over: Over, unit: float) -> None:
    expected = coefficient_of_variation(S_round, over)
    assert coefficient_of_variation(S_round * unit, over) == pytest.approx(expected, abs=1e-9)


@no_deadline
@given(rounds)
def test_the_agents_disagreement_is_never_more_than_the_pooled_spread(S_round: FloatArray) -> None:
    agents, pooled = (coefficient_of_variation(S_round, over) for over in ("agents", "pooled"))
    assert 0.0 <= agents <= pooled + 1e-12
