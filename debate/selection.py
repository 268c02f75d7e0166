"""Selects candidates by their scores or probabilities, and names ties.

None and NaN mean unscored, and an unscored candidate is never chosen. Ties are never hidden: each way of choosing has
a function beside it that names the tied.

Two scores tie when they are equal to within rounding (1e-9 of their size, or 1e-12); two integers when they are equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate.types import FloatArray, check_choice

Scores = Sequence[float | None] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
Ties = Literal["first", "seeded"]
Missing = Literal["drop", "raise"]


def argmax(scores: Scores, ties: Ties = "first", seed: int = 0) -> int | None:
    """Index of the candidate with the highest score; None when nothing is scored.

    Among tied candidates it is the lowest index, or with `ties="seeded"` one drawn by `seed`, each equally likely.

    Raises ValueError for another `ties`, and TypeError for a score that is not a number.
    """
    check_choice("ties", ties, Ties)
    tiers = _tiers(scores)
    if not tiers:
        return None
    best = tiers[0]
    return best[0] if ties == "first" else best[int(np.random.default_rng(seed).integers(len(best)))]


def tied_best(scores: Scores) -> tuple[int, ...]:
    """Indices that share the highest score, in order; empty when it is one candidate's alone, or nothing is scored.

    Raises TypeError for a score that is not a number.
    """
    best = all_best(scores)
    return best if len(best) > 1 else ()


def all_best(scores: Scores) -> tuple[int, ...]:
    """Indices that have the highest score, in order: one, or those that share it; empty when nothing is scored.

    >>> all_best([5.0, 9.0, None, 9.0])
    (1, 3)

    Raises TypeError for a score that is not a number.
    """
    values = _numbers(scores)
    if not values:
        return ()
    highest = max(values.values())
    return tuple(index for index, value in values.items() if _tie(highest, value))


def sample(probabilities: ArrayLike, seed: int) -> int:
    """Index drawn with these probabilities, the same for the same seed.

    The article's other selection (Yucha 2024), with probabilities from `softmax`. They are taken as proportions, so a
    sum that rounding has moved off 1 is no error. A candidate of probability 0 is never drawn.

    probabilities: (J,), finite, not negative, and not all 0.

    Raises ValueError for anything else.
    """
    values = np.asarray(probabilities, dtype=np.float64)  # (J,)
    if values.ndim != 1:
        raise ValueError(f"probabilities must have shape (J,), got {values.shape}")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("probabilities must be finite and not negative")
    possible = np.flatnonzero(values)  # (possible,)
    if not possible.size:
        raise ValueError("all probabilities are 0, so that no candidate can be drawn")
    with np.errstate(under="ignore"):
        shares = values[possible] / values.max()  # (possible,), so that the sum cannot overflow
        shares /= shares.sum()
    return int(np.random.default_rng(seed).choice(possible, p=shares))


def keep_best(
    scores: Scores, n: int, higher_is_better: bool = True, ties: Literal["stable"] = "stable", missing: Missing = "drop"
) -> list[int]:
    """Indices of the `n` best candidates, best first; fewer when fewer are scored.

    Tied candidates keep their input order (`ties="stable"`, the only rule), so a cut inside a tie falls by position:
    `tied_at_cut` tells. With `higher_is_better=False` the lowest scores are the best, as for error counts.

    Unscored candidates are dropped, whatever the others score; with `missing="raise"` one is a ValueError.

    Raises ValueError for `n` below 1, another `ties` or `missing`, and TypeError for a score that is not a number.
    """
    check_choice("ties", ties, Literal["stable"])
    check_choice("missing", missing, Missing)
    _check_n(n)
    n_unscored = len(scores) - len(_numbers(scores))
    if missing == "raise" and n_unscored:
        raise ValueError(f"{n_unscored} of {len(scores)} candidates are not scored")
    return [index for tier in _tiers(scores, higher_is_better) for index in tier][:n]


def ranks(scores: Scores, higher_is_better: bool = True) -> list[int | None]:
    """Rank of each candidate, 1 is best: tied candidates share the best of their ranks; None where unscored.

    >>> ranks([5.0, 9.0, None, 5.0])
    [2, 1, None, 2]

    Raises TypeError for a score that is not a number.
    """
    found: list[int | None] = [None] * len(scores)
    rank = 1
    for tier in _tiers(scores, higher_is_better):
        for index in tier:
            found[index] = rank
        rank += len(tier)
    return found


def level_ties(scores: FloatArray) -> FloatArray:
    """The scores with those that tie made equal: each becomes the highest of its ties. (J,) -> (J,), NaN stays NaN."""
    leveled, values = [math.nan] * len(scores), scores.tolist()
    for tier in _tiers(scores):
        highest = max(values[index] for index in tier)
        for index in tier:
            leveled[index] = highest
    return np.array(leveled, dtype=np.float64)  # (J,)


def tied_at_cut(scores: Scores, n: int, higher_is_better: bool = True) -> list[int]:
    """Indices of all candidates that share the score at which `keep_best` cuts, in input order, kept or not.

    Empty when the cut falls between two scores, or nothing is cut off.

    Raises ValueError for `n` below 1, and TypeError for a score that is not a number.
    """
    _check_n(n)
    start = 0
    for tier in _tiers(scores, higher_is_better):
        if start < n < start + len(tier):
            return tier
        start += len(tier)
    return []


def _check_n(n: int) -> None:
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")


def _tiers(scores: Scores, higher_is_better: bool = True) -> list[list[int]]:
    """The scored indices in groups of tied scores, best group first, each in input order."""
    values = _numbers(scores)
    ranked = sorted(values, key=lambda index: values[index], reverse=higher_is_better)
    tiers: list[list[int]] = []
    for index in ranked:
        # Against the best of the group, so that a chain of near-ties cannot join scores that are far apart.
        if tiers and _tie(values[tiers[-1][0]], values[index]):
            tiers[-1].append(index)
        else:
            tiers.append([index])
    return [sorted(tier) for tier in tiers]


def _tie(a: float, b: float) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b  # error counts above 1e9 that differ by one are no rounding
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def _numbers(scores: Scores) -> dict[int, float]:
    """Index -> score as a Python int or float, of the scored candidates alone."""
    if isinstance(scores, np.ndarray) and scores.dtype == np.float64 and scores.ndim == 1:
        return {index: value for index, value in enumerate(scores.tolist()) if not math.isnan(value)}
    values: Iterable[object] = scores.tolist() if isinstance(scores, np.ndarray) else scores
    numbers: dict[int, float] = {}
    for index, value in enumerate(values):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"score {index} must be a number or None, got {type(value).__name__}")
        number = int(value) if isinstance(value, Integral) else float(value)
        if isinstance(number, int) or not math.isnan(number):
            numbers[index] = number
    return numbers
