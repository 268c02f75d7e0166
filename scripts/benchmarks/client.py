"""Measure what the engine adds to asking a server: wall time and client CPU beside a bare client's.

    scripts/bench client [--repetitions 5] [--latency 200 600] [--tasks 40] [--at-once 40 8]

A server on loopback, in a process of its own, answers OpenAI chat completions after a latency that is a hash of the
request, uniform between the two given (milliseconds). It is asked the 240 turns of 40 debates of 3 agents and 2 rounds:

    engine    Engine with OpenAICompatible: prompts, seeds, schemas, retries, parsing, evaluations
    bare      httpx2 alone, sending the same bytes: every task's requests one after the other

The bytes are those that the engine sent in a first run; every later run of the engine must send the same. Runs are
interleaved; connections are opened inside the time, clients made and closed outside it, and garbage is collected
before it. How to read it: the engine is to need at most 1.05 times the bare client's wall time at 200 to 600 ms, and at
most 1.5 times its wall time and its CPU at 20 to 60 ms. `floor` is what the latencies alone ask for: the longest task,
or all of them shared out among the tasks open at once. Where the bare client's wall time is well above the floor it is
short of CPU itself, and wall time is a measure of CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import gc
import hashlib
import json
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from debate import DebateEvaluator, Engine, Task
from debate.backends import OpenAICompatible

Requests = list[list[bytes]]
"""The bodies of each task's requests, in turn order."""
PROSE = "The second step is right, but the sum in the third is not what it says; the boundary is left out. " * 3
_TASK = re.compile(rb"\[input \w+\]\\n\((\d+)\)")


# The server, in its own process -----------------------------------------------------------------------------------


def latency_ms(body: bytes, low: float, high: float) -> float:
    """How long the server takes over a request."""
    part = int.from_bytes(hashlib.blake2b(body, digest_size=4).digest(), "big") / 2**32
    return low + (high - low) * part


def reply_to(schema: dict[str, Any], salt: int) -> str:
    """A debate's reply that follows the schema, with comments of 200 characters."""
    candidates = schema["properties"]["candidates"]["properties"]
    said: dict[str, Any] = {}
    for j, (label, candidate) in enumerate(candidates.items()):
        names = candidate["properties"]["scores"]["properties"]
        scores = {name: (salt + 7 * j + 3 * k) % 21 / 2 for k, name in enumerate(names)}
        said[label] = {"comment": PROSE[:200], "scores": scores}
    return json.dumps({"overall": PROSE[:200], "candidates": said})


def completion(body: bytes) -> bytes:
    """The server's answer to a request."""
    request = json.loads(body)
    text = reply_to(request["response_format"]["json_schema"]["schema"], request["seed"])
    prompt_tokens = sum(len(message["content"]) for message in request["messages"]) // 4
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": len(text) // 4}
    message = {"role": "assistant", "content": text}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }
    ).encode()


class Server:
    """HTTP/1.1 with open connections. `GET` gives back the bodies received since the last one."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high
        self._bodies: list[bytes] = []

    async def serve(self) -> None:
        """Say the port on standard output, and serve until killed."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                answer = await self._answer(head, reader)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(answer), answer))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, head: bytes, reader: asyncio.StreamReader) -> bytes:
        if head.startswith(b"GET"):
            bodies, self._bodies = self._bodies, []
            return json.dumps([body.decode() for body in bodies]).encode()
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        assert length is not None
        body = await reader.readexactly(int(length[1]))
        due = time.monotonic() + latency_ms(body, self._low, self._high) / 1000
        self._bodies.append(body)
        answer = completion(body)
        await asyncio.sleep(due - time.monotonic())
        return answer


