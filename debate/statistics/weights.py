"""Weights of a sum that orders or predicts what people say: regression with weights that are not negative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from debate.statistics.intervals import columns
from debate.types import FloatArray, check_choice, score_array

Loss = Literal["logistic", "squared"]


def fit_weights(
    rows: ArrayLike,
    targets: ArrayLike,
    toward: ArrayLike,
    ridge: float,
    loss: Loss = "logistic",
    counts: ArrayLike | None = None,
) -> FloatArray:
    """The weights w >= 0 with the least mean loss and ridge / 2 * |w - toward|^2, (K,).

        logistic    log(1 + exp(-t * x.w)): for differences x = x_a - x_b, P(a before b) = 1 / (1 + exp(-x.w)), and t is
                    1 where a comes first, -1 where b does (Bradley and Terry 1952, with features)
        squared     (t - x.w)^2 / 2

    By Newton steps on the weights that are free, projected and halved until the loss falls (Bertsekas 1982).

    Args:
        rows: (n, K), finite.
        targets: (n,).
        toward: (K,), what the weights are drawn to; not negative.
        ridge: not negative. With 0 and a logistic loss, weights that order everything right grow without end.
        loss: of a row.
        counts: (n,), how much each row counts, not negative; None is equally.

    Raises:
        ValueError: for shapes that do not fit, another loss, and no rows.
    """
    check_choice("loss", loss, Loss)
    x = score_array(rows, "(n, K)", "rows")
    t, m = columns(targets, np.ones(len(x)) if counts is None else counts)
    prior = score_array(toward, "(K,)", "toward")
    if not len(x) or len(t) != len(x) or x.shape[1] != len(prior):
        raise ValueError(f"rows {x.shape}, targets {t.shape} and toward {prior.shape} do not fit, or are empty")
    m = m / m.sum()

    def objective(w: FloatArray) -> float:
        fit = x @ w
        each = np.logaddexp(0, -t * fit) if loss == "logistic" else (t - fit) ** 2 / 2
        return float(m @ each + ridge / 2 * ((w - prior) ** 2).sum())

    w, best = prior.copy(), objective(prior)
    for _ in range(200):
        fit = x @ w
        p = 1 / (1 + np.exp(-np.clip(t * fit, -500, 500)))  # (n,)
        slopes, bends = (-t * (1 - p), p * (1 - p)) if loss == "logistic" else (fit - t, np.ones_like(t))
        gradient = x.T @ (m * slopes) + ridge * (w - prior)  # (K,)
        free = (w > 0) | (gradient < 0)  # (K,)
        if not free.any() or np.abs(gradient[free]).max() < 1e-10:
            break
        hessian = (x.T * (m * bends)) @ x + (ridge + 1e-12) * np.eye(len(w))  # (K, K)
        step = np.zeros_like(w)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        found = _lower(objective, w, step, best)
        if found is None:
            break
        w, best = found
    return w


def _lower(
    objective: Callable[[FloatArray], float], w: FloatArray, step: FloatArray, best: float
) -> tuple[FloatArray, float] | None:
    """The weights after as much of the step as lowers the objective, with what it is there; None where nothing does."""
    for halvings in range(40):
        tried = np.maximum(w - step / 2**halvings, 0.0)
        if (value := objective(tried)) < best:
            return tried, value
    return None
