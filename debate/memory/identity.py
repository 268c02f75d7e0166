"""Which embedder a store's vectors are of: vectors of two embedders are never mixed.

The first memory settles it; `rebuild` alone changes it. Knows nothing of what the vectors are used for.
"""

from __future__ import annotations

from sqlalchemy import Connection

from debate.errors import ConfigError
from debate.memory.database import Database
from debate.memory.embedders.base import Embedder
from debate.memory.recall.collection_cache import REBUILD


def check_embedder(
    database: Database, connection: Connection, embedder: Embedder, *, is_new_allowed: bool = False
) -> bool:
    """Whether the store has vectors, which then are of this embedder. A store without takes this one, where allowed.

    Raises:
        ConfigError: when its vectors are of another embedder or dimension; the hint says what mends that.
    """
    about = database.about(connection)
    kept = about.get("embedder")
    if kept is None:
        if is_new_allowed:
            set_embedder(database, connection, embedder)
        return is_new_allowed
    if kept["id"] != embedder.id:
        raise ConfigError(
            f"{database.place} holds vectors of {kept['id']}, and {embedder.id} was given",
            field="embedder",
            hint=f"give the embedder {kept['id']}, or make all vectors anew with this one: {REBUILD}",
        )
    if kept["dimension"] != embedder.dimension:
        raise ConfigError(
            f"{database.place} holds vectors of {kept['dimension']} numbers, {embedder.id} makes {embedder.dimension}",
            field="embedder",
            hint=f"the model behind that name has changed; make all vectors anew: {REBUILD}",
        )
    return True


def set_embedder(database: Database, connection: Connection, embedder: Embedder) -> None:
    """From now on the store's vectors are of this embedder."""
    database.set_about(connection, embedder={"id": embedder.id, "dimension": embedder.dimension})
