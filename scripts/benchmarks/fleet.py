"""Kill and count a fleet: workers that share one run through its store.

    scripts/bench fleet [kills] [scale] [claims] [sqlite] [--server URL] [--repetitions N] [--seed 0]

Workers are processes of `debate run` and `debate resume` on one store and one run. Their model is scripted and answers
after a latency; each worker writes down every call when it begins and when it is answered. PostgreSQL is the server of
`--server`, or of DEBATE_TEST_POSTGRES (`scripts/postgres start`); each run gets a database of its own there. All parts
but `sqlite` run on it.

    kills    4 workers, 500 debates of 9 turns, 4 open at once in each, answers after 80 to 140 ms. Every 5 s a random
             worker is killed (SIGKILL) and another started, by `debate run` or `debate resume`; the workers have two
             folders of the run between them, as if they were on two machines. Then:
                 all workers ended by themselves with exit code 0, and results.jsonl of each folder is equal, by task,
                 to that of one process that nobody disturbed (seconds apart); each turn is in the store once
                 calls beyond the turns are at most those that were begun and not in the store at the kills
                 no shard was worked by two at once: calls of two workers for it never overlap
             `claims` is the share of the workers' time that went into claims.
    scale    debates per second of 4 workers beside one, 4 open at once in each, answers after 50 ms, and the CPU share
             of each. Time counts from the moment at which all have asked their first question to the last answer.
    claims   32 processes that only claim and finish shards of one plan.
    sqlite   kills, and turns per second of 1, 2, 4 and 8 workers, on one SQLite file.

Prints a line per repetition; exit code 1 when anything of the above does not hold. `--debates`, `--workers`, `--every`,
`--kills` and `--latency` make it shorter or longer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from sqlalchemy import create_engine, func, inspect, select, text

from benchmarks.crashes import results
from benchmarks.overhead import replies
from benchmarks.store import write_evalset
from debate import load_profile
from debate.backends import Call
from debate.sql.connect import READ_ONLY, connect, normalize_url
from debate.store import Store
from debate.store.run import StoredRun
from debate.store.tables import CALLS, EVALUATIONS, SHARDS, TASKS

AT_ONCE, TURNS = 4, 9
STORE_KINDS = ("postgresql", "sqlite")
LONGEST = 240.0
"""Seconds after which a fleet that has not ended counts as one that hangs."""


# ---- the model, in the workers


class CallLog:
    """What one worker asked and was answered, one line each, handed to the system at once: a kill loses none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = os.open(folder / f"{os.getpid()}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, what: str, about: str) -> None:
        """Add a line: monotonic time, CPU seconds of the process, what happened."""
        os.write(self._file, f"{time.monotonic():.6f} {time.process_time():.4f} {what} {about}\n".encode())

    async def wait_for(self, n: int) -> None:
        """Wait until so many workers have a log."""
        while len(list(self.folder.glob("*.log"))) < n:
            await asyncio.sleep(0.02)


@cache
def call_log() -> CallLog | None:
    """The log of this worker, where the environment names a folder."""
    folder = os.environ.get("FLEET_LOG")
    return CallLog(Path(folder)) if folder else None


def time_claims() -> None:
    """Have this worker write down how long each of its claims took."""
    claim = StoredRun.claim

    def timed(self: StoredRun) -> Any:
        began = time.perf_counter()
        shard = claim(self)
        if (log := call_log()) is not None:
            number = "none" if shard is None else shard.number
            log.write("claim", f"{number} {time.perf_counter() - began:.6f}")
        return shard

    StoredRun.claim = timed


if os.environ.get("FLEET_LOG"):
    time_claims()


@cache
def written() -> list[str]:
    """Replies that were written beforehand."""
    return replies([component.name for component in load_profile("general").components])


async def answer(call: Call) -> str:
    """The scripted model of the workers, told by the environment how long to take; every reply differs."""
    low, high = map(float, os.environ.get("FLEET_LATENCY", "0 0").split())
    about = f"{call.info['task_id']} {call.info['round']} {call.info['agent']}"
    if (log := call_log()) is not None:
        await log.wait_for(int(os.environ.get("FLEET_TOGETHER", "1")))
        log.write("begin", about)
    if high:
        await asyncio.sleep(low + (high - low) * (call.seed % 1000) / 1000)
    if log is not None:
        log.write("done", about)
    return written()[call.seed % len(written())].replace('"overall": "', f'"overall": "{call.seed:x} ', 1)


class Event(NamedTuple):
    """A line of a log."""

    at: float
    cpu: float
    what: str
    about: str
    worker: int
    """Process id."""

    @property
    def task(self) -> str:
        """Id of the task that was asked about."""
        return self.about.split(" ", 1)[0]


def events_of(log: Path) -> list[Event]:
    """All that the workers wrote down, in order of time."""
    found: list[Event] = []
    for file in log.glob("*.log"):
        for line in file.read_text().splitlines():
            at, cpu, what, about = line.split(" ", 3)
            found.append(Event(float(at), float(cpu), what, about, int(file.stem)))
    return sorted(found)


# ---- stores


@contextmanager
def new_store(kind: str, folder: Path, server: str | None) -> Generator[str]:
    """The address of a store that is not there yet: a file in the folder, or a database that is dropped at the end."""
    if kind == "sqlite":
        yield str(folder / "fleet.sqlite")
        return
    assert server is not None
    name = f"debate_fleet_{uuid.uuid4().hex[:8]}"
    administer(server, f"CREATE DATABASE {name}")
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def administer(server: str, statement: str) -> Any:
    """Run one statement on the server; the first value that it returns."""
    engine = create_engine(normalize_url(server), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            done = connection.execute(text(statement))
            return done.scalar() if done.returns_rows else None
    finally:
        engine.dispose()


def query(store: str, statement: Any) -> list[Any]:
    """The rows of a statement that only reads."""
    engine = connect(normalize_url(store)).execution_options(**{READ_ONLY: True})
    try:
        with engine.connect() as connection:
            return list(connection.execute(statement).all())
    finally:
        engine.dispose()


def add(store: str, table: Any, rows: list[dict[str, Any]]) -> None:
    """Insert rows."""
    engine = connect(normalize_url(store))
    try:
        with engine.begin() as connection:
            connection.execute(table.insert(), rows)
    finally:
        engine.dispose()


def committed(store: str) -> Counter[str]:
    """The recorded calls as the logs name them, and how often each is there; none where there are no tables yet."""
    engine = connect(normalize_url(store))
    try:
        if not inspect(engine).has_table(CALLS.name):
            return Counter()
    finally:
        engine.dispose()
    here = (TASKS.c.run_id == CALLS.c.run_id) & (TASKS.c.position == CALLS.c.position)
    rows = query(store, select(TASKS.c.task_id, CALLS.c.info).select_from(CALLS.join(TASKS, here)))
    return Counter(f"{task} {info['round']} {info['agent']}" for task, info in rows)


def left_connections(store: str, name: str) -> int:
    """How many connections of a worker the server still knows."""
    if "://" not in store:
        return 0
    condition = text("SELECT count(*) FROM pg_stat_activity WHERE application_name = :name").bindparams(name=name)
    return query(store, condition)[0][0]


# ---- workers


@dataclass
class Worker:
    """A process of the fleet."""

    name: str
    """As the database's server knows it."""
    process: subprocess.Popen[bytes]
    errors: Path
    started: float
    killed: float | None = None
    """When, on the monotonic clock."""

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self.process.poll() is None


@dataclass
class Fleet:
    """Workers on one run, and how they are started."""

    folder: Path
    evalset: Path
    store: str
    latency: tuple[float, float] = (0.0, 0.0)
    more: tuple[str, ...] = ("--rounds", "3", "--max-concurrency", str(AT_ONCE))
    together: int = 1
    """Nobody gets an answer before so many have asked."""
    is_logged: bool = True
    """Whether the workers write their calls down."""
    folders: int = 1
    """Of the run, among which the workers are shared out in turn, as if they were on so many machines."""
    workers: list[Worker] = field(default_factory=list[Worker])

    def out(self, number: int = 0) -> Path:
        """One of the run's folders."""
        return self.folder / f"out{number}"

    @property
    def log(self) -> Path:
        """The folder of the logs."""
        return self.folder / "log"

    def start(self, *, resume: bool = False) -> Worker:
        """Start a worker as a user would: by `debate run`, or by `debate resume` where its folder holds the run."""
        out = self.out(len(self.workers) % self.folders)
        self.log.mkdir(parents=True, exist_ok=True)
        name = f"fleet-{uuid.uuid4().hex[:8]}"
        run = (
            *("run", str(self.evalset), "--out", str(out), "--store", self.store, "--run", "fleet"),
            *("--backend", "benchmarks.fleet:answer", "--convergence", "none", *self.more),
        )
        command = ("resume", str(out), "--trust") if resume and (out / "run.json").exists() else run
        errors = self.folder / f"{name}.err"
        environment = {
            **os.environ,
            "FLEET_LATENCY": "{} {}".format(*self.latency),
            "FLEET_TOGETHER": str(self.together),
            "FLEET_LOG": str(self.log) if self.is_logged else "",
            "PGAPPNAME": name,
            "PYTHONFAULTHANDLER": "1",
        }
        with errors.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "debate", *command], stdout=subprocess.DEVNULL, stderr=stream, env=environment
            )
        self.workers.append(Worker(name, process, errors, time.monotonic()))
        return self.workers[-1]

    def alive(self) -> list[Worker]:
        """Those that have not ended."""
        return [worker for worker in self.workers if worker.is_alive]

    def wait(self, seconds: float) -> bool:
        """Wait for all to end, no longer than that; whether they did."""
        until = time.monotonic() + seconds
        while self.alive() and time.monotonic() < until:
            time.sleep(0.05)
        return not self.alive()

    def kill(self, worker: Worker) -> Counter[str]:
        """Kill a worker; returns the calls that are in the store once the server has noticed."""
        worker.process.send_signal(signal.SIGKILL)
        worker.killed = time.monotonic()
        worker.process.wait()
        while left_connections(self.store, worker.name):
            time.sleep(0.002)
        return committed(self.store)

    def end(self) -> Iterator[str]:
        """End those that have not ended by themselves; yields the faults of all, with the stacks of those."""
        hanging = self.alive()
        for worker in hanging:
            worker.process.send_signal(signal.SIGABRT)  # faulthandler then writes the stacks
            worker.process.wait()
        for worker in self.workers:
            said = worker.errors.read_text(errors="replace")[-3000:]
            if worker in hanging:
                yield f"{worker.name} did not end within {LONGEST:.0f} s:\n{said}"
            elif worker.killed is None and worker.process.returncode != 0:
                yield f"{worker.name} ended with exit code {worker.process.returncode}:\n{said}"


