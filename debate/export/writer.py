"""What a format of results is, and how its file is written: whole or not at all."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debate.errors import StoreError
from debate.evaluation import Evaluation
from debate.registry import EXPORTS
from debate.types import Task

Results = Iterable[tuple[Task, Evaluation]]


@dataclass(slots=True)
class ExportSummary:
    """Counts of an export."""

    rows: int = 0
    skipped: Counter[str] = field(default_factory=Counter[str])
    """Number of tasks that have no place in the format, by reason."""


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


@contextmanager
def whole(path: Path) -> Generator[Path]:
    """A temporary path beside `path`, which takes its name once all is written; after an error nothing is left.

    Raises:
        StoreError: when it cannot be written; names the path.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def json_line(row: Any) -> str:
    """One line of valid JSON, in valid Unicode."""
    text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def write_lines(path: Path, rows: Iterable[Any], written: ExportSummary) -> ExportSummary:
    """Write one JSON line per row."""
    with whole(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json_line(row))
            written.rows += 1
    return written


def write_array(path: Path, rows: Iterable[Any], written: ExportSummary) -> ExportSummary:
    """Write a JSON array, as its rows come."""
    with whole(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        stream.write("[")
        for row in rows:
            stream.write(",\n" if written.rows else "\n")
            stream.write(json_line(row).rstrip("\n"))
            written.rows += 1
        stream.write("\n]\n")
    return written


def model_of(task: Task, j: int) -> str:
    """Who wrote a candidate: its generator, or `candidate-N`, from 1."""
    return task.candidates[j].generator or f"candidate-{j + 1}"
