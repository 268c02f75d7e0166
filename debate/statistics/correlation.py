"""How far two sides order items alike: correlations, and accuracies over pairs, where ties are named.

A correlation of 1 is compatible with a judge two points too generous: see the mean difference too
(`paired_difference`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate.scoring.agreement import average_ranks, rank_correlation
from debate.selection import level_ties
from debate.statistics.intervals import (
    NOWHERE,
    Estimate,
    Mean,
    bootstrap,
    cluster_codes,
    columns,
    kept_clusters,
    normal_quantile,
    paired_difference,
    share,
)
from debate.types import FloatArray, check_choice

Method = Literal["pearson", "spearman", "kendall", "kendall_c"]
Ties = Literal["dropped", "class", "half"]
_PAIRS = 5_000_000
_REASONS = {"too_few": "fewer than two items", "constant": "one side is constant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated(Estimate):
    """A pairwise accuracy with the threshold of ties that makes it highest.

    Attributes:
        eps: judge's scores that differ by at most this count as tied.
    """

    eps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut(Estimate):
    """A pairwise accuracy with thresholds of ties that were chosen on other items.

    Attributes:
        eps: of the two halves of the groups, each the best of the other half.
    """

    eps: tuple[float, float]


def correlation(
    a: ArrayLike,
    b: ArrayLike,
    method: Method = "spearman",
    clusters: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Estimate:
    """A correlation in -1..1 with its interval.

        pearson     of the scores
        spearman    of their ranks
        kendall     tau-b: (concordant - discordant pairs) / sqrt(pairs untied in a * pairs untied in b)
        kendall_c   tau-c: 2 (concordant - discordant) / (n^2 (q - 1) / q), q the fewer distinct scores of both sides

    Without clusters the interval is that of Bonett and Wright 2000, by Fisher's z; with clusters they are drawn again.
    Kendall's methods compare all pairs, so they take up to about 3,000 items.

    Args:
        a: (n,), NaN where unscored; an item that either side lacks is left out.
        b: (n,).
        method: see above.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no interval.
        seed: of the bootstrap.

    Raises:
        ValueError: for shapes that differ, infinite scores, an unknown method, and too many pairs.
    """
    check_choice("method", method, Method)
    both = np.array(columns(a, b))  # (2, n)
    present = ~np.isnan(both[0])
    n, left_out = int(present.sum()), int((~present).sum())
    by_rank = rank_correlation(*both[:, present])
    if by_rank.reason:
        return Estimate(math.nan, NOWHERE, n, _REASONS[by_rank.reason], left_out)
    of_weights = _of_weights(both[0, present], both[1, present], method)
    if clusters is None:
        value = float(by_rank) if method == "spearman" else of_weights(np.ones(n))
        found = Estimate(value, _fisher(value, n, method, confidence), n)
    else:
        codes = kept_clusters(clusters, present)
        found = bootstrap(of_weights, n, codes, confidence=confidence, draws=draws, seed=seed)
    reason = "fewer than five items" if found.reason is None and math.isnan(found.interval[0]) else found.reason
    return replace(found, reason=reason, left_out=left_out)


def pair_accuracy(
    human: ArrayLike,
    judge: ArrayLike,
    ties: Ties = "dropped",
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Mean:
    """How often the judge decides pairs as people do. Name the way with ties: they differ by up to 20 points.

        dropped   over the pairs that both decide
        class     a tie is a third answer
        half      a tie against a decision is half right

    Args:
        human: (n,), above 0 where the first is better, below 0 where the second is, 0 for a tie, NaN where unscored.
        judge: (n,), likewise.
        ties: see above.
        clusters: (n,), a label for each pair.
        confidence: in (0, 1).

    Raises:
        ValueError: for shapes that differ, infinite numbers, and another way with ties.
    """
    check_choice("ties", ties, Ties)
    people, judged = (np.sign(each) for each in columns(human, judge))  # (n,) each
    if ties == "half":
        return share(1 - np.abs(people - judged) / 2, clusters, confidence)
    right = np.where(np.isnan(people), np.nan, people == judged)  # (n,)
    is_tied = (people == 0) | (judged == 0)
    return share(np.where(is_tied & (ties == "dropped"), np.nan, right), clusters, confidence)


def pairwise_accuracy(
    human: ArrayLike,
    judge: ArrayLike,
    groups: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    *,
    eps: float = 0.0,
    confidence: float = 0.95,
) -> Estimate:
    """Share of pairs that both order alike, or both tie: acc_eq (Deutsch et al. 2023, arXiv 2305.14324).

    `n` counts pairs. The interval is that of a ratio over clusters where the pairs lie within groups; otherwise it is
    by the share of each item's pairs that are right (Sen 1960).

    Args:
        human: (n,), NaN where unscored; an item that either side lacks is left out.
        judge: (n,).
        groups: (n,), a label for each item: pairs are made within groups only, such as the candidates of one task.
        clusters: (n,), a label for each item; without it the groups.
        eps: judge's scores that differ by at most this count as tied.
        confidence: in (0, 1).

    Raises:
        ValueError: for shapes that differ, infinite scores, a negative eps, and more than 5,000,000 pairs.
    """
    if eps < 0:
        raise ValueError(f"eps must not be negative, got {eps}")
    return _pairwise(human, judge, groups, clusters, np.full(np.shape(human), eps), confidence)


def _pairwise(
    human: ArrayLike,
    judge: ArrayLike,
    groups: ArrayLike | None,
    clusters: ArrayLike | None,
    eps: FloatArray,
    confidence: float,
) -> Estimate:
    """The pairwise accuracy with a threshold of ties for each item's pairs, (n,)."""
    pairs, people, judged, left_out = _compared(human, judge, groups)
    if not len(pairs):
        return Estimate(math.nan, NOWHERE, 0, "no group has two scored items", left_out)
    decided = np.where(np.abs(judged) <= eps[pairs[:, 0]], 0.0, np.sign(judged))  # (pairs,)
    right = (np.sign(people) == decided).astype(np.float64)  # (pairs,)
    labels = groups if clusters is None else clusters
    ends = _pair_interval(pairs, right, labels, len(np.asarray(human)), confidence)
    reason = "an interval takes two clusters" if math.isnan(ends[0]) else None
    return Estimate(float(right.mean()), ends, len(pairs), reason, left_out)


