"""Measures how far the members of a panel agree, combines their scores, and correlates rankings.

NaN is a score that a member did not give: it is left out, never read as a zero. An undefined correlation is NaN with a
reason, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from debate.selection import level_ties
from debate.types import FloatArray, Scale, check_choice, score_array

Rule = Literal["mean", "weighted", "worst"]


@dataclass(frozen=True, slots=True, eq=False)
class PanelScores:
    """A panel's scores of J candidates, and its agreement."""

    scores: FloatArray
    """(J,), NaN where no member scored."""
    agreement: FloatArray
    """(J,), NaN where it is not defined."""
    rules: tuple[Rule, ...]
    """Which rule made each score; J of them."""


def agreement(scores: ArrayLike, scale: Scale | None = None) -> FloatArray:
    """How far the members agree on each candidate, at most 1; (J,), NaN where fewer than two members scored.

        without a scale   1 - (max - min) / max(max, 1)       for scores of 0 or more, well above 1
        with a scale      1 - (max - min) / (high - low)      in 0..1 on any scale

    The first loses its meaning on 0..1 and falls below 0 with negative scores, as on -100..100.

    scores: (M, J), member by candidate, finite or NaN.

    Raises ValueError for another shape, infinite scores, scores outside the scale, and a scale without end.
    """
    if scale is not None and np.isinf(scale.high - scale.low):
        raise ValueError("on a scale without end there is no largest difference; leave the scale out")
    members = _members(scores)  # (M, J)
    present = members[~np.isnan(members)]
    if scale is not None and present.size and not (scale.low <= present.min() and present.max() <= scale.high):
        raise ValueError(f"scores must lie on the scale, {scale.low:g} to {scale.high:g}")
    result = np.full(members.shape[1], np.nan)  # (J,)
    defined = (~np.isnan(members)).sum(axis=0) >= 2  # (J,)
    if defined.any():
        high, low = np.nanmax(members[:, defined], axis=0), np.nanmin(members[:, defined], axis=0)  # (defined,) each
        result[defined] = 1.0 - (high - low) / (np.maximum(high, 1.0) if scale is None else scale.high - scale.low)
    return result


def consensus(scores: ArrayLike, method: RankMethod = "spearman") -> Correlation:
    """How far the members rank the candidates alike: the mean rank correlation over the pairs of members, in -1..1.

    Pairs without one are left out; when none has one, NaN with the reason of the first.

    scores: (M, J). Raises ValueError for another shape, fewer than two members, and infinite scores.
    """
    members = _members(scores)  # (M, J)
    if len(members) < 2:
        raise ValueError("a consensus takes at least two members")
    each = [rank_correlation(a, b, method) for a, b in combinations(members, 2)]
    defined = [value for value in each if value.reason is None]
    return Correlation(sum(defined) / len(defined)) if defined else each[0]


def combine(
    scores: ArrayLike,
    agreement: ArrayLike,
    threshold: float,
    *,
    above: Rule = "mean",
    below: Rule = "worst",
    weights: ArrayLike | None = None,
    higher_is_better: bool = True,
) -> PanelScores:
    """One score per candidate: by the rule `above` where the members agree by more than `threshold`, else by `below`.

        mean       all members count alike
        weighted   sum(weights * s) / sum(weights)
        worst      the most conservative member: the lowest score, or the highest where lower is better

    Hybrid evaluations of two models combine values by `mean` above an agreement of 0.8 and `worst` below, and votes by
    `mean` above a consensus of 0.7 and `weighted` by 0.6 and 0.4 below. An undefined (NaN) agreement is not above any
    threshold.

    scores: (M, J). agreement: (J,), or one number for all. weights: (M,), positive, for `weighted`.

    Raises ValueError for shapes that do not fit, unknown rules, weights missing or not positive and finite.
    """
    members = _members(scores)  # (M, J)
    agreed = np.broadcast_to(np.asarray(agreement, dtype=np.float64), members.shape[1:])  # (J,)
    for rule in (above, below):
        check_choice("rule", rule, Rule)
    high, low = (_by(rule, members, weights, higher_is_better) for rule in (above, below))  # (J,) each
    is_above = agreed > threshold  # (J,)
    rules: tuple[Rule, ...] = tuple(above if each else below for each in is_above.tolist())
    return PanelScores(np.where(is_above, high, low), agreed.copy(), rules)


def _by(rule: Rule, members: FloatArray, weights: ArrayLike | None, higher_is_better: bool) -> FloatArray:
    scored = ~np.isnan(members)  # (M, J)
    if rule == "worst":
        lost = np.inf if higher_is_better else -np.inf
        filled = np.where(scored, members, lost)  # (M, J)
        worst = filled.min(axis=0) if higher_is_better else filled.max(axis=0)  # (J,)
        return np.where(scored.any(axis=0), worst, np.nan)
    shares = np.ones(len(members)) if rule == "mean" else _weights(weights, len(members))  # (M,)
    total: FloatArray = (np.where(scored, members, 0.0) * shares[:, None]).sum(axis=0)  # (J,)
    weight: FloatArray = (scored * shares[:, None]).sum(axis=0)  # (J,)
    return np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0)


def _weights(weights: ArrayLike | None, n_members: int) -> FloatArray:
    if weights is None:
        raise ValueError("rule 'weighted' needs weights, one per member")
    checked = np.asarray(weights, dtype=np.float64)  # (M,)
    if checked.shape != (n_members,):
        raise ValueError(f"weights must have shape ({n_members},), got {checked.shape}")
    if not (np.isfinite(checked).all() and (checked > 0).all()):
        raise ValueError("weights must be finite and positive")
    return checked


def _members(scores: ArrayLike) -> FloatArray:
    members = score_array(scores, "(M, J)")
    if not len(members):
        raise ValueError(f"scores must have shape (M, J) with at least one member, got {members.shape}")
    return members


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

    Candidates that either side left unscored are left out.

    a, b: (J,), NaN or None where unscored.

    Raises ValueError for shapes that are not the same (J,), infinite scores, or an unknown method.
    """
    check_choice("method", method, RankMethod)
    both = [score_array(a), score_array(b)]
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
    """Ranks from 0 for the lowest; tied values share the mean of their ranks. (n,) -> (n,), nothing NaN."""
    _, inverse, counts = np.unique(level_ties(values), return_inverse=True, return_counts=True)
    first = np.cumsum(counts) - counts  # (distinct,)
    return (first + (counts - 1) / 2)[inverse]


def _places(values: FloatArray) -> FloatArray:
    """Ranks around 0, doubled: whole numbers, so that sums of their products are exact."""
    return 2 * average_ranks(values) - (values.size - 1)


def _orders(values: FloatArray) -> FloatArray:
    """The order of every pair: 1, 0 for a tie, or -1; (n, n)."""
    leveled = level_ties(values)  # (n,)
    return np.sign(leveled[:, None] - leveled[None, :])
