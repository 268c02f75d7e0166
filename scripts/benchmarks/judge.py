"""Measure what `debate.Judge` adds to the bare engine: many threads that each wait for a few tasks, and cached calls.

    scripts/bench judge [--tasks 2000] [--threads 64] [--milliseconds 100] [--repetitions 3]

Every task is one call of a scripted backend that answers after so many milliseconds; the backend holds all of them at
once. How to read it:

    bare s              one `evaluate_batch` of all tasks
    judge s             the same tasks from the threads: each submits its share and waits for the futures
    judge / bare        median of the ratios, which are taken one after the other; to be at most 1.2
    in flight           the most calls that were under way together from the threads; to be all
    cached us           wall time of `judge.submit(task).result().score()` for a task that is kept; to be below 50
    feedback us         the same with `.feedback(0, 2000)` of a debate in place of the score
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from threading import Thread

from debate import DebateEvaluator, Engine, Judge, Task, ValueEvaluator
from debate.backends import Call, Scripted
from debate.testing import reply_for


class Slow:
    """A script that answers after some seconds, and counts how many calls are under way."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._now = 0
        self.most = 0

    async def answer(self, call: Call) -> str:
        """The usual reply, late."""
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(self._seconds)
        self._now -= 1
        return reply_for(call)


def tasks(n: int, repetition: int) -> list[Task]:
    """Tasks that are all different, in each repetition."""
    return [Task(f"question {repetition}-{i}", [f"answer {i}"]) for i in range(n)]


def seconds(work: Callable[[], object]) -> float:
    """Wall time of some work."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def from_threads(judge: Judge, given: list[Task], n_threads: int) -> None:
    """Submit the tasks from threads that each wait for their own share."""

    def wait_for(share: list[Task]) -> None:
        for future in [judge.submit(task) for task in share]:
            future.result()

    threads = [Thread(target=wait_for, args=(given[k::n_threads],)) for k in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def compare(n: int, n_threads: int, delay: float, repetitions: int) -> None:
    """Print the wall times of the bare engine and of the judge, in turn."""
    slow, evaluator = Slow(delay), ValueEvaluator(samples=1)
    with Engine(Scripted(slow.answer, slots=n), max_concurrency=n) as engine:
        engine.evaluate_batch(tasks(10, -1), evaluator)
        bare: list[float] = []
        judged: list[float] = []
        for repetition in range(repetitions):
            given = tasks(n, repetition)
            bare.append(seconds(lambda given=given: engine.evaluate_batch(given, evaluator)))
            slow.most = 0
            judge = Judge(engine, evaluator)
            judged.append(seconds(lambda judge=judge, given=given: from_threads(judge, given, n_threads)))
    ratio = statistics.median(ours / its for ours, its in zip(judged, bare, strict=True))
    print(f"{'bare s':>12}{'judge s':>12}{'judge / bare':>15}{'in flight':>12}")
    print(f"{statistics.median(bare):>12.2f}{statistics.median(judged):>12.2f}{ratio:>15.2f}{slow.most:>12,}")


def cached(calls: int = 20_000) -> None:
    """Print what a call costs when everything is kept."""
    with Engine(Scripted(reply_for)) as engine:
        judge, task = Judge(engine, DebateEvaluator("general", rounds=2)), Task("2 + 2?", ["4", "5"])
        judge.score(task)

        def score() -> None:
            for _ in range(calls):
                judge.submit(task).result().score()

        def feedback() -> None:
            for _ in range(calls):
                judge.submit(task).result().feedback(0, 2000)

        each = [min(seconds(work) for _ in range(5)) / calls * 1e6 for work in (score, feedback)]
    print(f"{'cached us':>12}{'feedback us':>14}\n{each[0]:>12.1f}{each[1]:>14.1f}")


def main() -> int:
    """Parse the command line, run, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--milliseconds", type=float, default=100, help="until a call is answered")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    compare(options.tasks, options.threads, options.milliseconds / 1000, options.repetitions)
    cached()
    return 0


if __name__ == "__main__":
    sys.exit(main())
