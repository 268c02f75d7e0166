"""Let calls, callbacks, sources of tasks and displays raise, stall and be cancelled, and count what is lost.

    scripts/bench chaos [--rounds 1000] [--seed 0] [--per-process 50] [--at-once 2]
    scripts/bench chaos --seed 0 --round 17       one round again, with what it drew

A round draws everything from its seed and number: the evaluator, how the engine is asked, whether there is a store,
which parts raise or stall and how, and what the caller does meanwhile (waits, cancels, leaves, closes the engine, is
interrupted). Then:

    lost         as many evaluations come back as there are tasks, or an error reaches the caller
    unexplained  no error reaches the caller that nobody raised
    promised     what a source raises, and a KeyboardInterrupt or SystemExit of user code, reaches the caller
    untouched    a task whose own calls and callbacks did nothing wrong is evaluated, whatever happened beside it; so
                 are the tasks of a neighbor, a batch of another thread on the same engine
    paid twice   after a named run, the same run again asks for nothing that was recorded, and is complete
    usable       the engine evaluates the next task; once it is closed, none of its threads is left
    hangs        no round takes longer than --seconds; the process, which ends with a stream unfinished, ends by itself

Rounds run in processes of their own, --per-process of them in each, under a watchdog that prints the stacks of one that
hangs. Prints a line for each fault found and the figures; exit code 1 when anything of this does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from debate import CallbackEvaluator, DebateEvaluator, Engine, Evaluation, PanelEvaluator, Scale, Task, ValueEvaluator
from debate.backends import Call, Scripted
from debate.evaluators.base import Evaluator
from debate.testing import reply_for

WAYS = ("evaluate_batch", "iter_evaluate", "aevaluate_batch", "astream")
EVALUATORS = {
    "value": ("call", "display"),
    "debate": ("call", "display"),
    "plain callback": ("callback",),
    "async callback": ("callback",),
    "panel": ("call", "callback", "display"),
}
"""What they use that may misbehave."""
RAISED: dict[str, type[BaseException]] = {
    each.__name__: each
    for each in (
        *(ValueError, KeyError, TimeoutError, OSError, MemoryError, RecursionError, StopIteration, StopAsyncIteration),
        *(asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit, BaseException),
    )
}
ENDS_A_BATCH = ("KeyboardInterrupt", "SystemExit")
"""Raised by user code, they reach the caller."""
KINDS = (*RAISED, "awaits what is cancelled", "slow", "never")
OF_COROUTINES = ("awaits what is cancelled", "never")
UNFINISHED: list[Iterator[Evaluation]] = []
"""Streams that live until the interpreter ends."""
LEAST_SECONDS = 0.3
"""What an evaluation has where a call never answers."""


@dataclass
class Plan:
    """What a round drew, and what happened in it."""

    seed: int
    number: int
    way: str
    caller: str
    neighbor: str
    blocks: bool
    kinds: tuple[str, ...]
    rates: dict[str, float]
    n: int
    evaluator: str
    run: str | None
    concurrency: int | None
    is_recorded: bool
    leaves_after: int
    delay: float
    is_read: threading.Event = field(default_factory=threading.Event, repr=False)
    """Whether the source has been asked for all its tasks."""
    is_calm: bool = False
    """Whether the faults are over."""
    raised: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Place, kind and task of each fault."""
    asked: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Task and seed of each call, and the task of each callback with seed 0."""
    recorded: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    @classmethod
    def of(cls, seed: int, number: int) -> Plan:
        """The plan of a round, from its seed and number alone."""
        draw = random.Random(f"{seed} {number}")
        way = draw.choice(WAYS)
        caller = draw.choice((*["waits"] * 5, *_CALLERS[way]))
        is_timed = caller in ("closes", "cancels", "is interrupted")
        n = draw.randint(2, 12)
        evaluator = draw.choice(tuple(EVALUATORS))
        places = EVALUATORS[evaluator] + (("source",) if way in ("iter_evaluate", "astream") else ())
        kinds = draw.sample(KINDS, draw.randint(1, 3))
        return cls(
            seed=seed,
            number=number,
            way=way,
            caller=caller,
            neighbor="none" if is_timed else draw.choice(("none", "none", "other tasks", "the same tasks")),
            blocks=is_timed and "source" in places and draw.random() < 0.4,
            kinds=tuple(kinds if draw.random() < 0.4 else [each for each in kinds if each not in ENDS_A_BATCH]),
            rates={place: draw.choice((0.0, 0.05, 0.2, 0.5)) for place in places},
            n=n,
            evaluator=evaluator,
            run=f"r{number}" if draw.random() < 0.5 else None,
            concurrency=draw.choice((None, 1, 3)),
            is_recorded=draw.random() < 0.5,
            leaves_after=draw.randint(0, n - 1),
            delay=draw.uniform(0.0, 0.04),
        )

    def fault(self, place: str, task: str, key: object = "") -> str | None:
        """What goes wrong at this place, the same in whatever order things happen; noted."""
        draw = random.Random(f"{self.seed} {self.number} {place} {task} {key}")
        is_coroutine = place == "call" or (place, self.evaluator) == ("callback", "async callback")
        kinds = [kind for kind in self.kinds if is_coroutine or kind not in OF_COROUTINES]
        is_due = draw.random() < self.rates.get(place, 0.0) / (4 if place == "source" else 1)
        if self.is_calm or not kinds or not is_due or task.startswith("n"):
            return None
        kind = draw.choice(kinds)
        self.raised.append((place, kind, task))
        return kind

    @property
    def task_seconds(self) -> float | None:
        """The time limit of an evaluation, where calls never answer."""
        return LEAST_SECONDS if "never" in self.kinds else None

    def kinds_of(self, *places: str) -> set[str]:
        """What was raised at these places."""
        return {kind for place, kind, _ in self.raised if place in places and kind in RAISED}


_CALLERS = {
    "evaluate_batch": ("closes", "is interrupted"),
    "iter_evaluate": ("closes", "is interrupted", "leaves"),
    "aevaluate_batch": ("closes", "cancels"),
    "astream": ("closes", "cancels", "leaves"),
}


# ---- the parts that misbehave


async def misbehave(kind: str | None) -> None:
    """Do what was drawn, in a coroutine."""
    if kind in RAISED:
        raise RAISED[kind]("chaos")
    if kind == "slow":
        await asyncio.sleep(0.05)
    elif kind == "never":
        await asyncio.sleep(3600)
    elif kind is not None:
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        gone.cancel()
        await gone


def misbehave_plainly(kind: str | None) -> None:
    """Do what was drawn, in a plain function."""
    if kind in RAISED:
        raise RAISED[kind]("chaos")
    if kind == "slow":
        time.sleep(0.05)


def backend(plan: Plan) -> Scripted:
    """A model whose calls misbehave."""

    async def script(call: Call) -> str:
        task = str(call.info["task_id"])
        plan.asked.append((task, call.seed))
        await asyncio.sleep(random.Random(call.seed).random() * 0.003)
        await misbehave(plan.fault("call", task, call.seed))
        return reply_for(call)

    return Scripted(script)


def display(plan: Plan) -> Callable[[Call, Any], None]:
    """A display that misbehaves; it is told of what is recorded."""

    def show(call: Call, completion: object) -> None:
        task = str(call.info["task_id"])
        plan.recorded.add((task, call.seed))
        misbehave_plainly(plan.fault("display", task, call.seed))

    return show


def source(plan: Plan) -> Iterator[Task]:
    """The tasks, from a generator that misbehaves."""
    for task in tasks(plan):
        misbehave_plainly(plan.fault("source", task.id))
        yield task
    plan.is_read.set()
    if plan.blocks:
        threading.Event().wait()


def tasks(plan: Plan) -> list[Task]:
    """The round's tasks."""
    return [Task(f"t{i}", ["one", "two"], id=f"t{i}") for i in range(plan.n)]


