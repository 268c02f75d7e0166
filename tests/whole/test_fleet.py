"""Workers that share one run, in the short forms of the benchmarks `fleet` and `million`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.required import required
from tests.scripts_loader import REPOSITORY


@pytest.fixture(autouse=True)
def server() -> None:
    required(os.environ.get("DEBATE_TEST_POSTGRES"), "no PostgreSQL server is named in DEBATE_TEST_POSTGRES")


def bench(*arguments: str) -> str:
    """The output of a benchmark in which everything held."""
    command = [sys.executable, str(REPOSITORY / "scripts" / "bench"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_workers_that_are_killed_and_replaced_finish_their_run_as_one_that_nobody_disturbs() -> None:
    few = ["--debates", "80", "--workers", "3", "--every", "3", "--kills", "3"]
    said = bench("fleet", "kills", *few, "--repetitions", "1")
    assert "1 of 1 repetitions of 80 debates by 3 workers ended well and with the same results" in said
    assert " 0 kills" not in said


def test_five_thousand_tasks_survive_that_all_workers_are_killed(tmp_path: Path) -> None:
    said = bench("million", str(tmp_path), "--debates", "0", "--tasks", "5000")
    known = json.loads((tmp_path / "figures.json").read_text())["tasks"]
    assert (known["calls"], known["evaluations"], known["result_lines"]) == (5000,) * 3, said
    assert known["killed_at"]["results"] < 5000
    peaks = [worker["peak_mib"] for session in known["sessions"] for worker in session["workers"]]
    assert len(peaks) == 8
    assert max(peaks) < 200
