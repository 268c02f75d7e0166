"""Recalls answered from one database: what they need is read in one go, then `recalling` ranks.

Knows nothing of how memories came to be there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from debate.memory.database import Database
from debate.memory.embedders import pieces_of
from debate.memory.indexes.router import IndexRouter
from debate.memory.recall.collection_cache import CollectionCache
from debate.memory.recall.request import RecallRequest
from debate.memory.recall.search import Lookup, recall_together
from debate.memory.recall.vectors import VectorCache
from debate.types import Memory


class RecallService:
    """Answers recalls. Thread-safe.

    Args:
        database, vectors, shelf, indexes: of one store.
        count_tokens: the judge's tokenizer.
        clock: seconds since 1970, for requests without a moment.
    """

    def __init__(
        self,
        database: Database,
        vectors: VectorCache,
        shelf: CollectionCache,
        indexes: IndexRouter,
        count_tokens: Callable[[str], int],
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._vectors = vectors
        self._shelf = shelf
        self._indexes = indexes
        self._count_tokens = count_tokens
        self._clock = clock

    def answer(
        self, requests: Sequence[RecallRequest], count_tokens: Callable[[str], int] | None = None
    ) -> list[list[Memory]]:
        """The memories of each request, best first: one batch is embedded, and each collection is searched once.

        `count_tokens` is another judge's tokenizer.

        Raises:
            ConfigError: when the embedder is not the store's, or cannot be used.
            StoreError, BackendError: when the store or the embedder cannot be asked.
        """
        if not requests:
            return []
        embedder = self._vectors.embedder
        with self._database.read() as connection:
            if not self._database.check_embedder(connection, embedder):
                return [[] for _ in requests]
            snapshots = self._shelf.snapshots(connection, {name for each in requests for name in each.collections})
        now = self._clock()
        pieces = [[piece for query in each.queries for piece in pieces_of(embedder, query)] for each in requests]
        vectors = self._vectors.of_queries([piece for each in pieces for piece in each])  # (Q, D)
        asked: list[Lookup] = []
        begin = 0
        for request, own in zip(requests, pieces, strict=True):
            queries = vectors[begin : begin + len(own)]
            begin += len(own)
            there = [snapshots[name] for name in request.collections if name in snapshots]
            asked.append(Lookup(request, queries, now if request.now is None else request.now, there))
        return recall_together(asked, self._indexes.of, count_tokens or self._count_tokens)
