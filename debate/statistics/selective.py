"""From which certainty on a judge's choices may stand: a threshold with a promised error of what lies above it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from debate.types import FloatOrNaN, score_array

_MOST_STARTS = 4


@dataclass(frozen=True, slots=True)
class SelectiveThreshold:
    """A threshold of certainty, and what is promised of the choices at or above it.

    Attributes:
        threshold: the lowest certainty with the promise; NaN where there is none.
        error: the share of wrong choices that is promised not to be exceeded.
        confidence: how probable it is, over draws of the calibration tasks, that the promise holds.
        n: calibration tasks.
        kept: those of them at or above the threshold.
        wrong: how many of these are wrong.
        bound: upper confidence bound of their error (Clopper and Pearson 1934), at most `error`.
        reason: why there is no threshold; None where there is one.
    """

    threshold: FloatOrNaN
    error: float
    confidence: float
    n: int
    kept: int
    wrong: int
    bound: FloatOrNaN
    reason: str | None = None


def least_tasks(error: float, confidence: float = 0.95) -> int:
    """How many choices, all right, show an error of at most `error`: log(1 - confidence) / log(1 - error)."""
    _check(error, confidence)
    return math.ceil(math.log1p(-confidence) / math.log1p(-error))


def selective_threshold(
    certainty: ArrayLike, wrong: ArrayLike, error: float, confidence: float = 0.95
) -> SelectiveThreshold:
    """The lowest threshold of certainty above which the error is at most `error`, with the given confidence.

    Learn then Test (Angelopoulos et al. 2021, arXiv 2110.01052): going from the surest choice down, each threshold is
    tested by the exact binomial test of "the error above it is more than `error`". The level 1 - confidence is divided
    evenly among a few places, each with twice as many choices above it as the one before; what was rejected passes its
    level on to the next threshold, and what was not loses it (the fallback procedure, Wiens 2003). So one early error
    does not end everything, and the promise holds with probability `confidence` over the draw of the calibration tasks,
    for all thresholds together. It assumes that the tasks to come are drawn as those were, independently of one
    another, and that a surer choice is not more often wrong.

    Args:
        certainty: (n,), higher is surer. A task with NaN is never kept; it stands above no threshold.
        wrong: (n,), 1 or True where the choice was wrong, else 0.
        error: in (0, 1).
        confidence: in (0, 1).

    Raises:
        ValueError: for values out of range, and shapes that do not fit.
    """
    _check(error, confidence)
    sure, missed = score_array(certainty, "(n,)", "certainty"), score_array(wrong, "(n,)", "wrong")
    if sure.shape != missed.shape or not np.isin(missed, (0, 1)).all():
        raise ValueError(f"wrong must have shape {sure.shape} and be 0 or 1, got {missed.shape}")
    known = ~np.isnan(sure)
    order = np.argsort(-sure[known], kind="stable")
    values, errors = sure[known][order], np.cumsum(missed[known][order]).astype(int)  # (known,) each
    ends = np.flatnonzero(np.append(values[1:] < values[:-1], True))[: len(values)] + 1  # kept at each distinct value
    kept = _lowest(ends.tolist(), [int(errors[n - 1]) for n in ends], error, 1 - confidence)
    if kept == 0:
        reason = _why_none(len(values), error, confidence)
        return SelectiveThreshold(math.nan, error, confidence, len(sure), 0, 0, math.nan, reason)
    n_wrong = int(errors[kept - 1])
    bound = _upper_bound(n_wrong, kept, 1 - confidence)
    return SelectiveThreshold(float(values[kept - 1]), error, confidence, len(sure), kept, n_wrong, bound)


def _lowest(ends: Sequence[int], wrong: Sequence[int], error: float, level: float) -> int:
    """How many choices the lowest threshold that passes its test keeps; 0 where none does.

    ends: how many each threshold keeps, the strictest first. wrong: how many of these are wrong.
    """
    starts, share = _starts(ends[-1] if ends else 0, error, level)
    carried, kept = 0.0, 0
    for n, k in zip(ends, wrong, strict=True):
        while starts and n >= starts[0]:
            carried += share
            starts = starts[1:]
        if carried and _tail(k, n, error) <= carried:
            kept = n
        else:
            carried = 0.0
    return kept


def _starts(n: int, error: float, level: float) -> tuple[list[int], float]:
    """With how many choices above them tests begin, and the share of the level that each beginning has."""
    for count in range(_MOST_STARTS, 0, -1):
        first = least_tasks(error, 1 - level / count)
        starts = [first * 2**each for each in range(count)]
        if starts[-1] <= n:
            return starts, level / count
    return [], 0.0


def _why_none(n: int, error: float, confidence: float) -> str:
    need = least_tasks(error, confidence)
    if n < need:
        return f"an error of {error:.3g} can be shown on {need} tasks at least, and {n} have a certainty"
    return f"even the surest choices are wrong too often, on these {n} tasks, to promise an error of {error:.3g}"


def _tail(k: int, n: int, p: float) -> float:
    """P(X <= k) of a binomial X with n trials of probability p."""
    logs = [
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(k + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, logs)))


def _upper_bound(k: int, n: int, alpha: float) -> float:
    """The probability at which `_tail` falls to `alpha`, by bisection."""
    low, high = k / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < 1 and _tail(k, n, middle) > alpha else (low, middle)
    return high


def _check(error: float, confidence: float) -> None:
    for name, value in (("error", error), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value}")