@contextmanager
def fleet_of(fleet: Fleet) -> Generator[Fleet]:
    """A fleet of which no process is left at the end."""
    try:
        yield fleet
    finally:
        for worker in fleet.alive():
            worker.process.kill()
            worker.process.wait()


def undisturbed(folder: Path, evalset: Path) -> dict[str, Any]:
    """The results of one process that nobody disturbs, on a store of its own."""
    home = folder / "undisturbed"
    home.mkdir()
    with fleet_of(Fleet(home, evalset, str(home / "run.sqlite"))) as fleet:
        fleet.start()
        fleet.wait(LONGEST)
        for fault in fleet.end():
            raise SystemExit(fault)
        return results(fleet.out())


# ---- kills


@dataclass
class Outcome:
    """What one repetition came to."""

    seconds: float = 0.0
    kills: int = 0
    before_work: int = 0
    """Kills of workers that had not asked anything yet."""
    turns: int = 0
    beyond: int = 0
    """Calls begun beyond the turns."""
    in_flight: int = 0
    """Calls begun and not in the store at a kill."""
    shards: int = 0
    claims: int = 0
    in_vain: int = 0
    """Claims that found nothing, by workers that wait for the others."""
    claim_share: float = 0.0
    """Of the workers' time that all claims took."""
    faults: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        said = "ok" if not self.faults else f"{len(self.faults)} FAULTS"
        return (
            f"{self.seconds:5.1f} s, {self.kills} kills ({self.before_work} before the first call), "
            f"{self.turns} turns, {self.beyond} calls beyond, {self.in_flight} in flight at kills, "
            f"{self.shards} shards, {self.claims} claims and {self.in_vain} in vain in {self.claim_share:.2%} of the "
            f"time: {said}"
        )


