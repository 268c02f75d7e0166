"""Maps scores of any range to 0..10.

All methods but `scale` are relative to the candidates given, so their results compare only within one call. NaN means
unscored and stays NaN; it moves no other score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from debate.scoring.agreement import average_ranks
from debate.types import FloatArray, Scale, check_choice, score_array

Normalization = Literal["minmax", "zscore", "sigmoid", "rank", "scale"]


def normalize_scores(
    scores: ArrayLike | Sequence[float | None],
    method: Normalization = "minmax",
    scale: Scale | None = None,
    *,
    flat: float = 0.001,
) -> FloatArray:
    """The scores on 0..10, in their order; (J,), NaN where unscored.

        minmax    10 * (s - min) / (max - min)
        zscore    10 * ((s - mean) / std + 3) / 6, cut off to 0..10; population std
        sigmoid   10 / (1 + exp(-(s - mean))); it depends on the unit of the scores
        rank      10 * rank / (n - 1), the lowest 0, tied scores sharing the mean of their ranks
        scale     10 * scale.to_unit(s); absolute, so comparable between calls

    Scores that are all the same, and a single score, become 5.0, by minmax and
    zscore also those whose range or std is below `flat`; only `scale` puts them where they stand. Every method keeps
    the order (zscore may tie what it cuts off). With a `scale` of which the low end is best, 10 is still the best.

    scores: (J,), NaN or None where unscored.

    Raises ValueError for another shape, infinite scores, an unknown method, `scale` without a scale that has two ends,
    and a score outside of it.
    """
    values = score_array(scores)
    check_choice("method", method, Normalization)
    normalized = np.full(values.shape, np.nan)  # (J,)
    scored = ~np.isnan(values)  # (J,)
    if scored.any():
        normalized[scored] = _normalized(values[scored], method, scale, flat)
    return normalized


def _normalized(values: FloatArray, method: Normalization, scale: Scale | None, flat: float) -> FloatArray:
    if method == "scale":
        return _on_scale(values, scale)
    if scale is not None and not scale.higher_is_better:
        values = -values
    if method == "sigmoid":
        return _sigmoid(values)
    if method == "rank":
        return 10.0 * (average_ranks(values) / (values.size - 1)) if values.size > 1 else np.full(1, 5.0)
    return _minmax(values, flat) if method == "minmax" else _zscore(values, flat)


def _on_scale(values: FloatArray, scale: Scale | None) -> FloatArray:
    if scale is None:
        raise ValueError("method 'scale' needs a scale")
    if math.isinf(scale.high - scale.low):
        raise ValueError("a scale without end has no place for both 0 and 10")
    if (values < scale.low).any() or (values > scale.high).any():
        raise ValueError(f"scores must lie on the scale, {scale.low:g} to {scale.high:g}")
    return np.array([10.0 * scale.to_unit(value) for value in values.tolist()])  # (scored,)


def _minmax(values: FloatArray, flat: float) -> FloatArray:
    halves = values / 2  # (scored,), so that the range of the largest floats does not overflow
    span = halves.max() - halves.min()
    if span < flat / 2 or span == 0:
        return np.full(values.shape, 5.0)
    return (halves - halves.min()) / span * 10.0


def _zscore(values: FloatArray, flat: float) -> FloatArray:
    largest = np.abs(values).max() or 1.0
    # Relative to the largest, so that nothing overflows, and to the first, so that equal scores have a std of 0.
    shifted = values / largest - values[0] / largest  # (scored,)
    std = shifted.std()
    if std * largest < flat or std == 0:
        return np.full(values.shape, 5.0)
    z = (shifted - shifted.mean()) / std  # (scored,)
    return np.clip((z + 3.0) / 6.0 * 10.0, 0.0, 10.0)


def _sigmoid(values: FloatArray) -> FloatArray:
    shifted = values / 2 - values[0] / 2  # (scored,); halves, as above
    with np.errstate(over="ignore"):  # exp of a large number is inf, and the score then 0
        return 10.0 / (1.0 + np.exp(-2.0 * (shifted - shifted.mean())))
