"""A run on real vLLM that is killed outright: nothing stays behind, and the same command completes it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.processes import processes_left, processes_of_session

pytestmark = pytest.mark.vllm
N_TASKS, N_TURNS = 6, 6 * 3 * 2


def command(evalset: Path, model: Path, out: Path) -> list[str]:
    arguments = ["enforce_eager=true", "kv_cache_memory_bytes=134217728", "max_model_len=8192"]
    return [
        *(sys.executable, "-m", "debate", "run", str(evalset), "--model", str(model), "--out", str(out)),
        *("--rounds", "2", "--convergence", "none", "--max-concurrency", "3"),
        *("--config", str(evalset.with_suffix(".yaml"))),
        *(part for argument in arguments for part in ("--engine-arg", argument)),
    ]


def n_calls(out: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{out / 'run.sqlite'}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM calls").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def test_a_killed_run_leaves_no_process_and_is_completed_by_the_same_command(tiny_model: Path, tmp_path: Path) -> None:
    evalset, out, log = tmp_path / "tasks.jsonl", tmp_path / "out", tmp_path / "log"
    tasks = [{"id": f"t{n}", "x": f"Question {n}?", "candidates": ["Yes.", "No."]} for n in range(N_TASKS)]
    evalset.write_text("\n".join(map(json.dumps, tasks)))
    evalset.with_suffix(".yaml").write_text("comment_chars: 60\noverall_chars: 60\n")
    with log.open("wb") as stream:
        first = subprocess.Popen(
            command(evalset, tiny_model, out), stdout=stream, stderr=stream, start_new_session=True
        )
        deadline = time.monotonic() + 240
        while n_calls(out) < 6:
            assert first.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.1)
        assert len(processes_of_session(first.pid)) > 1, "the engine should have processes of its own"
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    assert processes_left(first.pid) == []
    kept = n_calls(out)
    assert 6 <= kept < N_TURNS

    second = subprocess.run(command(evalset, tiny_model, out), capture_output=True, text=True, timeout=300, check=False)
    assert second.returncode in (0, 3), second.stderr[-3000:]  # a model of random weights may fail a turn
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().strip().split("\n")]
    assert sorted(result["task_id"] for result in results) == [f"t{n}" for n in range(N_TASKS)]
    with closing(sqlite3.connect(out / "run.sqlite")) as connection:
        turns = connection.execute("SELECT count(*) FROM turns").fetchone()[0]
        first_attempts = connection.execute("SELECT count(*) FROM calls WHERE attempt = 0").fetchone()[0]
    assert turns == first_attempts == N_TURNS
