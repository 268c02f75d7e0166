"""An eval set: where its tasks stand, read as a stream.

Knows nothing of what is done with the tasks, or of names for equal ones; the formats are in `debate.jobs.formats`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from debate.errors import ConfigError, TaskError
from debate.jobs.formats.opening import opened
from debate.jobs.formats.own import read_own
from debate.types import Task


class Placed(NamedTuple):
    """A task and where it stands."""

    task: Task
    file: str
    line: int
    """From 1."""


@dataclass(frozen=True, slots=True)
class EvalSet:
    """The tasks of a file. At most `limit` are read; None is all.

    Raises:
        ConfigError: for a limit below 1.
    """

    path: Path
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"must be at least 1, or None, got {self.limit}", field="limit")

    def tasks(self) -> Iterator[Placed]:
        """The tasks in order, reading no further than is asked. Ids are not checked against each other.

        Raises:
            TaskError: at the first that is no task, with file, line and field; when there is none, or no file.
        """
        tasks = (Placed(task, str(self.path), line) for task, line in read_own(self.path))
        return islice(tasks, self.limit)

    def digest(self) -> str:
        """Hash of everything that `tasks` depends on.

        Raises:
            TaskError: when it cannot be read, or is a pipe, which could not be read a second time.
        """
        if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
            hint = "save it to a file first"
            raise TaskError("is not a regular file, so it can be read only once", file=self.path, hint=hint)
        with opened(self.path) as stream:
            found = hashlib.sha256()
            for block in iter(lambda: stream.read(1 << 20), b""):
                found.update(block)
        found.update(f"limit={self.limit}".encode())
        return found.hexdigest()


def read_evalset(path: str | Path, limit: int | None = None) -> Iterator[Task]:
    """Yield the tasks of the eval set at `path`, in the order of the file, reading no further than is asked.

    A line holds `x` (text) and `candidates` (texts, or objects of `text`, `id`, `generator`, `metadata`), and may hold
    `id` (text, unique), `context` (texts) and `metadata` (an object). Blank lines are skipped; a null is as good as a
    key left out, where it may be left out. Only the given ids are held, with the lines they stand on.

    Raises:
        TaskError: at the first line that is no such task, with file, line and field; when the file cannot be read or
            holds no task.
        ConfigError: for a limit below 1.
    """
    first_lines: dict[str, int] = {}
    for task, file, line in EvalSet(Path(path), limit).tasks():
        first = first_lines.setdefault(task.id, line) if task.has_given_id else line
        if first != line:
            raise TaskError(f"{task.id!r} stands twice, first on line {first}", file=file, line=line, field="id")
        yield task


def check_evalset(path: str | Path, limit: int | None = None) -> int:
    """Read the eval set once, so that a broken line is known before any model is loaded; returns how many tasks.

    Raises:
        TaskError: as `read_evalset`, and when `path` is a pipe, which could not be read a second time.
        ConfigError: for a limit below 1.
    """
    file = Path(path)
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise TaskError("is not a regular file, so it can be read only once", file=file, hint="save it to a file first")
    return sum(1 for _ in read_evalset(file, limit))
