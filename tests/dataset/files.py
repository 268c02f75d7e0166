"""Small files in the formats that people have, and how tests read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debate.dataset.evalset import EvalSet
from debate.types import Task

FORMATS = Path(__file__).resolve().parents[1] / "data" / "formats"
"""Small made-up files in the shapes of published sets."""
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the labelled data is not beside the checkout")

Row = dict[str, Any]


def lines(path: Path, *rows: Row) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def array(path: Path, *rows: Row) -> Path:
    path.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return path


def tasks_of(path: Path | str, limit: int | None = None, **more: Any) -> Iterator[Task]:
    """The tasks of an eval set, read no further than is asked."""
    return (task for task, _, _ in EvalSet(Path(path), limit, **more).tasks())


def count(path: Path | str, limit: int | None = None, **more: Any) -> int:
    return sum(1 for _ in tasks_of(path, limit, **more))


def read(path: Path, format_: str, **more: Any) -> list[Task]:
    """The tasks, once recognised without help."""
    reading = EvalSet(path, **more).read()
    assert reading.format_name == format_
    return [task for task, _, _ in reading]


def texts(task: Task) -> list[str]:
    return [candidate.text for candidate in task.candidates]


def generators(task: Task) -> list[str | None]:
    return [candidate.generator for candidate in task.candidates]


def best(task: Task) -> int:
    return int(task.metadata["best"])