@contextmanager
def server(low: float, high: float) -> Generator[str]:
    """A server in another process: its address, up to and with `/v1`."""
    command = [sys.executable, __file__, "--serve", "--latency", str(low), str(high)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


# The clients ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """What one run cost. Seconds."""

    wall: float
    cpu: float


@contextmanager
def timed(into: list[Figures]) -> Generator[None]:
    """Add what the block took."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    into.append(Figures(time.perf_counter() - wall, time.process_time() - cpu))


def tasks(n: int) -> list[Task]:
    """Tasks that say their number."""
    return [Task(f"({i}) {PROSE}", [f"({j}) {PROSE[:200]}" for j in range(4)], f"task-{i}") for i in range(n)]


def run_engine(url: str, n_tasks: int, at_once: int, figures: list[Figures]) -> None:
    """All debates over our backend."""
    evaluator = DebateEvaluator("general", rounds=2, convergence=None)
    backend = OpenAICompatible("model", base_url=url, api_key_env="DEBATE_BENCH_NO_KEY")
    work = tasks(n_tasks)
    with Engine(backend, max_concurrency=at_once, today=datetime.date(2026, 11, 21)) as engine:
        engine.start()
        with timed(figures):
            evaluations = engine.evaluate_batch(work, evaluator)
    assert all(evaluation.status == "ok" for evaluation in evaluations)


async def run_bare(url: str, requests: Requests, at_once: int, figures: list[Figures]) -> None:
    """The same bytes through httpx2."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    headers = {"Content-Type": "application/json"}
    async with httpx2.AsyncClient(limits=limits, headers=headers, timeout=60) as client:

        async def one_task(bodies: list[bytes]) -> None:
            for body in bodies:
                answer = await client.post(f"{url}/chat/completions", content=body)
                assert answer.json()["choices"][0]["message"]["content"]

        await _side_by_side(one_task, requests, at_once, figures)


async def _side_by_side(
    one_task: Callable[[Any], Awaitable[None]], work: Sequence[Any], at_once: int, figures: list[Figures]
) -> None:
    room = asyncio.Semaphore(at_once)

    async def in_turn(item: Any) -> None:
        async with room:
            await one_task(item)

    with timed(figures):
        await asyncio.gather(*(in_turn(item) for item in work))


def received(url: str) -> list[bytes]:
    """The bodies that the server received since it was last asked."""
    return [body.encode() for body in httpx2.get(url, timeout=60).json()]


def by_task(bodies: Sequence[bytes]) -> Requests:
    """The bodies of each task; a task's own arrive in turn order."""
    grouped: defaultdict[int, list[bytes]] = defaultdict(list)
    for body in bodies:
        number = _TASK.search(body)
        assert number is not None
        grouped[int(number[1])].append(body)
    return [grouped[n] for n in sorted(grouped)]


def measure(url: str, n_tasks: int, at_once: int, repetitions: int) -> tuple[dict[str, list[Figures]], Requests]:
    """Interleaved runs of all clients, after one that records the requests and warms all up."""
    run_engine(url, n_tasks, at_once, [])
    requests = by_task(received(url))
    figures: dict[str, list[Figures]] = {"engine": [], "bare": []}
    asyncio.run(run_bare(url, requests, at_once, []))
    received(url)
    for _ in range(repetitions):
        asyncio.run(run_bare(url, requests, at_once, figures["bare"]))
        _expect(received(url), requests, "bare")
        run_engine(url, n_tasks, at_once, figures["engine"])
        _expect(received(url), requests, "engine")
    return figures, requests


def _expect(bodies: list[bytes], requests: Requests, client: str) -> None:
    if sorted(bodies) != sorted(body for task in requests for body in task):
        raise SystemExit(f"{client} did not send the requests of the first run")


def table(figures: dict[str, list[Figures]], requests: Requests, at_once: int, low: float, high: float) -> str:
    """Medians, and the ratios of medians to the bare client's."""
    n = sum(map(len, requests))
    tasks_ms = [sum(latency_ms(body, low, high) for body in task) for task in requests]
    floor = max(*tasks_ms, sum(tasks_ms) / at_once) / 1000
    bare = _medians(figures["bare"])
    lines = [
        f"{len(requests)} tasks, {at_once} at once, {n} requests, latency {low:g} to {high:g} ms, floor {floor:.3f} s",
        f"{'client':<8}{'requests':>9}{'wall s':>8}{'CPU s':>8}{'ms each':>9}{'wall / bare':>13}{'CPU / bare':>12}",
    ]
    for name, runs in figures.items():
        middle = _medians(runs)
        lines.append(
            f"{name:<8}{n:>9}{middle.wall:>8.3f}{middle.cpu:>8.3f}{middle.cpu / n * 1000:>9.2f}"
            f"{middle.wall / bare.wall:>13.2f}{middle.cpu / bare.cpu:>12.2f}"
        )
    return "\n".join(lines)


def _medians(runs: Sequence[Figures]) -> Figures:
    return Figures(statistics.median(run.wall for run in runs), statistics.median(run.cpu for run in runs))


def main() -> int:
    """Parse the command line, run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="runs of each client, interleaved")
    parser.add_argument("--latency", nargs=2, type=float, default=[200.0, 600.0], metavar=("LOW", "HIGH"), help="in ms")
    parser.add_argument("--tasks", type=int, default=40, help="debates of 6 turns")
    parser.add_argument("--at-once", nargs="+", type=int, default=[40, 8], help="open tasks; one table each")
    parser.add_argument("--serve", action="store_true", help="be the server (used by the script itself)")
    options = parser.parse_args()
    low, high = options.latency
    if options.serve:
        asyncio.run(Server(low, high).serve())
        return 0
    with server(low, high) as url:
        for at_once in options.at_once:
            figures, requests = measure(url, options.tasks, at_once, options.repetitions)
            print(table(figures, requests, at_once, low, high), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
