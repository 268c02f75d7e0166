"""A memory that is to be kept, checked, and the id that its content gives it. Knows nothing of where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debate.errors import ConfigError
from debate.hashing import digest
from debate.memory.records import (
    Kind,
    Moment,
    checked_kind,
    checked_metadata,
    checked_name,
    checked_source,
    checked_text,
    seconds,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory as it is to be kept; checked by whoever makes it."""

    id: str
    collection: str
    text: str
    kind: Kind
    importance: float
    """In 0..10."""
    created_at: float
    """Seconds since 1970."""
    source: str | None
    metadata: Mapping[str, Any]


def memory_id(collection: str, text: str, kind: str, source: str | None, created_at: float | None) -> str:
    """The id of a memory: the same content, in the same collection, has the same.

    `created_at` is None where the moment was not given but is that of the adding.
    """
    return digest("memory", collection, text, kind, source, created_at)


def new_memories(
    collection: str,
    texts: Sequence[str],
    source: str | None,
    kind: str,
    importance: float,
    created_at: Moment | None,
    *,
    metadata: Mapping[str, Any] | None,
    now: Callable[[], float],
) -> list[NewMemory]:
    """Memories that have all but their text in common; see `MemoryStore.add` for the arguments.

    Raises:
        ConfigError: for what cannot be kept.
    """
    if not 0 <= importance <= 10:
        raise ConfigError(f"must lie in [0, 10], got {importance}", field="importance")
    given = None if created_at is None else seconds(created_at, "created_at")
    name, checked = checked_name(collection, "collection"), checked_kind(kind)
    origin = None if source is None else checked_source(source)
    details, moment = checked_metadata(metadata), now() if given is None else given
    return [
        NewMemory(
            id=memory_id(name, text, checked, origin, given),
            collection=name,
            text=text,
            kind=checked,
            importance=float(importance),
            created_at=moment,
            source=origin,
            metadata=details,
        )
        for text in (checked_text(each, "text") for each in texts)
    ]
