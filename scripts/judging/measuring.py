"""Figures from evaluations of held-out questions: shares with their intervals, paired differences. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

from debate.evaluation import Evaluation

_Z = 1.959963984540054


def is_right(evaluation: Evaluation, best: int) -> bool:
    """Whether the best candidate was chosen, and no other is tied with it."""
    return evaluation.selected == best and not evaluation.tied


def share(hits: Sequence[bool]) -> dict[str, Any]:
    """A share with its 95 % interval (Wilson)."""
    n, k = len(hits), sum(hits)
    if not n:
        return {"n": 0, "share": None, "interval": None}
    p, z = k / n, _Z
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return {"n": n, "share": round(p, 4), "interval": [round(middle - half, 4), round(middle + half, 4)]}


def paired(ours: Sequence[float], theirs: Sequence[float], seed: int = 0, draws: int = 2000) -> dict[str, Any]:
    """Mean of the differences pair by pair, with its 95 % interval (bootstrap over the pairs)."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    return _mean_with_interval(differences, seed, draws)


def difference(ours: Sequence[float], theirs: Sequence[float], seed: int = 0, draws: int = 2000) -> dict[str, Any]:
    """Difference of the means of two samples that are not paired, with its 95 % interval (bootstrap)."""
    if not ours or not theirs:
        return {"mean": None, "interval": None}
    random = Random(seed)

    def draw() -> float:
        return _mean(random.choices(ours, k=len(ours))) - _mean(random.choices(theirs, k=len(theirs)))

    found = sorted(draw() for _ in range(draws))
    return {"mean": round(_mean(ours) - _mean(theirs), 4), "interval": _ends(found)}


def _mean_with_interval(values: Sequence[float], seed: int, draws: int) -> dict[str, Any]:
    if not values:
        return {"mean": None, "interval": None}
    random = Random(seed)
    found = sorted(_mean(random.choices(values, k=len(values))) for _ in range(draws))
    return {"mean": round(_mean(values), 4), "interval": _ends(found)}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _ends(values: Sequence[float]) -> list[float]:
    n = len(values)
    return [round(values[int(0.025 * n)], 4), round(values[min(n - 1, int(0.975 * n))], 4)]
