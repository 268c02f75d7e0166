"""Adding and forgetting memories: what is acknowledged is committed, memories and vectors together.

Adding the same again changes nothing and gives the same ids, so that an interrupted job may simply be run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select, update

from debate.memory.database import COLLECTIONS, MEMORIES, Database
from debate.memory.embedders.base import Vectors
from debate.memory.recall.vectors import VectorCache, text_hash
from debate.memory.records import NewMemory
from debate.sql.types import insert_new
from debate.types import Memory

_AT_ONCE = 256
"""Memories that are embedded and committed together: what a kill can cost, and no more."""
_IDS_AT_ONCE = 5000


class Writer:
    """Writes to one database with the vectors of one embedder."""

    def __init__(self, database: Database, vectors: VectorCache) -> None:
        self._database = database
        self._vectors = vectors

    def add(self, memories: Sequence[NewMemory]) -> int:
        """Keep memories, in commits of a few hundred; returns how many are new.

        Raises:
            ConfigError: when the store's vectors are of another embedder.
            StoreError: when it cannot be written; what was committed before is kept.
        """
        return sum(self._committed(memories[at : at + _AT_ONCE]) for at in range(0, len(memories), _AT_ONCE))

    def _committed(self, memories: Sequence[NewMemory]) -> int:
        texts = {text_hash(each.text): each.text for each in memories}
        made: dict[str, Vectors] = {}
        _ = self._vectors.embedder.dimension  # may ask a server, which no transaction should wait for
        while True:
            with self._database.write() as connection:
                self._database.check_embedder(connection, self._vectors.embedder, is_new_allowed=True)
                lacking = texts.keys() - made.keys() - self._vectors.there(connection, texts)
                if not lacking:
                    return self._insert(connection, memories, made)
            # Outside the transaction, for it takes long; what somebody forgot meanwhile is seen in the next one.
            made |= self._vectors.embedded([texts[each] for each in sorted(lacking)])

    def _insert(self, connection: Connection, memories: Sequence[NewMemory], made: Mapping[str, Vectors]) -> int:
        there = set(_existing(connection, [each.id for each in memories]))
        new = {each.id: each for each in memories if each.id not in there}
        ids = self._changed(connection, sorted({each.collection for each in new.values()}))
        if new:
            rows = [_row(each, ids[each.collection]) for each in new.values()]
            insert_new(connection, MEMORIES, rows)
            self._vectors.keep(connection, made)
        return len(new)

    def _changed(self, connection: Connection, names: Sequence[str]) -> dict[str, int]:
        """The ids of these collections, each made where there is none, and one version further.

        The update locks the row, so that writers of one collection follow one another, and so do its sequence numbers.
        """
        insert_new(connection, COLLECTIONS, [{"name": name, "version": 0, "erased": 0} for name in names])
        found: dict[str, int] = {}
        for name in names:
            which = COLLECTIONS.c.name == name
            connection.execute(update(COLLECTIONS).where(which).values(version=COLLECTIONS.c.version + 1))
            found[name] = connection.execute(select(COLLECTIONS.c.id).where(which)).scalar_one()
        return found

    def stranger(self, memories: Sequence[NewMemory]) -> str | None:
        """An id among these that is the id of another memory in the store; None when there is none."""
        given = {each.id: (each.collection, text_hash(each.text)) for each in memories}
        query = select(MEMORIES.c.id, COLLECTIONS.c.name, MEMORIES.c.text_hash).join(
            COLLECTIONS, COLLECTIONS.c.id == MEMORIES.c.collection_id
        )
        with self._database.read() as connection:
            for part in _parts(list(given)):
                for row in connection.execute(query.where(MEMORIES.c.id.in_(part))):
                    if given[row.id] != (row.name, row.text_hash):
                        return str(row.id)
        return None

    def forget(self, which: Sequence[ColumnElement[bool]], *, dry_run: bool) -> list[str]:
        """Erase the memories for which all conditions hold, and vectors that no other memory needs; returns their ids.

        Conditions are on `MEMORIES` joined to `COLLECTIONS`.
        """
        columns = (MEMORIES.c.seq, MEMORIES.c.id, MEMORIES.c.collection_id, MEMORIES.c.text_hash)
        query = select(*columns).join(COLLECTIONS, COLLECTIONS.c.id == MEMORIES.c.collection_id).where(*which)
        if dry_run:
            with self._database.read() as connection:
                return [row.id for row in connection.execute(query.order_by(MEMORIES.c.seq))]
        with self._database.write() as connection:
            rows = connection.execute(query.order_by(MEMORIES.c.seq)).all()
            self._erased(connection, {row.collection_id for row in rows})
            for part in _parts([row.seq for row in rows]):
                connection.execute(delete(MEMORIES).where(MEMORIES.c.seq.in_(part)))
            self._vectors.drop(connection, {row.text_hash for row in rows})
        if rows:
            self._database.scrub()
        return [row.id for row in rows]

    def _erased(self, connection: Connection, collections: Iterable[int]) -> None:
        for each in sorted(collections):
            counters = {"version": COLLECTIONS.c.version + 1, "erased": COLLECTIONS.c.erased + 1}
            connection.execute(update(COLLECTIONS).where(COLLECTIONS.c.id == each).values(counters))


def _row(memory: NewMemory, collection_id: int) -> dict[str, Any]:
    return {
        "id": memory.id,
        "collection_id": collection_id,
        "text": memory.text,
        "text_hash": text_hash(memory.text),
        "kind": memory.kind,
        "importance": memory.importance,
        "created_at": memory.created_at,
        "source": memory.source,
        "metadata": dict(memory.metadata),
    }


def conditions(
    collection: str | None, ids: Sequence[str] | None, source: str | None, kind: str | None, before: float | None
) -> list[ColumnElement[bool]]:
    """What must hold for a memory, on `MEMORIES` joined to `COLLECTIONS`; None asks for nothing."""
    given = (
        (collection, COLLECTIONS.c.name == collection),
        (ids, MEMORIES.c.id.in_(ids or ())),
        (source, MEMORIES.c.source == source),
        (kind, MEMORIES.c.kind == kind),
        (before, MEMORIES.c.created_at < (before or 0)),
    )
    return [condition for value, condition in given if value is not None]


def kept_memories(connection: Connection, which: Sequence[ColumnElement[bool]]) -> Iterator[NewMemory]:
    """The memories for which all conditions hold, as they were added: by collection, moment and id."""
    query = (
        select(COLLECTIONS.c.name, MEMORIES)
        .join(COLLECTIONS, COLLECTIONS.c.id == MEMORIES.c.collection_id)
        .where(*which)
        .execution_options(yield_per=1000)
    )
    rows: list[Any] = sorted(connection.execute(query), key=lambda row: (row.name, row.created_at, row.id))
    for row in rows:
        yield NewMemory(
            id=row.id,
            collection=row.name,
            text=row.text,
            kind=row.kind,
            importance=row.importance,
            created_at=row.created_at,
            source=row.source,
            metadata=row._mapping[MEMORIES.c.metadata],
        )


def _existing(connection: Connection, ids: Sequence[str]) -> list[str]:
    return [
        each
        for part in _parts(ids)
        for each in connection.execute(select(MEMORIES.c.id).where(MEMORIES.c.id.in_(part))).scalars()
    ]


def _parts(values: Sequence[Any]) -> list[Sequence[Any]]:
    return [values[at : at + _IDS_AT_ONCE] for at in range(0, len(values), _IDS_AT_ONCE)]


def newest(connection: Connection, collection: str, n: int) -> list[Memory]:
    """Newest first, at most `n`; of the same moment, the last added first."""
    query = (
        select(MEMORIES)
        .join(COLLECTIONS, COLLECTIONS.c.id == MEMORIES.c.collection_id)
        .where(COLLECTIONS.c.name == collection)
        .order_by(MEMORIES.c.created_at.desc(), MEMORIES.c.seq.desc())
        .limit(n)
    )
    return [Memory(row.text, row.id, collection, kind=row.kind, source=row.source) for row in connection.execute(query)]
