"""Many recalls answered together: one search a collection for all of them, then each ranked by itself.

Where the first offer of an index does not settle a request, that request alone asks for more. Knows nothing of SQL, and
of an index only what `index` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from debate.memory.embedders.base import Vectors
from debate.memory.indexes.base import Search, VectorIndex
from debate.memory.recall.ranking import DIGITS, Scored, SearchHits, fit_token_budget, scored, select_top_k
from debate.memory.recall.request import RecallRequest
from debate.memory.recall.snapshot import Snapshot
from debate.types import Memory

_WIDER = 8
"""By how much more is offered when the first offer was not enough."""


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A request with what it needs: its query vectors, its moment, and its collections as they are now."""

    request: RecallRequest
    queries: Vectors
    """(Q, D)"""
    now: float
    snapshots: Sequence[Snapshot]

    def search(self, snapshot: Snapshot, n: int) -> Search:
        """What an index is asked about one of the collections."""
        unasked = snapshot.unasked(self.request, self.now).weighted
        return Search(self.queries, self.request.weights.relevance, unasked, snapshot.mask(self.request), n)


def recall_together(
    asked: Sequence[Lookup], index_of: Callable[[Snapshot], VectorIndex], count_tokens: Callable[[str], int]
) -> list[list[Memory]]:
    """The memories of each request, best first."""
    first = _first_offers(asked, index_of)
    found: list[list[Memory]] = []
    for n, each in enumerate(asked):
        best = _settled(each, [first[n, snapshot.id] for snapshot in each.snapshots], index_of)
        found.append([_memory(one) for one in fit_token_budget(best, each.request.max_tokens, count_tokens)])
    return found


def _first_offers(
    asked: Sequence[Lookup], index_of: Callable[[Snapshot], VectorIndex]
) -> Mapping[tuple[int, int], SearchHits]:
    """What the indexes offer, by request and collection: one search for each collection."""
    by_collection: dict[int, tuple[Snapshot, list[int]]] = {}
    for n, each in enumerate(asked):
        for snapshot in each.snapshots:
            by_collection.setdefault(snapshot.id, (snapshot, []))[1].append(n)
    offers: dict[tuple[int, int], SearchHits] = {}
    for snapshot, numbers in by_collection.values():
        searches = [asked[n].search(snapshot, _enough(asked[n].request)) for n in numbers]
        found = index_of(snapshot).search(snapshot, searches)
        offers.update({(n, snapshot.id): each for n, each in zip(numbers, found, strict=True)})
    return offers


def _enough(request: RecallRequest) -> int:
    """How many to ask for, so that near-duplicates and rounding rarely make it too few."""
    return 2 * request.k + 8


def _settled(asked: Lookup, offers: Sequence[SearchHits], index_of: Callable[[Snapshot], VectorIndex]) -> list[Scored]:
    """The best of all collections; what the indexes offer is widened until it is sure."""
    queries, n = asked.queries.astype(np.float64), _enough(asked.request)
    while True:
        candidates = [
            one
            for snapshot, offer in zip(asked.snapshots, offers, strict=True)
            for one in scored(offer, snapshot, queries, asked.request, snapshot.unasked(asked.request, asked.now))
        ]
        bound = max((offer.bound for offer in offers), default=-np.inf)
        best = select_top_k(candidates, bound, asked.request)
        if best is not None:
            return best
        n *= _WIDER
        offers = [index_of(each).search(each, [asked.search(each, n)])[0] for each in asked.snapshots]


def _memory(one: Scored) -> Memory:
    columns = one.snapshot.columns
    return Memory(
        one.text,
        columns.ids[one.position],
        one.snapshot.name,
        one.score,
        one.relevance,
        one.recency,
        round(float(columns.importance[one.position]), DIGITS),
        columns.kinds[one.position],
        columns.sources[one.position],
    )
