"""Weights that are not negative: the conditions of the optimum, and planted weights that are found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.statistics import fit_weights
from debate.statistics.weights import Loss
from debate.types import FloatArray

losses = st.sampled_from(["logistic", "squared"])


def gradient(x: FloatArray, t: FloatArray, w: FloatArray, toward: FloatArray, ridge: float, loss: Loss) -> FloatArray:
    fit = x @ w
    slopes = -t / (1 + np.exp(t * fit)) if loss == "logistic" else fit - t
    return x.T @ slopes / len(x) + ridge * (w - toward)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), losses, st.sampled_from([0.001, 0.1, 10.0]))
def test_no_small_change_of_the_weights_is_better(seed: int, k: int, loss: Loss, ridge: float) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(0, 2, (30, k))
    t, toward = np.sign(x @ random.normal(0, 1, k) + random.normal(0, 2, 30)), random.uniform(0, 2, k)
    w = fit_weights(x, t, toward, ridge, loss)
    slope = gradient(x, t, w, toward, ridge, loss)
    assert (w >= 0).all()
    assert np.abs(slope[w > 0]).max(initial=0) < 1e-6
    assert (slope[w == 0] > -1e-6).all()


def test_without_a_bound_in_the_way_the_squared_loss_gives_the_ridge_regression() -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(200, 3))
    t = x @ [1.0, 2.0, 0.5] + random.normal(size=200)
    expected = np.linalg.solve(x.T @ x / 200 + 0.1 * np.eye(3), x.T @ t / 200 + 0.1)
    np.testing.assert_allclose(fit_weights(x, t, np.ones(3), 0.1, "squared"), expected, rtol=1e-9)


def test_planted_weights_are_found_again_and_a_useless_component_gets_none() -> None:
    random = np.random.default_rng(3)
    planted = np.array([1.0, 0.5, 0.0, 0.2])
    x = random.normal(0, 2, (20_000, 4))
    t = np.where(random.random(20_000) < 1 / (1 + np.exp(-x @ planted)), 1.0, -1.0)
    np.testing.assert_allclose(fit_weights(x, t, np.ones(4), 1e-6), planted, atol=0.03)


def test_a_row_that_counts_twice_is_as_good_as_two() -> None:
    random = np.random.default_rng(4)
    x, t = random.normal(size=(20, 2)), np.where(random.random(20) < 0.6, 1.0, -1.0)
    twice = fit_weights(np.concatenate([x, x[:5]]), np.concatenate([t, t[:5]]), np.ones(2), 0.1)
    counted = fit_weights(x, t, np.ones(2), 0.1, counts=[2] * 5 + [1] * 15)
    np.testing.assert_allclose(counted, twice, rtol=1e-8)


def test_a_strong_ridge_keeps_the_weights_where_they_are_drawn_to() -> None:
    x, t = np.array([[1.0, -1.0], [2.0, 1.0]]), np.array([1.0, -1.0])
    np.testing.assert_allclose(fit_weights(x, t, [0.3, 0.7], 1e9), [0.3, 0.7], atol=1e-6)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        fit_weights(np.ones((3, 2)), np.ones(3), np.ones(3), 1.0)
    with pytest.raises(ValueError, match="are empty"):
        fit_weights(np.ones((0, 2)), np.ones(0), np.ones(2), 1.0)
    with pytest.raises(ValueError, match="loss"):
        fit_weights(np.ones((1, 1)), np.ones(1), np.ones(1), 1.0, "hinge")  # pyright: ignore[reportArgumentType]
