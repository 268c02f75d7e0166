"""The interface of vector indexes, and the exact one, which compares every memory in one matrix product per collection.

The exact index is the reference in tests, and the faster one for all but large collections. It holds nothing of its
own: vectors come with the snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from debate.memory.embedders.base import Vectors, slices
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
    prior: FloatArray
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


_CELLS = 1 << 25
"""Most cosines that are held at once."""


class ExactIndex:
    """Compares everything with everything; see `VectorIndex`."""

    def search(self, snapshot: Snapshot, searches: Sequence[Search]) -> list[SearchHits]:
        """The `n` best of each search by float32 products, with a bound that allows for rounding."""
        assert snapshot.matrix is not None, "the cache holds no vectors of this collection"
        found: list[SearchHits] = []
        most = max((len(each.queries) for each in searches), default=0) * len(snapshot)  # cosines of one search
        for part in slices(searches, max(_CELLS // max(most, 1), 1)):
            queries = np.concatenate([each.queries for each in part])  # (Q, D)
            cosines = queries @ snapshot.matrix.T  # (Q, N)
            ends = np.cumsum([len(each.queries) for each in part])
            for each, rows in zip(part, np.split(cosines, ends[:-1]), strict=True):
                found.append(_best(snapshot, each, rows))
        return found

    def faults(self, snapshot: Snapshot) -> list[str]:
        """None: it holds nothing of its own."""
        return []


def _best(snapshot: Snapshot, search: Search, cosines: NDArray[np.float32]) -> SearchHits:
    """The best `n` by the upper ends of their scores, from this search's (Q, N) cosines."""
    assert snapshot.matrix is not None
    relevance = cosines[0] if len(cosines) == 1 else cosines.max(axis=0)  # (N,)
    upper = search.weight * relevance.astype(np.float64) + search.prior  # (N,)
    upper += margin(search.weight, snapshot.matrix.shape[1])
    positions, bound = top_n_with_bound(upper, search)
    return SearchHits(positions, snapshot.matrix[positions], bound)
