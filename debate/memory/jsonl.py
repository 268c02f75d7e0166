"""Memories as JSONL, one per line: how they leave a store, enter another, and ship with a project.

A line needs `collection` and `text`; the other keys have defaults. An export that is read into an empty store and
exported again is the same file to the byte. Vectors are not exchanged: whoever reads the texts embeds them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from debate.errors import ConfigError, InputError
from debate.files import DuplicateKey, atomic_write, whole_number, without_duplicates
from debate.flow import MemoryKind
from debate.memory.records import Moment, NewMemory, canonical, new_memory
from debate.parsing.json_values import shown
from debate.yaml_files import dotted, first_finding

_LONGEST_LINE = 4_000_000
"""Characters."""


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: str | None = None
    collection: str
    text: str
    kind: MemoryKind = "semantic"
    importance: float = Field(default=5, ge=0, le=10)
    created_at: str | float | None = None
    source: str | None = None
    metadata: dict[str, Any] = {}


def write_memories(path: Path, memories: Iterable[NewMemory]) -> int:
    """Write memories to a file, which appears whole or not at all; returns how many.

    Raises:
        StoreError: when it cannot be written.
    """
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        return sum(file.write(canonical(_as_line(each)) + "\n") > 0 for each in memories)


def _as_line(memory: NewMemory) -> dict[str, Any]:
    moment = datetime.fromtimestamp(memory.created_at, UTC).isoformat(timespec="microseconds")
    return {**asdict(memory), "created_at": moment}


def read_memories(path: Path, now: Callable[[], float]) -> list[NewMemory]:
    """All memories of a file. What has no moment gets that of now; what has no id, the one its content has.

    Raises:
        ConfigError: with file, line and field, for a line that is no memory; and for a duplicate id.
    """
    found: dict[str, NewMemory] = {}
    for number, line in _lines(path):
        memory = _read(path, number, line, now)
        first = found.setdefault(memory.id, memory)
        if (first.collection, first.text) != (memory.collection, memory.text):
            raise ConfigError(f"{memory.id!r} is the id of another memory too", file=path, line=number, field="id")
    return list(found.values())


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if len(line) == _LONGEST_LINE:
                    raise ConfigError(f"is longer than {_LONGEST_LINE} characters", file=path, line=number)
                if line.strip():
                    yield number, line
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8: {error.reason}", file=path) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=path) from None


def _read(path: Path, number: int, line: str, now: Callable[[], float]) -> NewMemory:
    try:
        data: object = json.loads(line, object_pairs_hook=without_duplicates, parse_int=whole_number)
    except DuplicateKey as error:
        raise ConfigError("duplicate key", file=path, line=number, field=error.args[0]) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is not JSON: {error}", file=path, line=number) from None
    try:
        fields: dict[str, Any] = dict(_Line.model_validate(data))
        fields["created_at"] = _moment(fields["created_at"])
        return new_memory(**fields, now=now)
    except ValidationError as error:
        finding = first_finding(error, _Line)
        field = dotted(finding.loc) or None
        raise ConfigError(finding.message, file=path, line=number, field=field, hint=finding.hint) from None
    except InputError as error:
        raise ConfigError(error.problem, file=path, line=number, field=error.field, hint=error.hint) from None


def _moment(given: str | float | None) -> Moment | None:
    try:
        return datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        raise ConfigError(f"is not an ISO date: {shown(given)}", field="created_at") from None
