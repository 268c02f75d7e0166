"""How far raters agree beyond chance: kappa, alpha, AC1 and AC2. Agreeing is not being right.

Percent agreement overstates, so each figure comes with the share observed and the share expected by chance. None of the
coefficients has a formula for its interval with clusters: whole clusters are drawn again (`bootstrap`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate.statistics.intervals import Estimate, bootstrap, columns, kept_clusters
from debate.types import FloatArray, FloatOrNaN, check_choice, score_array

Weighting = Literal["none", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval", "ratio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement(Estimate):
    """Agreement beyond chance: 1 is perfect, 0 is what chance gives, below 0 is less than that.

    Attributes:
        observed: share of agreement; of Krippendorff's alpha, the mean disagreement.
        expected: the same by chance.
    """

    observed: FloatOrNaN
    expected: FloatOrNaN


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    weights: Weighting = "none",
    clusters: ArrayLike | None = None,
    *,
    categories: Sequence[float] | None = None,
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Agreement of two raters beyond what their own habits make likely (Cohen 1960; weighted: Cohen 1968).

    With skewed labels it collapses: where one label makes more than 90 %, see `gwet_ac` too.

    Args:
        a: (n,), a number for each label; an item that either has not rated is left out.
        b: (n,).
        weights: whether a near miss counts in part: not, by 1 - |i - j| / (q - 1), or by 1 - ((i - j) / (q - 1))^2,
            with the places i and j of two of the q categories.
        clusters: (n,), a label for each item.
        categories: all labels in their order; without them, those that were given.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no interval.
        seed: of the bootstrap.

    Raises:
        ValueError: for shapes that differ, unknown weights, and labels that are not among the categories.
    """
    rated = np.stack(columns(a, b), axis=1)  # (n, 2)
    present = ~np.isnan(rated[:, 0])
    codes, q = _codes(rated[present], categories)
    alike = _alike(q, weights)  # (q, q)
    cells = codes[:, 0] * q + codes[:, 1]  # (kept,)

    def shares(drawn: FloatArray) -> tuple[float, float]:
        table = np.bincount(cells, drawn, q * q).reshape(q, q) / drawn.sum()  # (q, q)
        return float((table * alike).sum()), float(table.sum(axis=1) @ alike @ table.sum(axis=0))

    return _beyond_chance(shares, present, clusters, confidence, draws, seed)


def fleiss_kappa(
    ratings: ArrayLike, clusters: ArrayLike | None = None, *, confidence: float = 0.95, draws: int = 2000, seed: int = 0
) -> Agreement:
    """Agreement of any number of raters, every item rated by all of them (Fleiss 1971); labels, not scores.

    Args:
        ratings: (n, R), a number for each label; an item that lacks a rating is left out.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no interval.
        seed: of the bootstrap.

    Raises:
        ValueError: for another shape, and fewer than two raters.
    """
    rated = _ratings(ratings)
    present = np.asarray(~np.isnan(rated).any(axis=1))
    counts, raters = _counts(*_codes(rated[present])), rated.shape[1]  # (kept, q)
    pairs = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))  # (kept,)

    def shares(drawn: FloatArray) -> tuple[float, float]:
        used = drawn @ counts / (drawn.sum() * raters)  # (q,)
        return float(drawn @ pairs / drawn.sum()), float(used @ used)

    return _beyond_chance(shares, present, clusters, confidence, draws, seed)


