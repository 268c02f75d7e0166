"""Figures from evaluations of held-out questions: shares with their intervals, paired differences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

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
    return mean_of(differences, seed, draws)


def difference(ours: Sequence[float], theirs: Sequence[float], seed: int = 0, draws: int = 2000) -> dict[str, Any]:
    """Difference of the means of two samples that are not paired, with its 95 % interval (bootstrap)."""
    if not ours or not theirs:
        return {"mean": None, "interval": None}
    random = Random(seed)

    def draw() -> float:
        return _mean(random.choices(ours, k=len(ours))) - _mean(random.choices(theirs, k=len(theirs)))

    found = sorted(draw() for _ in range(draws))
    return {"mean": round(_mean(ours) - _mean(theirs), 4), "interval": _ends(found)}


def mean_of(values: Sequence[float], seed: int = 0, draws: int = 2000) -> dict[str, Any]:
    """A mean with its 95 % interval (bootstrap)."""
    found = ratio_of([(value, 1.0, 1.0, 1.0) for value in values], seed, draws)
    return found if found["mean"] is None else found | {"mean": round(found["mean"], 4)}


def ratio_of(rows: Sequence[tuple[float, float, float, float]], seed: int = 0, draws: int = 2000) -> dict[str, Any]:
    """(sum a / sum b) / (sum c / sum d) over rows (a, b, c, d), with its 95 % interval (bootstrap over the rows).

    None where what is divided by is 0.
    """
    if not rows:
        return {"mean": None, "interval": None}
    table = np.array(rows, dtype=np.float64)  # (N, 4)
    drawn = table[np.random.default_rng(seed).integers(len(rows), size=(draws, len(rows)))].sum(axis=1)  # (draws, 4)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [each[:, 0] * each[:, 3] / (each[:, 1] * each[:, 2]) for each in (table.sum(axis=0)[None], drawn)]
    whole, sampled = float(ratios[0][0]), np.sort(ratios[1][np.isfinite(ratios[1])])
    return (
        {"mean": whole, "interval": _ends(sampled.tolist())} if np.isfinite(whole) else {"mean": None, "interval": None}
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _ends(values: Sequence[float]) -> list[float]:
    n = len(values)
    return [round(values[int(0.025 * n)], 4), round(values[min(n - 1, int(0.975 * n))], 4)]
