"""Makes tasks out of records, with their places, positions that give nothing away, and labels that fit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from debate.dataset.json_text import is_unicode
from debate.dataset.records import Record
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
