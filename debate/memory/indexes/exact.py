"""The exact index: every memory is compared, by one matrix product a collection for all requests of a batch.

It is the oracle of the tests, and the faster index for all but large collections. Holds nothing of its own: vectors
come with the snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from debate.memory.indexes.base import Search, margin, top_n_with_bound
from debate.memory.recall.ranking import SearchHits
from debate.memory.recall.snapshot import Snapshot

_CELLS = 1 << 25
"""Most cosines that are held at once."""


class ExactIndex:
    """Compares everything with everything; see `VectorIndex`."""

    def search(self, snapshot: Snapshot, searches: Sequence[Search]) -> list[SearchHits]:
        """The `n` best of each search by float32 products, with a bound that makes up for the rounding."""
        assert snapshot.matrix is not None, "the shelf was not told to hold vectors"
        found: list[SearchHits] = []
        for part in _parts(searches, len(snapshot)):
            queries = np.concatenate([each.queries for each in part])  # (Q, D)
            cosines = queries @ snapshot.matrix.T  # (Q, N)
            ends = np.cumsum([len(each.queries) for each in part])
            for each, rows in zip(part, np.split(cosines, ends[:-1]), strict=True):
                found.append(_best(snapshot, each, rows))
        return found

    def faults(self, snapshot: Snapshot) -> list[str]:
        """None: it holds nothing of its own."""
        return []

    def rebuild(self, snapshots: Sequence[Snapshot]) -> None:
        """There is nothing to make anew."""

    def close(self) -> None:
        """There is nothing to let go of."""


def _parts(searches: Sequence[Search], n_memories: int) -> list[list[Search]]:
    """The searches in groups whose cosines fit into main memory together; nearly always one."""
    parts: list[list[Search]] = [[]]
    cells = 0
    for each in searches:
        cells += len(each.queries) * n_memories
        if cells > _CELLS and parts[-1]:
            parts.append([])
            cells = len(each.queries) * n_memories
        parts[-1].append(each)
    return parts


def _best(snapshot: Snapshot, search: Search, cosines: NDArray[np.float32]) -> SearchHits:
    """The best `n` by the upper ends of their scores, from this search's (Q, N) cosines."""
    assert snapshot.matrix is not None
    relevance = cosines[0] if len(cosines) == 1 else cosines.max(axis=0)  # (N,)
    upper = search.weight * relevance.astype(np.float64) + search.unasked  # (N,)
    upper += margin(search.weight, snapshot.matrix.shape[1])
    positions, bound = top_n_with_bound(upper, search)
    return SearchHits(positions, snapshot.matrix[positions], bound)
