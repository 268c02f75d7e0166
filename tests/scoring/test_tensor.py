"""Normalized scores and softmax: the article's figures, missing cells, and what must hold for any tensor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from debate.scoring.tensor import Method, normalize_tensor, softmax
from debate.types import FloatArray

RUN1 = Path(__file__).resolve().parents[3] / "shared" / "data" / "textevolve" / "run1.json"
ARTICLE = Path(__file__).resolve().parents[1] / "data" / "article.json"
METHODS: tuple[Method, ...] = get_args(Method)
NAN = float("nan")

no_deadline = settings(deadline=None)  # a slow machine is not a failing test

cells = st.floats(0, 10, width=32) | st.just(NAN)
tensors = arrays(np.float64, array_shapes(min_dims=4, max_dims=4, min_side=1, max_side=4), elements=cells)
methods = st.sampled_from(METHODS)
score_lists = arrays(np.float64, st.integers(0, 8), elements=cells)
temperatures = st.floats(0.01, 100)


@pytest.fixture(scope="module")
def run1() -> dict[str, Any]:
    if not RUN1.exists():
        pytest.skip("the article's run is not beside this checkout")
    return cast("dict[str, Any]", json.loads(RUN1.read_text(encoding="utf-8")))


def weights_for(S: FloatArray) -> FloatArray:
    return np.linspace(0.25, 2.0, S.shape[3])  # (K,), all different


def literal_formula(S: FloatArray, weights: FloatArray, method: Method) -> list[float]:
    """The article's sum, spelled out cell by cell, for tensors without a missing cell."""
    R, I, J, K = S.shape  # noqa: E741
    divisor = {"article": R * I * K, "weighted_mean": R * I * sum(weights), "mk1": R * I}[method]
    cell = [(r, i, k) for r in range(R) for i in range(I) for k in range(K)]
    return [sum(weights[k] * S[r, i, j, k] for r, i, k in cell) / divisor for j in range(J)]


# The article's printed run. Its tensor is itself printed to 8 digits, hence one unit of the last.


@pytest.mark.parametrize(
    ("method", "scores", "probabilities"),
    [
        ("mk1", "normalized_printed", "softmax_printed"),
        ("article", "mk2_normalized", "mk2_softmax"),
        ("weighted_mean", "weight_sum_normalized", "weight_sum_softmax"),
    ],
)
def test_the_articles_run_is_reproduced(run1: dict[str, Any], method: Method, scores: str, probabilities: str) -> None:
    ours = normalize_tensor(run1["S"], run1["weights"], method)
    assert ours == pytest.approx(run1[scores], rel=0, abs=1e-8)
    assert softmax(ours) == pytest.approx(run1[probabilities], rel=0, abs=1e-8)


def test_the_articles_printed_scores_make_its_printed_probabilities() -> None:
    article: dict[str, list[float]] = json.loads(ARTICLE.read_text(encoding="utf-8"))
    assert softmax(article["normalized"]) == pytest.approx(article["softmax"], rel=0, abs=1e-8)


def test_a_tensor_that_is_level_in_each_candidate_has_the_articles_scores_by_each_method() -> None:
    article: dict[str, list[float]] = json.loads(ARTICLE.read_text(encoding="utf-8"))
    weights, printed = article["weights"], np.array(article["normalized"])  # (K,), (J,)
    S = np.broadcast_to(printed[None, None, :, None] / sum(weights), (2, 3, len(printed), len(weights)))  # (R, I, J, K)
    divisors: dict[Method, float] = {"mk1": 1, "article": len(weights), "weighted_mean": sum(weights)}
    for method, divisor in divisors.items():
        assert normalize_tensor(S, weights, method) == pytest.approx(printed / divisor)


# Worked cases


@pytest.mark.parametrize(("method", "expected"), [("article", 4.5), ("weighted_mean", 6.0), ("mk1", 9.0)])
def test_the_methods_differ_by_what_they_divide_by(method: Method, expected: float) -> None:
    assert normalize_tensor([[[[4.0, 10.0]]]], [1.0, 0.5], method) == pytest.approx([expected])


def test_a_component_of_weight_zero_does_not_count_but_must_be_scored() -> None:
    assert normalize_tensor([[[[4.0, 9.0]], [[8.0, NAN]]]], [1.0, 0.0], "weighted_mean") == pytest.approx([4.0])


def test_a_mean_runs_over_agents_within_each_round_and_then_over_rounds() -> None:
    S = [[[[2.0]], [[4.0]]], [[[9.0]], [[NAN]]]]  # (R=2, I=2, J=1, K=1)
    assert normalize_tensor(S, [1.0]) == pytest.approx([6.0])  # mean(3, 9), where a flat mean of 2, 4, 9 is 5


