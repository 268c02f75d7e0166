"""What a format of results is, and how its file is written: whole or not at all."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debate.evaluation import Evaluation
from debate.files import atomic_write, valid_unicode
from debate.registry import EXPORTS
from debate.types import Task

Results = Iterable[tuple[Task, Evaluation]]
Row = dict[str, Any]
Rows = Iterable[Row | str]
"""The rows of a file, and in place of each row that is missing, the reason."""


@dataclass(slots=True)
class ExportSummary:
    """Counts of an export."""

    rows: int = 0
    skipped: Counter[str] = field(default_factory=Counter[str])
    """Number of tasks that have no place in the format, by reason."""

    def count(self, rows: Rows) -> Iterator[Row]:
        """Count the rows and pass them on; a text among them is the reason why a task, or a part of it, has none."""
        for row in rows:
            if isinstance(row, str):
                self.skipped[row] += 1
            else:
                self.rows += 1
                yield row


@dataclass(frozen=True, slots=True)
class Export:
    """A format of results: its writer, and the usual name of its file."""

    write: Callable[..., ExportSummary]
    """`write(results, path, run)`; further keyword parameters are options, such as `min_margin`."""
    file: str


def export_named(name: str) -> Export:
    """The format of that name in `debate.registry.EXPORTS`, or MODULE:NAME; a plain function is its writer.

    Raises:
        ConfigError: for an unknown name.
    """
    found = EXPORTS.load(name, "--to")
    return found if isinstance(found, Export) else Export(found, f"{name.rpartition(':')[2]}.jsonl")


def json_line(row: Any, *, allow_nan: bool = False) -> str:
    """One line of JSON in valid Unicode; valid JSON unless the row holds NaN, which must be allowed."""
    return valid_unicode(json.dumps(row, ensure_ascii=False, allow_nan=allow_nan)) + "\n"


def write_lines(path: Path, rows: Rows, *, allow_nan: bool = False) -> ExportSummary:
    """Write one JSON line per row; NaN, which is no JSON, only for readers that take it."""
    written = ExportSummary()
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for row in written.count(rows):
            stream.write(json_line(row, allow_nan=allow_nan))
    return written


def write_array(path: Path, rows: Rows) -> ExportSummary:
    """Write a JSON array, as its rows come."""
    written = ExportSummary()
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for row in written.count(rows):
            stream.write((",\n" if written.rows > 1 else "[\n") + json_line(row).rstrip("\n"))
        stream.write("\n]\n" if written.rows else "[\n]\n")
    return written


def model_of(task: Task, j: int) -> str:
    """Who wrote a candidate: its generator, or `candidate-N`, from 1."""
    return task.candidates[j].generator or f"candidate-{j + 1}"


def finite_or_none(number: float) -> float | None:
    """The number; None in place of NaN and infinity."""
    return number if math.isfinite(number) else None
