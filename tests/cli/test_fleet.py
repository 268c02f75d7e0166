"""`debate fleet` with real workers over a server, which are killed, stopped and refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from debate.testing.fake_server import FakeServer, Request

N_TASKS, N_AGENTS = 12, 3


def slowly(request: Request) -> None:
    """Answer after a while."""
    time.sleep(0.1)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(slowly) as running:
        yield running


@pytest.fixture
def prepared(server: FakeServer, tmp_path: Path) -> Path:
    """The folder of a run of which nothing is done."""
    tasks = [{"id": f"t{n:02}", "x": f"Question {n}?", "candidates": ["a", "b"]} for n in range(N_TASKS)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    where = ("--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge", "--max-concurrency", "2")
    how = (*where, "--rounds", "1", "--convergence", "none", "--out", str(tmp_path / "run"), "--prepare")
    done = debate("run", str(tmp_path / "tasks.jsonl"), *how)
    assert done.returncode == 0, done.stderr
    return tmp_path / "run"


def debate(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "debate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def fleet_of(folder: Path, *more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "debate", "fleet", str(folder), *map(str, more)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def started(fleet: subprocess.Popen[str], n: int) -> tuple[list[int], str]:
    """The processes of the first workers, once they run, and what the fleet said until then."""
    assert fleet.stderr is not None
    said = "".join(fleet.stderr.readline() for _ in range(n))
    return [int(found) for found in re.findall(r"started: .*process (\d+)", said)], said


def test_workers_share_a_run_and_the_fleet_sums_it_up(server: FakeServer, prepared: Path) -> None:
    done = debate("fleet", prepared, "--workers", 3)
    assert done.returncode == 0, done.stderr
    assert f"tasks    {N_TASKS} = {N_TASKS} ok" in done.stdout
    assert len(server.requests) == N_TASKS * N_AGENTS
    results = [json.loads(line)["task_id"] for line in (prepared / "results.jsonl").read_text().splitlines()]
    assert sorted(results) == [f"t{n:02}" for n in range(N_TASKS)]
    assert len(list((prepared / "workers").iterdir())) == 3


def test_a_worker_that_is_killed_is_replaced_and_little_is_asked_twice(server: FakeServer, prepared: Path) -> None:
    fleet = fleet_of(prepared, "--workers", 2, "--restarts", 1)
    [victim, _], _ = started(fleet, 2)
    while len(server.requests) < 6:
        time.sleep(0.02)
    os.kill(victim, signal.SIGKILL)
    out, said = fleet.communicate(timeout=120)
    assert fleet.returncode == 0, said
    assert "worker 1 died, killed by SIGKILL" in said
    assert f"tasks    {N_TASKS} = {N_TASKS} ok" in out
    assert len(server.requests) <= N_TASKS * N_AGENTS + 2  # it had two debates open


def test_a_fleet_that_is_terminated_ends_its_workers_in_order(server: FakeServer, prepared: Path) -> None:
    fleet = fleet_of(prepared, "--workers", 2)
    workers, _ = started(fleet, 2)
    while len(server.requests) < 3:
        time.sleep(0.02)
    fleet.terminate()
    _, said = fleet.communicate(timeout=60)
    assert fleet.returncode == 130, said
    assert not any(Path(f"/proc/{process}").exists() for process in workers)
    assert any("interrupted; run" in log.read_text() for log in (prepared / "workers").iterdir())  # who was at work
    assert debate("fleet", prepared, "--workers", 1).returncode == 0


def test_what_a_worker_refuses_ends_the_fleet_with_its_words(prepared: Path) -> None:
    record = json.loads((prepared / "run.json").read_text())
    record["settings"]["rounds"] = 2
    (prepared / "run.json").write_text(json.dumps(record))
    done = debate("fleet", prepared, "--workers", 2)
    assert done.returncode == 2
    assert "run.json says otherwise than the run's store: rounds: 1 -> 2" in done.stderr
    assert "started again" not in done.stderr


def test_a_fleet_that_cannot_be_is_refused_before_a_worker_starts(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    for more, said in (
        (("--gpus-per-worker", "1"), "2 workers with 1 each need 2 GPUs; CUDA_VISIBLE_DEVICES names 1: 7"),
        (("--launcher", "ray", "--address", "ray://head:10001"), "through `ray job submit`"),
    ):
        done = debate("fleet", prepared, "--workers", 2, *more)
        assert done.returncode == 2
        assert said in done.stderr
    assert not (prepared / "workers").exists()


def test_a_folder_without_a_run_has_no_fleet(tmp_path: Path) -> None:
    done = debate("fleet", tmp_path, "--workers", 2)
    assert done.returncode == 2
    assert "holds no run" in done.stderr
