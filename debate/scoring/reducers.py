"""What repeated samples of one judgement say together: their mean, their spread, how far to trust them.

A failed sample is None or NaN. It is left out and counted, never read as a zero. This module does not know what was
sampled, nor why a sample failed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from debate.compat import is_compat
from debate.types import FloatArray, Scale

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


def summarise(samples: Samples) -> SampleSummary:
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


def reduce_samples(samples: Samples, how: Reduction = "mean", *, compat: Literal["seed", "tot"] | None = None) -> float:
    """One value from the samples that did not fail; NaN when all did, or there are none.

    `sum` is Tree of Thoughts' way. It is smaller where samples failed, so it compares candidates fairly only when none
    did. `mean` is that of seed 000.

    With `compat="seed"` no samples are a ZeroDivisionError; with `compat="tot"` samples that all failed sum to 0.

    Raises ValueError for an unknown reduction and infinite samples.
    """
    if how not in get_args(Reduction):
        raise ValueError(f"unknown reduction {how!r}, expected one of {', '.join(get_args(Reduction))}")
    if compat != "tot" and is_compat(compat, "seed") and not len(samples):
        raise ZeroDivisionError("no samples")
    values = _ok(samples)  # (ok,)
    if not values.size:
        return 0.0 if compat == "tot" else math.nan
    if how == "sum":
        return math.fsum(values.tolist())
    return summarise(samples).mean if how == "mean" else float(np.median(values))


def confidence(samples: Samples, scale: Scale | None = None, *, compat: Literal["seed"] | None = None) -> float:
    """How far repeated samples agree, in 0..1, 1 when all are the same; NaN with fewer than two that did not fail.

        without a scale   1 / (1 + std)                    seed 000; it depends on the unit of the scores
        with a scale      1 - std / ((high - low) / 2)     0 when half the samples lie at either end

    Population std. Seed 000's note that a std of 3 means about 0 is not what its formula gives: 0.25.

    With `compat="seed"` one sample has confidence 1.

    Raises ValueError for infinite samples, and a scale without end.
    """
    if scale is not None and math.isinf(scale.high - scale.low):
        raise ValueError("on a scale without end there is no largest std; leave the scale out")
    summary = summarise(samples)
    if summary.n_ok < (1 if is_compat(compat, "seed") else 2):
        return math.nan
    if scale is None:
        return 1.0 / (1.0 + summary.std)
    return max(0.0, 1.0 - 2.0 * summary.std / (scale.high - scale.low))


def pass_at_k(n: int, c: int, k: int, *, compat: Literal["sal"] | None = None) -> float:
    """Probability that `k` of `n` samples, drawn without return, hold one of the `c` correct ones.

    `1 - binomial(n - c, k) / binomial(n, k)`, the unbiased estimate of arXiv 2107.03374.

    With `compat="sal"` it is 1 whenever `k > n - c`, also where more are drawn than there are and none is correct.

    Raises ValueError unless `0 <= c <= n` and `1 <= k <= n`.
    """
    if is_compat(compat, "sal") and n - c < k:
        return 1.0
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"pass@k needs 0 <= c <= n and 1 <= k <= n, got n={n}, c={c}, k={k}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def _ok(samples: Samples) -> FloatArray:
    values = np.asarray(samples, dtype=np.float64)  # (samples,); None becomes NaN
    if np.isinf(values).any():
        raise ValueError("samples must be finite, or NaN for failed")
    return values[~np.isnan(values)]
