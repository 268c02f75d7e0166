"""Makes tasks out of records, with their places, positions that give nothing away, and labels that fit.

Dialogues as one readable text, for formats whose questions or answers have several turns.

    User, turn 1:             System:
    What is 2 + 2?            Be brief.

    User, turn 2:             User:
    And doubled?              What is 2 + 2?

Turns without roles are numbered under the speaker (left), messages stand under their roles (right); one turn alone, or
one user message alone, is its text without a heading.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from debate.dataset.records import Record, is_unicode
from debate.errors import TaskError
from debate.hashing import digest
from debate.types import Candidate, Task

TIE: Mapping[str, Any] = {"label": {"kind": "pairwise", "winner": "tie"}}
"""The metadata of a pair of which neither is better."""


class LocatedTask(NamedTuple):
    """A task and where it stands."""

    task: Task
    file: str
    line: int
    """From 1; of a parquet file the row."""


def located_task(
    record: Record,
    x: str,
    candidates: Sequence[str | Candidate],
    id: str | None = None,  # noqa: A002 - that of Task
    metadata: Mapping[str, Any] | None = None,
    context: Sequence[str] = (),
) -> LocatedTask:
    """The task, with the record's place in its faults."""
    _check_metadata(record, metadata or {})
    try:
        task = Task(x, candidates, id, context, metadata)
    except TaskError as error:
        record.refuse(error.problem, error.field, error.hint)
    if (problem := wrong_best(task)) is not None:
        record.refuse(problem, "best", "it is an index from 0")
    return LocatedTask(task, str(record.file), record.line)


def _check_metadata(record: Record, metadata: Mapping[str, Any]) -> None:
    for key, value in metadata.items():
        try:
            text = json.dumps({key: value}, ensure_ascii=False, allow_nan=False)
        except ValueError:
            record.refuse("holds a number that is too large", key)
        if not is_unicode(text):
            record.refuse("is not valid Unicode: it holds a lone surrogate", key if is_unicode(key) else None)


def wrong_best(task: Task) -> str | None:
    """What is wrong with `metadata.best`, when it is a whole number and the index of no candidate."""
    best, count = task.metadata.get("best"), len(task.candidates)
    if isinstance(best, int) and not isinstance(best, bool) and not 0 <= best < count:
        return f"must be the index of one of {count} candidates, got {best}"
    return None


def in_hidden_order(candidates: Sequence[Candidate], key: str) -> tuple[list[Candidate], list[int]]:
    """Candidates in an order that is a hash of `key`, and for each place the index it comes from.

    Where a format always has the right answer first, its place would give it away. The order is the same in every
    process.
    """
    order = sorted(range(len(candidates)), key=lambda n: digest(key, n))
    return [candidates[n] for n in order], order


def with_input(instruction: str, more: str | None) -> str:
    """An instruction and the input it is about."""
    return f"{instruction}\n\nInput:\n{more}" if more else instruction


def turns_text(turns: Sequence[str], speaker: str) -> str:
    """One turn as it is, several under `User, turn 1:` and so on."""
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"{speaker}, turn {n}:\n{turn}" for n, turn in enumerate(turns, 1))


def messages_text(messages: Sequence[Record]) -> str:
    """A conversation: a single user message as it is, otherwise every message under its role."""
    said = [(message.optional_text("role") or "user", content_text(message)) for message in messages]
    if len(said) == 1 and said[0][0] == "user":
        return said[0][1]
    return "\n\n".join(f"{role.capitalize()}:\n{text}" for role, text in said)


def content_text(message: Record) -> str:
    """What a message says: its content, or the text parts of it.

    Raises:
        TaskError: for a part that is no text, such as an image.
    """
    content: Any = message.data.get("content")
    if not isinstance(content, list):
        return message.as_text(content, "content")
    parts = message.mappings("content") if cast("list[Any]", content) else []
    return "\n".join(part.text("text") for part in parts)
