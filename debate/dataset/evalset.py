"""An eval set: where its tasks are, in which format, read as a stream in one pass.

Ids are not compared here.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from debate.dataset.build import Format, LocatedTask
from debate.dataset.readers import TABLES, RecordFile
from debate.dataset.records import Record
from debate.dataset.table import NAMES
from debate.errors import ConfigError, TaskError
from debate.registry import FORMATS

_ANSWERS = ("answer_*.jsonl", "answer/*.jsonl", "model_answer/*.jsonl")
"""Where MT-bench puts answers, beside question.jsonl."""
_OURS = {"x", "candidates"}
_ASKED = ("question", "prompt", "instruction", "query", "input", "problem", "task")
"""What the key of what was asked is often called, likeliest first."""
_OFTEN = {
    "best": ("label", "answer_key", "winner"),
    "reference": ("reference_answer", "gold", "target", "ground_truth"),
}
"""Keys that a label and a right answer often have, likeliest first."""
_SEVERAL = re.compile(r"(answer|response|output|candidate|completion|choice|model|text)s?[ _-]?([a-h]|\d+)$")
"""Keys of candidates that stand side by side."""


@dataclass(frozen=True)
class EvalSet:
    """The tasks of a file, or of a folder in MT-bench's layout.

    Args:
        path: the file or the folder.
        limit: how many tasks are read at most; None is all.
        format: a name in `debate.registry.FORMATS`, or MODULE:NAME; None recognizes it by the first record's keys.
        answers: further files, for formats that have candidates in files of their own.
        columns: of a table, {our name: its column}; our names are those in `table.NAMES`.

    Raises:
        ConfigError: for a limit below 1, an unknown format, or a name in `columns` that is not ours.
    """

    path: Path
    limit: int | None = None
    format: str | None = None
    answers: tuple[Path, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"must be at least 1, or None, got {self.limit}", field="limit")
        if self.format is not None:
            _format_named(self.format)
        for name in self.columns:
            if name not in NAMES:
                raise ConfigError(f"{name!r} cannot be named", field="columns", hint=f"{', '.join(NAMES)} can")

    @property
    def recorded(self) -> dict[str, str]:
        """What a run's folder says of it."""
        return {"path": str(self.path)}

    def read(self) -> Reading:
        """Begin a pass over the files.

        Raises:
            TaskError: for a pipe, which could not be read again when the run is resumed.
        """
        return Reading(self)

    def tasks(self) -> Iterator[LocatedTask]:
        """The tasks of a pass: `iter(self.read())`."""
        return iter(self.read())

    def digest(self) -> str:
        """Hash of everything that the tasks depend on; `Reading.digest` without reading tasks."""
        return self.read().digest()

    @property
    def file(self) -> Path:
        """The file itself, or the questions in an MT-bench folder."""
        questions = self.path / "question.jsonl"
        return questions if os.path.isfile(questions) else self.path