def evaluator_of(plan: Plan) -> Evaluator:
    """The round's evaluator."""

    def plainly(x: str, answer: str) -> float:
        plan.asked.append((x, 0))
        misbehave_plainly(plan.fault("callback", x, answer))
        return 5.0

    async def later(x: str, answer: str) -> float:
        plan.asked.append((x, 0))
        await misbehave(plan.fault("callback", x, answer))
        return 5.0

    made: dict[str, Callable[[], Evaluator]] = {
        "value": lambda: ValueEvaluator(samples=2),
        "debate": lambda: DebateEvaluator("general", rounds=1),
        "plain callback": lambda: CallbackEvaluator(plainly, scale=Scale(0, 10), seconds=5),
        "async callback": lambda: CallbackEvaluator(later, scale=Scale(0, 10), seconds=LEAST_SECONDS),
        "panel": lambda: PanelEvaluator(
            members={"value": ValueEvaluator(samples=1), "callback": made["plain callback"]()}
        ),
    }
    return made[plan.evaluator]()


# ---- one round


@dataclass
class Outcome:
    """What reached the caller."""

    evaluations: list[Evaluation] = field(default_factory=list[Evaluation])
    error: BaseException | None = None
    has_left: bool = False
    acted: threading.Event = field(default_factory=threading.Event)
    """Whether the caller has cancelled, closed or been interrupted."""


