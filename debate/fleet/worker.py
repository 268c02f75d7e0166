"""One worker's process: started, watched, ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from debate.files import PRIVATE_FILE, PRIVATE_FOLDER
from debate.fleet import tied_process

GRACE_SECONDS = 20.0
"""What a worker that was asked to end may take, until it is killed: its engine has to be closed."""
_TAIL_BYTES, _TAIL_LINES = 4096, 10


@dataclass(frozen=True, slots=True)
class End:
    """How a worker ended.

    Attributes:
        code: its exit code; minus the signal that ended it; None where it was lost with its machine.
        said: the last lines that it wrote, or why it was lost.
    """

    code: int | None
    said: str = ""

    def __str__(self) -> str:
        if self.code is None:
            how = "lost"
        else:
            how = f"killed by {signal.Signals(-self.code).name}" if self.code < 0 else f"exit code {self.code}"
        return f"{how}:\n{self.said}" if self.said else how


class WorkerProcess:
    """A command that runs in a session of its own, writes to a log, and ends with the process that started it.

    Args:
        command: the program and its arguments.
        folder: of the run; the log is `workers/HOST-NUMBER.log` in it, and is appended to.
        number: of the worker, from 1.
        environment: what is set beside the present environment.
        directory: where it runs; the present one by default.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        number: int,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.log = folder / "workers" / f"{socket.gethostname()}-{number}.log"
        self.log.parent.mkdir(PRIVATE_FOLDER, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        log = os.open(self.log, flags, PRIVATE_FILE)
        self._begin = os.fstat(log).st_size
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", tied_process.__file__, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # Ctrl-C in the terminal reaches the fleet alone, which passes it on once
            )
        finally:
            os.close(log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def place(self) -> str:
        """Where it runs."""
        return f"{socket.gethostname()}, process {self._process.pid}"

    def poll(self) -> End | None:
        """How it ended; None while it runs."""
        code = self._process.poll()
        return None if code is None else End(code, self._tail())

    def wait(self) -> End:
        """Wait for its end."""
        return End(self._process.wait(), self._tail())

    def ask_to_end(self) -> None:
        """Have it end in order."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)  # a worker takes it as Ctrl-C, which a background job ignores

    def end(self, grace: float = GRACE_SECONDS) -> None:
        """Have it end in order, and kill it and what it started after some seconds."""
        self.ask_to_end()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _tail(self) -> str:
        """The last lines of what was written since it was started."""
        with self.log.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(self._begin, size - _TAIL_BYTES))
            lines = stream.read().decode(errors="replace").strip().splitlines()
        return "\n".join(lines[-_TAIL_LINES:])
