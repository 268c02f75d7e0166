"""One ranking out of groups that were scored apart: which candidates meet, and what makes their scores comparable.

Pure array maths: it does not know who scored a group, or how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate.types import FloatArray, score_array


def plan_groups(n: int, size: int, anchors: int = 2, seed: int = 0) -> list[list[int]]:
    """Groups of at most `size` of `n` candidates; all share the same `anchors`, drawn by the seed as the groups are.

    Every other candidate is in one group, and the groups are as even as can be. One group holds all where they fit.

    Raises:
        ValueError: unless there is at least one anchor, and room for another candidate beside the anchors.
    """
    if not 1 <= anchors < size:
        raise ValueError(f"anchors must be at least 1 and fewer than the group's {size}, got {anchors}")
    if n <= size:
        return [list(range(n))]
    order = np.random.default_rng(seed).permutation(n)
    shared, rest = order[:anchors], order[anchors:]
    parts = np.array_split(rest, -(-len(rest) // (size - anchors)))
    return [sorted([*shared.tolist(), *part.tolist()]) for part in parts]


@dataclass(frozen=True, slots=True)
class Aligned:
    """Scores of all candidates on one footing."""

    scores: FloatArray
    """(n,), NaN where unscored, and where nothing links a candidate to the others."""
    offsets: FloatArray
    """(G,), how much higher each group scored than the mean of the groups; NaN where nothing links it."""


def align_groups(groups: Sequence[Sequence[int]], scores: Sequence[ArrayLike], n: int) -> Aligned:
    """The scores of groups that share some candidates, freed of how strict each group was.

    A score is taken as s[g, j] = q[j] + b[g] + noise, with a quality q for each candidate and an offset b for each
    group, and q and b are those of least squares:

        minimize  sum over groups g and their scored candidates j of (s[g, j] - q[j] - b[g])^2,  sum over g of b[g] = 0

    So q[j] is the mean of s[g, j] - b[g] over the groups that scored j. Without noise the qualities are exact, up to
    one number that all of them share. Groups are linked by candidates that both scored; of several sets of groups
    without a link, the one with the most candidates is kept, and the candidates of the others are NaN.

    Args:
        groups: the indices of each group's candidates.
        scores: of each group, in that order; NaN where unscored.
        n: number of candidates.

    Raises:
        ValueError: where groups and scores do not fit.
    """
    matrix = np.full((len(groups), n), np.nan)  # (G, n)
    for g, (members, found) in enumerate(zip(groups, scores, strict=True)):
        values = score_array(found, "(J,)")
        if values.shape != (len(members),):
            raise ValueError(f"group {g} has {len(members)} candidates and {values.size} scores")
        matrix[g, list(members)] = values
    linked = _linked(~np.isnan(matrix))  # (G,)
    offsets = np.full(len(groups), np.nan)  # (G,)
    offsets[linked] = _offsets(matrix[linked])
    return Aligned(_means(matrix - offsets[:, None]), offsets)


def fit_on_scale(scores: FloatArray, low: float, high: float) -> FloatArray:
    """The scores (n,) moved by as little as brings them onto the scale, or pressed together where they are wider.

    Their order stays; NaN stays NaN.
    """
    known = scores[~np.isnan(scores)]
    if not known.size or (known.min() >= low and known.max() <= high):
        return scores
    if known.max() - known.min() > high - low:
        return np.clip(low + (scores - known.min()) * ((high - low) / (known.max() - known.min())), low, high)
    return np.clip(scores - max(known.max() - high, 0.0) + max(low - known.min(), 0.0), low, high)


def _linked(scored: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which groups belong to the largest set that candidates link; (G, n) -> (G,), both of booleans."""
    reach = (scored.astype(np.float64) @ scored.T.astype(np.float64)) > 0  # (G, G)
    for _ in range(len(scored).bit_length()):
        reach = (reach.astype(np.float64) @ reach.astype(np.float64)) > 0
    sizes = [int(scored[row].any(axis=0).sum()) for row in reach]
    return reach[int(np.argmax(sizes))] if sizes and max(sizes) else np.zeros(len(scored), dtype=np.bool_)


def _offsets(matrix: FloatArray) -> FloatArray:
    """The offsets (G,) of least squares, whose sum is 0, of groups that are linked: (G, n)."""
    scored = ~np.isnan(matrix)  # (G, n)
    share = scored / np.maximum(scored.sum(axis=0), 1)  # (G, n)
    apart = np.where(scored, matrix - _means(matrix), 0.0)  # (G, n)
    laplacian: FloatArray = np.diag(scored.sum(axis=1)) - share @ scored.T  # (G, G), without the qualities
    if not len(matrix):
        return np.zeros(0)
    # Linked groups leave one direction free, that of all offsets together; 1 / G keeps their sum at 0.
    gaps: FloatArray = apart.sum(axis=1)  # (G,)
    return np.linalg.solve(laplacian + 1.0 / len(matrix), gaps).astype(np.float64)


def _means(matrix: FloatArray) -> FloatArray:
    """The mean of each column, (n,); NaN where it holds nothing."""
    known = ~np.isnan(matrix)
    count = known.sum(axis=0)
    total: FloatArray = np.where(known, matrix, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