def test_a_round_below_quorum_is_left_out() -> None:
    S = [[[[2.0]], [[4.0]]], [[[9.0]], [[NAN]]]]
    assert normalize_tensor(S, [1.0], quorum=2) == pytest.approx([3.0])


def test_quorum_is_counted_for_each_candidate() -> None:
    S = [[[[2.0], [5.0]], [[4.0], [NAN]]]]  # (R=1, I=2, J=2, K=1)
    np.testing.assert_allclose(normalize_tensor(S, [1.0], quorum=2), [3.0, NAN])


def test_a_quorum_nobody_can_reach_leaves_all_unscored() -> None:
    assert np.isnan(normalize_tensor(np.full((2, 3, 4, 5), 7.0), np.ones(5), quorum=4)).all()


def test_a_candidate_nobody_scored_has_no_score() -> None:
    S = np.full((2, 3, 2, 2), 5.0)
    S[:, :, 1, 0] = NAN  # one missing component leaves the agent's scores of that candidate out
    np.testing.assert_allclose(normalize_tensor(S, [1.0, 1.0]), [5.0, NAN])


@pytest.mark.parametrize("shape", [(0, 3, 2, 4), (3, 0, 2, 4)])
def test_a_debate_without_rounds_or_agents_scores_nobody(shape: tuple[int, ...]) -> None:
    assert np.isnan(normalize_tensor(np.empty(shape), np.ones(4))).tolist() == [True, True]


def test_missing_scores_may_be_none() -> None:
    assert normalize_tensor(cast("Any", [[[[None]], [[6.0]]]]), [1.0]).tolist() == [6.0]


