"""Ends an engine's processes when the process that started them is gone, however it ended.

vLLM's processes notice late or never that their parent was killed, and hold their memory meanwhile. An `OrphanReaper`
marks them by an environment variable that they inherit, and starts a tiny process that waits for the parent's end and
then kills whatever bears the mark. Linux only; elsewhere it does nothing. Run as
a script, this file is that tiny process.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "DEBATE_ENGINE_MARK"


class OrphanReaper:
    """Watches over the processes that are started inside `marking`."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(8)
        self._watcher: subprocess.Popen[bytes] | None = None

    @contextmanager
    def marking(self) -> Generator[None]:
        """Processes that are started in here end with this one."""
        if self._watcher is None and hasattr(os, "pidfd_open") and Path("/proc/self/environ").exists():
            command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), self._mark]
            self._watcher = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
            )
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = self._mark
        try:
            yield
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before

    def dismiss(self) -> None:
        """Stop watching: the processes have ended in order. Safe to call twice."""
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.wait()
            self._watcher = None


def marked(mark: str) -> list[int]:
    """The processes that bear a mark."""
    wanted = f"{VARIABLE}={mark}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # not ours to look at, or gone
    return found


def _watch(parent: int, mark: str) -> None:
    """Wait for the parent's end, then kill what bears the mark, until nothing does."""
    try:
        descriptor = os.pidfd_open(parent)
    except ProcessLookupError:
        descriptor = None
    if descriptor is not None and os.getppid() == parent:
        select.select([descriptor], [], [])
    while left := marked(mark):
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        select.select([], [], [], 0.1)


if __name__ == "__main__":
    _watch(int(sys.argv[1]), sys.argv[2])
