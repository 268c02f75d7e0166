"""Several processes on one run, on each kind of store: killed, cut off, interrupted, refused; the results are those of
one process that nobody disturbed, and no answer that was recorded is asked for again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from debate.backends import Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.errors import RunLockedError
from debate.jobs.run import Run
from debate.sql.connect import normalize_url
from debate.store import Store
from debate.testing import SilentListener, reply_for
from tests.scripts_loader import REPOSITORY
from tests.small_flows import debates, plain
from tests.store.conftest import url as url

TASKS = 12
WORKER = """
import asyncio, faulthandler, json, os, sys
from pathlib import Path

from debate.backends import Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.errors import BudgetExceededError, StoreError
from debate.jobs import run as jobs
from debate.testing import SilentListener, reply_for
from tests.held_date import hold_date_still
from tests.small_flows import debates

hold_date_still()
faulthandler.dump_traceback_later(60, exit=True)
folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
jobs._REPORT_SECONDS = 0.05
log = os.open(folder / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
asked = 0

def write(event, call):
    os.write(log, f"{event} {os.getpid()} {call.info['task_id']} {call.seed}\\n".encode())

async def answer(call):
    global asked
    asked += 1
    write("asked", call)
    if asked == options.get("stall_after"):
        print("stalling", flush=True)
    while asked >= options.get("stall_after", 1e9) and not (folder / "go").exists():
        await asyncio.sleep(0.02)
    await asyncio.sleep(options.get("seconds", 0))
    return reply_for(call)

class Listener(SilentListener):
    def answered(self, call, completion):
        write("recorded", call)

    def loaded(self):
        print("loaded", flush=True)

    def shared(self, others):
        print("hears of", others.workers, flush=True)

job = jobs.Run(
    evalset=EvalSet(folder / "tasks.jsonl"),
    folder=folder / str(os.getpid()),
    evaluator=debates(),
    settings=RunSettings(run="r", max_concurrency=2, **options["settings"]),
)
try:
    job.execute({"scripted": Scripted(answer)}, Listener())
except StoreError as error:
    print(error, flush=True)
    sys.exit(5)
except BudgetExceededError:
    sys.exit(3)
except KeyboardInterrupt:
    sys.exit(130)
"""


@dataclass
class Fleet:
    """Processes that share a run."""

    folder: Path
    store: str
    processes: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    def start(self, until: str | None = None, *, settings: dict[str, Any] | None = None, **options: Any) -> Any:
        """A worker, once it has said so."""
        given = json.dumps({**options, "settings": {"store": self.store, **(settings or {})}})
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(self.folder), given],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        self.processes.append(process)
        if until is not None:
            self.wait_for(process, until)
        return process

    def wait_for(self, process: subprocess.Popen[str], said: str) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == said:
                return
        raise AssertionError(f"ended without saying {said!r}: {process.communicate()[1]}")

    def end(self, process: subprocess.Popen[str], code: int = 0) -> str:
        """Wait for its end; returns what it said."""
        out, err = process.communicate(timeout=60)
        assert process.returncode == code, (process.returncode, out, err)
        return out

    def calls(self, event: str, *but: int) -> Counter[str]:
        """How often each call was asked or recorded, by all processes but some."""
        lines = [line.split(" ") for line in (self.folder / "calls").read_text().splitlines()]
        return Counter(f"{task} {seed}" for what, pid, task, seed in lines if what == event and int(pid) not in but)

    def wait_until_only_one_has_work(self, process: subprocess.Popen[str], n: int) -> None:
        """Wait until n workers live, and what is left is claimed by this one."""
        deadline = time.monotonic() + 60
        with Store(self.store) as store:
            run = store.read("r")
            while True:
                living = [worker for worker in run.workers() if worker.state == "alive"]
                its = sum(worker.shards for worker in living if worker.about["process"] == process.pid)
                if len(living) == n and its == run.n_undone():
                    return
                assert time.monotonic() < deadline, living
                time.sleep(0.05)

    def job(self, folder: str = "alone", **more: Any) -> Run:
        given: dict[str, Any] = {
            "evaluator": debates(),
            "settings": RunSettings(run="r", store=self.store),
            "evalset": EvalSet(self.folder / "tasks.jsonl"),
            **more,
        }
        return Run(folder=self.folder / folder, **given)

    def check_results(self) -> None:
        """Compare what the store holds with a run of one process."""
        results: dict[str, list[Any]] = {}
        for name, store in (("shared", self.store), ("undisturbed", str(self.folder / "undisturbed.sqlite"))):
            if name == "undisturbed":
                self.job(name, settings=RunSettings(run="r", store=store)).execute(
                    {"scripted": Scripted(reply_for)}, SilentListener()
                )
            with Store(store) as opened:
                results[name] = [plain(each) for _, each in opened.read("r").results()]
        assert results["shared"] == results["undisturbed"]
        assert len(results["shared"]) == TASKS


@pytest.fixture
def fleet(url: str, tmp_path: Path) -> Iterator[Fleet]:
    rows = [json.dumps({"id": f"t{k}", "x": f"question {k}", "candidates": ["a", "b"]}) for k in range(TASKS)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(rows) + "\n")
    fleet = Fleet(tmp_path, url)
    yield fleet
    for process in fleet.processes:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def test_two_processes_share_a_run_and_each_has_all_results(fleet: Fleet) -> None:
    both = [fleet.start(stall_after=1) for _ in range(2)]
    for process in both:
        fleet.wait_for(process, "stalling")
    (fleet.folder / "go").touch()
    for process in both:
        fleet.end(process)
    asked = fleet.calls("asked")
    assert (len(asked), asked.total()) == (4 * TASKS, 4 * TASKS)
    assert fleet.calls("asked", both[0].pid)
    assert fleet.calls("asked", both[1].pid)
    for process in both:
        assert len((fleet.folder / str(process.pid) / "results.jsonl").read_text().splitlines()) == TASKS
    fleet.check_results()


def kill(fleet: Fleet, process: subprocess.Popen[str]) -> None:
    process.kill()
    fleet.end(process, -signal.SIGKILL)


def cut_off(fleet: Fleet, process: subprocess.Popen[str]) -> None:
    """Have the server end its connection, which the process learns when it writes again."""
    server = create_engine(normalize_url(fleet.store))
    with server.connect() as connection:
        its = "SELECT worker FROM workers WHERE about LIKE :about"
        query = text(f"SELECT pg_terminate_backend(pid) FROM pg_locks WHERE objsubid = 2 AND objid = ({its})")
        [cut] = connection.execute(query, {"about": f"%:{process.pid},%"}).scalars()
        assert cut
    server.dispose()


@pytest.mark.parametrize("lose", [kill, cut_off])
def test_a_worker_that_is_lost_is_taken_over_and_what_it_recorded_is_not_asked_again(
    fleet: Fleet, lose: Callable[[Fleet, Any], None]
) -> None:
    if lose is cut_off and fleet.store.startswith("sqlite"):
        pytest.skip("a file has no connection that could be cut")
    lost = fleet.start("stalling", stall_after=5)
    other = fleet.start("loaded")
    fleet.wait_until_only_one_has_work(lost, 2)
    recorded = fleet.calls("recorded", other.pid)
    lose(fleet, lost)
    fleet.end(other)
    assert recorded
    assert not recorded & fleet.calls("asked", lost.pid)
    if lose is cut_off:
        (fleet.folder / "go").touch()
        assert "run the same command again" in fleet.end(lost, 5)
        assert fleet.calls("recorded", other.pid) == recorded
    assert fleet.calls("asked").total() <= 4 * TASKS + 2, "paid for twice is only what was in flight"
    fleet.check_results()


def test_what_needs_the_run_alone_is_refused_while_others_work(fleet: Fleet) -> None:
    working = fleet.start("stalling", stall_after=5)
    backends = {"scripted": Scripted(reply_for)}
    heavier = debates(weights={"truth": 0.25})
    (fleet.folder / "longer.jsonl").write_text(
        (fleet.folder / "tasks.jsonl").read_text() + '{"id": "new", "x": "?", "candidates": ["a", "b"]}\n'
    )
    longer = EvalSet(fleet.folder / "longer.jsonl")
    changes: list[dict[str, Any]] = [{"retry_failed": True}, {"evaluator": heavier}, {"evalset": longer}]
    for change in changes:
        with pytest.raises(RunLockedError, match=f"in use by process {working.pid} on {os.uname().nodename}"):
            fleet.job(**change).execute(backends, SilentListener())
    waiting = fleet.start("loaded")
    fleet.wait_until_only_one_has_work(working, 2)
    began = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    fleet.end(waiting, 130)
    assert time.monotonic() - began < 10
    kill(fleet, working)
    for change in changes:
        _, totals = fleet.job(**change).execute(backends, SilentListener())
        assert totals.n_evaluated == totals.tasks


def test_a_budget_counts_all_workers(fleet: Fleet) -> None:
    tokens = threading.Lock(), [0]

    def counted(call: Any) -> str:
        with tokens[0]:
            tokens[1][0] += len(reply_for(call)) // 4 + sum(len(each["content"]) for each in call.messages) // 4
        return reply_for(call)

    settings = RunSettings(run="r", store=str(fleet.folder / "undisturbed.sqlite"))
    fleet.job("undisturbed", settings=settings).execute({"scripted": Scripted(counted)}, SilentListener())
    budget = tokens[1][0] // 2
    both = [fleet.start(seconds=0.1, settings={"max_tokens": budget}) for _ in range(2)]
    for process in both:
        fleet.end(process, 3)
    with Store(fleet.store) as store:
        run = store.read("r")
        spent = run.tokens_spent()
        assert budget <= spent <= 1.3 * budget
        assert sum(worker.tokens for worker in run.workers()) == spent
        assert all(worker.state == "ended" and worker.tokens for worker in run.workers())