class Reading:
    """One pass over an eval set: iterate over the tasks, then ask for the digest of what was read.

    Iterating reads no further than is asked, and raises:
        TaskError: at the first record that is no task, with file, line and field; for an eval set without tasks, in no
            known format, or that cannot be read.
        ConfigError: for answers or columns that the format has no use for, or a library that is missing.
    """

    def __init__(self, evalset: EvalSet) -> None:
        self.evalset = evalset
        for path in (evalset.path, *evalset.answers):
            # os.path has no exceptions: who may not look at a path is told so when it is opened.
            if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
                hint = "pipe it into standard input, which `debate run -` reads and keeps, or save it to a file"
                raise TaskError("is not a regular file, so it can be read only once", file=path, hint=hint)
        self._file = RecordFile(evalset.file)
        self._files = [self._file]
        self._records = iter(self._file)

    def __iter__(self) -> Iterator[LocatedTask]:
        """The tasks in order, once."""
        try:
            yield from itertools.islice(self._tasks(), self.evalset.limit)
        finally:
            for file in self._files:
                file.close()

    def digest(self) -> str:
        """Hash of everything that the tasks depend on: limit, format, columns, and all bytes of all files.

        What was read to its end is not read again.

        Raises:
            TaskError: when a file cannot be read.
        """
        evalset = self.evalset
        found = hashlib.sha256(repr((evalset.limit, evalset.format, sorted(evalset.columns.items()))).encode())
        for file in (self._file, *self.further):
            found.update(file.digest())
        return found.hexdigest()

    @property
    def parts(self) -> list[Reading]:
        """The readings that it is made of: itself."""
        return [self]

    @property
    def file(self) -> Path:
        """The file that is read: the eval set's own, or the questions in an MT-bench folder."""
        return self._file.path

    @cached_property
    def format_name(self) -> str:
        """The name of the format: the given one, otherwise that of its columns or of the first record's keys."""
        if (given := self.evalset.format or ("table" if self.evalset.columns else None)) is not None:
            return given
        first = next(self._records, None)
        if first is not None:
            self._records = itertools.chain([first], self._records)
        return recognize(self._file.path, first)

    @cached_property
    def further(self) -> tuple[RecordFile, ...]:
        """The files of candidates: those that were given, or MT-bench's in its folder."""
        paths = self.evalset.answers
        if not paths and self.format_name == "mt_bench":
            folder = self._file.path.parent
            paths = tuple(sorted(found for pattern in _ANSWERS for found in folder.glob(pattern)))
        files = tuple(map(RecordFile, paths))
        self._files.extend(files)
        return files

    def _tasks(self) -> Iterator[LocatedTask]:
        evalset, file, name = self.evalset, self._file.path, self.format_name
        known = _format_named(name)
        if evalset.answers and known.takes != "files":
            raise ConfigError(f"the format {name} has all candidates in one file", field="answers", file=file)
        if evalset.columns and known.takes != "columns":
            raise ConfigError(f"the format {name} has columns of its own", field="columns", file=file)
        more = {"files": [self.further], "columns": [evalset.columns], None: []}[known.takes]
        task = None
        for task in known.read(self._records, *more):
            yield task if isinstance(task, LocatedTask) else LocatedTask(task, str(file), None)
        if task is None:
            raise TaskError("holds no tasks", file=file)


def _format_named(name: str) -> Format:
    found = FORMATS.load(name)
    return found if isinstance(found, Format) else Format(found)


def recognize(file: Path, first: Record | None) -> str:
    """The name of the format of a file, by its ending and its first record. Only our own formats are recognized.

    Raises:
        TaskError: when the record's keys are those of no format.
    """
    is_table = file.suffix.lower() in TABLES
    keys = set(first.data) if first else set[str]()
    if is_table and (keys & _OURS or first is None):
        return "table"
    for entry in FORMATS.entries.values():
        known = _format_named(entry.name) if entry.package is None else None
        if known and known.matches(keys) and (known.in_tables or not is_table):
            return entry.name
    if is_table:
        return "table"
    if first is None or keys & _OURS or (len(keys) < 3 and any(map(_is_misspelled, keys))):
        return "own"
    raise TaskError(
        f"is in no format that is known, by its keys {', '.join(sorted(keys)[:8])}",
        file=file,
        hint=_wrapped(first) or f"as a table: --format table {_columns(first)}; or a --format of {FORMATS.names()}",
    )


def _is_misspelled(key: str) -> bool:
    """Whether a key may be meant for one of our own."""
    return bool(get_close_matches(key.lower(), _OURS, n=1, cutoff=0.7))


def _wrapped(record: Record) -> str | None:
    """What to do where a record holds all tasks under one of its keys."""
    for key, value in record.data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return f"are the tasks under {key!r}? Take them out of it: jq '.{key}' {record.file} | debate run -"
    return None


def _columns(record: Record) -> str:
    """The flags that say which key of a record holds what, as far as names and values tell."""
    data = record.data
    texts = [key for key, value in data.items() if isinstance(value, str)]
    asked = next((key for name in _ASKED for key in texts if name in key.lower()), None)
    lists = [key for key, value in data.items() if isinstance(value, list)]
    several = [key for key in texts if key != asked and _SEVERAL.search(key.lower())]
    fallback = next((key for key in texts if key not in several and key.lower() not in ("id", "label", "best")), "KEY")
    named = {
        "x": asked or fallback,
        "candidates": lists[0] if lists else ",".join(several) if len(several) > 1 else "KEY",
    }
    for name, often in _OFTEN.items():
        if found := [key for key in often if key in data]:
            named[name] = found[0]
    return " ".join(f"--column {name}={shlex.quote(key)}" for name, key in named.items())