def disturb(fleet: Fleet, chance: random.Random, options: argparse.Namespace, outcome: Outcome) -> None:
    """Run the fleet to its end; at every so many seconds one is killed and replaced."""
    began = time.monotonic()
    for _ in range(options.workers):
        fleet.start()
    while outcome.kills < options.kills and not fleet.wait(options.every):
        if not (alive := fleet.alive()):
            break
        victim = chance.choice(alive)
        in_store = fleet.kill(victim)
        fleet.start(resume=chance.random() < 0.5)
        begun = [event.about for event in events_of(fleet.log) if is_call(event, victim.process.pid)]
        outcome.kills += 1
        outcome.before_work += not begun
        outcome.in_flight += sum(1 for about in begun if about not in in_store)
    fleet.wait(LONGEST)
    outcome.seconds = time.monotonic() - began


def is_call(event: Event, worker: int) -> bool:
    """Whether a worker began a call there."""
    return event.worker == worker and event.what == "begin"


def faults_of(fleet: Fleet, expected: dict[str, Any], outcome: Outcome, *, strict: bool = True) -> Iterator[str]:
    """What is wrong with a fleet that has ended."""
    yield from fleet.end()
    for folder in range(fleet.folders):
        if (found := results(fleet.out(folder))) != expected:
            wrong = [task for task in expected if found.get(task) != expected[task]]
            yield f"{len(wrong)} results of folder {folder} are not those of an undisturbed process: {wrong[:5]}"
    in_store = committed(fleet.store)
    if len(in_store) != outcome.turns or set(in_store.values()) != {1}:
        yield f"{len(in_store)} different calls in the store instead of {outcome.turns}, or one of them twice"
    ((evaluations,),) = query(fleet.store, select(func.count()).select_from(EVALUATIONS))
    if evaluations != len(expected):
        yield f"{evaluations} evaluations in the store instead of {len(expected)}"
    events = events_of(fleet.log)
    outcome.beyond = sum(event.what == "begin" for event in events) - outcome.turns
    if outcome.beyond > outcome.in_flight or (strict and outcome.beyond != outcome.in_flight):
        yield f"{outcome.beyond} calls beyond the turns, {outcome.in_flight} were in flight at the kills"
    count_claims(fleet, events, outcome)
    ((undone,),) = query(fleet.store, select(func.count()).where(~SHARDS.c.is_done))
    if undone:
        yield f"{undone} shards are not done"
    yield from overlaps(fleet, events)