def ask(engine: Engine, plan: Plan) -> Outcome:
    """Evaluate the round's tasks as it was drawn."""
    outcome = Outcome()
    with acting(engine, plan, outcome):
        try:
            if plan.way in ("aevaluate_batch", "astream"):
                asyncio.run(asked_async(engine, plan, outcome))
            elif plan.way == "evaluate_batch":
                outcome.evaluations += engine.evaluate_batch(tasks(plan), evaluator_of(plan), run=plan.run)
            else:
                iterate(engine, plan, outcome)
        except BaseException as error:
            outcome.error = error
    return outcome


def iterate(engine: Engine, plan: Plan, outcome: Outcome) -> None:
    """Take evaluations as they finish, and perhaps leave."""
    finished: Any = engine.iter_evaluate(source(plan), evaluator_of(plan), run=plan.run)
    for evaluation in finished:
        outcome.evaluations.append(evaluation)
        if plan.caller == "leaves" and len(outcome.evaluations) > plan.leaves_after:
            outcome.has_left = True
            finished.close()


async def asked_async(engine: Engine, plan: Plan, outcome: Outcome) -> None:
    """The same in an event loop, and perhaps cancelled there."""
    asking = asyncio.ensure_future(_asked_async(engine, plan, outcome))
    if plan.caller == "cancels":
        await asyncio.wait([asking], timeout=plan.delay)
        if not asking.done():
            outcome.acted.set()
            asking.cancel()
    await asking


async def _asked_async(engine: Engine, plan: Plan, outcome: Outcome) -> None:
    if plan.way == "aevaluate_batch":
        outcome.evaluations += await engine.aevaluate_batch(tasks(plan), evaluator_of(plan), run=plan.run)
        return
    finished: Any = engine.astream(source(plan), evaluator_of(plan), run=plan.run)
    async with aclosing(finished):
        async for evaluation in finished:
            outcome.evaluations.append(evaluation)
            if plan.caller == "leaves" and len(outcome.evaluations) > plan.leaves_after:
                outcome.has_left = True
                return


@contextlib.contextmanager
def acting(engine: Engine, plan: Plan, outcome: Outcome) -> Generator[None]:
    """Close the engine, or interrupt the main thread, after a while."""

    def interrupt(*_: object) -> None:
        outcome.acted.set()
        raise KeyboardInterrupt

    def close() -> None:
        if plan.blocks:
            plan.is_read.wait(5)  # an engine that is closed before it is asked starts anew
        outcome.acted.set()
        engine.close()

    if plan.caller == "is interrupted":
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, plan.delay)
    closing = threading.Timer(plan.delay, close)
    if plan.caller == "closes":
        closing.start()
    try:
        yield
    except KeyboardInterrupt as late:  # between the answer and the end of the timer
        outcome.error = outcome.error or late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        closing.cancel()
        if plan.caller == "closes":
            closing.join()


