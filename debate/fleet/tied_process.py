"""Becomes a command that Linux kills when the process that started it ends, however that ended.

Run as a script: `python tied_process.py PARENT COMMAND...`. The command's parent must start it from a thread that lives
as long as itself, for Linux takes the thread for the parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Ask for the signal, and turn into the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:  # else it ended before the signal was asked for
        os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
