"""Measures how far the agents of one round disagree, as a coefficient of variation (CV), and whether they converged."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from debate.types import FloatArray, check_choice, score_array

Over = Literal["agents", "cells", "pooled"]


def coefficient_of_variation(S_round: ArrayLike, over: Over = "agents", quorum: int = 2) -> float:
    """Standard deviation of one round's scores over the size of their mean; 0 or more, possibly inf, or NaN.

    With population standard deviations (ddof 0) and x = S_round:

        agents   mean_{j,k}(std_i(x[:, j, k])) / |mean(x)|             disagreement relative to the level of the scores
        cells    mean_{j,k}(std_i(x[:, j, k]) / |mean_i(x[:, j, k])|)  every cell relative to its own level
        pooled   std(x) / |mean(x)|                                    what the article's reference programs compute

    `pooled` also counts the distance between candidates, so it does not reach 0 when the agents agree. The article is
    "TextEvolve Evaluate" (Yucha 2024). Where the mean is 0, the ratio is 0 if the std is 0 and otherwise inf.

    Only agents who scored every cell count. With fewer than two of them, or fewer than `quorum`, the CV is NaN.

    S_round: (I, J, K), NaN where a cell was not scored.

    Raises ValueError for another shape, infinite scores, or an unknown definition.
    """
    scores = score_array(S_round, "(I, J, K)", "S_round")
    check_choice("definition", over, Over)
    complete = scores[~np.isnan(scores).any(axis=(1, 2))]  # (complete agents, J, K)
    if len(complete) < max(2, quorum) or complete.size == 0:
        return float("nan")
    # Scores near the largest float may overflow; the CV is then inf or NaN, and neither stops a debate.
    with np.errstate(over="ignore", invalid="ignore"):
        return _cv(complete, over)


def has_converged(cv: float, threshold: float | None) -> bool:
    """Whether the agents agree well enough: `cv <= threshold`, as in the article (Yucha 2024).

    Never for a CV that is NaN (too few agents scored), nor for a threshold of None (convergence is turned off).
    """
    return threshold is not None and cv <= threshold


def _cv(complete: FloatArray, over: Over) -> float:
    if over == "cells":
        return float(_ratio(_std_of_rows(complete), complete.mean(axis=0)).mean())
    spread = _std_of_rows(complete.ravel()) if over == "pooled" else _std_of_rows(complete).mean()
    mean = abs(float(complete.mean()))
    return float(spread) / mean if mean else (0.0 if spread == 0 else float("inf"))


def _std_of_rows(values: FloatArray) -> FloatArray:
    """Population std over the first axis."""
    # Shifted by the first row: equal values then have a std of exactly 0, so a threshold of 0 can be met.
    shifted = values - values[0]
    centered = shifted - shifted.mean(axis=0)
    return np.sqrt((centered * centered).mean(axis=0))  # as np.std does, in half its time for so few values


def _ratio(std: FloatArray, mean: FloatArray) -> FloatArray:
    """`std / |mean|` element by element, with the rule for a mean of 0."""
    at_zero = np.where(std == 0, 0.0, np.inf)
    return np.divide(std, np.abs(mean), out=at_zero, where=mean != 0)
