"""What a panel is worth beside its members: how many judges it amounts to, its habits, what debating changes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate.statistics.intervals import (
    NOWHERE,
    Estimate,
    Mean,
    bootstrap,
    check_range,
    clustered_mean,
    columns,
    kept_clusters,
    paired_difference,
    share,
    t_quantile,
    wilson,
)
from debate.types import FloatArray, FloatOrNaN, score_array


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveJudges(Estimate):
    """How many independent judges a panel amounts to, from 1 to J.

    Attributes:
        correlation: mean correlation of the errors of two judges, before it is kept within 0..1.
        pairs_left_out: pairs of judges without a correlation: one of them is always, or never, wrong.
    """

    correlation: FloatOrNaN
    pairs_left_out: int


@dataclass(frozen=True, slots=True)
class Position:
    """What the order of two answers does to a judge.

    Attributes:
        consistency: share of pairs decided alike in both orders; ties are decisions.
        preference: P(the first wins) - 1/2 over all judgments that are not ties; its interval is clustered by pair.
        first_of_inconsistent: share of the pairs won from one place in both orders that went to the first place.
    """

    consistency: Estimate
    preference: Estimate
    first_of_inconsistent: Estimate


@dataclass(frozen=True, slots=True)
class Flips:
    """What became of right and wrong choices between two rounds.

    Attributes:
        lost: share of the right ones that turned wrong.
        gained: share of the wrong ones that turned right.
        net: the later accuracy minus the earlier one.
    """

    lost: Mean
    gained: Mean
    net: Mean


@dataclass(frozen=True, slots=True)
class OracleGap:
    """How much better its agents could do than the panel does.

    Attributes:
        to_best: accuracy of the agent who is right most often, minus the panel's.
        to_any: share of items where at least one agent is right, minus the panel's accuracy.
    """

    to_best: Estimate
    to_any: Mean


def effective_judges(
    errors: ArrayLike, clusters: ArrayLike | None = None, *, confidence: float = 0.95, draws: int = 2000, seed: int = 0
) -> EffectiveJudges:
    """How many independent judges J judges with correlated errors amount to: J / (1 + (J - 1) rho) (Kish 1965).

    Labels are needed: judges who agree may all be right. rho is the mean correlation over the pairs of judges, kept
    within 0..1.

    Args:
        errors: (n, J), 1 where a judge was wrong and 0 where right, or scores minus the people's; NaN where unscored.
            A pair of judges is compared on the items that both scored.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no interval.
        seed: of the bootstrap.

    Raises:
        ValueError: for another shape, infinite errors, and fewer than two judges.
    """
    given = score_array(errors, "(n, J)", "errors")
    judges = given.shape[1]
    if judges < 2:
        raise ValueError(f"errors must have shape (n, J) with at least two judges, got {given.shape}")
    present = (~np.isnan(given)).sum(axis=1) >= 2
    kept = given[present]
    left_out = int((~present).sum())

    def rho(drawn: FloatArray) -> float:
        each = _pair_correlations(kept, drawn)
        return float(np.nanmean(each)) if not np.isnan(each).all() else math.nan

    def effective(drawn: FloatArray) -> float:
        return judges / (1 + (judges - 1) * float(np.clip(rho(drawn), 0.0, 1.0)))  # NaN stays NaN

    n, codes = len(kept), kept_clusters(clusters, present)
    found = bootstrap(effective, n, codes, confidence=confidence, draws=draws, seed=seed)
    each = _pair_correlations(kept, np.ones(n))
    undefined = "no two judges who are both sometimes right and sometimes wrong on the same items"
    reason = undefined if math.isnan(found.estimate) else found.reason
    pairs, value = int(np.isnan(each).sum()), rho(np.ones(n))
    return EffectiveJudges(found.estimate, found.interval, n, reason, left_out, correlation=value, pairs_left_out=pairs)


def _pair_correlations(errors: FloatArray, weights: FloatArray) -> FloatArray:
    """Pearson's correlation of each pair of columns over the rows that both have; (pairs,), NaN where constant."""
    known = ~np.isnan(errors)  # (n, J)
    values = np.where(known, errors, 0.0)
    weighted, seen = values * weights[:, None], known * weights[:, None]
    size = np.maximum(seen.T @ known, 1e-300)  # (J, J), like all below
    mean = weighted.T @ known / size  # of the row's judge where the column's judge scored, too
    square = (weighted * values).T @ known / size
    spread = np.maximum(square - mean**2, 0.0)
    scale = np.sqrt(spread * spread.T)
    covariance = weighted.T @ values / size - mean * mean.T
    defined = scale > 1e-9 * np.maximum(square, square.T)
    correlations = np.divide(covariance, scale, out=np.full(scale.shape, np.nan), where=defined)
    return np.clip(correlations, -1, 1)[np.triu_indices(errors.shape[1], 1)]