@contextlib.contextmanager
def neighbor(engine: Engine, plan: Plan) -> Generator[list[str]]:
    """Another batch at the same time, from another thread; what is wrong with it is in the list afterwards."""
    problems: list[str] = []

    def ask_too() -> None:
        is_other = plan.neighbor == "other tasks"
        given = [Task(f"n{i}", ["one", "two"], id=f"n{i}") for i in range(4)] if is_other else tasks(plan)
        evaluator = ValueEvaluator(samples=1) if is_other else evaluator_of(plan)
        outcome = Outcome()
        try:
            outcome.evaluations += engine.evaluate_batch(given, evaluator, run=None if is_other else plan.run)
        except BaseException as error:
            outcome.error = error
        if is_other and [each.status for each in outcome.evaluations] != ["ok"] * 4:
            problems.append(f"untouched: the neighbor got {len(outcome.evaluations)} of 4, {outcome.error!r}")
        elif not is_other:
            problems.extend(f"{problem} (neighbor)" for problem in problems_of(plan, outcome, is_sure=False))

    asking = threading.Thread(target=ask_too, daemon=True)
    if plan.neighbor != "none":
        asking.start()
    yield problems
    if plan.neighbor != "none":
        asking.join()


def play(plan: Plan, folder: Path) -> dict[str, Any]:
    """Play a round; what it came to and what is wrong with it, as plain data."""
    store = folder / f"{plan.number}.sqlite" if plan.is_recorded else None
    plan.run = plan.run if plan.is_recorded else None
    engine = Engine(
        backend(plan),
        store=store,
        seed=plan.number,
        max_concurrency=plan.concurrency,
        on_completion=display(plan),
        task_seconds=plan.task_seconds,
    )
    if plan.caller == "is interrupted":
        engine.start()  # an interrupt while its thread is being made would leave it to nobody
    with neighbor(engine, plan) as problems:
        outcome = ask(engine, plan)
    plan.is_calm = True
    problems += [*problems_of(plan, outcome), *problems_after(engine)]
    if plan.run is not None:
        problems += problems_again(plan, outcome, str(store))
    return {
        "round": plan.number,
        "way": plan.way,
        "tasks": plan.n,
        "evaluations": len(outcome.evaluations),
        "failures": Counter(each.failures[0].reason for each in outcome.evaluations if each.failures),
        "faults": Counter(f"{place}: {kind}" for place, kind, _ in plan.raised),
        "came": came(outcome),
        "problems": problems,
    }


def came(outcome: Outcome) -> str:
    """The outcome in a word or two."""
    if outcome.has_left:
        return "the caller left"
    return "complete" if outcome.error is None else type(outcome.error).__name__


def problems_of(plan: Plan, outcome: Outcome, *, is_sure: bool = True) -> Iterator[str]:
    """What is wrong with what reached the caller; `is_sure` that what was raised was raised in its own batch."""
    ids = [evaluation.task_id for evaluation in outcome.evaluations]
    if len(set(ids)) != len(ids):
        yield "a task came back twice"
    told = {kind for kind in plan.kinds_of("call", "callback") if kind in ENDS_A_BATCH} | plan.kinds_of("source")
    touched = {task for place, _, task in plan.raised if place in ("call", "callback")}
    for evaluation in outcome.evaluations:
        is_cut_off = any(each.reason in ("time_budget", "timeout", "run_ended") for each in evaluation.failures)
        if evaluation.status != "ok" and evaluation.task_id not in touched and not is_cut_off:
            yield f"untouched: {evaluation.task_id} is {evaluation.status}: {evaluation.error}"
    if outcome.error is not None:
        yield from _problems_of_error(outcome.error, plan, outcome, told)
    elif not outcome.has_left:
        if len(ids) != plan.n:
            yield f"lost: {plan.n - len(ids)} of {plan.n} without a word"
        if told and is_sure and plan.neighbor != "the same tasks" and not outcome.acted.is_set():
            yield f"promised: {', '.join(sorted(told))} did not reach the caller"


