"""The results of a run as they come in: an append-only JSONL file, one evaluation per line.

A process may be killed at any byte, so the last line may be cut off: it is left out when the file is read, and removed
when the file is opened for appending.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from errno import ELOOP
from io import FileIO
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Any, Self, cast

from debate.errors import InputError, StoreError
from debate.evaluation import Evaluation
from debate.files import PRIVATE_FILE, atomic_write

RESUME_HINT = "everything is recorded in the store; fix this and run the same command again to continue"


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, PRIVATE_FILE)


class ResultsInUseError(InputError):
    """Another process appends to the file."""


@dataclass(frozen=True, slots=True)
class ResultLine:
    """One complete line of a results file, as plain data, and where it stands."""

    file: Path
    number: int
    """From 1."""
    end: int
    """Offset in bytes of what follows the line."""
    task_id: str
    data: dict[str, Any]

    def evaluation(self) -> Evaluation:
        """The evaluation that was written.

        Raises:
            InputError: when the line is JSON, but not that of an evaluation.
        """
        try:
            return Evaluation.from_dict(self.data)
        except ValueError as error:
            raise InputError(
                f"is not an evaluation of this version: {error}",
                file=self.file,
                line=self.number,
                hint="`debate resume` of the run's folder writes its results anew",
            ) from None


class ResultsFile:
    """A results file. Reading it needs no opening; appending is for one process at a time.

    >>> with ResultsFile("out/results.jsonl") as results:
    ...     finished = results.finished()
    ...     for evaluation in engine.iter_evaluate((task for task in tasks if task.id not in finished), evaluator):
    ...         results.append(evaluation)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.dropped_bytes = 0
        """Length of the cut-off last line that was removed when the file was opened; 0 when there was none."""
        self._file: FileIO | None = None

    def __enter__(self) -> Self:
        """Open for appending, after the last complete line; makes the file and its folder where there are none.

        Raises:
            InputError: when another process has it open, when it cannot be written, or as `lines` does.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = FileIO(self.path, "a+", opener=_open_private)
        except OSError as error:
            problem = "is a link, which is not followed" if error.errno == ELOOP else error.strerror
            raise InputError(f"cannot be written: {problem}", file=self.path) from None
        try:
            if not S_ISREG(os.fstat(self._file.fileno()).st_mode):
                raise InputError("is no regular file", file=self.path)
            self._lock(self._file)
            self._end_with_a_complete_line(self._file)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it for appending; nothing is left to be written."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, evaluation: Evaluation) -> None:
        """Write one line, handed to the operating system before this returns. After an error nothing of it is left.

        Raises:
            StoreError: when it cannot be written: the disk is full, for example.
        """
        assert self._file is not None, "open the file first: `with ResultsFile(path) as results`"
        start = os.fstat(self._file.fileno()).st_size
        rest = memoryview(evaluation.to_json().encode("utf-8") + b"\n")
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except BaseException as error:
            self._file.truncate(start)
            if not isinstance(error, OSError):
                raise
            raise StoreError(f"{self.path}: cannot be written: {error.strerror}", hint=RESUME_HINT) from None

    def rewrite(self, lines: Iterable[str]) -> None:
        """Replace all lines by others, whole or not at all. The file must be open, and stays so.

        Raises:
            StoreError: when they cannot be written.
        """
        with atomic_write(self.path, RESUME_HINT, PRIVATE_FILE) as temporary:
            with temporary.open("wb") as stream:
                stream.writelines(line.encode("utf-8") + b"\n" for line in lines)
            # The lock belongs to the file that is replaced, so the new one is locked before it takes the name.
            replacement = temporary.open("ab", buffering=0)
            self._lock(replacement)
        self.close()
        self._file = replacement

    def is_current(self) -> bool:
        """Whether the first line, if there is any, is an evaluation as this version writes it."""
        try:
            return all(line.evaluation() for line in islice(self.lines(), 1))
        except InputError:
            return False

    def n_lines(self) -> int:
        """How many lines there are, without reading what they say."""
        with self.path.open("rb") as stream:
            return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))

    def finished(self) -> set[str]:
        """Ids of the tasks that have a complete line; empty when there is no file."""
        return {line.task_id for line in self.lines()} if self.path.exists() else set()

    def read(self) -> Iterator[Evaluation]:
        """Yield the evaluations, in the order they were written.

        Raises:
            InputError: as `lines`, and for a line that is not an evaluation.
        """
        for line in self.lines():
            yield line.evaluation()

    def lines(self) -> Iterator[ResultLine]:
        """Yield the complete lines. A last line that does not parse was cut off, and is left out.

        Raises:
            InputError: with file and line, when any other line does not parse, or when there is no file to read.
        """
        fault: InputError | None = None
        for number, raw, end in self._raw_lines():
            if not raw.strip():
                continue
            if fault is not None:
                raise fault
            try:
                data = json.loads(raw)
            except (ValueError, RecursionError) as error:
                fault = InputError(
                    f"is not valid JSON: {error}",
                    file=self.path,
                    line=number,
                    hint="remove the line; its task is then evaluated again",
                )
                continue
            yield ResultLine(self.path, number, end, self._task_id(data, number), data)

    def _raw_lines(self) -> Iterator[tuple[int, bytes, int]]:
        """Number, bytes and end of each line."""
        end = 0
        try:
            with self.path.open("rb") as stream:
                for number, raw in enumerate(stream, 1):
                    end += len(raw)
                    yield number, raw, end
        except FileNotFoundError:
            raise InputError("there is no such file", file=self.path) from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=self.path) from None

    def _task_id(self, data: Any, number: int) -> str:
        task_id = cast("dict[str, Any]", data).get("task_id") if isinstance(data, dict) else None
        if not isinstance(task_id, str):
            raise InputError("is not an evaluation: it lacks a task_id", file=self.path, line=number)
        return task_id

    def _lock(self, file: FileIO) -> None:
        """Two runs that append to one file would each take the other's unfinished line for a cut-off one."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsInUseError(
                "another run is writing to this file", file=self.path, hint="wait for it, or stop it"
            ) from None
        except OSError:
            return  # a file system without locks

    def _end_with_a_complete_line(self, file: FileIO) -> None:
        """Remove a cut-off last line. One that lacks its line feed alone is complete, and gets it."""
        end = max((line.end for line in self.lines()), default=0)
        self.dropped_bytes = os.fstat(file.fileno()).st_size - end
        file.truncate(end)
        if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
            file.write(b"\n")