def tie_calibration(
    human: ArrayLike,
    judge: ArrayLike,
    groups: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Calibrated:
    """The pairwise accuracy of a judge with fine scores, near ones counted as tied (Deutsch et al. 2023).

    The threshold is the best of all observed differences, the smallest among equals. Choose it on other items than the
    accuracy is reported of: give it to `pairwise_accuracy` there.

    Args:
        human: as in `pairwise_accuracy`, like all others.
        judge: (n,).
        groups: (n,).
        clusters: (n,).
        confidence: in (0, 1).

    Raises:
        ValueError: as `pairwise_accuracy`.
    """
    _, people, judged, _ = _compared(human, judge, groups)
    apart = np.abs(judged)
    order = np.argsort(apart, kind="stable")
    tied = people == 0
    agree = ~tied & (np.sign(people) == np.sign(judged))  # right as long as it is not counted as tied
    gained = np.cumsum(tied[order]) - np.cumsum(agree[order] & (apart[order] > 0))  # (pairs,), by a threshold there
    last = np.append(np.diff(apart[order]) > 0, True)[: order.size]  # equal differences are taken together
    eps = 0.0
    if order.size:
        with_zero = np.concatenate([[int(tied[apart == 0].sum())], gained[last]])
        eps = float(np.concatenate([[0.0], apart[order][last]])[int(with_zero.argmax())])
    found = pairwise_accuracy(human, judge, groups, clusters, eps=eps, confidence=confidence)
    return Calibrated(found.estimate, found.interval, found.n, found.reason, found.left_out, eps=eps)


def held_out_accuracy(
    human: ArrayLike, judge: ArrayLike, groups: ArrayLike, *, confidence: float = 0.95, seed: int = 0
) -> HeldOut:
    """The pairwise accuracy with calibrated ties, each half of the groups with the other half's threshold.

    Args:
        human: as in `pairwise_accuracy`.
        judge: (n,).
        groups: (n,), a label for each item, such as its task; a group lies in one half as a whole.
        confidence: in (0, 1).
        seed: of the drawing of the halves.

    Raises:
        ValueError: as `pairwise_accuracy`.
    """
    people, scores, labels = np.asarray(human, float), np.asarray(judge, float), np.asarray(groups)  # (n,) each
    codes, n_groups = cluster_codes(labels, np.ones(people.shape, dtype=np.bool_))
    is_first = (np.random.default_rng(seed).permutation(n_groups) < n_groups // 2)[codes]  # (n,)
    eps = [tie_calibration(people[half], scores[half], labels[half]).eps for half in (~is_first, is_first)]
    found = _pairwise(people, scores, labels, None, np.where(is_first, eps[0], eps[1]), confidence)
    return HeldOut(found.estimate, found.interval, found.n, found.reason, found.left_out, eps=(eps[0], eps[1]))


def bias(human: ArrayLike, judge: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95) -> Mean:
    """How much higher the judge scores than people do, on average over the same items. See `paired_difference`."""
    return paired_difference(judge, human, clusters, confidence)


# ---- correlations


def _of_weights(a: FloatArray, b: FloatArray, method: Method) -> Callable[[FloatArray], float]:
    """The correlation as a function of how often each item counts."""
    if method in ("kendall", "kendall_c"):
        return lambda drawn: _kendall(np.repeat(a, drawn.astype(int)), np.repeat(b, drawn.astype(int)), method)
    if method == "pearson":
        return lambda drawn: _pearson(a, b, drawn)
    orders = [np.unique(average_ranks(each), return_inverse=True)[1] for each in (a, b)]  # (n,) each

    def spearman(drawn: FloatArray) -> float:
        counts = [np.bincount(order, drawn) for order in orders]
        first, second = ((count.cumsum() - count / 2)[order] for count, order in zip(counts, orders, strict=True))
        return _pearson(first, second, drawn)

    return spearman


def _pearson(a: FloatArray, b: FloatArray, weights: FloatArray) -> float:
    total = weights.sum()  # sums of products rather than `@`, whose threads cost more than they save here
    x, y = a - (weights * a).sum() / total, b - (weights * b).sum() / total  # (n,) each
    size = float((weights * x * x).sum()) * float((weights * y * y).sum())
    return max(-1.0, min(1.0, float((weights * x * y).sum()) / math.sqrt(size))) if size > 0 else math.nan


def _kendall(a: FloatArray, b: FloatArray, method: Method) -> float:
    if method == "kendall":
        _check_pairs(a.size * (a.size - 1) // 2)
        return float(rank_correlation(a, b, "kendall"))
    pairs, x, y, _ = _compared(a, b, None)
    fewest = min(np.unique(level_ties(each)).size for each in (a, b))
    if fewest < 2 or not len(pairs):
        return math.nan
    return 2 * float((np.sign(x) * np.sign(y)).sum()) / (a.size**2 * (fewest - 1) / fewest)


def _fisher(value: float, n: int, method: Method, confidence: float) -> tuple[float, float]:
    z = normal_quantile(confidence)
    if n < 5:
        return NOWHERE
    if abs(value) >= 1:
        return value, value
    spread = {"pearson": 1 / (n - 3), "spearman": (1 + value**2 / 2) / (n - 3)}.get(method, 0.437 / (n - 4))
    low, high = (math.tanh(math.atanh(value) + side * z * math.sqrt(spread)) for side in (-1, 1))
    return low, high


# ---- pairs


def _compared(
    human: ArrayLike, judge: ArrayLike, groups: ArrayLike | None
) -> tuple[NDArray[np.intp], FloatArray, FloatArray, int]:
    """All pairs within groups, (pairs, 2), the differences of both sides, (pairs,) each, and items left out."""
    people, judged = columns(human, judge)  # (n,) each
    present = ~np.isnan(people)
    labels = np.zeros(people.size) if groups is None else np.asarray(groups)
    codes, _ = cluster_codes(labels, present)
    where = np.flatnonzero(present)[np.argsort(codes, kind="stable")]  # (kept,), group by group
    sizes = np.bincount(codes)  # (groups,)
    _check_pairs(int((sizes * (sizes - 1) // 2).sum()))
    starts = sizes.cumsum() - sizes
    parts: list[NDArray[np.intp]] = []
    for size in np.unique(sizes):  # groups of one size at once
        first, second = np.triu_indices(int(size), 1)
        begin = starts[sizes == size][:, None]
        parts.append(np.stack([(begin + first).ravel(), (begin + second).ravel()], axis=1))
    pairs = where[np.concatenate(parts)] if parts else np.zeros((0, 2), dtype=np.intp)
    sides = [np.full(people.size, np.nan) for _ in range(2)]
    for side, values in zip(sides, (people, judged), strict=True):
        side[present] = level_ties(values[present])
    differences = [side[pairs[:, 0]] - side[pairs[:, 1]] for side in sides]
    return pairs, differences[0], differences[1], int((~present).sum())


def _check_pairs(count: int) -> None:
    if count > _PAIRS:
        raise ValueError(f"{count:,} pairs are too many, at most {_PAIRS:,}: give groups, or a sample of the items")


def _pair_interval(
    pairs: NDArray[np.intp], right: FloatArray, labels: ArrayLike | None, n: int, confidence: float
) -> tuple[float, float]:
    """Half of each pair's deviation goes to the cluster of each of its items; without clusters, all of it to each."""
    value = float(right.mean())
    names = np.arange(n) if labels is None else np.unique(np.asarray(labels), return_inverse=True)[1]
    ends = names[pairs]  # (pairs, 2)
    across = ends[:, 0] != ends[:, 1]
    deviation = right - value
    sums = np.bincount(ends[:, 0], deviation, n) + np.bincount(ends[:, 1], deviation * across, n)  # (n,)
    if np.unique(ends).size < 2:
        return NOWHERE
    half = normal_quantile(confidence) * math.sqrt(float((sums**2).sum())) / right.size
    return max(value - half, 0.0), min(value + half, 1.0)
