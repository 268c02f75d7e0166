"""What a format of eval sets is, and what formats are made with: tasks with their places, hidden orders, dialogues.

A dialogue becomes one readable text:

    User, turn 1:             System:
    What is 2 + 2?            Be brief.

    User, turn 2:             User:
    And doubled?              What is 2 + 2?

Turns without roles are numbered under the speaker (left), messages stand under their roles (right), as
`debate.tasks.conversations` says; a single turn, or a single user message, is its text without a heading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from debate.dataset.labels import labels_of
from debate.dataset.records import Record, is_unicode
from debate.errors import TaskError
from debate.hashing import digest
from debate.tasks.conversations import Message, checked_message, transcript
from debate.types import Candidate, Task

Conversation = tuple[str, tuple[Message, ...]]
TIE: Mapping[str, Any] = {"ranking": [1, 1]}
"""The label of a pair of which neither is better."""


class LocatedTask(NamedTuple):
    """A task and its place in an eval set."""

    task: Task
    file: str
    line: int | None
    """From 1; in a parquet file the row. None where the format does not say."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of eval sets: how its records become tasks, and the keys by which it is recognized.

    A format without further needs can be a plain function of the records.
    """

    read: Callable[..., Iterator[LocatedTask | Task]]
    """From the records of the eval set, `Iterator[Record]`, and what the format `takes`."""
    keys: tuple[str, ...] = ()
    """Names of keys, separated by spaces; a record that has all keys of one of these texts is in this format."""
    takes: Literal["files", "columns"] | None = None
    """`files`: further files of candidates, `Sequence[RecordFile]`. `columns`: names, {our name: column}."""
    in_tables: bool = False
    """Whether it also comes as CSV and parquet."""

    def matches(self, keys: set[str]) -> bool:
        """Whether a record with these keys is in this format."""
        return any(keys.issuperset(each.split()) for each in self.keys)


def located_task(
    record: Record,
    x: str | Sequence[Message],
    candidates: Sequence[str | Candidate | Sequence[Message]],
    id: str | None = None,  # noqa: A002 - that of Task
    metadata: Mapping[str, Any] | None = None,
    context: Sequence[str] = (),
    reference: str | None = None,
    *,
    components: Any = (),
    messages: Sequence[Message] = (),
    best: Any = None,
    best_key: str = "best",
    under: str = "",
) -> LocatedTask:
    """The task of a record.

    components, messages: as `Task` takes them.
    metadata: as JSON can hold it; its `best` is the label, which may be given as `best` instead.
    best_key: the key of the record that holds the label, for messages.
    under: the key of the record that holds the metadata; empty when the record itself does.

    Raises:
        TaskError: for what is no task, with the record's file, line and field.
    """
    prefix = f"{under}." if under else ""
    _check_metadata(record, metadata or {}, prefix)
    try:
        task = Task(
            x, candidates, id, context, metadata, reference, best=best, components=components, messages=messages
        )
        labels_of(task.metadata, [(each.id, each.generator) for each in task.candidates])
    except TaskError as error:
        name = error.field or ""
        field = name if under else re.sub("^best", best_key, name.removeprefix("metadata."))
        record.refuse(error.problem, field or None, error.hint)
    for n, candidate in enumerate(task.candidates):
        _check_metadata(record, candidate.metadata, f"candidates.{n}.metadata.")
    return LocatedTask(task, str(record.file), record.line)


def _check_metadata(record: Record, metadata: Mapping[str, Any], prefix: str) -> None:
    for key, value in metadata.items():
        field = prefix + key if is_unicode(key) else prefix[:-1] or None
        try:
            text = json.dumps({key: value}, ensure_ascii=False, allow_nan=False)
        except ValueError:
            record.refuse("holds a number that is too large", field)
        if not is_unicode(text):
            record.refuse("is not valid Unicode: it holds a lone surrogate", field)


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
    return conversation(messages)[0]


def conversation(messages: Sequence[Record], alone: Literal["user", "assistant"] = "user") -> Conversation:
    """The text of a conversation, and its messages, which are none where the text is a single one as it is.

    alone: whose single message stands without a heading.

    Raises:
        TaskError: for a message that cannot be shown as text, such as an image.
    """
    said = tuple(_checked(message) for message in messages)
    if len(said) == 1 and set(said[0]) == {"role", "content"} and said[0]["role"] == alone:
        return said[0]["content"], ()
    return (transcript(said, alone), said) if said else ("", ())


def content_text(message: Record) -> str:
    """What a message says: its content, or the text parts of it. Raises as `conversation`."""
    return str(_checked(message).get("content", ""))


def _checked(record: Record) -> Message:
    try:
        return checked_message({**record.data, "role": record.data.get("role") or "user"}, "")
    except TaskError as error:
        record.refuse(error.problem, error.field, error.hint)
