"""Ranks of scores, and how far two sets of scores rank the same candidates alike.

Pure array maths. This module does not know whose scores they are, nor what is done when a correlation is undefined:
it says so, and never calls it 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from debate.types import FloatArray

RankMethod = Literal["spearman", "kendall"]
Scores = ArrayLike | Sequence[float | None]
Undefined = Literal["too_few", "constant"]


class Correlation(float):
    """A correlation in -1..1, or NaN with a `reason` why there is none.

    `too_few`: fewer than two candidates have a score on both sides. `constant`: one side scores them all alike, so it
    ranks nothing. `reason` is None where the correlation is defined.
    """

    reason: Undefined | None

    def __new__(cls, value: float, reason: Undefined | None = None) -> Self:
        """A value, and where it is NaN, why."""
        made = super().__new__(cls, value)
        made.reason = reason
        return made


def rank_correlation(a: Scores, b: Scores, method: RankMethod = "spearman") -> Correlation:
    """How far two sets of scores order the same candidates alike: 1 the same order, -1 the reverse.

        spearman   Pearson's correlation of the ranks, tied scores sharing the mean of theirs
        kendall    tau-b: (concordant - discordant pairs) / sqrt(pairs untied in a * pairs untied in b)

    Candidates that either side left unscored are left out. Seed 000 calls such a function without defining it.

    a, b: (J,), NaN or None where unscored.

    Raises ValueError for shapes that are not the same (J,), infinite scores, or an unknown method.
    """
    if method not in get_args(RankMethod):
        raise ValueError(f"unknown method {method!r}, expected one of {', '.join(get_args(RankMethod))}")
    both = [_scores(a), _scores(b)]
    if both[0].size != both[1].size:
        raise ValueError(f"both sides must score the same number of candidates, got {both[0].size} and {both[1].size}")
    both = np.array(both)  # (2, J)
    left, right = both[:, ~np.isnan(both).any(axis=0)]  # (scored,) each
    if left.size < 2:
        return Correlation(np.nan, "too_few")
    x, y = (_places(left), _places(right)) if method == "spearman" else (_orders(left), _orders(right))
    size = float((x * x).sum()) * float((y * y).sum())
    if size == 0:
        return Correlation(np.nan, "constant")
    return Correlation(max(-1.0, min(1.0, float((x * y).sum()) / np.sqrt(size))))


def average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 0 for the lowest; equal values share the mean of their ranks. (n,) -> (n,), nothing NaN."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    first = np.cumsum(counts) - counts  # (distinct,)
    return (first + (counts - 1) / 2)[inverse]


def _scores(values: Scores) -> FloatArray:
    scores = np.asarray(cast("ArrayLike", values), dtype=np.float64)  # (J,)
    if scores.ndim != 1:
        raise ValueError(f"scores must have shape (J,), got {scores.shape}")
    if np.isinf(scores).any():
        raise ValueError("scores must be finite, or NaN for unscored")
    return scores


def _places(values: FloatArray) -> FloatArray:
    """Ranks around 0, doubled: whole numbers, so that sums of their products are exact."""
    return 2 * average_ranks(values) - (values.size - 1)


def _orders(values: FloatArray) -> FloatArray:
    """The order of every pair: 1, 0 for a tie, or -1; (n, n)."""
    return np.sign(values[:, None] - values[None, :])
