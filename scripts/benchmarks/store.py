"""Measure what recording a run costs: memory and CPU of large runs, finished runs, two runs on one database.

    scripts/bench store [--sizes 1000 10000 100000] [--turns 9] [--store URL]

Runs of `debate.jobs.run` over a generated eval set and a scripted backend, each in a fresh process; 4 candidates and 5
components, replies of about 1,500 characters.

    peak MiB           peak memory of the process that reads the file and runs it; to be flat from 10,000 tasks on
    turn us, bare us   CPU of the process for one turn, with the store and without any (the engine alone)
    store / unit       what the store adds to a turn, in the unit of `scripts/bench overhead` (one render of a prompt
                       and one json.loads of a reply), measured in the same process
    again s            seconds until the same run, started again, says that it is finished
    two / one          turns a second of two runs at once on one database, in two processes, beside those of one; the
                       scripted model of each answers after 20 ms

The large runs have one turn a task, the store's worst case: task, evaluation and reading weigh on a
single turn. `--turns 9` adds a line of 500 tasks of 3 agents and 3 rounds, as real debates are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.overhead import peak_mib, replies, tasks, unit_of
from debate import DebateEvaluator, Engine, Profile, load_profile
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.jobs.run import Run
from debate.testing import SilentListener


def evaluator_of(turns: int) -> DebateEvaluator:
    """A debate of so many turns: 1, or 9 of 3 agents."""
    general = load_profile("general")
    if turns == 9:
        return DebateEvaluator(general, rounds=3, convergence=None)
    return DebateEvaluator(Profile("one", general.personas[:1], general.components), rounds=1)


def script_of(evaluator: DebateEvaluator) -> Callable[[Call], str]:
    """Replies that were written beforehand."""
    written = replies([component.name for component in evaluator.components])
    return lambda call: written[call.seed % len(written)]


def write_evalset(path: Path, n: int) -> None:
    """The tasks of `scripts/bench overhead` as a file."""
    with path.open("w", encoding="utf-8") as stream:
        for task in tasks(n):
            candidates = [candidate.text for candidate in task.candidates]
            stream.write(json.dumps({"id": task.id, "x": task.x, "candidates": candidates}) + "\n")


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of this process, all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def drain(items: Iterable[Any]) -> None:
    """Take all."""
    for _ in items:
        pass


def measure(folder: Path, n: int, turns: int, store: str | None) -> dict[str, float]:
    """One run, the same again, and the engine without a store."""
    evaluator = evaluator_of(turns)
    script = script_of(evaluator)
    evalset = EvalSet(folder / "tasks.jsonl")
    run = Run(evalset=evalset, folder=folder / "out", evaluator=evaluator, settings=RunSettings(store=store))
    recorded = cpu(lambda: run.execute({"scripted": Scripted(script)}, SilentListener()))
    peak = peak_mib()
    began = time.perf_counter()
    _, totals = run.execute({"scripted": Scripted(script)}, SilentListener())
    again = time.perf_counter() - began
    assert totals.statuses == {"ok": n}, totals
    few = min(n, 5000)
    with Engine(Scripted(script)) as engine:
        drain(engine.iter_evaluate(tasks(20), evaluator))
        bare = cpu(lambda: drain(engine.iter_evaluate(tasks(few), evaluator)))
    unit = unit_of(evaluator, script) if turns == 9 else None
    full = evaluator_of(9)
    unit = unit or unit_of(full, script_of(full))
    return {
        "peak": peak,
        "turn": recorded / (n * turns) * 1e6,
        "bare": bare / (few * turns) * 1e6,
        "unit": statistics.mean(unit.seconds(10, unit.prompts) for _ in range(2)) * 1e6,
        "again": again,
    }


def rate(folder: Path, name: str, store: str) -> float:
    """Turns a second of a run whose model answers after 20 ms."""
    evaluator = evaluator_of(9)
    script = script_of(evaluator)

    async def answer(call: Call) -> str:
        await asyncio.sleep(0.02)
        return script(call)

    run = Run(
        evalset=EvalSet(folder / "tasks.jsonl"),
        folder=folder / name,
        evaluator=evaluator,
        settings=RunSettings(store=store, max_concurrency=8),
    )
    began = time.perf_counter()
    _, totals = run.execute({"scripted": Scripted(answer)}, SilentListener())
    return totals.calls / (time.perf_counter() - began)


def in_a_process(*arguments: object) -> subprocess.Popen[bytes]:
    """Run this script in a process of its own."""
    return subprocess.Popen([sys.executable, __file__, *map(str, arguments)], stdout=subprocess.PIPE)


def result(process: subprocess.Popen[bytes]) -> Any:
    """What it printed."""
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(process.returncode)
    return json.loads(output)


def line(n: int, turns: int, store: str | None) -> str:
    """One line of the table."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_evalset(folder / "tasks.jsonl", n)
        process = in_a_process("--measure", folder, n, turns, *(("--store", store) if store else ()))
        found = result(process)
    ratio = (found["turn"] - found["bare"]) / found["unit"]
    return (
        f"{n:>9,}{turns:>7}{found['peak']:>10.0f}{found['turn']:>10.0f}{found['bare']:>10.0f}{found['unit']:>10.0f}"
        f"{ratio:>14.2f}{found['again']:>9.1f}"
    )


def two_beside_one(store: str | None) -> float:
    """Turns a second of two runs at once, beside one."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_evalset(folder / "tasks.jsonl", 150)
        url = store or str(folder / "shared.sqlite")
        one = result(in_a_process("--rate", folder, "one", "--store", url))
        both = [in_a_process("--rate", folder, name, "--store", url) for name in ("first", "second")]
        return sum(result(process) for process in both) / one


def main() -> int:
    """Parse the command line, run, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000, 100_000], help="tasks in each line")
    parser.add_argument("--turns", type=int, default=9, choices=[1, 9], help="9 adds a line of real debates")
    parser.add_argument("--store", help="an empty database; SQLite files by default")
    parser.add_argument("--measure", nargs=3, metavar=("FOLDER", "N", "TURNS"), help=argparse.SUPPRESS)
    parser.add_argument("--rate", nargs=2, metavar=("FOLDER", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        folder, n, turns = options.measure
        print(json.dumps(measure(Path(folder), int(n), int(turns), options.store)))
        return 0
    if options.rate:
        print(json.dumps(rate(Path(options.rate[0]), options.rate[1], options.store)))
        return 0
    print(f"two / one: {two_beside_one(options.store):.2f}", flush=True)
    names = ("turns", 7), ("peak MiB", 10), ("turn us", 10), ("bare us", 10), ("unit us", 10), ("store / unit", 14)
    print(f"{'tasks':>9}" + "".join(f"{name:>{width}}" for name, width in names) + f"{'again s':>9}")
    if options.turns == 9:
        print(line(500, 9, options.store), flush=True)
    for n in options.sizes:
        print(line(n, 1, options.store), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
