"""What a few labels of people tell of many scores of a judge, and whether the judge may stand in for a person.

All of it rests on labeled items being a random sample: draw them by the program, seeded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from debate.statistics.intervals import (
    NOWHERE,
    Estimate,
    check_range,
    columns,
    false_discovery,
    normal_quantile,
    t_tail,
)
from debate.types import FloatArray, FloatOrNaN, check_choice, score_array

Likeness = Literal["accuracy", "rmse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected(Estimate):
    """A mean from labels and judged items together; `n` counts the labels.

    Attributes:
        n_judged: items without a label.
        power: how far the judge is trusted, 0 (the labels alone) to 1.
        labels_alone: the mean of the labels.
    """

    n_judged: int
    power: FloatOrNaN
    labels_alone: FloatOrNaN


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorTest(Estimate):
    """Whether a judge may replace a person. The estimate is rho, how often it is as near to the others as a person is.

    `n` counts the items that entered.

    Attributes:
        passes: whether at least half of the people are found replaceable.
        replaceable: omega, the share of people of whom the test says so.
        p_values: (H,), one-sided, of each person; NaN for people with too few items.
        advantages: (H,), how often the judge is at least as near to the others as this person.
    """

    passes: bool
    replaceable: FloatOrNaN
    p_values: tuple[FloatOrNaN, ...]
    advantages: tuple[FloatOrNaN, ...]


def ppi_mean(
    labels: ArrayLike, judged: ArrayLike, judged_others: ArrayLike, power: float | None = None, confidence: float = 0.95
) -> Corrected:
    """A mean by prediction-powered inference, PPI++ (Angelopoulos et al. 2023, arXiv 2301.09633 and 2311.01453).

        theta = mean(Y) + power * (mean(f_N) - mean(f_n))
        Var   = Var(Y - power f_n) / n + power^2 Var(f_N) / N

    It never loses much to the labels alone, and gains where the judge follows them. Below 30 labels the interval is
    too short.

    Args:
        labels: (n,), the people's Y; NaN where there is none, and such an item is left out.
        judged: (n,), the judge's f of the same items.
        judged_others: (N,), the judge's f of items without a label; NaN is left out.
        power: in [0, 1]; without it, the one of the smallest variance. It is 0 where no item lacks a label.
        confidence: in (0, 1).

    Raises:
        ValueError: for shapes that do not fit, infinite values, and a power outside [0, 1].
    """
    z, (people, scores) = normal_quantile(confidence), columns(labels, judged)
    others = score_array(judged_others, "(N,)", "judged_others")
    present = ~np.isnan(people)
    y, f, rest = people[present], scores[present], others[~np.isnan(others)]
    left_out = int((~present).sum() + np.isnan(others).sum())
    trust = _power(y, f, rest) if power is None else power
    if not 0 <= trust <= 1:
        raise ValueError(f"power must lie in [0, 1], got {power}")
    trust = trust if rest.size else 0.0
    if y.size < 2:
        reason = "fewer than two labels"
        return Corrected(
            math.nan, NOWHERE, y.size, reason, left_out, n_judged=rest.size, power=math.nan, labels_alone=math.nan
        )
    shift, variance = 0.0, float((y - trust * f).var()) / y.size
    if rest.size and trust:
        shift, variance = float(rest.mean() - f.mean()), variance + trust**2 * float(rest.var()) / rest.size
    mean, half = float(y.mean()) + trust * shift, z * math.sqrt(variance)
    ends = (mean - half, mean + half)
    return Corrected(mean, ends, y.size, None, left_out, n_judged=rest.size, power=trust, labels_alone=float(y.mean()))


def ppi_mean_by_strata(labels: ArrayLike, judged: ArrayLike, strata: ArrayLike, confidence: float = 0.95) -> Corrected:
    """A mean by PPI++ where items were drawn by strata (Fisch et al. 2024, arXiv 2406.04291).

        theta = sum over strata of W_s theta_s, Var = sum of W_s^2 Var_s

    theta_s is `ppi_mean` within a stratum, and W_s its share of the items that the judge scored. How many of each
    stratum were drawn does not matter. With one stratum it is `ppi_mean`.

    Args:
        labels: (n,), the people's Y; NaN where there is none.
        judged: (n,), the judge's f of all items; NaN is left out.
        strata: (n,), a label for each item.
        confidence: in (0, 1).

    Returns:
        NaN with a reason where a stratum has fewer than two labels, unless the judge scored none of its items. `power`
        is the mean over strata by their weights.

    Raises:
        ValueError: for shapes that do not fit, and infinite values.
    """
    people, scores = score_array(labels, "(n,)", "labels"), score_array(judged, "(n,)", "judged")
    names, codes = np.unique(np.asarray(strata), return_inverse=True)
    if not people.shape == scores.shape == codes.shape:
        raise ValueError(f"arrays must have one length, got {people.size}, {scores.size} and {codes.size}")
    is_labeled = ~np.isnan(people)
    rows = [(codes == s) & is_labeled for s in range(len(names))]
    rest = [(codes == s) & ~is_labeled for s in range(len(names))]
    parts = [ppi_mean(people[a], scores[a], scores[b], confidence=confidence) for a, b in zip(rows, rest, strict=True)]
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([each.n + each.n_judged for each in parts], dtype=np.float64)
    weights = sizes / max(float(sizes.sum()), 1.0)  # (strata,)

    def mean(values: list[float]) -> float:
        return float(np.dot(weights[weights > 0], np.array(values)[weights > 0])) if weights.any() else math.nan

    center, half = mean([each.estimate for each in parts]), _joint_half(parts, weights)
    few = [str(name) for name, each, weight in zip(names, parts, weights, strict=True) if each.reason and weight]
    return Corrected(
        center,
        (center - half, center + half),
        sum(each.n for each in parts),
        f"fewer than two labels in {', '.join(map(repr, few[:3]))}"
        if few
        else None
        if sizes.any()
        else "no observations",
        sum(each.left_out for each in parts),
        n_judged=sum(each.n_judged for each in parts),
        power=mean([each.power for each in parts]),
        labels_alone=mean([each.labels_alone for each in parts]),
    )


def _joint_half(parts: list[Corrected], weights: FloatArray) -> float:
    """Half of the interval of a weighted sum of independent estimates."""
    halves = np.array([(each.interval[1] - each.interval[0]) / 2 for each in parts])
    return math.sqrt(float(((weights * halves)[weights > 0] ** 2).sum()))


def _power(y: FloatArray, f: FloatArray, rest: FloatArray) -> float:
    """Cov(Y, f) / ((1 + n / N) Var(f)), f of all items, clipped to [0, 1]; 0 where it is not defined."""
    if y.size < 2 or not rest.size:
        return 0.0
    spread = float(np.concatenate([f, rest]).var(ddof=1)) * (1 + y.size / rest.size)
    covariance = float(((y - y.mean()) * (f - f.mean())).sum()) / (y.size - 1)
    return min(max(covariance / spread, 0.0), 1.0) if spread > 0 else 0.0


def rogan_gladen(
    passed: float,
    n: int,
    specificity: float,
    n_negative: int,
    sensitivity: float,
    n_positive: int,
    confidence: float = 0.95,
) -> Estimate:
    """The true pass rate from that of a judge who errs (Rogan and Gladen 1978; Lee et al., arXiv 2511.21140).

        theta = (passed + specificity - 1) / (specificity + sensitivity - 1), clipped to [0, 1]

    Args:
        passed: share of items that the judge passes.
        n: number of these items.
        specificity: share of the failing items with a label that the judge fails.
        n_negative: number of these items.
        sensitivity: share of the passing items with a label that the judge passes.
        n_positive: number of these items.
        confidence: in (0, 1).

    Returns:
        NaN with a reason where the judge is no better than chance: specificity + sensitivity <= 1.

    Raises:
        ValueError: for shares outside [0, 1] and numbers below 1.
    """
    check_range("shares", np.array([passed, specificity, sensitivity]), 0.0, 1.0)
    if min(n, n_negative, n_positive) < 1:
        raise ValueError(f"numbers of items must be at least 1, got {n}, {n_negative} and {n_positive}")
    z = normal_quantile(confidence)
    if specificity + sensitivity <= 1:
        return Estimate(math.nan, NOWHERE, n, "the judge is no better than chance")
    size, m0, m1 = n + z * z, n_negative + 2, n_positive + 2
    p = (n * passed + z * z / 2) / size
    q0, q1 = (n_negative * specificity + 1) / m0, (n_positive * sensitivity + 1) / m1
    better = q0 + q1 - 1
    value = min(max((passed + specificity - 1) / (specificity + sensitivity - 1), 0.0), 1.0)
    if better <= 0:
        return Estimate(value, NOWHERE, n, "too few labels to tell the judge from chance")
    theta = min(max((p + q0 - 1) / better, 0.0), 1.0)
    v0, v1 = q0 * (1 - q0) / m0, q1 * (1 - q1) / m1
    center = theta + 2 * z * z * (theta * v1 - (1 - theta) * v0)
    half = z * math.sqrt(p * (1 - p) / size + (1 - theta) ** 2 * v0 + theta**2 * v1) / better
    clipped = [min(max(each, 0.0), 1.0) for each in (center - half, center + half)]
    return Estimate(value, (clipped[0], clipped[1]), n)


def alternative_annotator_test(
    judge: ArrayLike,
    people: ArrayLike,
    eps: float,
    likeness: Likeness = "accuracy",
    *,
    q: float = 0.05,
    min_items: int = 30,
    confidence: float = 0.95,
) -> AnnotatorTest:
    """Whether the judge may replace a person (Calderon et al. 2025, arXiv 2501.10970).

    Over the items of each person, judge and person are both held against the other people. A person is replaceable
    where the person's advantage is below `eps` by a t-test, with Benjamini and Yekutieli's correction over people.

    Args:
        judge: (n,), NaN where unscored.
        people: (n, H), H at least 3, NaN where a person left an item out. Items with one rating do not enter.
        eps: what a person costs more than the judge: 0.2 for experts, 0.15 for trained people, 0.1 for a crowd.
        likeness: `accuracy`, the share of the others with the same label; or `rmse`, the root mean square of the
            differences from them, the smaller the better.
        q: share of false discoveries, in (0, 1).
        min_items: people with fewer are left out; the authors ask for 30.
        confidence: of rho's interval, clustered by item, in (0, 1).

    Returns:
        NaN with a reason where fewer than three people have enough items.

    Raises:
        ValueError: for shapes that do not fit, infinite values, an unknown likeness, and fewer than three people.
    """
    check_choice("likeness", likeness, Likeness)
    scores, rated = score_array(judge, "(n,)", "judge"), score_array(people, "(n, H)", "people")
    if len(scores) != len(rated) or rated.shape[1] < 3:
        raise ValueError(f"people must have shape ({len(scores)}, H) with three at least, got {rated.shape}")
    won, lost = _against_others(scores, rated, likeness)  # (n, H) each, NaN where a person does not count
    enough = (~np.isnan(won)).sum(axis=0) >= max(min_items, 2)  # (H,)
    p_values = [_below(lost[:, h] - won[:, h], eps) if enough[h] else math.nan for h in range(rated.shape[1])]
    means = [float(np.nanmean(won[:, h])) if enough[h] else math.nan for h in range(rated.shape[1])]
    n, left_out = int((~np.isnan(won[:, enough])).any(axis=1).sum()), int(np.isnan(scores).sum())
    each = {"p_values": tuple(p_values), "advantages": tuple(means)}
    if enough.sum() < 3:
        reason = f"fewer than three people with {min_items} items"
        return AnnotatorTest(math.nan, NOWHERE, n, reason, left_out, passes=False, replaceable=math.nan, **each)
    share = float((false_discovery(p_values, "by")[enough] <= q).mean())
    rho = float(np.mean(np.array(means)[enough]))
    parts = (won[:, enough] - np.array(means)[enough]) / (~np.isnan(won[:, enough])).sum(axis=0)  # (n, people)
    half = normal_quantile(confidence) * math.sqrt(float((np.nansum(parts, axis=1) ** 2).sum())) / int(enough.sum())
    ends = (max(rho - half, 0.0), min(rho + half, 1.0))
    return AnnotatorTest(rho, ends, n, None, left_out, passes=share >= 0.5, replaceable=share, **each)


def _against_others(scores: FloatArray, rated: FloatArray, likeness: Likeness) -> tuple[FloatArray, FloatArray]:
    """Whether the judge is at least as near to the others as each person, and the reverse; (n, H) each."""
    won, lost = np.full(rated.shape, np.nan), np.full(rated.shape, np.nan)
    for h in range(rated.shape[1]):
        others = np.delete(rated, h, axis=1)  # (n, H - 1)
        rows = ~np.isnan(scores) & ~np.isnan(rated[:, h]) & ~np.isnan(others).all(axis=1)
        ours, theirs = (_nearness(each[rows], others[rows], likeness) for each in (scores, rated[:, h]))
        won[rows, h], lost[rows, h] = ours >= theirs, theirs >= ours
    return won, lost


def _nearness(values: FloatArray, others: FloatArray, likeness: Likeness) -> FloatArray:
    apart = others - values[:, None]  # (n, H - 1)
    if likeness == "accuracy":
        return np.nanmean(np.where(np.isnan(apart), np.nan, apart == 0), axis=1)
    return -np.sqrt(np.nanmean(apart**2, axis=1))


def _below(values: FloatArray, eps: float) -> float:
    """The p-value of a one-sided t-test that the mean is below eps."""
    known = values[~np.isnan(values)]
    distance, error = eps - float(known.mean()), float(known.std(ddof=1)) / math.sqrt(known.size)
    if error == 0:
        return float(distance <= 0)
    return t_tail(distance / error, known.size - 1)
