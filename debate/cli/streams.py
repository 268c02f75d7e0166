"""Standard streams that fail nobody: a reader that leaves early, or a full disk, must not end a command half way.

And a terminal that belongs to this program alone for a while, whatever else the processes write that it has started.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from debate.files import PRIVATE_FILE


class LastingOutput(io.TextIOWrapper):
    """A standard stream of which, after its first fault, what is written is dropped.

    descriptor: what it writes to; None is that of `stream`.
    """

    def __init__(self, stream: io.TextIOWrapper, descriptor: int | None = None) -> None:
        self._raw = _Lasting(stream.fileno() if descriptor is None else descriptor, "w", closefd=False)
        super().__init__(
            io.BufferedWriter(self._raw),
            encoding=stream.encoding,
            errors="backslashreplace",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )

    @property
    def fault(self) -> OSError | None:
        """Why output was lost, unless its reader did not want it."""
        self.flush()
        return None if isinstance(self._raw.fault, BrokenPipeError) else self._raw.fault


class _Lasting(io.FileIO):
    fault: OSError | None = None

    def write(self, data: Any, /) -> int | None:
        if self.fault is None:
            try:
                return super().write(data)
            except OSError as error:
                self.fault = error
        return memoryview(data).nbytes


@contextmanager
def lasting_output() -> Generator[LastingOutput | None]:
    """Have stdout and stderr fail nobody; yields the new stdout. Streams that are no files stay as they are."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_lasting, before)
    try:
        yield sys.stdout if isinstance(sys.stdout, LastingOutput) else None
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, LastingOutput):
                stream.flush()
        sys.stdout, sys.stderr = before


def _lasting(stream: Any) -> Any:
    """A stream over the same file that lasts; the same stream where it has none."""
    try:
        return LastingOutput(stream)
    except (AttributeError, OSError):
        return stream


class CapturedOutput:
    """Keeps for this program's own `sys.stdout` and `sys.stderr` the terminals that they are.

    What is written to their descriptors by other means, by processes that are started meanwhile above all, goes to a
    file from `into` on. Streams that are no terminals stay as they are.
    """

    def __init__(self) -> None:
        self._terminals: dict[int, int] = {}
        self._before = sys.stdout, sys.stderr
        self._log: Path | None = None
        self._told = 0
        sys.stdout, sys.stderr = self._kept(sys.stdout, 1), self._kept(sys.stderr, 2)

    def into(self, log: Path) -> None:
        """Append to a file what is written from now on; a link in its place is not followed.

        Where it cannot be opened, everything goes on as before.
        """
        if self._log is not None or not self._terminals:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            file = os.open(log, flags, PRIVATE_FILE)
        except OSError:
            return
        self._log, self._told = log, os.fstat(file).st_size
        for descriptor in self._terminals:
            os.dup2(file, descriptor)
        os.close(file)

    def since_told(self) -> list[str]:
        """The lines that were written since this was called last."""
        if self._log is None:
            return []
        try:
            with self._log.open("rb") as stream:
                stream.seek(self._told)
                text = stream.read()
        except OSError:
            return []
        self._told += len(text)
        return [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]

    def release(self) -> None:
        """Give the descriptors their terminals back. What runs on writes where it did."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = self._before
        for descriptor, terminal in self._terminals.items():
            os.dup2(terminal, descriptor)
            os.close(terminal)
        self._terminals.clear()

    def _kept(self, stream: Any, descriptor: int) -> Any:
        """The stream on a copy of its terminal; the same stream where it has none."""
        try:
            is_file = isinstance(cast("object", stream), io.TextIOWrapper)
            if not (is_file and stream.fileno() == descriptor and os.isatty(descriptor)):
                return stream
            stream.flush()
            self._terminals[descriptor] = os.dup(descriptor)
            return LastingOutput(stream, self._terminals[descriptor])
        except OSError:
            return stream
