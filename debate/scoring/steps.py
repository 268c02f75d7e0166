"""The steps of one line of reasoning: from a score for each to one for the whole, and where it first goes wrong.

Pure maths. This module does not know what the steps say, nor who scored them. NaN is a step that was not scored; as it
might be the one that counts, it is never passed over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from debate.compat import is_compat
from debate.types import Scale

StepReduction = Literal["min", "mean", "product", "last"]

STEP_SCALE = Scale(-100.0, 100.0)
"""What x1's prompt asks for (seed 002): -100 poor, 0 moderate, 100 high."""
ALL_RIGHT = -1
"""ProcessBench's label of a solution without a wrong step."""


def reduce_steps(
    scores: Sequence[float | None], how: StepReduction = "min", *, compat: Literal["sal"] | None = None
) -> float:
    """One score for a line of reasoning from those of its steps; NaN when it has no steps, or one is unscored.

    `last` looks at the last step alone, so that only its score must be there. `product` takes probabilities, 0..1; it
    falls with every step, and so does `min`, more slowly: compare lines of like length.

    With `compat="sal"`, as in search-and-learn, no steps are 1 by `product`, and an error by `min` (ValueError) and
    `last` (IndexError).

    Raises ValueError for an unknown reduction, infinite scores, and a product of scores outside 0..1.
    """
    if how not in get_args(StepReduction):
        raise ValueError(f"unknown reduction {how!r}, expected one of {', '.join(get_args(StepReduction))}")
    values = [math.nan if score is None else float(score) for score in scores]
    if any(math.isinf(value) for value in values):
        raise ValueError("step scores must be finite, or NaN for unscored")
    if not values and not is_compat(compat, "sal"):
        return math.nan
    if how == "last":
        return values[-1]
    if any(math.isnan(value) for value in values):
        return math.nan
    if how == "min":
        return min(values)
    if how == "mean":
        return math.fsum(values) / len(values) if values else math.nan
    if any(not 0 <= value <= 1 for value in values):
        raise ValueError("a product takes step scores in 0..1; map them with Scale.to_unit")
    return math.prod(values)


def first_wrong_step(scores: Sequence[float | None], threshold: float = 0.5) -> int | None:
    """Index of the first step that scores below `threshold`, from 0; -1 when none does, as ProcessBench labels it.

    None when it cannot be said: a step before it was not scored.
    """
    for index, score in enumerate(scores):
        if score is None or math.isnan(score):
            return None
        if score < threshold:
            return index
    return ALL_RIGHT


@dataclass(frozen=True, slots=True)
class StepAccuracy:
    """How well wrong steps were found, in percent; NaN where there was nothing to find out."""

    error_accuracy: float
    """Share of the solutions with a wrong step of which exactly the first one was named."""
    correct_accuracy: float
    """Share of the solutions without a wrong step that were said to be so."""
    f1: float


def step_accuracy(
    predicted: Sequence[int | None], labels: Sequence[int], *, compat: Literal["processbench"] | None = None
) -> StepAccuracy:
    """ProcessBench's measure: the accuracies on wrong and on right solutions, and their harmonic mean F1.

    F1 is 0 when both accuracies are 0 (NaN with `compat="processbench"`), and NaN when one of them is.

    predicted: index of the first wrong step, -1 for none, None for no prediction, which is never right. labels: the
    same, as it is.

    Raises ValueError when there are not as many predictions as labels.
    """
    matches = [guess == label for guess, label in zip(predicted, labels, strict=True)]
    wrong = [match for match, label in zip(matches, labels, strict=True) if label != ALL_RIGHT]
    right = [match for match, label in zip(matches, labels, strict=True) if label == ALL_RIGHT]
    error, correct = _percent(wrong), _percent(right)
    both = error + correct
    undefined = math.nan if is_compat(compat, "processbench") else 0.0
    return StepAccuracy(error, correct, undefined if both == 0 else 2 * error * correct / both)


def _percent(matches: Sequence[bool]) -> float:
    return 100.0 * sum(matches) / len(matches) if matches else math.nan
