"""Verifies a memory store, and rebuilds vectors and indexes from its texts.

SQL's memories are the truth; vectors follow from them and the embedder, an index from the vectors.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import ColumnElement, Connection, and_, delete, func, select, update

from debate.errors import BackendError, InputError, StoreError
from debate.memory.database import COLLECTIONS, MEMORIES, VECTORS, Database
from debate.memory.indexes.router import IndexRouter
from debate.memory.recall.snapshot import CollectionCache, Snapshot
from debate.memory.recall.vectors import VectorCache, text_hash

_AT_ONCE = 1000
_log = logging.getLogger("debate")


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification found."""

    memories: int
    collections: int
    vectors: int
    problems: tuple[str, ...] = field(default=())

    @property
    def is_ok(self) -> bool:
        """Whether everything is as it should be."""
        return not self.problems


class Maintenance:
    """Verifies and rebuilds one store."""

    def __init__(self, database: Database, vectors: VectorCache, cache: CollectionCache, indexes: IndexRouter) -> None:
        self._database = database
        self._vectors = vectors
        self._cache = cache
        self._indexes = indexes

    def verify(self) -> Report:
        """Look at everything and change nothing: the database's files, texts, vectors and the index."""
        problems = [f"database: {fault}" for fault in self._database.faults()]
        with self._database.read() as connection:
            counts = [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in _TABLES]
            try:
                self._database.check_embedder(connection, self._vectors.embedder)
            except InputError as error:
                return Report(*counts, problems=(*problems, str(error)))
            problems += self._text_faults(connection)
        problems += self._vector_faults()
        if not problems:
            problems += self._index_faults()
        return Report(*counts, problems=tuple(problems))

    def _text_faults(self, connection: Connection) -> list[str]:
        columns = select(MEMORIES.c.id, MEMORIES.c.text, MEMORIES.c.text_hash)
        return [
            f"memory {row.id}: its text is not the one that was kept"
            for row in connection.execute(columns.execution_options(yield_per=_AT_ONCE))
            if text_hash(row.text) != row.text_hash
        ]

    def _vector_faults(self) -> list[str]:
        lacking = damaged = 0
        for hashes in self._hashes():
            with self._database.read() as connection:
                query = select(VECTORS.c.data).where(self._is_ours, VECTORS.c.text_hash.in_(hashes))
                found = [self._is_sound(data) for data in connection.execute(query).scalars()]
            lacking += len(hashes) - len(found)
            damaged += found.count(False)
        counts = {"texts have no vector": lacking, "vectors are damaged": damaged}
        return [f"{n} {what}" for what, n in counts.items() if n]

    def _index_faults(self) -> list[str]:
        return [fault for snapshot in self._snapshots() for fault in self._indexes.of(snapshot).faults(snapshot)]

    def rebuild(self) -> int:
        """Embed every text that has no vector of the current embedder, and rebuild the index; returns how many.

        The embedder may be another than before: the vectors of the old one go when all new ones are there. Cut off, it
        goes on from where it was.
        """
        made = sum(self._completed(hashes) for hashes in self._hashes())
        while not self._settled():  # something was added meanwhile
            made += sum(self._completed(hashes) for hashes in self._hashes())
        self._cache.forget()
        chroma = self._indexes.chroma()
        if chroma is not None:
            chroma.rebuild([each for each in self._snapshots() if each.matrix is None])
        return made

    def _completed(self, hashes: Sequence[str]) -> int:
        """Embed those of the texts that have no vector, or one that is damaged."""
        with self._database.read() as connection:
            query = select(VECTORS.c.text_hash, VECTORS.c.data).where(self._is_ours, VECTORS.c.text_hash.in_(hashes))
            there = {row.text_hash for row in connection.execute(query) if self._is_sound(row.data)}
            lacking = [each for each in hashes if each not in there]
            query = select(MEMORIES.c.text_hash, MEMORIES.c.text).where(MEMORIES.c.text_hash.in_(lacking))
            texts: dict[str, str] = {row.text_hash: row.text for row in connection.execute(query)}
        made = self._vectors.embedded(list(texts.values()))
        with self._database.write() as connection:
            connection.execute(delete(VECTORS).where(self._is_ours, VECTORS.c.text_hash.in_(lacking)))
            self._vectors.keep(connection, made)
        return len(made)

    def _settled(self) -> bool:
        """When no memory lacks a vector: from now on the store is the embedder's, and every copy of it out of date."""
        its_vector = and_(VECTORS.c.text_hash == MEMORIES.c.text_hash, self._is_ours)
        lacks = (
            select(func.count()).select_from(MEMORIES.outerjoin(VECTORS, its_vector)).where(VECTORS.c.data.is_(None))
        )
        with self._database.write() as connection:
            if connection.execute(lacks).scalar_one():
                return False
            connection.execute(delete(VECTORS).where(~self._is_ours))
            self._database.set_embedder(connection, self._vectors.embedder)
            newer = {"version": COLLECTIONS.c.version + 1, "erased": COLLECTIONS.c.erased + 1}
            connection.execute(update(COLLECTIONS).values(newer))
        return True

    def keep_up(self, names: Collection[str]) -> None:
        """Bring Chroma up to what was added, where it serves these collections, so that no recall has to wait for it.

        What is added is safe whether or not this succeeds: the next search catches up.
        """
        if self._indexes.choice == "exact":
            return
        try:
            with self._database.read() as connection:
                large = [name for name, n in _sizes(connection, names) if not self._indexes.is_exact(n)]
                snapshots = self._cache.snapshots(connection, large)
            chroma = self._indexes.opened
            if chroma is not None:
                for snapshot in snapshots.values():
                    chroma.follow(snapshot)
        except (StoreError, BackendError) as error:
            _log.warning("Chroma will be brought up to date by the next recall: %s", error)

    def follow(self) -> None:
        """Remove what was forgotten from an open Chroma; one that is opened later catches up then."""
        chroma = self._indexes.opened
        if chroma is not None:
            for snapshot in self._snapshots():
                if snapshot.matrix is None:
                    chroma.follow(snapshot)

    @property
    def _is_ours(self) -> ColumnElement[bool]:
        return VECTORS.c.embedder == self._vectors.embedder.id

    def _is_sound(self, data: bytes) -> bool:
        if len(data) != 4 * self._vectors.embedder.dimension:
            return False
        row = np.frombuffer(data, "<f4").astype(np.float64)  # (D,)
        return bool(abs(np.square(row).sum() - 1) < 1e-3)

    def _hashes(self) -> Iterator[list[str]]:
        """The hashes of all texts, some at a time."""
        last = ""
        while True:
            query = select(MEMORIES.c.text_hash).distinct().where(MEMORIES.c.text_hash > last)
            with self._database.read() as connection:
                found = connection.execute(query.order_by(MEMORIES.c.text_hash).limit(_AT_ONCE)).scalars().all()
            if not found:
                return
            yield list(found)
            last = found[-1]

    def _snapshots(self) -> list[Snapshot]:
        with self._database.read() as connection:
            names = connection.execute(select(COLLECTIONS.c.name)).scalars().all()
            return list(self._cache.snapshots(connection, names).values())


def _sizes(connection: Connection, names: Collection[str]) -> list[tuple[str, int]]:
    query = (
        select(COLLECTIONS.c.name, func.count())
        .join(MEMORIES, MEMORIES.c.collection_id == COLLECTIONS.c.id)
        .where(COLLECTIONS.c.name.in_(names))
        .group_by(COLLECTIONS.c.name)
    )
    return [(name, n) for name, n in connection.execute(query)]


_TABLES = (MEMORIES, COLLECTIONS, VECTORS)
