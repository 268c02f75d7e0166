"""Adding and forgetting memories: what is acknowledged is committed, memories and vectors together.

Adding the same again changes nothing and gives the same ids, so that an interrupted job may simply be run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from debate.memory.database import AT_ONCE, COLLECTED, COLLECTIONS, ERASED, MEMORIES, NEWER, Database, select_in
from debate.memory.embedders.base import Vectors, slices
from debate.memory.recall.vectors import VectorCache, text_hash
from debate.memory.records import NewMemory, evidence, has_all, origins
from debate.sql.types import insert_new
from debate.types import Memory

_AT_ONCE = 256
"""Memories that are embedded and committed together: what a kill can cost, and no more."""
_AS_ADDED = ("id", "text", "kind", "importance", "created_at", "source", "metadata")
"""Columns of `MEMORIES` that hold what was added as it was."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes to one database with the vectors of one embedder."""

    database: Database
    vectors: VectorCache

    def add(self, memories: Sequence[NewMemory]) -> int:
        """Keep memories, in commits of a few hundred; returns how many are new.

        Raises:
            ConfigError: when the store's vectors are of another embedder.
            StoreError: when it cannot be written; what was committed before is kept.
        """
        return sum(map(self._committed, slices(memories, _AT_ONCE)))

    def _committed(self, memories: Sequence[NewMemory]) -> int:
        texts = {text_hash(each.text): each.text for each in memories}
        made: dict[str, Vectors] = {}
        _ = self.vectors.embedder.dimension  # may ask a server, which no transaction should wait for
        while True:
            with self.database.write() as connection:
                self.database.check_embedder(connection, self.vectors.embedder, is_new_allowed=True)
                lacking = texts.keys() - made.keys() - self.vectors.there(connection, texts)
                if not lacking:
                    return self._insert(connection, memories, made)
            # Outside the transaction, for it takes long; what somebody forgot meanwhile is seen in the next one.
            made |= self.vectors.embedded([texts[each] for each in sorted(lacking)])

    def _insert(self, connection: Connection, memories: Sequence[NewMemory], made: Mapping[str, Vectors]) -> int:
        given = {each.id for each in memories}
        there = {row.id for row in select_in(connection, select(MEMORIES.c.id), MEMORIES.c.id, given)}
        new = {each.id: each for each in memories if each.id not in there}
        ids = self._changed(connection, sorted({each.collection for each in new.values()}))
        if new:
            insert_new(connection, MEMORIES, [_row(each, ids[each.collection]) for each in new.values()])
            self.vectors.keep(connection, made)
        return len(new)

    def _changed(self, connection: Connection, names: Sequence[str]) -> dict[str, int]:
        """The ids of these collections, each made where there is none, and one version further.

        The update locks the row, so that writers of one collection follow one another, and so do its sequence numbers.
        """
        insert_new(connection, COLLECTIONS, [{"name": name, "version": 0, "erased": 0} for name in names])
        found: dict[str, int] = {}
        for name in names:
            which = COLLECTIONS.c.name == name
            connection.execute(update(COLLECTIONS).where(which).values(NEWER))
            found[name] = connection.execute(select(COLLECTIONS.c.id).where(which)).scalar_one()
        return found

    def stranger(self, memories: Sequence[NewMemory]) -> str | None:
        """An id among these that is the id of another memory in the store; None when there is none."""
        given = {each.id: (each.collection, text_hash(each.text)) for each in memories}
        query = select(MEMORIES.c.id, COLLECTIONS.c.name, MEMORIES.c.text_hash).select_from(COLLECTED)
        with self.database.read() as connection:
            rows = select_in(connection, query, MEMORIES.c.id, given)
        return next((row.id for row in rows if given[row.id] != (row.name, row.text_hash)), None)

    def forget(self, which: Sequence[ColumnElement[bool]], metadata: Mapping[str, Any], *, dry_run: bool) -> list[str]:
        """Erase the memories for which all conditions hold, and vectors that no other memory needs; returns their ids.

        Conditions are on `COLLECTED`; the memories' metadata must have all values of `metadata`, too.
        """
        columns = (MEMORIES.c.seq, MEMORIES.c.id, MEMORIES.c.collection_id, MEMORIES.c.text_hash)
        columns += (MEMORIES.c.metadata,) if metadata else ()
        query = select(*columns).select_from(COLLECTED).where(*which).order_by(MEMORIES.c.seq)
        with self.database.read() if dry_run else self.database.write() as connection:
            rows = [row for row in connection.execute(query) if not metadata or has_all(row.metadata, metadata)]
            if not dry_run:
                self._erase(connection, rows)
        if rows and not dry_run:
            self.database.scrub()
        return [row.id for row in rows]

    def _erase(self, connection: Connection, rows: Sequence[Any]) -> None:
        for collection in sorted({row.collection_id for row in rows}):
            connection.execute(update(COLLECTIONS).where(COLLECTIONS.c.id == collection).values(ERASED))
        for part in slices([row.seq for row in rows], AT_ONCE):
            connection.execute(delete(MEMORIES).where(MEMORIES.c.seq.in_(part)))
        self.vectors.drop(connection, {row.text_hash for row in rows})


