"""Figures of a judge against people's labels, with their intervals. Knows nothing of runs and stores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval.

    Attributes:
        estimate: NaN where nothing was observed.
        interval: its lower and upper end.
        n: number of observations.
    """

    estimate: float
    interval: tuple[float, float]
    n: int


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
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence}")
    if n == 0:
        return Estimate(math.nan, (0.0, 1.0), 0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = successes / n
    center = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((center + side) / (1 + z * z / n) for side in (-half, half))
    return Estimate(p, (max(low, 0.0) if successes else 0.0, min(high, 1.0) if successes < n else 1.0), n)


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
    chance: float

    @property
    def share(self) -> Estimate:
        """The right ones among the labeled, with the interval of 95 %."""
        return wilson(self.right, self.labeled)