@pytest.mark.parametrize(
    ("S", "weights", "options", "message"),
    [
        (np.ones((2, 3, 4)), np.ones(4), {}, "S must have shape"),
        (np.ones((1, 1, 2, 0)), np.ones(0), {}, "no component"),
        (np.ones((1, 1, 2, 3)), np.ones(2), {}, "weights must have shape"),
        (np.ones((1, 1, 2, 3)), np.ones((1, 3)), {}, "weights must have shape"),
        (np.full((1, 1, 1, 1), np.inf), [1.0], {}, "scores must be finite"),
        (np.ones((1, 1, 1, 1)), [NAN], {}, "weights must be finite"),
        (np.ones((1, 1, 1, 1)), [np.inf], {}, "weights must be finite"),
        (np.ones((1, 1, 1, 1)), [1.0], {"method": "mk2"}, "unknown method 'mk2'"),
        (np.ones((1, 1, 1, 1)), [1.0], {"quorum": 0}, "quorum"),
        (np.ones((1, 1, 1, 2)), [0.0, 0.0], {"method": "weighted_mean"}, "sum to 0"),
        (np.ones((1, 1, 1, 3)), [0.1, 0.7, -0.8], {"method": "weighted_mean"}, "sum to 0"),
        (np.full((1, 1, 1, 1), 10.0), [1e308], {"method": "mk1"}, "too large"),
    ],
)
def test_what_cannot_be_scored_is_refused(S: FloatArray, weights: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        normalize_tensor(S, weights, **options)


def test_weights_of_zero_are_a_score_of_zero_in_the_article() -> None:
    assert normalize_tensor(np.ones((1, 1, 2, 2)), [0.0, 0.0]).tolist() == [0.0, 0.0]


# Whatever the tensor


@no_deadline
@given(tensors, methods)
def test_with_nothing_missing_the_score_is_the_formula(S: FloatArray, method: Method) -> None:
    full = np.nan_to_num(S, nan=3.0)
    expected = literal_formula(full, weights_for(full), method)
    np.testing.assert_allclose(normalize_tensor(full, weights_for(full), method), expected, atol=1e-9)


@no_deadline
@given(tensors, methods, st.integers(1, 3), st.randoms(use_true_random=False))
def test_permuting_candidates_permutes_the_scores_exactly(S: FloatArray, method: Method, quorum: int, rng: Any) -> None:
    order = rng.sample(range(S.shape[2]), S.shape[2])
    scores = normalize_tensor(S, weights_for(S), method, quorum)
    np.testing.assert_array_equal(normalize_tensor(S[:, :, order], weights_for(S), method, quorum), scores[order])


@no_deadline
@given(tensors, methods, st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_order_of_agents_and_rounds_does_not_matter(S: FloatArray, method: Method, quorum: int, rng: Any) -> None:
    rounds, agents = (rng.sample(range(size), size) for size in S.shape[:2])
    scores = normalize_tensor(S, weights_for(S), method, quorum)
    permuted = normalize_tensor(S[rounds][:, agents], weights_for(S), method, quorum)
    np.testing.assert_allclose(permuted, scores, atol=1e-9)


@no_deadline
@given(tensors, methods, st.integers(1, 3))
def test_a_failed_agent_more_changes_no_score(S: FloatArray, method: Method, quorum: int) -> None:
    failed = np.full((S.shape[0], 1, *S.shape[2:]), NAN)
    scores = normalize_tensor(S, weights_for(S), method, quorum)
    with_failed = normalize_tensor(np.concatenate([S, failed], axis=1), weights_for(S), method, quorum)
    np.testing.assert_allclose(with_failed, scores, atol=1e-9)


@no_deadline
@given(tensors, st.data())
def test_the_weighted_mean_stays_on_the_scale(S: FloatArray, data: st.DataObject) -> None:
    positive = st.floats(1e-300, 1e300)
    weights = data.draw(arrays(np.float64, S.shape[3], elements=positive))
    scores = normalize_tensor(S, weights, "weighted_mean")
    scored = scores[~np.isnan(scores)]
    assert ((scored >= 0) & (scored <= 10 + 1e-9)).all()


@no_deadline
@given(tensors)
def test_exactly_the_candidates_without_a_complete_row_are_unscored(S: FloatArray) -> None:
    expected = [np.isnan(S[:, :, j]).any(axis=-1).all() for j in range(S.shape[2])]
    assert np.isnan(normalize_tensor(S, weights_for(S))).tolist() == expected


@pytest.mark.parametrize("components", [6, 9, 13])
def test_candidates_scored_alike_score_exactly_alike(components: int) -> None:
    S = np.random.default_rng(components).uniform(0, 10, (50, 4, 7, components))
    S[:, :, 5] = S[:, :, 1]
    for round_scores in S:
        scores = normalize_tensor(round_scores[None], weights_for(S))
        assert scores[5] == scores[1]


def test_the_layout_in_memory_changes_no_digit() -> None:
    S = np.random.default_rng(0).uniform(0, 10, (3, 4, 50, 13))
    scores = normalize_tensor(S, weights_for(S))
    assert normalize_tensor(np.asfortranarray(S), weights_for(S)).tolist() == scores.tolist()


# Softmax


def test_softmax_gives_the_unscored_no_probability() -> None:
    assert softmax([0.0, NAN, np.log(3.0)]) == pytest.approx([0.25, 0.0, 0.75])
    assert softmax([NAN, NAN]).tolist() == [0.0, 0.0]
    assert softmax([]).shape == (0,)


def test_softmax_takes_scores_and_temperatures_of_any_size() -> None:
    assert softmax([1e308, -1e308, 1e308]).tolist() == [0.5, 0.0, 0.5]
    assert softmax([1.0, 2.0], temperature=1e-320).tolist() == [0.0, 1.0]
    assert softmax([1.0, 2.0], temperature=1e300).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("temperature", [0.0, -1.0, NAN, np.inf])
def test_softmax_refuses_a_temperature_that_is_not_positive_and_finite(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature"):
        softmax([1.0, 2.0], temperature)


@pytest.mark.parametrize("scores", [[np.inf, 1.0], [[1.0, 2.0]], 1.0])
def test_softmax_refuses_scores_that_are_infinite_or_no_vector(scores: Any) -> None:
    with pytest.raises(ValueError, match="scores must"):
        softmax(scores)


@no_deadline
@given(score_lists, temperatures)
def test_softmax_sums_to_one_and_keeps_the_order(scores: FloatArray, temperature: float) -> None:
    probabilities = softmax(scores, temperature)
    scored = ~np.isnan(scores)
    assert probabilities.sum() == pytest.approx(1.0 if scored.any() else 0.0)
    assert (probabilities[~scored] == 0).all()
    ascending = probabilities[scored][np.argsort(scores[scored])]
    assert (np.diff(ascending) >= -1e-15).all()
    if scored.any():
        assert probabilities[np.nanargmax(scores)] == probabilities.max()


@no_deadline
@given(score_lists, temperatures)
def test_softmax_does_not_depend_on_the_level_of_the_scores(scores: FloatArray, temperature: float) -> None:
    np.testing.assert_allclose(softmax(scores + 100.0, temperature), softmax(scores, temperature), atol=1e-6)