def gwet_ac(
    ratings: ArrayLike,
    weights: Weighting = "none",
    clusters: ArrayLike | None = None,
    *,
    categories: Sequence[float] | None = None,
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Agreement that does not collapse where labels are skewed: AC1, and with weights AC2 (Gwet 2008).

    Args:
        ratings: (n, R), NaN where a rater left an item out; an item without any rating is left out. Those with one
            rating tell of the labels' shares alone.
        weights: as in `cohen_kappa`.
        clusters: (n,), a label for each item.
        categories: all labels in their order; without them, those that were given.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no interval.
        seed: of the bootstrap.

    Raises:
        ValueError: for another shape, fewer than two raters, unknown weights, and labels not among the categories.
    """
    rated = _ratings(ratings)
    present = np.asarray(~np.isnan(rated).all(axis=1))
    codes, q = _codes(rated[present], categories)
    counts, alike = _counts(codes, q), _alike(q, weights)  # (kept, q), (q, q)
    total = counts.sum(axis=1)  # (kept,)
    several = total >= 2
    pairs = (counts * (counts @ alike - 1)).sum(axis=1) / np.maximum(total * (total - 1), 1)  # (kept,)
    chance = alike.sum() / max(q * (q - 1), 1)

    def shares(drawn: FloatArray) -> tuple[float, float]:
        used = drawn @ (counts / total[:, None]) / drawn.sum()  # (q,)
        rated_twice = float(drawn @ several)
        observed = float(drawn[several] @ pairs[several]) / rated_twice if rated_twice else math.nan
        return observed, float(chance * (used * (1 - used)).sum()) if q > 1 else 1.0

    return _beyond_chance(shares, present, clusters, confidence, draws, seed)


def krippendorff_alpha(
    ratings: ArrayLike,
    level: Level = "nominal",
    clusters: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Agreement of any number of raters with any gaps, on any level of measurement (Krippendorff 2011).

        alpha = 1 - D_o / D_e

    D_o is the mean disagreement of two ratings of one item, D_e that of any two ratings. Two ratings a and b disagree
    by 1 unless they are equal (nominal), by the squared difference of their mean ranks (ordinal), by (a - b)^2
    (interval), or by ((a - b) / (a + b))^2 (ratio).

    Args:
        ratings: (n, R), NaN where a rater left an item out; an item with fewer than two ratings is left out.
        level: see above; `ratio` takes ratings of 0 or more.
        clusters: (n,), a label for each item.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no interval.
        seed: of the bootstrap.

    Raises:
        ValueError: for another shape, fewer than two raters, an unknown level, and negative ratings of a ratio.
    """
    check_choice("level", level, Level)
    rated = _ratings(ratings)
    if level == "ratio" and (rated < 0).any():
        raise ValueError("ratings on the level of a ratio must not be negative")
    present = (~np.isnan(rated)).sum(axis=1) >= 2
    values, total = rated[present], (~np.isnan(rated[present])).sum(axis=1)  # (kept, R), (kept,)
    known = ~np.isnan(values)
    names, codes = np.unique(values[known], return_inverse=True)  # (q,), (ratings,)
    rows = np.nonzero(known)[0]  # (ratings,)
    within = _within(values, level) / np.maximum(total - 1, 1)  # (kept,)

    def disagreement(drawn: FloatArray) -> tuple[float, float]:
        used: FloatArray = np.bincount(codes, drawn[rows], names.size).astype(np.float64)  # (q,)
        size, inside, places = float(used.sum()), within, names
        if level == "ordinal":
            places = used.cumsum() - used / 2  # (q,)
            ranked = np.full(values.shape, np.nan)
            ranked[known] = places[codes]
            inside = _within(ranked, level) / np.maximum(total - 1, 1)
        return float(drawn @ inside) / size, _between(used, places, level) / (size * (size - 1))

    return _beyond_chance(disagreement, present, clusters, confidence, draws, seed, of_disagreement=True)


# ---- what they share


def _beyond_chance(
    shares: Callable[[FloatArray], tuple[float, float]],
    present: NDArray[np.bool_],
    clusters: ArrayLike | None,
    confidence: float,
    draws: int,
    seed: int,
    *,
    of_disagreement: bool = False,
) -> Agreement:
    """The coefficient of the observed and the expected share, which are functions of the items' weights."""

    def coefficient(drawn: FloatArray) -> float:
        observed, expected = shares(drawn)
        if of_disagreement:
            return 1 - observed / expected if expected > 1e-12 else math.nan
        return (observed - expected) / (1 - expected) if 1 - expected > 1e-12 else math.nan

    n = int(present.sum())
    codes = kept_clusters(clusters, present)
    found = bootstrap(coefficient, n, codes, confidence=confidence, draws=draws, seed=seed)
    observed, expected = shares(np.ones(n)) if n else (math.nan, math.nan)
    reason = found.reason
    if math.isnan(found.estimate):
        reason = "all ratings are alike" if n and not math.isnan(observed) else "no item has two ratings"
    left_out = present.size - n
    return Agreement(found.estimate, found.interval, n, reason, left_out, observed=observed, expected=expected)


def _ratings(ratings: ArrayLike) -> FloatArray:
    checked = score_array(ratings, "(n, R)", "ratings")
    if checked.shape[1] < 2:
        raise ValueError(f"ratings must have shape (n, R) with at least two raters, got {checked.shape}")
    return checked


def _codes(ratings: FloatArray, categories: Sequence[float] | None = None) -> tuple[NDArray[np.intp], int]:
    """The place of each rating among the categories, -1 where it is NaN, and the number of categories."""
    known = ~np.isnan(ratings)
    names = np.unique(ratings[known]) if categories is None else np.asarray(categories, dtype=np.float64)  # (q,)
    matches = ratings[..., None] == names  # (n, R, q)
    if not matches.any(axis=-1)[known].all():
        raise ValueError(f"ratings must be among the categories, {', '.join(f'{name:g}' for name in names)}")
    return np.where(known, matches.argmax(axis=-1) if names.size else 0, -1), names.size


def _counts(codes: NDArray[np.intp], q: int) -> FloatArray:
    """How often each category was given to each item; (n, R) -> (n, q)."""
    return (codes[:, :, None] == np.arange(q)).sum(axis=1).astype(np.float64)


def _alike(q: int, weights: Weighting) -> FloatArray:
    """How far two categories agree, from 0 to 1; (q, q)."""
    check_choice("weights", weights, Weighting)
    if weights == "none" or q < 2:
        return np.eye(q)
    apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / (q - 1)  # (q, q)
    return 1 - (apart if weights == "linear" else apart**2)


def _distance(a: FloatArray, b: FloatArray, level: Level) -> FloatArray:
    if level == "nominal":
        return np.where(np.isnan(a + b), np.nan, a != b)
    if level == "ratio":
        return np.divide(a - b, a + b, out=np.zeros(np.broadcast(a, b).shape), where=(a + b) != 0) ** 2
    return (a - b) ** 2


def _within(ratings: FloatArray, level: Level) -> FloatArray:
    """The disagreement of all ordered pairs of ratings of an item; (n, R) -> (n,)."""
    pairs = combinations(range(ratings.shape[1]), 2)
    return sum(
        (2 * np.nan_to_num(_distance(ratings[:, i], ratings[:, j], level)) for i, j in pairs), np.zeros(len(ratings))
    )


def _between(used: FloatArray, places: FloatArray, level: Level) -> float:
    """The disagreement of all ordered pairs of ratings; both (q,)."""
    total = float(used.sum())
    if level == "nominal":
        return total**2 - float(used @ used)
    if level == "ratio":
        return float(used @ _distance(places[:, None], places[None, :], level) @ used)
    centered = places - float(used @ places) / total  # (q,), so that squares do not cancel
    return 2 * (total * float(used @ centered**2) - float(used @ centered) ** 2)
