"""Joins the records of further files to those of an eval set: every one is used, or the eval set is refused.

The further files are held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from debate.dataset.readers import RecordFile
from debate.dataset.records import Record
from debate.errors import TaskError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def by_key(found: Iterable[Record], key: str) -> dict[str, Record]:
    """Records under their ids.

    Raises:
        TaskError: for a duplicate id.
    """
    known: dict[str, Record] = {}
    for record in found:
        name = record.text(key)
        if name in known:
            record.refuse(f"duplicate id {name!r}, first on line {known[name].line}", key)
        known[name] = record
    return known


class Answers(Generic[K, V]):
    """What further files hold for each task, taken out one task after the other."""

    def __init__(self, files: Sequence[RecordFile], read: Callable[[Iterable[Record]], dict[K, V]]) -> None:
        self._by_file = [(file.path, read(file)) for file in files]

    def take(self, key: K, record: Record, what: str) -> list[V]:
        """That of each file, in the order of the files.

        Raises:
            TaskError: when a file has none; `what` names it, and `record` is what it would belong to.
        """
        missing = [file for file, found in self._by_file if key not in found]
        if missing:
            raise TaskError(f"has no {what} for {record.file}:{record.line}", file=missing[0])
        return [found.pop(key) for _, found in self._by_file]

    def left_over(self) -> list[V]:
        """What belongs to no task, once all are read."""
        return [each for _, found in self._by_file for each in found.values()]