def _problems_of_error(error: BaseException, plan: Plan, outcome: Outcome, told: set[str]) -> Iterator[str]:
    named = ""
    link: BaseException | None = error
    while link is not None:
        named += repr(link)
        link = link.__cause__ or link.__context__
    may_pass = told | (plan.kinds_of("call", "callback", "display") & {*ENDS_A_BATCH, "GeneratorExit", "BaseException"})
    if not (any(kind in named for kind in may_pass) or outcome.acted.is_set()):
        yield f"unexplained: {type(error).__name__}: {error}"


def problems_after(engine: Engine) -> Iterator[str]:
    """What is wrong with the engine once the faults are over."""
    try:
        status = engine.evaluate(Task("after", ["one"], id="after"), ValueEvaluator(samples=1)).status
        if status != "ok":
            yield f"usable: the next evaluation is {status}"
    except BaseException as error:
        yield f"usable: {type(error).__name__}: {error}"
    engine.close()
    deadline = time.monotonic() + 5
    while (left := _engine_threads()) and time.monotonic() < deadline:
        time.sleep(0.01)
    if left:
        yield f"usable: threads are left: {left}"


def _engine_threads() -> list[str]:
    waited_for = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    return [each.name for each in threading.enumerate() if each in waited_for or each.name == "debate-engine"]


def problems_again(plan: Plan, outcome: Outcome, store: str) -> Iterator[str]:
    """What is wrong with the same run, once more in a new engine."""
    known, done = set(plan.recorded), {each.task_id for each in outcome.evaluations if each.status == "ok"}
    plan.asked.clear()
    with Engine(backend(plan), store=store, seed=plan.number) as engine:
        again = engine.evaluate_batch(tasks(plan), evaluator_of(plan), run=plan.run)
    if [each.task_id for each in again] != [task.id for task in tasks(plan)]:
        yield f"paid twice: the run has {len(again)} of {plan.n} evaluations when it is made again"
    if twice := known & set(plan.asked):
        yield f"paid twice: {len(twice)} recorded calls were asked again"
    if twice := done & {task for task, _ in plan.asked}:
        yield f"paid twice: {sorted(twice)} had come back as ok"


# ---- many rounds


def child(arguments: argparse.Namespace) -> None:
    """Play the rounds FIRST to LAST; a line for each. Ends with a stream unfinished and its engine open."""
    logging.disable(logging.CRITICAL)
    first, last, folder = arguments.child
    for number in range(int(first), int(last)):
        print(json.dumps({"begins": number}), flush=True)
        faulthandler.dump_traceback_later(arguments.seconds, exit=True)
        print(json.dumps(play(Plan.of(arguments.seed, number), Path(folder))), flush=True)
        faulthandler.cancel_dump_traceback_later()
    calm = Plan.of(arguments.seed, int(first))
    calm.is_calm = True
    open_ended = (Task(f"u{i}", ["one"], id=f"u{i}") for i in range(100_000))
    UNFINISHED.append(Engine(backend(calm)).iter_evaluate(open_ended, ValueEvaluator(samples=1)))
    next(UNFINISHED[0])
    print(json.dumps({"ends": True}), flush=True)


