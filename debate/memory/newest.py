"""The memories that a collection got last."""

from __future__ import annotations

from sqlalchemy import Connection, select

from debate.memory.tables import COLLECTIONS, MEMORIES
from debate.types import Memory


def newest(connection: Connection, collection: str, n: int) -> list[Memory]:
    """Newest first, at most `n`; a moment that several share goes by the order in which they were added."""
    query = (
        select(MEMORIES)
        .join(COLLECTIONS, COLLECTIONS.c.id == MEMORIES.c.collection_id)
        .where(COLLECTIONS.c.name == collection)
        .order_by(MEMORIES.c.created_at.desc(), MEMORIES.c.seq.desc())
        .limit(n)
    )
    return [Memory(row.text, row.id, collection, kind=row.kind, source=row.source) for row in connection.execute(query)]