def independence_gap(
    right: ArrayLike, clusters: ArrayLike | None = None, *, confidence: float = 0.95, draws: int = 2000, seed: int = 0
) -> Estimate:
    """The accuracy that a majority of independent judges as good as these would have, minus the one observed.

    The first is the tail of a Poisson-binomial distribution (Condorcet); a tied vote is half right in both.

    Args:
        right: (n, J), 1 where a judge was right and 0 where not; an item that lacks a judge is left out.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no interval.
        seed: of the bootstrap.

    Raises:
        ValueError: for another shape, and values outside [0, 1].
    """
    given = score_array(right, "(n, J)", "right")
    check_range("right", given, 0.0, 1.0)
    present = np.asarray(~np.isnan(given).any(axis=1))
    kept, judges = given[present], given.shape[1]
    votes = kept.sum(axis=1)  # (kept,)
    decided = (votes > judges / 2) + 0.5 * (votes == judges / 2)  # (kept,)
    places: FloatArray = np.arange(judges + 1, dtype=np.float64)
    worth: FloatArray = (places > judges / 2) + 0.5 * (places == judges / 2)  # (J + 1,), by the number of right judges

    def gap(drawn: FloatArray) -> float:
        chances = np.ones(1)  # of each number of right judges
        for accuracy in drawn @ kept / drawn.sum():
            chances = np.convolve(chances, [1 - accuracy, accuracy])
        return float(chances @ worth - drawn @ decided / drawn.sum())

    codes = kept_clusters(clusters, present)
    found = bootstrap(gap, len(kept), codes, confidence=confidence, draws=draws, seed=seed)
    return Estimate(found.estimate, found.interval, found.n, found.reason, int((~present).sum()))


def position(first_order: ArrayLike, second_order: ArrayLike, confidence: float = 0.95) -> Position:
    """How consistent a judge is when the order of two answers is swapped, and which place it prefers.

    Args:
        first_order: (n,), the winner of each pair with answer A shown first: above 0 for A, below 0 for B, 0 for a
            tie; NaN where unscored. Differences of scores A - B will do.
        second_order: (n,), the same, of A and B, with B shown first.
        confidence: in (0, 1).

    Raises:
        ValueError: for shapes that differ, and infinite numbers.
    """
    ahead, behind = (np.sign(each) for each in columns(first_order, second_order))  # (n,) each
    left_out = int(np.isnan(ahead).sum())
    a, b = ahead[~np.isnan(ahead)], behind[~np.isnan(ahead)]
    one_place, first_both = int((a * b < 0).sum()), int(((a > 0) & (b < 0)).sum())
    at_first = np.where(np.r_[a, b] == 0, np.nan, np.r_[a > 0, b < 0])  # (2 n,)
    wins = share(at_first, np.tile(np.arange(a.size), 2), confidence)
    low, high = wins.interval
    preference = Estimate(wins.estimate - 0.5, (low - 0.5, high - 0.5), wins.n, wins.reason, left_out)
    alike = wilson(int((a == b).sum()), a.size, confidence)
    consistency = Estimate(alike.estimate, alike.interval, a.size, alike.reason, left_out)
    return Position(consistency, preference, wilson(first_both, one_place, confidence))


