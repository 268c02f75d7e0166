"""Raw replies by what was asked, with a time to live.

The key is a hash of everything that shapes the reply (model, messages, schema, sampling) and of the seed, which tells
the samples of one prompt apart; it is the same in every process. Whether a reply may be used is decided by
`debate.backends.cached`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, func, select, update

from debate.flow import Completion
from debate.sql.types import insert_new
from debate.store.database import Database
from debate.store.serialization import (
    distributions_of,
    stored_distributions,
    text_hash,
    text_of,
    text_rows,
    thinking_of,
    used_texts,
    with_texts,
)
from debate.store.tables import CALLS, REPLIES, TEXTS, ReplyRow
from debate.types import Usage

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds."""

    replies: int
    expired: int
    hits: int
    """How often a reply that is still there was used."""
    tokens: int
    """Prompt and completion tokens that the hits would have cost."""
    oldest: float | None
    """Seconds since 1970."""


class ReplyCache:
    """The cache of one store.

    Args:
        ttl: seconds for which a reply is good; None is for ever.
        clock: seconds since 1970.
    """

    def __init__(self, database: Database, ttl: float | None = 7 * DAY, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._ttl = ttl
        self._clock = clock

    async def get(self, key: str) -> Completion | None:
        """The reply, when there is one that has not expired."""
        return await self._database.arun(lambda connection: self._found(connection, key))

    async def put(self, key: str, model: str, completion: Completion) -> None:
        """Keep a reply from now on; one that has expired is replaced."""
        now = self._clock()
        usage, escaped = asdict(completion.usage), completion.escaped_special_tokens
        read_out = stored_distributions(completion.distributions)
        data = {"finish_reason": completion.finish_reason, "usage": usage, "escaped_special_tokens": escaped}
        row = {
            "key": key,
            "model": model,
            "text_hash": text_hash(completion.text),
            "thinking_hash": text_hash(completion.thinking) if completion.thinking else None,
            "data": data if read_out is None else {**data, "distributions": read_out},
            "created_at": now,
            "expires_at": now + (self._ttl if self._ttl is not None else 1e12),
            "hits": 0,
        }

        def replace(connection: Connection) -> None:
            connection.execute(delete(ReplyRow).where(ReplyRow.key == key))
            insert_new(connection, REPLIES, [row])  # another process may have kept one meanwhile
            insert_new(connection, TEXTS, text_rows(completion))

        await self._database.arun(replace)

    def stats(self) -> CacheStats:
        """What it holds now."""
        return self._database.run(self._stats)

    def clear(self, *, expired_only: bool = False) -> int:
        """Forget all replies, or those that have expired; returns how many."""
        statement = delete(ReplyRow)
        if expired_only:
            statement = statement.where(ReplyRow.expires_at <= self._clock())

        def delete_them(connection: Connection) -> int:
            count = connection.execute(statement).rowcount
            _delete_unused_texts(connection)
            return count

        return self._database.run(delete_them)

    def _found(self, connection: Connection, key: str) -> Completion | None:
        query = with_texts(REPLIES, REPLIES.c.data)
        row = connection.execute(query.where(ReplyRow.key == key, ReplyRow.expires_at > self._clock())).first()
        if row is None or row.text_data is None:
            return None
        data = row.data
        connection.execute(update(ReplyRow).where(ReplyRow.key == key).values(hits=ReplyRow.hits + 1))
        usage, read_out = Usage(**data["usage"]), distributions_of(data.get("distributions"))
        escaped = data["escaped_special_tokens"]
        said, thinking = text_of(row), thinking_of(row)
        return Completion(said, data["finish_reason"], usage, escaped, read_out, cached=True, thinking=thinking)

    def _stats(self, connection: Connection) -> CacheStats:
        replies = hits = tokens = expired = 0
        oldest = connection.execute(select(func.min(ReplyRow.created_at))).scalar()
        for data, used, until in connection.execute(select(ReplyRow.data, ReplyRow.hits, ReplyRow.expires_at)):
            replies += 1
            hits += used
            tokens += used * Usage(**data["usage"]).total_tokens
            expired += until <= self._clock()
        return CacheStats(replies, expired, hits, tokens, oldest)


def _delete_unused_texts(connection: Connection) -> None:
    """Delete the texts that neither a call nor a cached reply refers to."""
    first, *others = (*used_texts(CALLS), *used_texts(REPLIES))
    connection.execute(delete(TEXTS).where(TEXTS.c.hash.not_in(first.union(*others))))
