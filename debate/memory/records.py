"""Memories as they are kept, and the checks of everything that comes from outside: kinds, names, texts, moments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast, get_args

from debate.errors import ConfigError
from debate.flow import MemoryKind, as_json
from debate.hashing import digest
from debate.types import Task

KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
Moment = float | datetime
"""Seconds since 1970 in UTC, or a datetime that knows its zone."""

MAX_NAME = 200
"""Characters of a collection's name or an id."""
MAX_SOURCE = 500
MAX_TEXT = 200_000
"""Characters of a memory: more fits into no prompt, and takes minutes to embed."""


def seconds(moment: Moment, where: str) -> float:
    """A moment as seconds since 1970, to the microsecond.

    Raises:
        ConfigError: for a datetime without a zone, or a moment before 1970 or after 9999.
    """
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ConfigError("has no time zone", field=where, hint="datetime(..., tzinfo=UTC)")
        moment = moment.timestamp()
    if not 0 <= moment <= _END:
        problem = f"must be a moment in the years 1970 to 9999, as seconds since 1970 or a date, got {moment}"
        raise ConfigError(problem, field=where)
    return round(float(moment), 6)


_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def checked_name(name: object, where: str) -> str:
    """A name that every database keeps as it is: names that differ in case or Unicode form are different ones.

    Raises:
        ConfigError: for anything but 1 to 200 characters of valid Unicode without NUL.
    """
    return _bounded(name, where, MAX_NAME)


def _bounded(given: object, where: str, longest: int) -> str:
    text = checked_text(given, where)
    if not 1 <= len(text) <= longest or "\0" in text:
        raise ConfigError(f"must have 1 to {longest} characters and no NUL", field=where)
    return text


def checked_text(text: object, where: str) -> str:
    """A string in valid Unicode.

    Raises:
        ConfigError: for anything else.
    """
    if not isinstance(text, str):
        raise ConfigError(f"must be a string, got {type(text).__name__}", field=where)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConfigError(f"is not valid Unicode: lone surrogate at character {error.start}", field=where) from None
    return text


def checked_kind(kind: object) -> MemoryKind:
    """One of the kinds.

    Raises:
        ConfigError: for anything else.
    """
    if kind not in KINDS:
        raise ConfigError(f"must be one of {', '.join(KINDS)}, got {kind!r}", field="kind")
    return kind


def canonical(value: object) -> str:
    """Canonical JSON: compact, keys in order. ValueError for NaN and infinities, and for half surrogate pairs."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":"))
    text.encode("utf-8")
    return text


CAME_OF = "came_of"
"""Key of a memory's metadata: the origins of a memory that was made from evaluations, see `origins_of`."""
EVIDENCE = "evidence"
"""Key of a memory's metadata: the ids of the memories that an insight rests on."""


def origins_of(task: Task) -> tuple[str, str, str]:
    """What a memory that came of a task may name as its origin: the task's content, its id with its input, its id.

    The order of the candidates, and who wrote them, are no part of the content. The id alone is the origin of memories
    that name no other, by their source.
    """
    content = digest(task.x, task.context, sorted(candidate.text for candidate in task.candidates))
    return f"content:{content}", f"input:{digest(task.id, task.x)}", f"id:{task.id}"


def origins(source: str | None, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The origins of one memory, in the form of `origins_of`, without those of its evidence."""
    if CAME_OF in metadata:
        return _texts(metadata[CAME_OF])
    return () if source is None else (f"id:{source}",)


def evidence(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids of the memories that one rests on."""
    return _texts(metadata.get(EVIDENCE))


def has_all(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a memory's metadata has all these values."""
    return all(key in metadata and metadata[key] == value for key, value in wanted.items())


def _texts(value: object) -> tuple[str, ...]:
    """The strings in a list; nothing for anything else, since metadata may be anybody's."""
    found = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(each for each in found if isinstance(each, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory as it is to be kept; checked by whoever makes it."""

    id: str
    collection: str
    text: str
    kind: MemoryKind
    importance: float
    """In 0..10."""
    created_at: float
    """Seconds since 1970."""
    source: str | None
    metadata: Mapping[str, Any]


def new_memory(
    collection: object,
    text: object,
    *,
    now: Callable[[], float],
    kind: object = "semantic",
    importance: float = 5,
    created_at: Moment | None = None,
    source: object = None,
    metadata: Mapping[str, Any] | None = None,
    id: object = None,  # noqa: A002
) -> NewMemory:
    """A memory with everything checked; see `MemoryStore.add` for the arguments.

    Without an `id`, the same content in the same collection has the same one. The moment is part of the content only
    where it is given; else it is `now`.

    Raises:
        ConfigError: for what cannot be kept.
    """
    if not 0 <= importance <= 10:
        raise ConfigError(f"must lie in [0, 10], got {importance}", field="importance")
    moment = None if created_at is None else seconds(created_at, "created_at")
    name, checked, sort = checked_name(collection, "collection"), checked_text(text, "text"), checked_kind(kind)
    if len(checked) > MAX_TEXT:
        problem = f"has {len(checked):,} characters, more than the {MAX_TEXT:,} that a memory may have"
        raise ConfigError(problem, field="text", hint="split it, as `debate memory add --file` splits a document")
    origin = None if source is None else _bounded(source, "source", MAX_SOURCE)
    given = None if id is None else checked_name(id, "id")
    return NewMemory(
        id=given or digest("memory", name, checked, sort, origin, moment),
        collection=name,
        text=checked,
        kind=sort,
        importance=float(importance),
        created_at=now() if moment is None else moment,
        source=origin,
        metadata=as_json(metadata),
    )