def length_slope(
    score_differences: ArrayLike,
    length_differences: ArrayLike,
    labels: ArrayLike,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """How much the judge's preference grows with an answer's extra length, given what people say of the pair.

    The slope of a linear regression, in points of score for one standard deviation of the length differences, with a
    sandwich covariance clustered by item.

    Args:
        score_differences: (n,), the judge's score of the first answer minus that of the second; NaN is left out.
        length_differences: (n,), of the same answers, in any unit.
        labels: (n,), the people's difference, or 1, 0, -1.
        clusters: (n,), a label for each pair.
        confidence: in (0, 1).

    Raises:
        ValueError: for shapes that differ, and infinite numbers.
    """
    scores, lengths, people = columns(score_differences, length_differences, labels)
    present = ~np.isnan(scores)
    y, x, h, n = scores[present], lengths[present], people[present], int(present.sum())
    left_out = int((~present).sum())
    if n < 4 or float(x.std()) == 0:
        return Estimate(math.nan, NOWHERE, n, "fewer than four pairs, or all lengths differ alike", left_out)
    known = np.stack([np.ones(n), h], axis=1)  # (n, 2)
    x = x / x.std()
    rest_x, rest_y = (each - known @ np.linalg.lstsq(known, each, rcond=None)[0] for each in (x, y))  # (n,) each
    size = float(rest_x @ rest_x)
    if size < 1e-9 * n:
        return Estimate(math.nan, NOWHERE, n, "the lengths say the same as the labels", left_out)
    slope = float(rest_x @ rest_y) / size
    codes = kept_clusters(clusters, present)
    sums = np.bincount(np.arange(n) if codes is None else codes, rest_x * (rest_y - slope * rest_x))  # (clusters,)
    if sums.size < 4:
        return Estimate(slope, NOWHERE, n, "an interval takes four clusters", left_out)
    correction = sums.size / (sums.size - 1) * (n - 1) / (n - 3)
    half = t_quantile(confidence, sums.size - 1) * math.sqrt(float((sums**2).sum()) * correction) / size
    return Estimate(slope, (slope - half, slope + half), n, None, left_out)


def conformity(
    before: ArrayLike, after: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95
) -> Mean:
    """Share of the changed scores that moved toward the panel's previous mean.

    Chance alone does not give 1/2: an agent's own score is part of that mean, and who is at an end of the scale can
    only move inward. Read it beside the same share of agents who do not see each other.

    Args:
        before: (n, I), each agent's score of a cell (task, candidate, component) in a round; NaN where unscored.
        after: (n, I), in the next round.
        clusters: (n,), a label for each cell, such as its task; without it each cell is one.
        confidence: in (0, 1).

    Raises:
        ValueError: for shapes that differ, and infinite scores.
    """
    old, new = (score_array(each, "(n, I)") for each in (before, after))
    if old.shape != new.shape:
        raise ValueError(f"both rounds must have one shape, got {old.shape} and {new.shape}")
    known = ~np.isnan(old)
    total = np.where(known, old, 0.0).sum(axis=1)  # (n,)
    mean = np.divide(total, known.sum(axis=1), out=np.full(len(old), np.nan), where=known.any(axis=1))[:, None]
    nearer = (np.abs(new - mean) < np.abs(old - mean)).astype(np.float64)  # (n, I)
    changed = known & ~np.isnan(new) & (old != new)
    cells = np.arange(len(old)) if clusters is None else np.asarray(clusters)
    if cells.shape != (len(old),):
        raise ValueError(f"clusters must have shape ({len(old)},), got {cells.shape}")
    found = share(nearer[changed], np.broadcast_to(cells[:, None], old.shape)[changed], confidence)
    missing = int((np.isnan(old) | np.isnan(new)).sum())
    return Mean(
        found.estimate, found.interval, found.n, None if found.n else "no score was changed", missing,
        standard_error=found.standard_error, clusters=found.clusters,
    )  # fmt: skip


def flips(first: ArrayLike, last: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95) -> Flips:
    """How many right choices turned wrong between two rounds, and how many wrong ones right.

    Args:
        first: (n,), 1 where the choice of the first round was right, 0 where wrong, NaN where there was none.
        last: (n,), of the last round.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).

    Raises:
        ValueError: for shapes that differ, and values other than 0 and 1.
    """
    was, became = columns(first, last)
    _check_binary(was, became)
    lost = share(np.where(was == 1, 1 - became, np.nan), clusters, confidence)
    gained = share(np.where(was == 0, became, np.nan), clusters, confidence)
    return Flips(lost, gained, paired_difference(became, was, clusters, confidence))


def oracle_gap(
    agents: ArrayLike,
    panel: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> OracleGap:
    """How much better the best agent, and a perfect choice among the agents, would do than the panel.

    The best agent is chosen on the same items, so its lead is somewhat too large.

    Args:
        agents: (n, I), 1 where an agent was right and 0 where wrong; an item that lacks one is left out.
        panel: (n,), the same of the panel.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no interval.
        seed: of the bootstrap.

    Raises:
        ValueError: for shapes that do not fit, and values other than 0 and 1.
    """
    each, whole = score_array(agents, "(n, I)", "agents"), score_array(panel, "(n,)", "panel")
    if len(each) != len(whole):
        raise ValueError(f"agents and panel must have one length, got {len(each)} and {len(whole)}")
    _check_binary(each, whole)
    present = ~(np.isnan(each).any(axis=1) | np.isnan(whole))
    right, chosen = each[present], whole[present]

    def lead(drawn: FloatArray) -> float:
        return float((drawn @ right).max() - drawn @ chosen) / float(drawn.sum())

    codes = kept_clusters(clusters, present)
    found = bootstrap(lead, len(right), codes, confidence=confidence, draws=draws, seed=seed)
    to_best = Estimate(found.estimate, found.interval, found.n, found.reason, int((~present).sum()))
    return OracleGap(to_best, clustered_mean(_any(each, present) - whole, clusters, confidence))


def _any(right: FloatArray, present: NDArray[np.bool_]) -> FloatArray:
    return np.where(present, (right == 1).any(axis=1), np.nan)


def _check_binary(*arrays: FloatArray) -> None:
    if any((~np.isin(each[~np.isnan(each)], (0.0, 1.0))).any() for each in arrays):
        raise ValueError("right and wrong are 1 and 0, or NaN where there is no choice")