def play_apart(arguments: argparse.Namespace, folder: str, rounds: range) -> tuple[list[dict[str, Any]], list[str]]:
    """Play rounds in a process of their own, in another one from where it hung or died: results, and what is wrong."""
    results: list[dict[str, Any]] = []
    problems: list[str] = []
    at = rounds.start
    while at < rounds.stop:
        lines, end, errors, is_left = run_child(arguments, folder, at, rounds.stop)
        found = [line for line in lines if "way" in line]
        results += found
        at += len(found)
        if at < rounds.stop:
            problems.append(f"round {at}: hangs, or its process died ({end}):\n{errors[-6000:]}")
            at += 1
        elif end != 0:
            problems.append(f"the process of the rounds up to {at - 1} did not end by itself: {end}\n{errors[-3000:]}")
        if is_left:
            problems.append(f"processes are left after the rounds up to {at - 1}")
    return results, problems


def run_child(
    arguments: argparse.Namespace, folder: str, first: int, last: int
) -> tuple[list[dict[str, Any]], int | str, str, bool]:
    """One process: its lines, its exit code, what it wrote on stderr, and whether it left others behind."""
    command = [sys.executable, __file__, "--child", str(first), str(last), folder]
    command += ["--seed", str(arguments.seed), "--seconds", str(arguments.seconds)]
    longest = arguments.seconds * 2 + (last - first) * 5
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        try:
            out, end = process.communicate(timeout=longest)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, end = process.communicate()[0], "killed by the watchdog"
        errors.seek(0)
        return [json.loads(line) for line in out.splitlines()], end, errors.read(), is_group_alive(process.pid)


def is_group_alive(group: int) -> bool:
    """Whether a process of the group is left; what is left is ended."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
        return True
    return False


def report(results: list[dict[str, Any]], problems: list[str], rounds: int, seconds: float) -> None:
    """Print the figures."""
    ways = Counter(result["way"] for result in results)
    faults, failures = Counter[str](), Counter[str]()
    for result in results:
        faults.update(result["faults"])
        failures.update(result["failures"])
    came_to = Counter(result["came"] for result in results)
    named = [problem.partition(":")[0] for result in results for problem in result["problems"]]
    print(f"rounds             {len(results)} of {rounds} ({table(ways)})")
    print(f"tasks              {sum(result['tasks'] for result in results)}")
    print(f"evaluations        {sum(result['evaluations'] for result in results)}")
    print(f"came to            {table(came_to)}")
    print(f"faults             {table(faults)}")
    print(f"failures           {table(failures)}")
    print(f"hangs, deaths      {len(problems)}")
    print(f"wrong              {table(Counter(named)) or 0}")
    print(f"seconds            {seconds:.0f}")


def table(counts: Counter[str]) -> str:
    """Counts, the largest first."""
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def play_one(arguments: argparse.Namespace) -> int:
    """Play one round here, and say what it drew."""
    plan = Plan.of(arguments.seed, arguments.round)
    print(plan)
    faulthandler.dump_traceback_later(arguments.seconds, exit=True)
    with tempfile.TemporaryDirectory() as folder:
        result = play(plan, Path(folder))
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps(result, indent=2))
    return 1 if result["problems"] else 0


def main() -> int:
    """Parse, play, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round", type=int, help="play this round alone, in this process")
    parser.add_argument("--per-process", type=int, default=50, help="rounds in each process")
    parser.add_argument("--at-once", type=int, default=2, help="processes side by side")
    parser.add_argument("--seconds", type=float, default=30.0, help="a round that takes longer hangs")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return 0
    if arguments.round is not None:
        return play_one(arguments)
    began, step = time.monotonic(), arguments.per_process
    shares = [range(at, min(at + step, arguments.rounds)) for at in range(0, arguments.rounds, step)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.at_once) as pool:
        played = list(pool.map(partial(play_apart, arguments, folder), shares))
    results = [result for found, _ in played for result in found]
    problems = [problem for _, found in played for problem in found]
    for result in results:
        for problem in result["problems"]:
            print(f"round {result['round']} ({result['way']}): {problem}")
    print(*problems, sep="\n", end="\n" if problems else "")
    report(results, problems, arguments.rounds, time.monotonic() - began)
    return 1 if problems or any(result["problems"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
