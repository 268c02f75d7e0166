"""Raw replies, each text once, compressed: `texts` by a hash of the text, to which `calls` and `replies` refer."""

from __future__ import annotations

import zlib
from typing import Any

from sqlalchemy import Connection, delete, select

from debate.hashing import digest
from debate.store.tables import CALLS, REPLIES, TEXTS

_LEAST = 200
"""Bytes from which on a text is compressed."""


def text_hash(text: str) -> str:
    """The key of a text."""
    return digest(text)


def text_row(text: str) -> dict[str, Any]:
    """A text as a row of `texts`. Half a surrogate pair is kept as it is."""
    data = text.encode("utf-8", "surrogatepass")
    is_compressed = len(data) >= _LEAST
    return {
        "hash": text_hash(text),
        "data": zlib.compress(data) if is_compressed else data,
        "is_compressed": is_compressed,
    }


def text_of(row: Any) -> str:
    """The text of a row that holds the columns of `texts`."""
    data = zlib.decompress(row.text_data) if row.is_compressed else row.text_data
    return data.decode("utf-8", "surrogatepass")


WITH_TEXT = (TEXTS.c.data.label("text_data"), TEXTS.c.is_compressed)
"""What `text_of` needs of a query that joins `texts`."""


def delete_unused_texts(connection: Connection) -> None:
    """Delete the texts that neither a call nor a cached reply refers to."""
    used = select(CALLS.c.text_hash).where(CALLS.c.text_hash.is_not(None)).union(select(REPLIES.c.text_hash))
    connection.execute(delete(TEXTS).where(TEXTS.c.hash.not_in(used)))
