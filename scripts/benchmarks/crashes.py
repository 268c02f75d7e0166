"""Kill runs at random moments, resume them, and count what was lost and what was paid twice.

    scripts/bench crashes [--runs 200] [--double 50] [--debates 100] [--at-once 2] [--seed 0] [--store URL]

The model is a server in a process of its own. It answers after 20 to 100 ms and writes down every request when it comes
and when it is answered, so calls are counted where they are paid for. A run of `debate run` (3 agents, 3 rounds, 4
candidates, 8 debates open at once) is killed with SIGKILL at a random moment and started again by the same command;
`--double` runs are killed a second time while they resume. Then:

    finished    the run ended with exit code 0
    turns       each (task, round, agent) is in the store exactly once
    same        results.jsonl is equal, by task, to that of a run that nobody killed (seconds apart)
    paid twice  requests beyond the turns are at most those that were open, or answered and not committed, at the kills
    integrity   PRAGMA integrity_check says ok

Prints one line a fault and the figures of all runs; exit code 1 when anything of this does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AGENTS, ROUNDS, CANDIDATES, AT_ONCE = 3, 3, 4, 8
SETTLE_SECONDS = 0.25
"""After a kill: what was in the sockets reaches the server."""


# ---- the model


def reply_to(body: dict[str, Any]) -> str:
    """A readable reply that depends on the request alone."""
    digest = hashlib.sha256(json.dumps([body["messages"], body.get("seed")]).encode()).digest()
    candidates = body["response_format"]["json_schema"]["schema"]["properties"]["candidates"]["properties"]
    reply: dict[str, Any] = {"overall": f"seen {digest[:3].hex()}", "candidates": {}}
    for n, (label, schema) in enumerate(candidates.items()):
        components = schema["properties"]["scores"]["properties"]
        scores = {name: digest[(7 * n + k) % 32] % 11 for k, name in enumerate(components)}
        reply["candidates"][label] = {"comment": f"{label}: {digest[n]}", "scores": scores}
    return json.dumps(reply)


async def serve(port_file: Path, log: Path, low: float, high: float) -> None:
    """OpenAI's chat completions, with a latency and a log of its own."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    count = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-len"))
                raw = await reader.readexactly(length)
                count += 1
                n = count
                os.write(descriptor, f"open {n}\n".encode())
                await asyncio.sleep(random.uniform(low, high))
                text = reply_to(json.loads(raw))
                usage = {"prompt_tokens": len(raw) // 4, "completion_tokens": len(text) // 4}
                choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
                reply = json.dumps({"id": str(n), "object": "chat.completion", "choices": [choice], "usage": usage})
                os.write(descriptor, f"done {n}\n".encode())
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(reply)}\r\n\r\n"
                writer.write((head + reply).encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port_file.write_text(str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


@dataclass
class Model:
    """A server process and what it wrote down."""

    url: str
    log: Path

    def requests(self) -> int:
        """How many it has seen."""
        return self.log.read_bytes().count(b"open ")


@contextmanager
def model(folder: Path, low: float, high: float) -> Generator[Model]:
    """A server of its own, ended afterwards."""
    port, log = folder / "port", folder / "requests.log"
    command = [sys.executable, __file__, "--serve", str(port), str(log), "--latency", str(low), str(high)]
    with subprocess.Popen(command) as process:
        try:
            while not (port.exists() and port.read_text()):
                time.sleep(0.02)
            log.touch()
            yield Model(f"http://127.0.0.1:{port.read_text()}/v1", log)
        finally:
            process.kill()


# ---- the runs


def write_tasks(path: Path, n: int) -> None:
    """`n` tasks of four candidates."""
    tasks = (
        {"id": f"t{t}", "x": f"Question {t}?", "candidates": [f"Answer {t}.{j}" for j in range(CANDIDATES)]}
        for t in range(n)
    )
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))


