"""Writes rows to a file and counts them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debate.evaluation import Evaluation
from debate.files import atomic_write, valid_unicode
from debate.types import Task

Results = Iterable[tuple[Task, Evaluation]]


@dataclass(slots=True)
class ExportSummary:
    """What came of an export."""

    rows: int = 0
    skipped: Counter[str] = field(default_factory=Counter[str])
    """Tasks that have no place in the format, by why."""


def json_line(row: Any) -> str:
    """One line of valid JSON, in valid Unicode."""
    return valid_unicode(json.dumps(row, ensure_ascii=False, allow_nan=False)) + "\n"


def write_lines(path: Path, rows: Iterable[Any], written: ExportSummary) -> ExportSummary:
    """One JSON line a row."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json_line(row))
            written.rows += 1
    return written


def write_array(path: Path, rows: Iterable[Any], written: ExportSummary) -> ExportSummary:
    """A JSON array, written as it comes."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        stream.write("[")
        for row in rows:
            stream.write(",\n" if written.rows else "\n")
            stream.write(json_line(row).rstrip("\n"))
            written.rows += 1
        stream.write("\n]\n")
    return written


def model_of(task: Task, j: int) -> str:
    """What wrote a candidate, or its place among them, from 1."""
    return task.candidates[j].generator or f"candidate-{j + 1}"
