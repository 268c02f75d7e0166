"""Verifies a memory store, and rebuilds vectors and indexes from its texts.

SQL's memories are the truth; vectors follow from them and the embedder, an index from the vectors.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import Connection, and_, delete, func, select, update

from debate.errors import BackendError, InputError, StoreError
from debate.memory.database import COLLECTIONS, ERASED, MEMORIES, VECTORS, Database, select_in
from debate.memory.indexes.router import IndexRouter
from debate.memory.recall.snapshot import CollectionCache, Snapshot
from debate.memory.recall.vectors import VectorCache, text_hash
from debate.memory.writer import sizes

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


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Verifies and rebuilds one store."""

    database: Database
    vectors: VectorCache
    cache: CollectionCache
    indexes: IndexRouter

    def verify(self) -> Report:
        """Look at everything and change nothing: the database's files, texts, vectors and the index."""
        problems = [f"database: {fault}" for fault in self.database.faults()]
        with self.database.read() as connection:
            counting = [select(func.count()).select_from(table) for table in (MEMORIES, COLLECTIONS, VECTORS)]
            counts = [connection.execute(query).scalar_one() for query in counting]
            try:
                self.database.check_embedder(connection, self.vectors.embedder)
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
            with self.database.read() as connection:
                found = self._are_sound(connection, hashes)
            lacking += len(hashes) - len(found)
            damaged += list(found.values()).count(False)
        counts = {"texts have no vector": lacking, "vectors are damaged": damaged}
        return [f"{n} {what}" for what, n in counts.items() if n]

    def _index_faults(self) -> list[str]:
        return [fault for snapshot in self._snapshots() for fault in self.indexes.of(snapshot).faults(snapshot)]

    def rebuild(self) -> int:
        """Embed every text that has no vector of the current embedder, and rebuild the index; returns how many.

        The embedder may be another than before: the vectors of the old one go when all new ones are there. Cut off, it
        goes on from where it was.
        """
        made = sum(self._completed(hashes) for hashes in self._hashes())
        while not self._settled():  # something was added meanwhile
            made += sum(self._completed(hashes) for hashes in self._hashes())
        self.cache.forget()
        chroma = self.indexes.chroma()
        if chroma is not None:
            chroma.rebuild([each for each in self._snapshots() if each.matrix is None])
        return made

    def _completed(self, hashes: Sequence[str]) -> int:
        """Embed those of the texts that have no vector, or one that is damaged."""
        with self.database.read() as connection:
            are_sound = self._are_sound(connection, hashes)
            lacking = [each for each in hashes if not are_sound.get(each)]
            query = select(MEMORIES.c.text_hash, MEMORIES.c.text).where(MEMORIES.c.text_hash.in_(lacking))
            texts: dict[str, str] = {row.text_hash: row.text for row in connection.execute(query)}
        made = self.vectors.embedded(list(texts.values()))
        with self.database.write() as connection:
            connection.execute(delete(VECTORS).where(self.vectors.is_ours, VECTORS.c.text_hash.in_(lacking)))
            self.vectors.keep(connection, made)
        return len(made)

    def _settled(self) -> bool:
        """When no memory lacks a vector: from now on the store is the embedder's, and every copy of it out of date."""
        its_vector = and_(VECTORS.c.text_hash == MEMORIES.c.text_hash, self.vectors.is_ours)
        both = MEMORIES.outerjoin(VECTORS, its_vector)
        lacks = select(func.count()).select_from(both).where(VECTORS.c.data.is_(None))
        with self.database.write() as connection:
            if connection.execute(lacks).scalar_one():
                return False
            connection.execute(delete(VECTORS).where(~self.vectors.is_ours))
            self.database.set_embedder(connection, self.vectors.embedder)
            connection.execute(update(COLLECTIONS).values(ERASED))
        return True

    def keep_up(self, names: Collection[str]) -> None:
        """Bring Chroma up to what was added, where it serves these collections, so that no recall has to wait for it.

        What is added is safe whether or not this succeeds: the next search catches up.
        """
        if self.indexes.choice == "exact":
            return
        try:
            with self.database.read() as connection:
                counts = sizes(connection, COLLECTIONS.c.name.in_(names))
                large = [name for name, n in counts.items() if not self.indexes.is_exact(n)]
                snapshots = self.cache.snapshots(connection, large)
            self._follow(snapshots.values())
        except (StoreError, BackendError) as error:
            _log.warning("Chroma will be brought up to date by the next recall: %s", error)

    def follow(self) -> None:
        """Remove what was forgotten from an open Chroma; one that is opened later catches up then."""
        if self.indexes.opened is not None:
            self._follow(each for each in self._snapshots() if each.matrix is None)

    def _follow(self, snapshots: Iterable[Snapshot]) -> None:
        if (chroma := self.indexes.opened) is not None:
            for snapshot in snapshots:
                chroma.follow(snapshot)

    def _are_sound(self, connection: Connection, hashes: Sequence[str]) -> dict[str, bool]:
        """Of those of the texts that have a vector, whether it is sound."""
        query = select(VECTORS.c.text_hash, VECTORS.c.data).where(self.vectors.is_ours)
        rows = select_in(connection, query, VECTORS.c.text_hash, hashes)
        return {row.text_hash: self._is_sound(row.data) for row in rows}

    def _is_sound(self, data: bytes) -> bool:
        if len(data) != 4 * self.vectors.embedder.dimension:
            return False
        row = np.frombuffer(data, "<f4").astype(np.float64)  # (D,)
        return bool(abs(np.square(row).sum() - 1) < 1e-3)

    def _hashes(self) -> Iterator[list[str]]:
        """The hashes of all texts, some at a time."""
        last = ""
        while True:
            query = select(MEMORIES.c.text_hash).distinct().where(MEMORIES.c.text_hash > last)
            with self.database.read() as connection:
                found = connection.execute(query.order_by(MEMORIES.c.text_hash).limit(_AT_ONCE)).scalars().all()
            if not found:
                return
            yield list(found)
            last = found[-1]

    def _snapshots(self) -> list[Snapshot]:
        with self.database.read() as connection:
            names = connection.execute(select(COLLECTIONS.c.name)).scalars().all()
            return list(self.cache.snapshots(connection, names).values())
