"""A run that several processes share, as its user meets it: prepared, worked on, left by one that died, finished."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debate.cli import app
from debate.testing.fake_server import FakeServer, Request

N_TASKS = 6


class Gate:
    """A server's behavior: nothing is answered before it is opened; it says when the first request has come."""

    def __init__(self) -> None:
        self.asked, self.opened = threading.Event(), threading.Event()

    def __call__(self, request: Request) -> None:
        self.asked.set()
        self.opened.wait(100)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def server(gate: Gate) -> Iterator[FakeServer]:
    with FakeServer(gate) as running:
        yield running


def said(*arguments: object) -> str:
    result = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "120"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def out(server: FakeServer, tmp_path: Path) -> Path:
    """A run that is prepared."""
    tasks = [{"id": f"t{n}", "x": f"Question {n}?", "candidates": ["a", "b"]} for n in range(N_TASKS)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    where = ("--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge", "--rounds", 1)
    prepared = said("run", tmp_path / "tasks.jsonl", *where, "--out", tmp_path / "out", "--prepare")
    assert "prepared: 6 tasks, 0 of them with a result" in prepared
    assert prepared.splitlines()[-1] == f"debate resume {tmp_path / 'out'}"
    assert server.requests == []
    return tmp_path / "out"


def worker(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "debate", "resume", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_what_a_worker_that_died_had_is_done_by_the_next(out: Path, server: FakeServer, gate: Gate) -> None:
    assert "nobody has worked on it" in said("workers", out)
    first = worker(out)
    try:
        assert gate.asked.wait(100)
        assert f" {first.pid} " in (table := said("workers", out))
        assert " alive " in table
        assert "left: 6 of 6 tasks" in table
    finally:
        first.kill()
        first.communicate(timeout=100)
    assert " died " in said("workers", out)
    gate.opened.set()
    second = worker(out)
    _, errors = second.communicate(timeout=100)
    assert second.returncode == 0, errors
    assert "all 6 tasks are done" in said("workers", out)
    assert len((out / "results.jsonl").read_text().splitlines()) == N_TASKS


def test_two_workers_at_once_share_a_run_and_both_report_all_of_it(out: Path, gate: Gate) -> None:
    both = [worker(out) for _ in range(2)]
    assert gate.asked.wait(100)
    while said("workers", out).count(" alive ") < len(both) and all(each.poll() is None for each in both):
        pass
    gate.opened.set()
    outputs = [each.communicate(timeout=100) for each in both]
    assert [each.returncode for each in both] == [0, 0], outputs
    assert all(re.search("tasks +6 = 6 ok", summary) for summary, _ in outputs), outputs
    assert sorted(json.loads(line)["task_id"] for line in (out / "results.jsonl").read_text().splitlines()) == [
        f"t{n}" for n in range(N_TASKS)
    ]
