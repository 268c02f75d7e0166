"""One run on real vLLM that is interrupted in every way there is, each time continued by the same command.

The model is the bundled judge, with its memory. Each session loads the engine once, so they share one run: Ctrl-C,
SIGTERM, an engine that dies and may not be started again, a process that is killed outright, an engine that dies and is
started again. No session leaves a process behind or opens a connection that leaves the machine; in the end every turn
was recorded once, no answer was paid for twice, and the right answers were found.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from judging.world import Kind, make_question

from debate.bundled_judge import demo_tasks
from tests.processes import processes_left, processes_of_session
from tests.scripts_loader import REPOSITORY

pytestmark = pytest.mark.vllm
WATCH = '''
"""Loaded by every Python process of the run: writes down where sockets connect to."""
import os, socket
with open(os.environ["CONNECTIONS"], "a") as file:
    file.write("watching\\n")
_connect = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex")}
def _noting(name):
    def connect(self, address, *rest):
        # Connecting a datagram socket sends nothing: so vLLM asks the kernel for the machine's own address.
        if self.type & socket.SOCK_STREAM:
            with open(os.environ["CONNECTIONS"], "a") as file:
                file.write(repr(address) + "\\n")
        return _connect[name](self, address, *rest)
    return connect
for _name in _connect:
    setattr(socket.socket, _name, _noting(_name))
'''


def is_outward(address: str) -> bool:
    """Whether an address, as it was written down, is neither of this machine nor a file."""
    host = address.split(",")[0].strip("('\\" + '")')
    return "(" in address and not (host.startswith("127.") or host in ("::1", "localhost", "0.0.0.0", ""))


def test_an_address_outside_the_machine_is_told_from_one_inside() -> None:
    inward = ["('127.0.0.1', 80)", "('localhost', 1)", "'/tmp/socket'", "('::1', 5, 0, 0)", "b'\\x00abstract'"]
    assert not any(map(is_outward, inward))
    assert all(map(is_outward, ["('10.0.0.1', 443)", "('huggingface.co', 443)", "('2001:db8::1', 443, 0, 0)"]))


@dataclass
class Session:
    """How one process of the run ended."""

    process: int
    code: int
    err: str


@dataclass
class InterruptedRun:
    """A run in a folder, over the demo's questions of the judge's own kind."""

    folder: Path

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def results(self) -> list[dict[str, Any]]:
        file = self.out / "results.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def best(self) -> dict[str, int]:
        """Of each task, the right answer."""
        rows = map(json.loads, (self.folder / "tasks.jsonl").read_text().splitlines())
        return {row["id"]: row["metadata"]["best"] for row in rows}

    def count(self, query: str) -> int:
        with closing(sqlite3.connect(f"file:{self.out / 'run.sqlite'}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchone()[0]

    def start(self, *more: str) -> subprocess.Popen[str]:
        command = [
            *(sys.executable, "-c", "from debate.cli import main; main()", "run", str(self.folder / "tasks.jsonl")),
            *("--model", "built-in", "--memory", "built-in", "--out", str(self.out), *more),
        ]
        paths = os.pathsep.join([str(self.folder), str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "CONNECTIONS": str(self.folder / "connections")}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment
        )  # fmt: skip

    def session(self, interrupt: Callable[[int], None], *more: str, max_concurrency: int = 2) -> Session:
        """Run until a further result is written, interrupt, and wait for the end."""
        before, process = len(self.results()), self.start("--max-concurrency", str(max_concurrency), *more)
        deadline = time.monotonic() + 240
        while len(self.results()) <= before:
            assert process.poll() is None, process.communicate()[1][-3000:]
            assert time.monotonic() < deadline, "no result came"
            time.sleep(0.05)
        assert len(processes_of_session(process.pid)) > 1, "the engine has processes of its own"
        interrupt(process.pid)
        _, err = process.communicate(timeout=300)
        assert processes_left(process.pid) == []
        return Session(process.pid, process.returncode, err)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> InterruptedRun:
    folder = tmp_path_factory.mktemp("run")
    (folder / "sitecustomize.py").write_text(WATCH)
    (folder / "connections").touch()
    rows = demo_tasks().read_text().splitlines()
    tasks = [row for row in rows if "plain questions" in row] + more_tasks(54)
    (folder / "tasks.jsonl").write_text("".join(f"{task}\n" for task in tasks))
    return InterruptedRun(folder)


def more_tasks(n: int) -> list[str]:
    """So many questions that no session can finish the run before it is interrupted, however fast the machine is."""
    kinds: tuple[Kind, ...] = ("add", "sub", "max")
    questions = [make_question(Random(seed), kinds[seed % len(kinds)]) for seed in range(n)]
    return [
        json.dumps(
            {"id": f"more-{i}", "x": q.x, "candidates": [r.text for r in q.replies], "metadata": {"best": q.best}}
        )
        for i, q in enumerate(questions)
    ]


def interrupt_group(process: int) -> None:
    os.killpg(process, signal.SIGINT)


def terminate(process: int) -> None:
    os.kill(process, signal.SIGTERM)


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def kill_engine(process: int) -> None:
    names = {pid: Path(f"/proc/{pid}/comm").read_text() for pid in processes_of_session(process)}
    (engine,) = (pid for pid, name in names.items() if "Engine" in name)
    os.kill(engine, signal.SIGKILL)


@pytest.mark.parametrize("interrupt", [interrupt_group, terminate], ids=["ctrl-c", "sigterm"])
def test_an_interrupted_run_says_how_to_go_on(run: InterruptedRun, interrupt: Callable[[int], None]) -> None:
    ended = run.session(interrupt)
    assert ended.code == 130, ended.err
    assert "the same command" in ended.err
    assert "Traceback" not in ended.err
    assert all(result["status"] == "ok" for result in run.results())


def test_a_run_whose_engine_may_not_be_started_again_keeps_what_was_finished(run: InterruptedRun) -> None:
    ended = run.session(kill_engine, "--engine-restarts", "0")
    assert ended.code == 4, ended.err
    assert "engine has died" in ended.err
    assert all(result["status"] == "ok" for result in run.results())


def test_a_run_that_is_killed_leaves_no_process(run: InterruptedRun) -> None:
    ended = run.session(kill)
    assert ended.code == -signal.SIGKILL


def test_an_engine_that_is_killed_is_started_again_and_the_run_is_completed(run: InterruptedRun) -> None:
    best = run.best()
    n_tasks = len(best)
    assert len(run.results()) < n_tasks
    ended = run.session(kill_engine, max_concurrency=16)
    assert ended.code == 0, ended.err
    assert "started again (1 of 3 times)" in ended.err
    results = run.results()
    assert len({result["task_id"] for result in results}) == len(results) == n_tasks
    assert sum(result["selected"] == best[result["task_id"]] for result in results) >= 0.9 * n_tasks
    recalled = [turn["memories"] for result in results for turn in result["transcript"]]
    assert any(recalled)


def test_no_turn_was_lost_or_paid_for_twice(run: InterruptedRun) -> None:
    turns = sum(len(result["transcript"]) for result in run.results())
    assert run.count("SELECT count(*) FROM turns") == turns
    assert run.count("SELECT count(*) FROM calls WHERE kind = 'generate' AND attempt = 0") == turns


def test_no_session_connected_to_anything_outside_the_machine(run: InterruptedRun) -> None:
    connections = (run.folder / "connections").read_text().splitlines()
    assert connections.count("watching") >= 6, "every session is watched"
    assert [address for address in connections if is_outward(address)] == []


def test_results_that_were_cut_off_come_back_without_a_model(run: InterruptedRun) -> None:
    results = run.results()
    file = run.out / "results.jsonl"
    file.write_text("".join(f"{line}\n" for line in file.read_text().splitlines()[:2]) + '{"task_id": "t')
    process = run.start()
    _, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert f"{len(results)} of {len(results)} tasks have a result already" in err
    assert "loading" not in err
    assert sorted(map(json.dumps, run.results())) == sorted(map(json.dumps, results))


def test_another_seed_is_refused_with_the_difference(run: InterruptedRun) -> None:
    process = run.start("--seed", "7")
    _, err = process.communicate(timeout=100)
    assert process.returncode == 2
    assert "seed: 0 -> 7" in err


def test_a_debate_is_shown_with_what_the_agents_said(run: InterruptedRun) -> None:
    command = [sys.executable, "-c", "from debate.cli import main; main()", "show", str(run.out), "sum-1"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=REPOSITORY, check=True)
    assert "Critic" in shown.stdout
