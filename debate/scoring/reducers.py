"""Reduces repeated samples of one judgment, and the scores of reasoning steps, to one number each.

A failed sample is None or NaN; it is left out and counted, never read as a zero. A step without a score is NaN too; it
might be the one that matters, so it is never skipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from debate.types import FloatArray, Scale, check_choice, score_array

Reduction = Literal["mean", "sum", "median"]
Samples = Sequence[float | None] | FloatArray


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """The samples that did not fail, in figures; NaN where there are none."""

    mean: float
    std: float
    """Population standard deviation (ddof 0)."""
    n_ok: int
    n_failed: int


def summarize(samples: Samples) -> SampleSummary:
    """Mean, population std and counts of some samples.

    Raises ValueError for infinite samples.
    """
    values = _ok(samples)  # (ok,)
    n_failed = len(samples) - values.size
    if not values.size:
        return SampleSummary(math.nan, math.nan, 0, n_failed)
    # Shifted by the first sample: equal samples then have exactly their value as mean and a std of exactly 0.
    shifted = values - values[0]  # (ok,)
    return SampleSummary(float(values[0] + shifted.mean()), float(shifted.std()), values.size, n_failed)


def reduce_samples(samples: Samples, how: Reduction = "mean") -> float:
    """One value from the samples that did not fail; NaN when all did, or there are none.

    `sum` (Yao et al. 2023) is smaller where samples failed, so it compares candidates fairly only when none did.

    Raises ValueError for an unknown reduction and infinite samples.
    """
    check_choice("reduction", how, Reduction)
    values = _ok(samples)  # (ok,)
    if not values.size:
        return math.nan
    if how == "sum":
        return math.fsum(values.tolist())
    return summarize(samples).mean if how == "mean" else float(np.median(values))


def confidence(samples: Samples, scale: Scale | None = None) -> float:
    """How far repeated samples agree, in 0..1, 1 when all are the same; NaN with fewer than two that did not fail.

        without a scale   1 / (1 + std)                    it depends on the unit of the scores
        with a scale      1 - std / ((high - low) / 2)     0 when half the samples lie at either end

    Population std; without a scale a std of 3 is a confidence of 0.25.

    Raises ValueError for infinite samples, and a scale without end.
    """
    if scale is not None and math.isinf(scale.high - scale.low):
        raise ValueError("on a scale without end there is no largest std; leave the scale out")
    summary = summarize(samples)
    if summary.n_ok < 2:
        return math.nan
    if scale is None:
        return 1.0 / (1.0 + summary.std)
    return max(0.0, 1.0 - 2.0 * summary.std / (scale.high - scale.low))


def _ok(samples: Samples) -> FloatArray:
    values = np.asarray(samples, dtype=np.float64)  # (samples,); None becomes NaN
    if np.isinf(values).any():
        raise ValueError("samples must be finite, or NaN for failed")
    return values[~np.isnan(values)]


StepReduction = Literal["min", "mean", "product", "last"]

STEP_SCALE = Scale(-100.0, 100.0)
"""What x1's prompt asks for: -100 poor, 0 moderate, 100 high."""
ALL_RIGHT = -1
"""ProcessBench's label of a solution without a wrong step."""


def reduce_steps(scores: Sequence[float | None], how: StepReduction = "min") -> float:
    """One score for a line of reasoning from those of its steps; NaN when it has no steps, or one is unscored.

    `last` looks at the last step alone, so that only its score must be there. `product` takes probabilities, 0..1; it
    falls with every step, and so does `min`, more slowly: compare lines of like length.

    Raises ValueError for an unknown reduction, infinite scores, and a product of scores outside 0..1.
    """
    check_choice("reduction", how, StepReduction)
    values: list[float] = score_array(scores).tolist()
    if not values or any(math.isnan(value) for value in (values[-1:] if how == "last" else values)):
        return math.nan
    if how == "last":
        return values[-1]
    if how == "min":
        return min(values)
    if how == "mean":
        return math.fsum(values) / len(values)
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


def step_accuracy(predicted: Sequence[int | None], labels: Sequence[int]) -> StepAccuracy:
    """ProcessBench's measure: the accuracies on wrong and on right solutions, and their harmonic mean F1.

    F1 is 0 when both accuracies are 0, and NaN when one of them is NaN.

    predicted: index of the first wrong step, -1 for none, None for no prediction, which is never right. labels: the
    same, as it is.

    Raises ValueError when there are not as many predictions as labels.
    """
    matches = [guess == label for guess, label in zip(predicted, labels, strict=True)]
    wrong = [match for match, label in zip(matches, labels, strict=True) if label != ALL_RIGHT]
    right = [match for match, label in zip(matches, labels, strict=True) if label == ALL_RIGHT]
    error, correct = _percent(wrong), _percent(right)
    both = error + correct
    return StepAccuracy(error, correct, 0.0 if both == 0 else 2 * error * correct / both)


def _percent(matches: Sequence[bool]) -> float:
    return 100.0 * sum(matches) / len(matches) if matches else math.nan