def _row(memory: NewMemory, collection_id: int) -> dict[str, Any]:
    same = {name: getattr(memory, name) for name in _AS_ADDED}
    return {**same, "collection_id": collection_id, "text_hash": text_hash(memory.text)}


def conditions(
    collection: str | None, ids: Sequence[str] | None, source: str | None, kind: str | None, before: float | None
) -> list[ColumnElement[bool]]:
    """What must hold for a memory, on `COLLECTED`; None asks for nothing."""
    equal = ((COLLECTIONS.c.name, collection), (MEMORIES.c.source, source), (MEMORIES.c.kind, kind))
    found = [column == value for column, value in equal if value is not None]
    found += [] if ids is None else [MEMORIES.c.id.in_(ids)]
    found += [] if before is None else [MEMORIES.c.created_at < before]
    return found


def kept_memories(connection: Connection, which: Sequence[ColumnElement[bool]]) -> Iterator[NewMemory]:
    """The memories for which all conditions hold, as they were added: by collection, moment and id."""
    query = select(COLLECTIONS.c.name, MEMORIES).select_from(COLLECTED).where(*which)
    rows = connection.execute(query.execution_options(yield_per=1000)).mappings()
    for row in sorted(rows, key=lambda row: (row["name"], row["created_at"], row["id"])):
        yield NewMemory(collection=row["name"], **{name: row[name] for name in _AS_ADDED})


def origins_with_evidence(connection: Connection, ids: Iterable[str]) -> set[str]:
    """The origins of memories, see `records.origins`, and those of what they rest on, at any number of removes."""
    found: set[str] = set()
    seen: set[str] = set()
    left = set(ids)
    query = select(MEMORIES.c.source, MEMORIES.c.metadata)
    while left:
        rows = select_in(connection, query, MEMORIES.c.id, left)
        found.update(each for row in rows for each in origins(row.source, row.metadata))
        seen |= left
        left = {each for row in rows for each in evidence(row.metadata)} - seen
    return found


def sizes(connection: Connection, *which: ColumnElement[bool]) -> dict[str, int]:
    """The number of memories in each collection that has any, by name; of those for which all conditions hold."""
    query = select(COLLECTIONS.c.name, func.count()).select_from(COLLECTED).where(*which)
    return {name: n for name, n in sorted(connection.execute(query.group_by(COLLECTIONS.c.name)).all())}


def newest(connection: Connection, collection: str, n: int) -> list[Memory]:
    """Newest first, at most `n`; of the same moment, the last added first."""
    query = select(MEMORIES).select_from(COLLECTED).where(COLLECTIONS.c.name == collection)
    rows = connection.execute(query.order_by(MEMORIES.c.created_at.desc(), MEMORIES.c.seq.desc()).limit(n))
    return [Memory(row.text, row.id, collection, kind=row.kind, source=row.source) for row in rows]
