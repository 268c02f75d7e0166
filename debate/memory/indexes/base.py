"""What an index is: it offers, of one collection, the memories that may score best. Knows no particular index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from debate.memory.embedders.base import Vectors
from debate.memory.recall.ranking import Positions, SearchHits
from debate.memory.recall.snapshot import Mask, Snapshot
from debate.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """One request as an index sees it, for one collection of N memories."""

    queries: Vectors
    """(Q, D) unit rows; the best match counts."""
    weight: float
    """Of relevance."""
    unasked: FloatArray
    """(N,) what the other parts add to each memory's score."""
    mask: Mask | None
    """(N,) which memories may be offered; None is all."""
    n: int
    """About how many to offer; more are welcome."""


class VectorIndex(Protocol):
    """Finds what is near. It holds nothing that cannot be made again from SQL."""

    def search(self, snapshot: Snapshot, searches: Sequence[Search]) -> list[SearchHits]:
        """For each search the memories that may score best, all searches of a collection in one go.

        The bound of what it returns holds for every memory that the mask lets through and that is not offered.
        """
        ...

    def faults(self, snapshot: Snapshot) -> list[str]:
        """What it holds of a collection that is not as SQL has it, in words."""
        ...

    def rebuild(self, snapshots: Sequence[Snapshot]) -> None:
        """Throw away what it holds and make it anew from these collections, which are all there are."""
        ...

    def close(self) -> None:
        """Let go of files and connections. Safe to call twice."""
        ...


def margin(weight: float, dimension: int) -> float:
    """How far a score from float32 products may lie from the exact one.

    That is D unit roundings of the cosine, and the last digit that is kept.
    """
    return weight * dimension * 6e-8 + 1e-9


def top_n_with_bound(upper: FloatArray, search: Search) -> tuple[Positions, float]:
    """The `n` memories that may score highest, and the bound of the others; all that are allowed when they are few.

    Args:
        upper: (N,) a score that each memory does not exceed.
        search: whose mask and `n` hold.
    """
    mask = search.mask
    n_allowed = len(upper) if mask is None else int(np.count_nonzero(mask))
    if n_allowed <= search.n:
        return np.arange(len(upper)) if mask is None else np.flatnonzero(mask), -np.inf
    if mask is not None:
        upper = np.where(mask, upper, -np.inf)
    positions = np.argpartition(upper, len(upper) - search.n)[-search.n :]
    return positions, float(upper[positions].min())
