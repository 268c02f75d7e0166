"""Answers many recalls together: one batch is embedded, each collection searched once, each request ranked alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from debate.concurrency.micro_batch import MicroBatcher
from debate.errors import CallError, InputError
from debate.flow import Recall
from debate.memory.database import Database
from debate.memory.embedders.base import Vectors, pieces_of
from debate.memory.indexes.base import Search
from debate.memory.indexes.router import IndexRouter
from debate.memory.recall.ranking import DIGITS, Scored, SearchHits, fit_token_budget, scored, select_top_k
from debate.memory.recall.request import RecallRequest
from debate.memory.recall.snapshot import CollectionCache, Snapshot
from debate.memory.recall.vectors import VectorCache
from debate.types import Memory

_WIDER = 8
"""Factor by which a search is widened when the first hits do not settle a request."""
CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True, eq=False)
class _Lookup:
    """A request with what it needs: its query vectors, its moment, and its collections as they are now."""

    request: RecallRequest
    queries: Vectors
    """(Q, D)"""
    now: float
    snapshots: Sequence[Snapshot]

    def search(self, snapshot: Snapshot, n: int) -> Search:
        """What an index is asked about one of the collections."""
        prior = snapshot.prior_scores(self.request, self.now).weighted
        return Search(self.queries, self.request.weights.relevance, prior, snapshot.mask(self.request), n)

    def ranked(self, hits: Sequence[SearchHits]) -> list[Scored] | None:
        """The best of the hits, one `SearchHits` per collection; None when a memory not among them may be better."""
        queries = self.queries.astype(np.float64)
        candidates = [
            one
            for snapshot, found in zip(self.snapshots, hits, strict=True)
            for one in scored(found, snapshot, queries, self.request, snapshot.prior_scores(self.request, self.now))
        ]
        bound = max((found.bound for found in hits), default=-np.inf)
        return select_top_k(candidates, bound, self.request)


@dataclass(frozen=True, slots=True)
class RecallService:
    """Answers recalls from one store. Thread-safe."""

    database: Database
    vectors: VectorCache
    collections: CollectionCache
    indexes: IndexRouter
    clock: Callable[[], float]
    """Seconds since 1970, for requests without a moment."""

    def answer(self, requests: Sequence[RecallRequest], count_tokens: CountTokens) -> list[list[Memory]]:
        """The memories of each request, best first.

        Raises:
            ConfigError: when the embedder is not the store's, or cannot be used.
            StoreError, BackendError: when the store or the embedder cannot be asked.
        """
        if not requests:
            return []
        with self.database.read() as connection:
            if not self.database.check_embedder(connection, self.vectors.embedder):
                return [[] for _ in requests]
            names = {name for each in requests for name in each.collections}
            snapshots = self.collections.snapshots(connection, names)
        lookups = self._lookups(requests, snapshots)
        first = self._first_hits(lookups)
        best = [
            self._settled(lookup, [first[n, snapshot.id] for snapshot in lookup.snapshots])
            for n, lookup in enumerate(lookups)
        ]
        return [
            [_memory(one) for one in fit_token_budget(found, request.max_tokens, count_tokens)]
            for found, request in zip(best, requests, strict=True)
        ]

    def _lookups(self, requests: Sequence[RecallRequest], snapshots: Mapping[str, Snapshot]) -> list[_Lookup]:
        now, embedder = self.clock(), self.vectors.embedder
        pieces = [[piece for query in each.queries for piece in pieces_of(embedder, query)] for each in requests]
        vectors = self.vectors.of_queries([piece for each in pieces for piece in each])  # (Q, D), of all requests
        parts = np.split(vectors, np.cumsum([len(each) for each in pieces])[:-1])
        return [
            _Lookup(
                request,
                queries,
                now if request.now is None else request.now,
                [snapshots[name] for name in request.collections if name in snapshots],
            )
            for request, queries in zip(requests, parts, strict=True)
        ]

    def _first_hits(self, lookups: Sequence[_Lookup]) -> Mapping[tuple[int, int], SearchHits]:
        """What the indexes find, by request and collection: one search per collection."""
        by_collection: dict[int, tuple[Snapshot, list[int]]] = {}
        for n, each in enumerate(lookups):
            for snapshot in each.snapshots:
                by_collection.setdefault(snapshot.id, (snapshot, []))[1].append(n)
        hits: dict[tuple[int, int], SearchHits] = {}
        for snapshot, numbers in by_collection.values():
            searches = [lookups[n].search(snapshot, _enough(lookups[n].request)) for n in numbers]
            found = self.indexes.of(snapshot).search(snapshot, searches)
            hits.update({(n, snapshot.id): each for n, each in zip(numbers, found, strict=True)})
        return hits

    def _settled(self, lookup: _Lookup, hits: Sequence[SearchHits]) -> list[Scored]:
        """The best of all collections; the search is widened until that is sure."""
        n = _enough(lookup.request)
        while (best := lookup.ranked(hits)) is None:
            n *= _WIDER
            hits = [self.indexes.of(each).search(each, [lookup.search(each, n)])[0] for each in lookup.snapshots]
        return best


def _enough(request: RecallRequest) -> int:
    """How many to ask for, so that near-duplicates and rounding rarely make it too few."""
    return 2 * request.k + 8


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


class BatchingRetriever:
    """The memory as the runner asks it: recalls of many debates, answered together on a thread beside the event loop.

    Args:
        answer: answers many requests at once; it may take its time.
        request_of: a flow's recall as a request, with what holds for the whole run.
        executor: the thread that `answer` is called on.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[RecallRequest]], Sequence[Sequence[Memory]]],
        request_of: Callable[[Recall], RecallRequest],
        executor: Executor,
    ) -> None:
        async def send(batch: list[RecallRequest]) -> Sequence[Sequence[Memory]]:
            return await asyncio.get_running_loop().run_in_executor(executor, answer, batch)

        self._request_of = request_of
        self._batcher = MicroBatcher(send, one_by_one=(InputError, CallError))

    async def recall(self, request: Recall) -> Sequence[Memory]:
        """The memories that fit best, best first.

        Raises:
            ConfigError: for a request that cannot be answered.
            StoreError, BackendError: when the store or the embedder cannot be asked.
        """
        return await self._batcher.ask(self._request_of(request))
