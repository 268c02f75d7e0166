"""The collections that are held in main memory, each as fresh as the database at the moment it is asked for.

Another process may have changed a collection: its version is read every time, and only what is new is loaded. Knows
nothing of queries or ranking.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, Text, and_, select, type_coerce

from debate.errors import StoreError
from debate.memory.database import REBUILD, Database
from debate.memory.embedders.base import Vectors
from debate.memory.recall.snapshot import Columns, Snapshot
from debate.memory.tables import COLLECTIONS, MEMORIES, VECTORS
from debate.sql.types import Json

_NAMES_AT_ONCE = 500


_COLUMNS = tuple(
    type_coerce(column, Text) if isinstance(column.type, Json) else column  # JSON stays JSON
    for column in (
        MEMORIES.c[name]
        for name in ("seq", "id", "text", "text_hash", "kind", "source", "metadata", "created_at", "importance")
    )
)


class CollectionCache:
    """Snapshots by name.

    Args:
        database: where the memories are.
        embedder: id of the embedder whose vectors are loaded.
        dimension: asked for the length of a vector when one is loaded.
        holds_vectors: whether a collection of so many memories has its vectors in main memory.
    """

    def __init__(
        self,
        database: Database,
        embedder: str,
        dimension: Callable[[], int],
        holds_vectors: Callable[[int], bool],
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._dimension = dimension
        self._holds_vectors = holds_vectors
        self._held: dict[str, Snapshot] = {}
        self._lock = threading.Lock()

    def snapshots(self, connection: Connection, names: Collection[str]) -> dict[str, Snapshot]:
        """The collections of these names, as they are now; those that do not exist are left out.

        Raises:
            StoreError: when a memory has no vector, or one of another length.
        """
        found: dict[str, Snapshot] = {}
        with self._lock:
            for row in _rows(connection, sorted(names)):
                held = self._held.get(row.name)
                if held is None or (held.version, held.erased, held.id) != (row.version, row.erased, row.id):
                    self._held[row.name] = self._loaded(connection, row, held)
                found[row.name] = self._held[row.name]
        return found

    def forget(self) -> None:
        """Hold nothing any more; what is asked for next is loaded anew."""
        with self._lock:
            self._held.clear()

    def _loaded(self, connection: Connection, row: Row[Any], held: Snapshot | None) -> Snapshot:
        """The collection anew, or what was added to it since."""
        is_longer = held is not None and held.id == row.id and held.erased == row.erased
        before = held if is_longer else None
        columns = self._columns(connection, row.id, before.last_seq if before else 0)
        if before:
            columns = before.columns.followed_by(columns)
        matrix = None
        if self._holds_vectors(len(columns)):
            matrix = self._matrix(connection, row, columns, None if before is None else before.matrix)
        return Snapshot(row.id, row.name, row.version, row.erased, columns, matrix)

    def _columns(self, connection: Connection, collection: int, after: int) -> Columns:
        query = select(*_COLUMNS).where(MEMORIES.c.collection_id == collection, MEMORIES.c.seq > after)
        rows = connection.execute(query.order_by(MEMORIES.c.seq)).all()
        seqs, ids, texts, hashes, kinds, sources, details, created, importance = (
            zip(*rows, strict=True) if rows else [()] * 9
        )
        return Columns(
            np.array(seqs, np.int64),
            ids,
            texts,
            hashes,
            kinds,
            sources,
            details,
            np.array(created, np.float64),
            np.array(importance, np.float64) / 10,
        )

    def _matrix(self, connection: Connection, row: Row[Any], columns: Columns, before: Vectors | None) -> Vectors:
        """(N, D): what is held already, then what is read."""
        n_before = 0 if before is None else len(before)
        after = int(columns.seqs[n_before - 1]) if n_before else 0
        its_vector = and_(VECTORS.c.text_hash == MEMORIES.c.text_hash, VECTORS.c.embedder == self._embedder)
        query = (
            select(VECTORS.c.data)
            .select_from(MEMORIES.outerjoin(VECTORS, its_vector))
            .where(MEMORIES.c.collection_id == row.id, MEMORIES.c.seq > after)
            .order_by(MEMORIES.c.seq)
        )
        read = as_vectors(connection.execute(query).scalars().all(), self._dimension(), row.name)
        return read if before is None else np.concatenate([before, read])


def as_vectors(data: Sequence[bytes | None], dimension: int, where: str) -> Vectors:
    """Vectors from the bytes they are kept as, (N, D).

    Raises:
        StoreError: when one is missing or has another length.
    """
    if any(each is None or len(each) != 4 * dimension for each in data):
        raise StoreError(f"{where}: a memory has no vector of {dimension} numbers", hint=REBUILD)
    joined = b"".join(each for each in data if each is not None)
    return np.frombuffer(joined, "<f4").reshape(len(data), dimension).astype(np.float32, copy=False)


def _rows(connection: Connection, names: Sequence[str]) -> list[Row[Any]]:
    found: list[Row[Any]] = []
    for at in range(0, len(names), _NAMES_AT_ONCE):
        query = select(COLLECTIONS).where(COLLECTIONS.c.name.in_(names[at : at + _NAMES_AT_ONCE]))
        found += connection.execute(query).all()
    return found
