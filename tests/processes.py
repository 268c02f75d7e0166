"""Counts the processes of a session: what a command in a session of its own leaves behind."""

from __future__ import annotations

import time
from pathlib import Path


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
