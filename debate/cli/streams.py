"""Standard streams that fail nobody: a reader that leaves early, or a full disk, must not end a command half way."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


class LastingOutput(io.TextIOWrapper):
    """A standard stream of which, after its first fault, what is written is dropped."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self._raw = _Lasting(stream.fileno(), "w", closefd=False)
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