def start(evalset: Path, out: Path, url: str, store: str | None, *more: str) -> subprocess.Popen[bytes]:
    """The run, as a user would start it."""
    command = [
        *(sys.executable, "-m", "debate", "run", str(evalset), "--out", str(out)),
        *("--backend", "openai", "--base-url", url, "--model", "judge", "--max-concurrency", str(AT_ONCE)),
        *("--rounds", str(ROUNDS), "--convergence", "none", *(("--store", store) if store else ()), *more),
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def results(out: Path) -> dict[str, Any]:
    """Results by task, without what may differ between two runs that are the same."""
    found: dict[str, Any] = {}
    for line in (out / "results.jsonl").read_text().splitlines():
        evaluation = json.loads(line)
        del evaluation["seconds"], evaluation["usage"]["cached_tokens"]
        assert evaluation["task_id"] not in found, "a task stands twice in results.jsonl"
        found[evaluation["task_id"]] = evaluation
    return found


def committed(out: Path) -> int:
    """Calls in the store."""
    if not (out / "run.sqlite").exists():
        return 0
    with closing(sqlite3.connect(out / "run.sqlite")) as connection:
        try:
            return connection.execute("SELECT count(*) FROM calls").fetchone()[0]
        except sqlite3.OperationalError:  # killed before there were tables
            return 0


@dataclass
class Outcome:
    """What one killed run came to."""

    faults: list[str] = field(default_factory=list[str])
    kills: int = 0
    open_at_kills: int = 0
    extra: int = 0
    kept: list[int] = field(default_factory=list[int])


def crash(
    evalset: Path, out: Path, judge: Model, expected: dict[str, Any], kill_after: Sequence[float], n: int
) -> Outcome:
    """Start, kill and start again until done; then look at what is there."""
    outcome, before, lost = Outcome(), judge.requests(), 0
    for seconds in kill_after:
        process = start(evalset, out, judge.url, None)
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            time.sleep(SETTLE_SECONDS)
            outcome.kills += 1
            outcome.kept.append(committed(out))
            lost = judge.requests() - before - outcome.kept[-1]
    outcome.open_at_kills = lost
    last = start(evalset, out, judge.url, None)
    _, errors = last.communicate(timeout=600)
    if last.returncode != 0:
        outcome.faults.append(f"exit code {last.returncode}: {errors.decode()[-400:]}")
        return outcome
    turns = n * AGENTS * ROUNDS
    outcome.extra = judge.requests() - before - turns
    outcome.faults += list(faults_of(out, expected, turns))
    if outcome.extra > lost:
        outcome.faults.append(f"{outcome.extra} calls beyond the turns, {lost} were open or uncommitted at the kills")
    return outcome


def faults_of(out: Path, expected: dict[str, Any], turns: int) -> Iterator[str]:
    """What is wrong with a run that says it is done."""
    if results(out) != expected:
        yield "results differ from those of a run that nobody killed"
    with closing(sqlite3.connect(out / "run.sqlite")) as connection:
        (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
        if integrity != "ok":
            yield f"integrity_check: {integrity}"
        query = "SELECT tasks.task_id, round, agent FROM turns JOIN tasks USING (run_id, position)"
        places = Counter(connection.execute(query))
        if len(places) != turns or set(places.values()) != {1}:
            yield f"{len(places)} turns instead of {turns}, or one of them twice"
        (calls,) = connection.execute("SELECT count(*) FROM calls").fetchone()
        if calls != turns:
            yield f"{calls} calls in the store instead of {turns}"


def crash_many(
    arguments: argparse.Namespace, folder: Path, worker: int, plans: Sequence[tuple[int, int]]
) -> list[Outcome]:
    """One worker's share: its own model, its own reference run, its own runs."""
    home = folder / str(worker)
    home.mkdir()
    evalset = home / "tasks.jsonl"
    write_tasks(evalset, arguments.debates)
    outcomes: list[Outcome] = []
    with model(home, *arguments.latency) as judge:
        began = time.monotonic()
        process = start(evalset, home / "whole", judge.url, None)
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
        seconds = time.monotonic() - began
        expected = results(home / "whole")
        for number, kills in plans:
            chance = random.Random(f"{arguments.seed} {number}")
            out = home / f"run{number}"
            while True:  # a run that was done before it was killed says nothing
                moments = [chance.uniform(0.05, 1) * seconds / (1 if kills == 1 else 1.6) for _ in range(kills)]
                outcome = crash(evalset, out, judge, expected, moments, arguments.debates)
                if outcome.faults or outcome.kills == kills:
                    break
                shutil.rmtree(out)
            for fault in outcome.faults:
                print(f"run {number}: {fault}", flush=True)
            if not outcome.faults:
                shutil.rmtree(out)
            outcomes.append(outcome)
            print(f"run {number}: killed with {outcome.kept} calls kept", file=sys.stderr, flush=True)
    return outcomes


def report(outcomes: Sequence[Outcome], arguments: argparse.Namespace, seconds: float) -> bool:
    """Print the figures; returns whether all is well."""
    fine = sum(not outcome.faults for outcome in outcomes)
    kills = sum(outcome.kills for outcome in outcomes)
    turns = arguments.debates * AGENTS * ROUNDS
    print(f"runs of {arguments.debates} debates, {turns} turns each   {len(outcomes)}")
    print(f"killed                                   {kills} times")
    print(f"finished, complete, same results         {fine} of {len(outcomes)}")
    print(f"calls beyond the turns                   {sum(outcome.extra for outcome in outcomes)}")
    print(f"open or uncommitted at the kills         {sum(outcome.open_at_kills for outcome in outcomes)}")
    print(f"seconds                                  {seconds:.0f}")
    return fine == len(outcomes)


def main() -> int:
    """Parse, run, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="runs that are killed once")
    parser.add_argument("--double", type=int, default=50, help="runs that are killed again while they resume")
    parser.add_argument("--debates", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=2, help="runs side by side")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--latency", type=float, nargs=2, default=(0.02, 0.1), help="seconds, from and to")
    parser.add_argument("--serve", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(*arguments.serve, *arguments.latency))
        return 0
    plans = [(n, 1) for n in range(arguments.runs)]
    plans += [(arguments.runs + n, 2) for n in range(arguments.double)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(arguments.at_once) as pool:
        shares = [plans[worker :: arguments.at_once] for worker in range(arguments.at_once)]
        futures = [
            pool.submit(crash_many, arguments, Path(temporary), worker, share)
            for worker, share in enumerate(shares)
            if share
        ]
        outcomes = [outcome for future in futures for outcome in future.result()]
    return 0 if report(outcomes, arguments, time.monotonic() - began) else 1


if __name__ == "__main__":
    sys.exit(main())
