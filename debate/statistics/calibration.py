"""Whether a probability means what it says ("A is better with 0.8"), and maps that make it so.

A map is fitted on other items than those its calibration is reported on; that is up to the caller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate.statistics.intervals import Estimate, Mean, bootstrap, check_range, clustered_mean, columns, kept_clusters
from debate.types import FloatArray, check_choice, score_array

Binning = Literal["count", "width"]
_EDGE = 1e-6  # probabilities are kept this far from 0 and 1 where their logarithm is taken


@dataclass(frozen=True, slots=True)
class Bin:
    """A row of the reliability table: what was promised and what came, for `n` items from `low` to `high`."""

    low: float
    high: float
    n: int
    promised: float
    observed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability(Estimate):
    """The expected calibration error with its table.

    Attributes:
        bins: those that hold items, from low to high.
    """

    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Isotonic:
    """A rising map of probabilities, linear between its points and level beyond them.

    Attributes:
        points: (m,), probabilities, rising.
        values: (m,), what each becomes.
    """

    points: FloatArray
    values: FloatArray

    def __call__(self, probabilities: ArrayLike) -> FloatArray:
        """The calibrated probabilities; NaN stays NaN."""
        return np.interp(np.asarray(probabilities, dtype=np.float64), self.points, self.values)


@dataclass(frozen=True, slots=True)
class Temperature:
    """A map that divides the logit of a probability: above 1 it moves it toward 1/2, below 1 away from it."""

    temperature: float

    def __call__(self, probabilities: ArrayLike) -> FloatArray:
        """The calibrated probabilities; NaN stays NaN."""
        return 1 / (1 + np.exp(-_logits(np.asarray(probabilities, dtype=np.float64)) / self.temperature))


def expected_calibration_error(
    probabilities: ArrayLike,
    outcomes: ArrayLike,
    bins: int = 10,
    binning: Binning = "count",
    clusters: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Reliability:
    """The mean distance between probability and frequency over bins of items (Naeini et al. 2015), with the table.

    It depends on the number of bins, so state it; and with few items it is above 0 even where all is calibrated.

    Args:
        probabilities: (n,), from 0 to 1; NaN is left out.
        outcomes: (n,), 1 where it came about, 0 where not; NaN is left out.
        bins: their number; items with the same probability are in one bin, so there may be fewer.
        binning: bins of an equal number of items, or of equal width.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no interval.
        seed: of the bootstrap.

    Raises:
        ValueError: for other shapes and values, and fewer than one bin.
    """
    check_choice("binning", binning, Binning)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    p, o, present = _forecasts(probabilities, outcomes)
    places = _places(p, bins, binning)  # (kept,)

    def error(drawn: FloatArray) -> float:
        gaps = np.bincount(places, drawn * (p - o))  # (bins,)
        return float(np.abs(gaps).sum() / drawn.sum())

    codes = kept_clusters(clusters, present)
    found = bootstrap(error, p.size, codes, confidence=confidence, draws=draws, seed=seed)
    members = [places == place for place in np.unique(places)]
    table = tuple(
        Bin(float(p[i].min()), float(p[i].max()), int(i.sum()), float(p[i].mean()), float(o[i].mean())) for i in members
    )
    reason = found.reason if p.size else "no observations"
    return Reliability(found.estimate, found.interval, found.n, reason, int((~present).sum()), bins=table)


def brier_score(
    probabilities: ArrayLike, outcomes: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95
) -> Mean:
    """The mean squared distance between probability and outcome (Brier 1950): 0 is best, always saying 1/2 gives 1/4.

    Args:
        probabilities: (n,), from 0 to 1; NaN is left out.
        outcomes: (n,), 1 where it came about, 0 where not; NaN is left out.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).

    Raises:
        ValueError: for other shapes and values.
    """
    _forecasts(probabilities, outcomes)
    p, o = columns(probabilities, outcomes)
    return clustered_mean((p - o) ** 2, clusters, confidence)


def fit_isotonic(probabilities: ArrayLike, outcomes: ArrayLike) -> Isotonic:
    """The rising map nearest to the outcomes, by pooling neighbors that fall (Zadrozny and Elkan 2002).

    It takes about 200 labels; with fewer, `fit_temperature`. Report on other items.

    Args:
        probabilities: (n,), from 0 to 1; NaN is left out.
        outcomes: (n,), from 0 to 1; NaN is left out.

    Raises:
        ValueError: for other shapes and values, and without items.
    """
    p, o = _some(probabilities, outcomes)
    points, codes, counts = np.unique(p, return_inverse=True, return_counts=True)
    blocks: list[tuple[float, int, int]] = []  # sum of outcomes, items, points
    for total, count in zip(np.bincount(codes, o).tolist(), counts.tolist(), strict=True):
        block = (total, count, 1)
        while blocks and blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]:
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1], before[2] + block[2])
        blocks.append(block)
    return Isotonic(points, np.concatenate([np.full(block[2], block[0] / block[1]) for block in blocks]))


def fit_temperature(probabilities: ArrayLike, outcomes: ArrayLike) -> Temperature:
    """The temperature under which the outcomes are likeliest (Guo et al. 2017), from 1/50 to 50.

    Report on other items.

    Args:
        probabilities: (n,), from 0 to 1; NaN is left out.
        outcomes: (n,), from 0 to 1; NaN is left out.

    Raises:
        ValueError: for other shapes and values, and without items.
    """
    p, o = _some(probabilities, outcomes)
    logits = _logits(p)

    def slope(beta: float) -> float:
        return float((logits * (1 / (1 + np.exp(-beta * logits)) - o)).sum())

    low, high = math.log(1 / 50), math.log(50)
    for _ in range(60):  # the loss is convex in beta = 1 / temperature
        middle = (low + high) / 2
        low, high = (low, middle) if slope(math.exp(middle)) > 0 else (middle, high)
    return Temperature(math.exp(-(low + high) / 2))


def _logits(p: FloatArray) -> FloatArray:
    inside = np.clip(p, _EDGE, 1 - _EDGE)
    return np.log(inside / (1 - inside))


def _places(p: FloatArray, bins: int, binning: Binning) -> NDArray[np.intp]:
    """The bin of each probability. Bins of equal width begin at their lower end; 1 is in the last."""
    if binning == "width":
        return np.minimum(np.round(p * bins, 9).astype(np.intp), bins - 1)  # 0.3 * 10 is not 2.999...
    _, codes, counts = np.unique(p, return_inverse=True, return_counts=True)
    middles = counts.cumsum() - (counts + 1) / 2  # of the places of each probability, in order
    return (middles[codes] * bins / max(p.size, 1)).astype(np.intp)


def _forecasts(probabilities: ArrayLike, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    for name, values in (("probabilities", probabilities), ("outcomes", outcomes)):
        check_range(name, score_array(values, "(n,)", name), 0.0, 1.0)
    p, o = columns(probabilities, outcomes)
    present = ~np.isnan(p)
    return p[present], o[present], present


def _some(probabilities: ArrayLike, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
    p, o, _ = _forecasts(probabilities, outcomes)
    if not p.size:
        raise ValueError("nothing to fit: no item has a probability and an outcome")
    return p, o
