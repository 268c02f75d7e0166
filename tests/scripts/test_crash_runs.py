"""Runs that are killed and resumed: a short form of `scripts/crash_runs.py`, which has the figures."""

from __future__ import annotations

import subprocess
import sys

from tests.scripts_loader import REPOSITORY


def test_killed_runs_are_completed_by_the_same_command_and_pay_for_nothing_twice() -> None:
    command = [sys.executable, str(REPOSITORY / "scripts" / "crash_runs.py")]
    arguments = ["--runs", "3", "--double", "2", "--debates", "25", "--at-once", "1", "--seed", "7"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "finished, complete, same results         5 of 5" in done.stdout
    assert "killed                                   7 times" in done.stdout
