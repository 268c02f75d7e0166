"""An eval set: where its tasks stand, in which format, read as a stream.

Knows nothing of what is done with the tasks, or of names for equal ones; the formats are in `debate.dataset`.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from debate.dataset.build import LocatedTask
from debate.dataset.native_jsonl import read_native_jsonl
from debate.dataset.readers import records
from debate.dataset.records import opened
from debate.dataset.registry import FORMATS, Format, recognised
from debate.dataset.table import NAMES, table
from debate.errors import ConfigError, TaskError
from debate.types import Task

__all__ = ["FORMATS", "EvalSet", "Format", "LocatedTask", "check_evalset", "read_evalset"]

_ANSWERS = ("answer_*.jsonl", "answer/*.jsonl", "model_answer/*.jsonl")
"""Where MT-bench puts answers, beside question.jsonl."""


@dataclass(frozen=True)
class EvalSet:
    """The tasks of a file, or of a folder in MT-bench's layout.

    Args:
        path: the file or the folder.
        limit: how many tasks are read at most; None is all.
        format: one of `FORMATS`; None recognises it by the keys of the first record.
        answers: further files, for formats that have candidates in files of their own.
        columns: of a table, {our name: its column}; our names are x, id, best, context and candidates.

    Raises:
        ConfigError: for a limit below 1, a format that is not there, or a name in `columns` that is not ours.
    """

    path: Path
    limit: int | None = None
    format: str | None = None
    answers: tuple[Path, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"must be at least 1, or None, got {self.limit}", field="limit")
        if self.format is not None and self.format not in FORMATS:
            raise ConfigError(f"there is no format {self.format!r}", field="format", hint=", ".join(FORMATS))
        for name in self.columns:
            if name not in NAMES:
                raise ConfigError(f"{name!r} cannot be named", field="columns", hint=f"{', '.join(NAMES)} can")

    @property
    def file(self) -> Path:
        """The file itself, or the questions in an MT-bench folder."""
        questions = self.path / "question.jsonl"
        return questions if os.path.isfile(questions) else self.path

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that is read.

        Raises:
            TaskError, ConfigError: as `recognised`.
        """
        if self.answers or self.recognised() != "mt_bench":
            return (self.file, *self.answers)
        folder = self.file.parent
        return (self.file, *sorted(found for pattern in _ANSWERS for found in folder.glob(pattern)))

    def recognised(self) -> str:
        """The name of its format: the given one, otherwise that of its columns or of its first record's keys.

        Raises:
            TaskError: when the keys of its first record are those of no format.
            ConfigError: for a parquet file, when there is no library to read it.
        """
        return self.format or ("table" if self.columns else recognised(self.file))

    def tasks(self) -> Iterator[LocatedTask]:
        """The tasks in order, reading no further than is asked. Ids are not checked against each other.

        Raises:
            TaskError: at the first that is no task, with file, line and field; when there is none, or no file.
            ConfigError: for answers or columns that the format has no use for.
        """
        return itertools.islice(self._all(), self.limit)

    def digest(self) -> str:
        """Hash of everything that `tasks` depends on.

        Raises:
            TaskError: when it cannot be read, or is a pipe, which could not be read a second time.
        """
        self._check_regular()
        found = hashlib.sha256(repr((self.limit, self.format, sorted(self.columns.items()))).encode())
        for file in self.files:
            with opened(file) as stream:
                for block in iter(lambda stream=stream: stream.read(1 << 20), b""):
                    found.update(block)
        return found.hexdigest()

    def _all(self) -> Iterator[LocatedTask]:
        self._check_regular()
        name = self.recognised()
        known = FORMATS[name]
        if self.answers and known.joined is None:
            raise ConfigError(f"the format {name} has all candidates in one file", field="answers", file=self.file)
        if self.columns and name != "table":
            raise ConfigError(f"the format {name} has columns of its own", field="columns", file=self.file)
        if name == "own":
            return (LocatedTask(task, str(self.file), line) for task, line in read_native_jsonl(self.file))
        return self._not_empty(self._read(known))

    def _read(self, known: Format) -> Iterator[LocatedTask]:
        if known.joined is not None:
            return known.joined(records(self.file), self.files[1:])
        return known.alone(records(self.file)) if known.alone else table(records(self.file), self.columns)

    def _not_empty(self, tasks: Iterator[LocatedTask]) -> Iterator[LocatedTask]:
        first = next(tasks, None)
        if first is None:
            raise TaskError("holds no tasks", file=self.file)
        yield first
        yield from tasks

    def _check_regular(self) -> None:
        # os.path has no exceptions: who may not look at a path is told so when it is opened.
        for path in (self.path, *self.answers):
            if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
                hint = "save it to a file first"
                raise TaskError("is not a regular file, so it can be read only once", file=path, hint=hint)


def read_evalset(
    path: str | Path,
    limit: int | None = None,
    *,
    format: str | None = None,  # noqa: A002 - that of EvalSet
    answers: Sequence[str | Path] = (),
    columns: Mapping[str, str] | None = None,
) -> Iterator[Task]:
    """Yield the tasks of the eval set at `path`, in the order of the file, reading no further than is asked.

    A line holds `x` (text) and `candidates` (texts, or objects of `text`, `id`, `generator`, `metadata`), and may hold
    `id` (text, unique), `context` (texts) and `metadata` (an object). Blank lines are skipped; a null is as good as a
    key left out, where it may be left out. Only the given ids are held, with the lines they stand on. Other formats
    are read as `EvalSet` says, which takes the same arguments.

    Raises:
        TaskError: at the first line that is no such task, with file, line and field; when the file cannot be read or
            holds no task.
        ConfigError: for a limit below 1, and as `EvalSet`.
    """
    evalset = EvalSet(Path(path), limit, format, tuple(map(Path, answers)), columns or {})
    first_lines: dict[str, int] = {}
    for task, file, line in evalset.tasks():
        if task.has_given_id:
            if (first := first_lines.get(task.id)) is not None:
                raise TaskError(f"{task.id!r} stands twice, first on line {first}", file=file, line=line, field="id")
            first_lines[task.id] = line
        yield task


def check_evalset(
    path: str | Path,
    limit: int | None = None,
    *,
    format: str | None = None,  # noqa: A002 - that of EvalSet
    answers: Sequence[str | Path] = (),
    columns: Mapping[str, str] | None = None,
) -> int:
    """Read the eval set once, so that a broken line is known before any model is loaded; returns how many tasks.

    Raises:
        TaskError: as `read_evalset`, and when `path` is a pipe, which could not be read a second time.
        ConfigError: as `read_evalset`.
    """
    return sum(1 for _ in read_evalset(path, limit, format=format, answers=answers, columns=columns))
