"""Turns a scoring tensor into one score per candidate, and scores into probabilities.

NaN means *unscored*. It is carried or left out, never read as a zero. Pure array maths: this module does not know
what a debate, a model or a reply is, nor why a cell was left unscored.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate.types import FloatArray, check_choice, score_array

Method = Literal["article", "weighted_mean", "mk1"]


def normalize_tensor(S: ArrayLike, weights: ArrayLike, method: Method = "article", quorum: int = 1) -> FloatArray:
    """One score per candidate from the scoring tensor; shape (J,), NaN for a candidate that nobody scored.

    With every cell scored, and scores `S[r, i, j, k]` in 0..10:

        article         1 / (R*I*K)       * sum_{r,i,k} weights[k] * S[r, i, j, k]
        weighted_mean   1 / (R*I*sum(w))  * sum_{r,i,k} weights[k] * S[r, i, j, k]
        mk1             1 / (R*I)         * sum_{r,i,k} weights[k] * S[r, i, j, k]

    `article` is the normalized score of "TextEvolve Evaluate" (Yucha 2024). `mk1` is what the article's first
    reference notebook computes. `weighted_mean`, the default of a debate, lies in 0..10 for any weights that are not
    negative; the highest score of the other two follows from the weights, see `highest_score`. All three rank alike.

    An agent scored a candidate in a round if all K cells are there. With cells missing, the mean runs over the agents
    that scored the candidate, within each round, and then over the rounds in which at least `quorum` of them did.

    S: (R, I, J, K), NaN where a cell was not scored. weights: (K,), finite.

    Raises ValueError for shapes that do not fit, infinite scores or weights, an unknown method, `quorum` below 1,
    weights that sum to 0 under `weighted_mean`, and results too large for a float.
    """
    check_choice("method", method, Method)
    tensor, weight_vector = _checked(S, weights)  # (R, I, J, K), (K,)
    if quorum < 1:
        raise ValueError(f"quorum must be at least 1, got {quorum}")
    coefficients = _coefficients(weight_vector, method)  # (K,)
    with np.errstate(over="ignore", invalid="ignore"):
        # Not a matrix product: BLAS rounds equal rows differently, and equal candidates must tie exactly.
        weighted = (tensor * coefficients).sum(axis=3)  # (R, I, J)
        missing: NDArray[np.int_] = np.isnan(tensor).sum(axis=3)  # (R, I, J)
        scored = missing == 0  # (R, I, J)
        by_round = _mean_where(weighted, scored, axis=1)  # (R, J)
        agents: NDArray[np.int_] = scored.sum(axis=1)  # (R, J)
        enough = agents >= quorum  # (R, J)
        scores = _mean_where(by_round, enough, axis=0)  # (J,)
    if not np.isfinite(scores[enough.any(axis=0)]).all():
        raise ValueError("the scores and weights are too large: their weighted sum is beyond a float")
    return scores


def component_means(S: ArrayLike, quorum: int = 1) -> FloatArray:
    """The mean score of each candidate on each component, over the cells that `normalize_tensor` counts; (J, K).

    With weights w and the same quorum, `normalize_tensor(S, w, "weighted_mean")` is the weighted mean of each row. A
    row is NaN where no round has a quorum of agents that scored the candidate on all components.

    Raises ValueError as `normalize_tensor` does.
    """
    tensor = score_array(S, "(R, I, J, K)", "S")
    each_alone = np.eye(tensor.shape[3])  # (K, K)
    return np.stack([normalize_tensor(tensor, alone, "mk1", quorum) for alone in each_alone], axis=1)


def highest_score(weights: ArrayLike, method: Method = "article", highest: float = 10.0) -> float:
    """What `normalize_tensor` makes of a candidate that has `highest` in every cell: the end of the scores' scale.

    With weights 1, 0.5 and 0.5 and cells of 10 it is 6.67 for `article`, 20 for `mk1`, and 10 for `weighted_mean`.

    weights: (K,), finite, not negative.
    """
    check_choice("method", method, Method)
    if method == "weighted_mean":
        return highest
    each: list[float] = np.asarray(weights, dtype=np.float64).tolist()  # (K,)
    return highest * math.fsum(each) / (len(each) if method == "article" else 1)


def softmax(scores: ArrayLike, temperature: float = 1.0) -> FloatArray:
    """Probabilities `exp(s / temperature) / sum(exp(s / temperature))` over the scored candidates; shape (J,).

    The article's selection distribution s_phi (Yucha 2024), with a temperature: near 0 all goes to the best candidate,
    large values make the scored candidates equally likely. Unscored (NaN) candidates have probability 0; when
    nothing is scored all are 0, otherwise they sum to 1. An empty input gives an empty result.

    scores: (J,), finite or NaN.

    Raises ValueError for scores that are infinite or not one-dimensional, and for a temperature that is not positive
    and finite.
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
    values = score_array(scores)
    probabilities = np.zeros_like(values)  # (J,)
    scored = ~np.isnan(values)  # (J,)
    if scored.any():
        # Shifted before it is divided, so that the best is exp(0) and nothing overflows upwards.
        with np.errstate(over="ignore", under="ignore"):
            powers = np.exp((values[scored] - values[scored].max()) / temperature)  # (scored,)
            probabilities[scored] = powers / powers.sum()
    return probabilities


def _checked(S: ArrayLike, weights: ArrayLike) -> tuple[FloatArray, FloatArray]:
    # C order, so that the sums run in the same order, to the last digit, however the input lies in memory.
    tensor = score_array(S, "(R, I, J, K)", "S")
    weight_vector = np.asarray(weights, dtype=np.float64)  # (K,)
    if tensor.shape[3] == 0:
        raise ValueError(f"S has no component to score: its shape is {tensor.shape}")
    if weight_vector.shape != tensor.shape[3:]:
        raise ValueError(f"weights must have shape ({tensor.shape[3]},), as S has it, got {weight_vector.shape}")
    if not np.isfinite(weight_vector).all():
        raise ValueError("weights must be finite")
    return tensor, weight_vector


def _coefficients(weights: FloatArray, method: Method) -> FloatArray:
    """What each component's score is multiplied by; (K,)."""
    if method == "article":
        return weights / len(weights)
    if method == "mk1":
        return weights
    largest = float(np.abs(weights).max())
    relative = weights / largest if largest else weights  # (K,), so that the sum cannot overflow
    total = float(relative.sum())
    # Mixed signs that cancel seldom give an exact 0 in floats: 0.1 + 0.7 - 0.8 is -1e-16.
    if abs(total) <= 1e-12:
        raise ValueError("weights sum to 0, so there is no weighted mean")
    return relative / total


def _mean_where(values: FloatArray, mask: NDArray[np.bool_], axis: int) -> FloatArray:
    """Mean over `axis` of the values under the mask; NaN where it covers none."""
    total: FloatArray = np.where(mask, values, 0.0).sum(axis=axis)
    count = mask.sum(axis=axis)
    means = np.full(total.shape, np.nan)
    return np.divide(total, count, out=means, where=count > 0)