def count_claims(fleet: Fleet, events: Sequence[Event], outcome: Outcome) -> None:
    """Note how many claims there were, and what share of the workers' time they took."""
    taken = [event.about.split() for event in events if event.what == "claim"]
    ends = {worker.process.pid: worker.killed for worker in fleet.workers}
    lived = sum(
        (ends[pid] or own[-1].at) - own[0].at
        for pid in {event.worker for event in events}
        if (own := [event for event in events if event.worker == pid])
    )
    outcome.shards = query(fleet.store, select(func.count()).select_from(SHARDS))[0][0]
    outcome.claims = sum(number != "none" for number, _ in taken)
    outcome.in_vain = len(taken) - outcome.claims
    outcome.claim_share = sum(float(seconds) for _, seconds in taken) / lived


def overlaps(fleet: Fleet, events: Sequence[Event]) -> Iterator[str]:
    """The shards that two workers worked on at the same time, as their calls say."""
    plan = query(fleet.store, select(SHARDS.c.shard, SHARDS.c.first, SHARDS.c.last))
    shard_of = {f"task-{position}": shard for shard, first, last in plan for position in range(first, last + 1)}
    killed = {worker.process.pid: worker.killed for worker in fleet.workers if worker.killed is not None}
    spans: defaultdict[str | int, dict[int, tuple[float, float]]] = defaultdict(dict)
    for event in events:
        if event.what in ("begin", "done"):
            by_worker = spans[shard_of.get(event.task, event.task)]  # of an earlier plan: the task alone
            first, _ = by_worker.get(event.worker, (event.at, 0.0))
            by_worker[event.worker] = (first, killed.get(event.worker, event.at))
    for shard, by_worker in spans.items():
        ordered = sorted(by_worker.values())
        if any(after[0] < before[1] for before, after in pairwise(ordered)):
            yield f"shard {shard} was worked on by two at once: {by_worker}"


