"""Makes tasks out of records: places, shuffled positions, turns of a dialogue. Shared by the formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from debate.errors import TaskError
from debate.jobs.formats.records import Record
from debate.seeds import digest
from debate.types import Candidate, Task


class Placed(NamedTuple):
    """A task and where it stands."""

    task: Task
    file: str
    line: int
    """From 1."""


def placed(
    record: Record,
    x: str,
    candidates: Sequence[str | Candidate],
    id: str | None = None,  # noqa: A002 - that of Task
    metadata: Mapping[str, Any] | None = None,
    context: Sequence[str] = (),
) -> Placed:
    """The task, with the record's place in its faults."""
    try:
        return Placed(Task(x, candidates, id, context, metadata), str(record.file), record.line)
    except TaskError as error:
        record.refuse(error.problem, error.field, error.hint)


def in_hidden_order(candidates: Sequence[Candidate], key: str) -> tuple[list[Candidate], list[int]]:
    """Candidates in an order that is a hash of `key`, and for each place the index it comes from.

    Where a format always has the right answer first, its place would give it away. The order is the same in every
    process.
    """
    order = sorted(range(len(candidates)), key=lambda n: digest(key, n))
    return [candidates[n] for n in order], order


def as_text(value: Any, record: Record, field: str) -> str:
    """A text, or the last message of a conversation."""
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        value = cast("dict[str, Any]", value[-1]).get("content")
    if not isinstance(value, str):
        record.refuse("must be a string, or a list of messages", field)
    return value


def messages_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """A conversation as one text: a single user message as it is, otherwise every message under its role."""
    if len(messages) == 1 and messages[0].get("role", "user") == "user":
        return str(messages[0].get("content", ""))
    return "\n\n".join(
        f"{str(message.get('role', 'user')).capitalize()}:\n{message.get('content', '')}" for message in messages
    )


def turns_text(turns: Sequence[str], speaker: str) -> str:
    """One turn as it is, several under `User, turn 1:` and so on."""
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"{speaker}, turn {n}:\n{turn}" for n, turn in enumerate(turns, 1))


def with_input(instruction: str, more: str | None) -> str:
    """An instruction and the input it is about."""
    return f"{instruction}\n\nInput:\n{more}" if more else instruction
