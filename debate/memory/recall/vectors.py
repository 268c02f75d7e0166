"""Vectors by the hash of their text: embedded once, kept in SQL, and those of queries in main memory too.

What is embedded depends on the text and the embedder alone, so a vector is good for every collection and every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from sqlalchemy import ColumnElement, Connection, delete, exists, select

from debate.memory.database import AT_ONCE, MEMORIES, VECTORS, Database, select_in
from debate.memory.embedders.base import Embedder, Vectors, embedded, is_reproducible, slices
from debate.memory.recall.snapshot import LRU, as_vectors
from debate.sql.types import insert_new

_HELD = 16_384
"""Vectors of queries that are held in main memory."""


def text_hash(text: str) -> str:
    """Key of a text's vector: a hash of the text."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=20).hexdigest()


class VectorCache:
    """The vectors of one embedder. Thread-safe."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database = database
        self.embedder = embedder
        self._held: LRU[Vectors] = LRU(_HELD)
        self.is_ours: ColumnElement[bool] = VECTORS.c.embedder == embedder.id
        """Whether a row of `VECTORS` is this embedder's."""

    def of_queries(self, texts: Sequence[str]) -> Vectors:
        """The vectors of some queries, (N, D), embedding in one batch what nobody has asked before.

        Vectors that would cost something to make again are kept in SQL.

        Raises:
            ConfigError: when the embedder cannot be used.
            CallError, BackendUnavailableError: when it is a server that cannot be asked.
        """
        hashes = [text_hash(text) for text in texts]
        by_hash = dict(zip(hashes, texts, strict=True))
        found = {each: row for each in by_hash if (row := self._held.get(each)) is not None}
        found |= self.read([each for each in by_hash if each not in found])
        missing = [each for each in by_hash if each not in found]
        if missing:
            made = self.embedded([by_hash[each] for each in missing])
            found |= made
            if not is_reproducible(self.embedder):
                with self._database.write() as connection:
                    self.keep(connection, made)
        for each, row in found.items():
            self._held.put(each, row)
        return np.stack([found[each] for each in hashes])

    def embedded(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """Vectors of texts by hash, made now."""
        rows = embedded(self.embedder, texts)
        return {text_hash(text): row for text, row in zip(texts, rows, strict=True)}

    def read(self, hashes: Sequence[str]) -> dict[str, Vectors]:
        """Those of the vectors that are kept in SQL, by hash.

        Raises:
            StoreError: when one has not the embedder's dimension.
        """
        query = select(VECTORS.c.text_hash, VECTORS.c.data).where(self.is_ours)
        with self._database.read() as connection:
            rows = select_in(connection, query, VECTORS.c.text_hash, hashes)
        if not rows:
            return {}
        read = as_vectors([row.data for row in rows], self.embedder.dimension, self._database.place)
        return {row.text_hash: vector for row, vector in zip(rows, read, strict=True)}

    def there(self, connection: Connection, hashes: Collection[str]) -> set[str]:
        """Those of the hashes that have a vector in SQL."""
        query = select(VECTORS.c.text_hash).where(self.is_ours)
        return {row.text_hash for row in select_in(connection, query, VECTORS.c.text_hash, hashes)}

    def keep(self, connection: Connection, vectors: Mapping[str, Vectors]) -> None:
        """Keep vectors in SQL; those that are there already stay."""
        rows = [
            {"embedder": self.embedder.id, "text_hash": each, "data": row.astype("<f4").tobytes()}
            for each, row in vectors.items()
        ]
        insert_new(connection, VECTORS, rows)

    def drop(self, connection: Connection, hashes: Iterable[str]) -> None:
        """Forget the vectors of texts that no memory holds any more, of every embedder."""
        gone = sorted(set(hashes))
        still_there = exists().where(MEMORIES.c.text_hash == VECTORS.c.text_hash)
        for part in slices(gone, AT_ONCE):
            connection.execute(delete(VECTORS).where(VECTORS.c.text_hash.in_(part), ~still_there))
        for each in gone:
            self._held.pop(each)