def kills(kind: str, options: argparse.Namespace, repetitions: int) -> bool:
    """All repetitions; whether all went well."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as temporary:
        evalset = Path(temporary) / "tasks.jsonl"
        write_evalset(evalset, options.debates)
        expected = undisturbed(Path(temporary), evalset)
        for n in range(repetitions):
            folder = Path(temporary) / str(n)
            folder.mkdir()
            outcomes.append(outcome := Outcome(turns=options.debates * TURNS))
            chance = random.Random(f"{options.seed} {n}")
            with (
                new_store(kind, folder, options.server) as store,
                fleet_of(Fleet(folder, evalset, store, tuple(options.latency), folders=2)) as fleet,
            ):
                disturb(fleet, chance, options, outcome)
                outcome.faults += faults_of(fleet, expected, outcome)
            print(f"{kind} kills {n}: {outcome}", *outcome.faults[:5], sep="\n    ", flush=True)
    fine = sum(not outcome.faults for outcome in outcomes)
    print(
        f"{kind} kills: {fine} of {len(outcomes)} repetitions of {options.debates} debates by {options.workers} "
        f"workers ended well and with the same results; {sum(o.kills for o in outcomes)} kills, "
        f"{sum(o.beyond for o in outcomes)} calls beyond the turns, {sum(o.in_flight for o in outcomes)} in flight at "
        f"the kills; {median(o.seconds for o in outcomes):.0f} s each; claims took "
        f"{mean(o.claim_share for o in outcomes):.2%} of the workers' time",
        flush=True,
    )
    return fine == len(outcomes)


# ---- scale


@dataclass(frozen=True)
class Rate:
    """How fast some workers were together."""

    debates: float
    """Per second."""
    turns: float
    """Per second."""
    cpu: float
    """Share of a core, mean of the workers."""


def rate(kind: str, options: argparse.Namespace, n: int, latency: float, debates: int) -> Rate:
    """Run a fleet of `n` over so many debates."""
    with tempfile.TemporaryDirectory() as temporary, new_store(kind, Path(temporary), options.server) as store:
        evalset = Path(temporary) / "tasks.jsonl"
        write_evalset(evalset, debates)
        with fleet_of(Fleet(Path(temporary), evalset, store, (latency, latency), together=n)) as fleet:
            for _ in range(n):
                fleet.start()
            fleet.wait(LONGEST)
            for fault in fleet.end():
                raise SystemExit(fault)
            events = events_of(fleet.log)
    asked = [event for event in events if event.what == "begin"]
    seconds = events[-1].at - asked[0].at
    shares = [
        (own[-1].cpu - own[0].cpu) / (own[-1].at - own[0].at)
        for pid in {event.worker for event in asked}
        if (own := [event for event in events if event.worker == pid])
    ]
    assert len(asked) == debates * TURNS, f"{len(asked)} calls"
    return Rate(debates / seconds, len(asked) / seconds, mean(shares))


def scale(kind: str, options: argparse.Namespace, sizes: Sequence[int], repetitions: int) -> bool:
    """Rates of fleets of several sizes, interleaved; prints a line per size."""
    found: dict[int, list[Rate]] = {n: [] for n in sizes}
    for _ in range(repetitions):
        for n in sizes:
            found[n].append(rate(kind, options, n, 0.05, options.debates_to_scale * min(n, 4)))
    one = median(each.debates for each in found[sizes[0]])
    for n, rates in found.items():
        debates = median(each.debates for each in rates)
        print(
            f"{kind} scale: {n} workers {debates:6.2f} debates/s, {median(each.turns for each in rates):6.1f} turns/s, "
            f"{debates / one:.2f} times {sizes[0]} worker ({min(r.debates for r in rates) / one:.2f} to "
            f"{max(r.debates for r in rates) / one:.2f}), CPU share of each {median(each.cpu for each in rates):.1%}",
            flush=True,
        )
    return True


# ---- claims


def only_claim(store: str, folder: Path, n: int) -> dict[str, float]:
    """Be one of `n` processes that claim and finish shards until none is left; what came of it."""
    with Store(store) as opened:
        with opened.join("claims", {}) as record:
            record.plan("claims")
        (folder / f"{os.getpid()}.log").touch()
        while len(list(folder.glob("*.log"))) < n:
            time.sleep(0.02)
        began, seconds, count = time.monotonic(), 0.0, 0
        while record.n_undone():
            before = time.perf_counter()
            shard = record.claim()
            seconds += time.perf_counter() - before
            if shard is not None:
                assert record.finish_shard(shard), f"{shard} was taken away"
                count += 1
        record.close()
        return {"began": began, "ended": time.monotonic(), "seconds": seconds, "claims": count}


def claims(kind: str, options: argparse.Namespace, n: int, shards: int) -> bool:
    """Let `n` processes claim all shards of a plan; whether each was claimed once, without an error."""
    with (
        tempfile.TemporaryDirectory() as temporary,
        new_store(kind, Path(temporary), options.server) as store,
        Store(store) as opened,
    ):
        with opened.join("claims", {}) as record:
            record.plan("claims")
            row = {"run_id": 1, "claim": 0, "is_done": False}
            add(store, SHARDS, [{**row, "shard": shard, "first": shard, "last": shard} for shard in range(shards)])
        command = [sys.executable, __file__, "--claim", store, temporary, str(n)]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(n)]
        said = [process.communicate() for process in processes]
        times = Counter(time for (time,) in query(store, select(SHARDS.c.claim)))
    faults = [error.decode()[-2000:] for _, error in said if error]
    found = [json.loads(output) for output, _ in said if output]
    if sum(each["claims"] for each in found) != shards or times != {1: shards}:
        faults.append(f"{sum(each['claims'] for each in found)} claims of {shards} shards: {times}")
    seconds = max(each["ended"] for each in found) - min(each["began"] for each in found)
    waited = sum(each["seconds"] for each in found) / shards
    print(
        f"{kind} claims: {n} processes claimed and finished {shards:,} shards in {seconds:.1f} s, "
        f"{shards / seconds:,.0f} per second, {1000 * waited:.1f} ms each; {len(faults)} faults",
        *faults[:3],
        sep="\n    ",
        flush=True,
    )
    return not faults


def main() -> int:
    """Parse the command line, run the parts, and say whether all went well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="kills, scale, claims, sqlite; all by default")
    parser.add_argument("--server", default=os.environ.get("DEBATE_TEST_POSTGRES"), help="PostgreSQL's address")
    parser.add_argument("--repetitions", type=int, help="of kills 20, of scale 3")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--debates", type=int, default=500, help="of a repetition of kills")
    parser.add_argument("--every", type=float, default=5.0, help="seconds from one kill to the next")
    parser.add_argument("--kills", type=int, default=12, help="most that a repetition has")
    parser.add_argument("--latency", type=float, nargs=2, default=(0.08, 0.14), help="of kills; seconds, from and to")
    parser.add_argument("--debates-to-scale", type=int, default=100, metavar="N", help="of each worker")
    parser.add_argument("--claimers", type=int, default=32, help="processes that only claim")
    parser.add_argument("--shards", type=int, default=10_000, help="that they claim")
    parser.add_argument("--claim", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.claim:
        store, folder, n = options.claim
        print(json.dumps(only_claim(store, Path(folder), int(n))))
        return 0
    parts = options.parts or ["kills", "scale", "claims", "sqlite"]
    if options.server is None and {*parts} - {"sqlite"}:
        parser.error('name a server by --server, or start one: eval "$(scripts/postgres start)"')
    fine = True
    if "kills" in parts:
        fine &= kills("postgresql", options, options.repetitions or 20)
    if "scale" in parts:
        fine &= scale("postgresql", options, (1, options.workers), options.repetitions or 3)
    if "claims" in parts:
        fine &= claims("postgresql", options, options.claimers, options.shards)
    if "sqlite" in parts:
        fine &= kills("sqlite", options, options.repetitions or 5)
        fine &= scale("sqlite", options, (1, 2, 4, 8), options.repetitions or 1)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
