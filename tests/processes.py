"""Processes under watch: code that may hang runs in one of its own, and what a session leaves behind is counted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import debate

_PRELUDE = "import faulthandler; faulthandler.enable()\n"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended by itself."""

    code: int
    """Its exit code; minus the signal that ended it."""
    out: str
    err: str
    seconds: float

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def watched(code: str, *arguments: str, seconds: float = 30.0, interrupt_at: str | None = None) -> Ended:
    """Run Python code in a process and a session of its own, which must end within some seconds.

    Where it hangs, the error holds the stacks of all its threads. `interrupt_at` is a line of its output at which it is
    sent what Ctrl-C sends.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", _PRELUDE + textwrap.dedent(code), *arguments],
        cwd=Path(debate.__file__).parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    watchdog = threading.Timer(seconds, process.send_signal, [signal.SIGABRT])  # faulthandler then writes the stacks
    watchdog.start()
    with process:
        try:
            said = _read_until(process, interrupt_at)
            out, err = process.communicate(timeout=seconds + 10)
        finally:
            watchdog.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != -signal.SIGABRT, f"the process did not end within {seconds} s:\n{said}{out}\n{err}"
    return Ended(process.returncode, said + out, err, time.monotonic() - began)


def _read_until(process: subprocess.Popen[str], line: str | None) -> str:
    """What the process says up to that line, at which it is interrupted."""
    said = ""
    assert process.stdout is not None
    while line is not None and (read := process.stdout.readline()):
        said += read
        if read.strip() == line:
            process.send_signal(signal.SIGINT)
            break
    return said


def processes_of_session(session: int) -> list[int]:
    alive: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                alive.append(int(entry.name))
    return alive


def processes_left(session: int) -> list[int]:
    """What is still there once processes that are on their way out have had their time."""
    deadline = time.monotonic() + 30
    while processes_of_session(session) and time.monotonic() < deadline:
        time.sleep(0.2)
    return processes_of_session(session)


def free_port() -> int:
    """A port of this machine at which nobody listens yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_until_it_listens(process: subprocess.Popen[Any], port: int, seconds: float = 60) -> None:
    """Return once the process listens at the port, or has ended, or the time is over."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
