"""Shares, means and differences with their intervals, from items that may stand in clusters.

Items of one cluster (candidates of one task, both orders of one pair) are not independent: intervals that treat them as
such are too short. `clusters` is a label per item; without it each item stands alone. NaN is an item that nobody
scored: it is left out and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate.types import FloatArray, FloatOrNaN, check_choice, score_array

NOWHERE = (math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval.

    Attributes:
        estimate: NaN where it is not defined.
        interval: its lower and upper end; NaN where there is none.
        n: number of observations.
        reason: why the estimate or its interval is NaN; None where both are numbers.
        left_out: observations left out because a score is missing.
    """

    estimate: FloatOrNaN
    interval: tuple[FloatOrNaN, FloatOrNaN]
    n: int
    reason: str | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Estimate):
    """A mean with its standard error.

    Attributes:
        standard_error: with deviations added up within clusters; NaN with fewer than two clusters.
        clusters: how many there are.
    """

    standard_error: FloatOrNaN
    clusters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Discordant(Estimate):
    """Who is right where only one of two is, and how likely that is between equals.

    Attributes:
        p_value: two-sided and exact.
    """

    p_value: float


# ---- shares


def wilson(successes: int, n: int, confidence: float = 0.95) -> Estimate:
    """A share with its score interval (Wilson 1927), which lies in [0, 1] and holds for small samples too.

    Args:
        successes: from 0 to `n`.
        n: number of trials; with none, the interval is [0, 1].
        confidence: probability that such an interval covers the true share, in (0, 1).

    Raises:
        ValueError: for numbers outside these ranges.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie in [0, {n}], got {successes}")
    if n == 0:
        return Estimate(math.nan, (0.0, 1.0), 0, "no observations")
    low, high = score_interval(successes / n, n, confidence)
    return Estimate(successes / n, (low if successes else 0.0, high if successes < n else 1.0), n)


def share(hits: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95) -> Mean:
    """A share of items with its score interval; with clusters, for as many independent items as tell equally much.

    That number is p (1 - p) / SE^2 with the clustered standard error, at most n; and the number of clusters where all
    items are alike (Korn and Graubard 1998).

    Args:
        hits: (n,), from 0 to 1; NaN is left out.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).

    Raises:
        ValueError: for other values or shapes.
    """
    values = score_array(hits, "(n,)", "hits")
    check_range("hits", values, 0.0, 1.0)
    mean = clustered_mean(values, clusters, confidence)
    p, spread = mean.estimate, mean.estimate * (1 - mean.estimate)
    if mean.n == 0:
        return replace(mean, interval=(0.0, 1.0))
    size = float(mean.n)
    if clusters is not None:
        size = min(size, spread / mean.standard_error**2) if mean.standard_error > 0 else float(mean.clusters)
    return replace(mean, interval=score_interval(p, size, confidence), reason=None)


def score_interval(p: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """The ends of Wilson's interval for a share `p` of `n`, which need not be whole."""
    z = normal_quantile(confidence)
    center = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((center + side) / (1 + z * z / n) for side in (-half, half))
    return max(low, 0.0), min(high, 1.0)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often the choice was right, over the tasks with a label. What is tied or unscored is not right.

    Attributes:
        labeled: number of tasks with a label and an evaluation.
        right: how many of them chose what the label names.
        tied: how many have no decision, because others share the best score with what was selected.
        unscored: how many have no choice at all.
        chance: expected share of right choices by drawing a candidate; NaN without labels.
    """

    labeled: int
    right: int
    tied: int
    unscored: int
    chance: FloatOrNaN

    @property
    def share(self) -> Estimate:
        """The right ones among the labeled, with the interval of 95 %."""
        return wilson(self.right, self.labeled)


# ---- means and differences


def clustered_mean(values: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95) -> Mean:
    """A mean, with deviations added up within each cluster before they are squared (Miller 2024, arXiv 2411.00640).

        SE = sqrt(sum over clusters of (sum of the cluster's deviations)^2) / n

    The interval takes Student's t for G clusters and the SE times sqrt(G / (G - 1)): with one item in each cluster it
    is the usual one. With unequal clusters or fewer than 20 it is somewhat too short. Scores of several samples of one
    item are averaged before.

    Args:
        values: (n,); NaN is left out.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).

    Raises:
        ValueError: for other shapes, and infinite values.
    """
    given = score_array(values, "(n,)", "values")
    present = ~np.isnan(given)
    codes, n_clusters = cluster_codes(clusters, present)
    kept, left_out = given[present], int((~present).sum())
    if not kept.size:
        return Mean(math.nan, NOWHERE, 0, "no observations", left_out, standard_error=math.nan, clusters=0)
    mean = float(kept.mean())
    if n_clusters < 2:
        reason = "an interval takes two clusters"
        return Mean(mean, NOWHERE, kept.size, reason, left_out, standard_error=math.nan, clusters=n_clusters)
    error = math.sqrt(float((np.bincount(codes, kept - mean) ** 2).sum())) / kept.size
    half = t_quantile(confidence, n_clusters - 1) * error * math.sqrt(n_clusters / (n_clusters - 1))
    ends = (mean - half, mean + half)
    return Mean(mean, ends, kept.size, None, left_out, standard_error=error, clusters=n_clusters)


def paired_difference(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95) -> Mean:
    """How much higher `a` is than `b` on the same items: the clustered mean of a - b.

    The paired interval is far shorter than two separate ones, which must not be compared.

    Args:
        a: (n,), NaN where unscored; an item that either side lacks is left out.
        b: (n,).
        clusters: (n,), a label for each item.
        confidence: in (0, 1).

    Raises:
        ValueError: for shapes that differ, and infinite values.
    """
    return clustered_mean(np.subtract(*columns(a, b)), clusters, confidence)


def mcnemar(only_a: int, only_b: int, confidence: float = 0.95) -> Discordant:
    """Whether two judges differ: the exact test over the items where only one of them is right (McNemar 1947).

    The estimate is the share of these items on which `a` is the one, with Wilson's interval.

    Args:
        only_a: number of items where `a` is right and `b` is not.
        only_b: the reverse.
        confidence: in (0, 1).

    Raises:
        ValueError: for negative numbers.
    """
    if min(only_a, only_b) < 0:
        raise ValueError(f"numbers of items must not be negative, got {only_a} and {only_b}")
    n, fewer = only_a + only_b, min(only_a, only_b)
    ways = count = 1
    for k in range(fewer):
        count = count * (n - k) // (k + 1)
        ways += count
    won = wilson(only_a, n, confidence)
    return Discordant(won.estimate, won.interval, n, won.reason, p_value=min(1.0, 2 * ways / 2**n))


def smallest_difference(standard_error: float, power: float = 0.8, confidence: float = 0.95) -> float:
    """The smallest true difference that a paired comparison finds with this power: (z_confidence + z_power) * SE.

    Args:
        standard_error: of the paired difference, at least 0. For accuracies p with correlation r on n items it is
            sqrt(2 p (1 - p) (1 - r) / n).
        power: in (0, 1).
        confidence: in (0, 1).

    Raises:
        ValueError: for numbers outside these ranges.
    """
    if not (standard_error >= 0 and 0 < power < 1):
        raise ValueError(f"standard_error must be at least 0 and power in (0, 1), got {standard_error} and {power}")
    return (normal_quantile(confidence) + NormalDist().inv_cdf(power)) * standard_error


FalseDiscovery = Literal["bh", "by"]


def false_discovery(p_values: ArrayLike, method: FalseDiscovery = "bh") -> FloatArray:
    """P-values adjusted for being many: those at most q have a share of false discoveries of at most q.

        bh   Benjamini and Hochberg 1995, for independent tests
        by   Benjamini and Yekutieli 2001, for any dependence

    Args:
        p_values: (m,), from 0 to 1; NaN stays NaN and does not count.
        method: see above.

    Returns:
        (m,), in the same order.

    Raises:
        ValueError: for other values, shapes and methods.
    """
    check_choice("method", method, FalseDiscovery)
    given = score_array(p_values, "(m,)", "p_values")
    check_range("p_values", given, 0.0, 1.0)
    present = np.flatnonzero(~np.isnan(given))
    order = present[np.argsort(given[present], kind="stable")]  # (tests,), lowest first
    ranks = np.arange(1, order.size + 1)
    factor = order.size * (float((1 / ranks).sum()) if method == "by" else 1.0)
    adjusted = given.copy()  # (m,)
    adjusted[order] = np.minimum.accumulate((given[order] * factor / ranks)[::-1])[::-1].clip(max=1.0)
    return adjusted


# ---- bootstrap


def bootstrap(
    statistic: Callable[[FloatArray], float],
    n: int,
    clusters: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Estimate:
    """A statistic with the percentile interval of whole clusters drawn with replacement (Efron 1979).

    It is for what has no formula. Draws in which the statistic is undefined do not count; where they are more than a
    tenth, there is no interval.

    Args:
        statistic: a function of the items' weights, (n,), the number of times each was drawn; NaN where undefined.
        n: number of items.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).
        draws: 0 for no interval.
        seed: the same seed gives the same interval.

    Raises:
        ValueError: for numbers outside these ranges.
    """
    normal_quantile(confidence)  # checks it
    codes, n_clusters = cluster_codes(clusters, np.ones(n, dtype=np.bool_))
    value = float(statistic(np.ones(n))) if n else math.nan
    if math.isnan(value) or n_clusters < 2 or not draws:
        reason = "an interval takes two clusters" if draws else "no draws, no interval"
        return Estimate(value, NOWHERE, n, "undefined for these items" if math.isnan(value) else reason)
    rng = np.random.default_rng(seed)
    drawn = (np.bincount(rng.integers(n_clusters, size=n_clusters), minlength=n_clusters) for _ in range(draws))
    found = np.array([statistic(weights[codes].astype(np.float64)) for weights in drawn])  # (draws,)
    found = found[~np.isnan(found)]
    if found.size < 0.9 * draws:
        return Estimate(value, NOWHERE, n, f"undefined in {draws - found.size} of {draws} draws")
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(value, (float(low), float(high)), n)


# ---- what the other files share


def columns(*arrays: ArrayLike) -> list[FloatArray]:
    """Arrays of one length, (n,) each, NaN in all of them where any is NaN. Raises ValueError for other shapes."""
    checked = [score_array(each, "(n,)", "each array") for each in arrays]
    if len({each.size for each in checked}) > 1:
        raise ValueError(f"all arrays must have one length, got {', '.join(str(each.size) for each in checked)}")
    missing = np.isnan(np.array(checked)).any(axis=0)  # (n,)
    return [np.where(missing, np.nan, each) for each in checked]


def cluster_codes(clusters: ArrayLike | None, present: NDArray[np.bool_]) -> tuple[NDArray[np.intp], int]:
    """The clusters of the items that are present, numbered from 0, (kept,), and how many there are."""
    if clusters is None:
        return np.arange(int(present.sum())), int(present.sum())
    labels = np.asarray(clusters)
    if labels.shape != present.shape:
        raise ValueError(f"clusters must have shape {present.shape}, got {labels.shape}")
    names, codes = np.unique(labels[present], return_inverse=True)
    return codes, len(names)


def kept_clusters(clusters: ArrayLike | None, present: NDArray[np.bool_]) -> NDArray[np.intp] | None:
    """The clusters of the items that are present, or None where each item stands alone."""
    return None if clusters is None else cluster_codes(clusters, present)[0]


def check_range(name: str, values: FloatArray, low: float, high: float) -> None:
    """Refuse values outside [low, high] with a ValueError; NaN passes."""
    if ((values < low) | (values > high)).any():
        raise ValueError(f"{name} must lie in [{low:g}, {high:g}]")


def normal_quantile(confidence: float) -> float:
    """Half the width of a two-sided normal interval. Raises ValueError for a confidence outside (0, 1)."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def t_tail(t: float, freedom: float) -> float:
    """P(T > t) of Student's t, by Gauss-Legendre quadrature over the angle atan(t / sqrt(freedom))."""
    if t < 0:
        return 1.0 - t_tail(-t, freedom)
    low = math.atan(t / math.sqrt(freedom))
    high = min(math.pi / 2, low + 12 / math.sqrt(freedom))  # what is behind 12 standard deviations is below 1e-30
    nodes, weights = _quadrature()
    angles = low + (high - low) * (nodes + 1) / 2
    area = float((weights * np.cos(angles) ** (freedom - 1)).sum()) * (high - low) / 2
    return area * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)


@lru_cache
def t_quantile(confidence: float, freedom: float) -> float:
    """Half the width of a two-sided interval of Student's t, by bisection."""
    low, high = 0.0, 2 * normal_quantile(confidence)
    while t_tail(high, freedom) > (1 - confidence) / 2:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, freedom) > (1 - confidence) / 2 else (low, middle)
    return high


@lru_cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(100)
