"""Measure the commands that judge the judge on large runs: seconds and peak memory, reading the run included.

    scripts/bench meta_evaluation [--sizes 1000 10000] [--repetitions 1]

A run of 200 labeled debates (3 agents, 3 rounds, 3 candidates, 5 components, three people's votes) over a scripted
backend is copied in its store until it has as many tasks. Each measurement is a fresh process. Each line is one size:

    read s, read CPU   seconds until the run is there as arrays, and CPU seconds
    agree s, agree CPU the same of the figures of `debate agree`; the goal is 30 s together for 10,000 tasks
    peak MiB           peak memory of the process; the goal is 500 MB
    compare s, CPU     the same of `debate compare` with a run of two rounds, reading both included, in a process of its
                       own; peak MiB after it is that of this process
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.overhead import peak_mib
from debate import DebateEvaluator
from debate.backends import Scripted
from debate.dataset.evalset import EvalSet
from debate.jobs.run import Run
from debate.meta_evaluation import agree, read_run
from debate.meta_evaluation.compare import compare
from debate.testing import SilentListener, reply_for

T = TypeVar("T")
RUN = 200
"""Tasks that are evaluated; the others are copies."""


def labeled_tasks(n: int) -> list[dict[str, Any]]:
    """Tasks with three candidates, scores of people, and votes of three people."""
    draw = random.Random(0)

    def task(i: int) -> dict[str, Any]:
        best = draw.randrange(3)
        votes = [{"by": by, "best": draw.choice([best, best, draw.randrange(3)])} for by in ("anna", "ben", "cleo")]
        scores = {name: [draw.randint(1, 5) for _ in range(3)] for name in ("relevance", "accuracy")}
        metadata = {"best": best, "votes": votes, "scores": scores, "group": "ab"[i % 2]}
        return {"id": f"task-{i}", "x": f"{i}?", "candidates": ["one", "two of them", "3"], "metadata": metadata}

    return [task(i) for i in range(n)]


def make_run(folder: Path, size: int, rounds: int = 3) -> None:
    """A finished run of so many tasks."""
    folder.mkdir()
    evalset = folder / "tasks.jsonl"
    evalset.write_text("".join(json.dumps(task) + "\n" for task in labeled_tasks(RUN)), encoding="utf-8")
    evaluator = DebateEvaluator("general", rounds=rounds, convergence=None)
    job = Run(evalset=EvalSet(evalset), folder=folder, evaluator=evaluator)
    job.execute({"scripted": Scripted(reply_for)}, SilentListener())
    enlarge(folder, size)


def enlarge(folder: Path, size: int) -> None:
    """Copy the first tasks of a run, and their evaluations, until it has so many."""
    with closing(sqlite3.connect(folder / "run.sqlite")) as store, store:
        for n in range(1, size // RUN):
            _copy(store, "tasks", position=f"position + {n * RUN}", task_id=f"task_id || '-{n}'")
            _copy(store, "evaluations", position=f"position + {n * RUN}")


def _copy(store: sqlite3.Connection, table: str, **changed: str) -> None:
    columns: list[str] = [name for _, name, *_ in store.execute(f"PRAGMA table_info({table})")]
    chosen = ", ".join(changed.get(column, column) for column in columns)
    store.execute(f"INSERT INTO {table} SELECT {chosen} FROM {table} WHERE position < {RUN}")


def timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """What came of some work, its seconds, and its CPU seconds."""
    began, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, time.perf_counter() - began, time.process_time() - cpu


def measure(folder: Path, other: Path | None = None) -> dict[str, float]:
    """One measurement in this process: of `agree`, or of `compare` where there is another run."""
    if other is not None:
        _, seconds, cpu = timed(lambda: compare(read_run(folder), read_run(other)))
        return {"compare": seconds, "compare CPU": cpu, "peak": peak_mib()}
    run, read, read_cpu = timed(lambda: read_run(folder))
    _, seconds, cpu = timed(lambda: agree(run))
    return {"read": read, "read CPU": read_cpu, "agree": seconds, "agree CPU": cpu, "peak": peak_mib()}


def in_a_process(*folders: Path) -> dict[str, float]:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--measure", *map(str, folders)]
    figures: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return figures


def main() -> int:
    """Parse the command line, measure, and print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000], help=f"tasks, multiples of {RUN}")
    parser.add_argument("--repetitions", type=int, default=1, help="processes for each size; the quickest counts")
    parser.add_argument(
        "--measure", nargs="+", type=Path, metavar="RUN", help="one measurement of a run, or of two, as JSON"
    )
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(*options.measure)))
        return 0
    print(
        f"{'tasks':>8}{'read s':>9}{'read CPU':>10}{'agree s':>9}{'agree CPU':>11}{'peak MiB':>10}"
        f"{'compare s':>11}{'CPU':>6}{'peak MiB':>10}"
    )
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            runs = [Path(folder) / "three-rounds", Path(folder) / "two-rounds"]
            for run, rounds in zip(runs, (3, 2), strict=True):
                make_run(run, size, rounds)
            each = [in_a_process(runs[0]) for _ in range(options.repetitions)]
            compared = min((in_a_process(*runs) for _ in each), key=lambda figures: figures["compare"])
        best = min(each, key=lambda figures: figures["read"] + figures["agree"])
        print(
            f"{size:>8,}{best['read']:>9.1f}{best['read CPU']:>10.1f}{best['agree']:>9.1f}{best['agree CPU']:>11.1f}"
            f"{best['peak']:>10.1f}{compared['compare']:>11.1f}{compared['compare CPU']:>6.1f}"
            f"{compared['peak']:>10.1f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
