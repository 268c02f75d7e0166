"""Figures from evaluations of held-out questions: shares with their intervals, paired differences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from debate.statistics import wilson


def share(hits: Sequence[bool]) -> dict[str, Any]:
    """A share with its 95 % interval (Wilson)."""
    if not hits:
        return {"n": 0, "share": None, "interval": None}
    found = wilson(sum(hits), len(hits))
    return {"n": found.n, "share": round(found.estimate, 4), "interval": [round(end, 4) for end in found.interval]}


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
