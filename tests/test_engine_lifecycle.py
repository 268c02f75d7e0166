"""The engine's threads and loops: who may call it from where, and what starts, ends and is let go when."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import debate
from debate import Engine, Evaluation
from debate.backends import Call, Scripted
from debate.errors import BackendError
from debate.testing import reply_for
from tests.small_flows import Stalling, Startable, asks, debates, late, plain, tasks


def engine_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "debate-engine"]


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    yield
    assert engine_threads() == []


# ---- loops and threads


def test_plain_calls_work_inside_a_running_loop() -> None:
    async def notebook() -> tuple[Evaluation, list[Evaluation], list[Evaluation]]:
        return (
            engine.evaluate(tasks(1)[0], asks(1)),
            engine.evaluate_batch(tasks(2), asks(1)),
            list(engine.iter_evaluate(tasks(3), asks(1))),
        )

    with Engine(Scripted(late(reply_for, 1))) as engine:
        one, two, three = asyncio.run(notebook())
    assert (one.status, len(two), len(three)) == ("ok", 2, 3)


def test_the_async_twins_do_the_same_and_block_nobody() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    async def server() -> list[list[dict[str, Any]]]:
        ticking = asyncio.ensure_future(tick())
        one = await engine.aevaluate(tasks(1)[0], debates())
        batch = await engine.aevaluate_batch(tasks(3), debates())
        streamed = [evaluation async for evaluation in engine.astream(tasks(3), debates())]
        ticking.cancel()
        in_order = sorted(streamed, key=lambda evaluation: evaluation.task_id)
        return [[plain(evaluation) for evaluation in group] for group in ([one], batch, in_order)]

    with Engine(Scripted(late(reply_for, 1))) as engine:
        one, batch, streamed = asyncio.run(server())
        assert [plain(evaluation) for evaluation in engine.evaluate_batch(tasks(3), debates())] == batch
    assert one == batch[:1]
    assert streamed == batch
    assert ticks > 0


def test_the_engine_serves_one_loop_after_another() -> None:
    async def once() -> str:
        return (await engine.aevaluate(tasks(1)[0], asks(1))).status

    with Engine(Scripted(late(reply_for, 1))) as engine:
        assert [asyncio.run(once()) for _ in range(3)] == ["ok"] * 3


def test_several_threads_use_one_engine_at_once() -> None:
    backend = Startable(late(reply_for, 1))
    with Engine(backend, max_concurrency=4) as engine:
        expected = [plain(evaluation) for evaluation in engine.evaluate_batch(tasks(4), debates())]
        with ThreadPoolExecutor(6) as pool:
            runs = [pool.submit(engine.evaluate_batch, tasks(4), debates()) for _ in range(6)]
            for run in runs:
                assert [plain(evaluation) for evaluation in run.result(10)] == expected
    assert backend.events == ["start", "aclose"]


@pytest.mark.parametrize("how", ["aevaluate", "aevaluate_batch", "astream"])
def test_cancelling_an_async_call_cancels_its_calls_to_the_backend(how: str) -> None:
    script = Stalling()

    async def use(engine: Engine) -> None:
        if how == "aevaluate":
            await engine.aevaluate(tasks(1)[0], asks(1))
        elif how == "aevaluate_batch":
            await engine.aevaluate_batch(tasks(2), asks(1))
        else:
            async for _ in engine.astream(tasks(2), asks(1)):
                pass

    async def scene(engine: Engine) -> None:
        using = asyncio.ensure_future(use(engine))
        assert await asyncio.to_thread(script.asked.wait, 5)
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using
        assert script.cancelled.is_set()

    with Engine(Scripted(script.answer)) as engine:
        asyncio.run(scene(engine))


INTERRUPTED = """
    import asyncio, threading
    from debate import Engine, Task
    from debate.backends import Scripted
    from tests.small_flows import asks

    async def script(call):
        print("asked", flush=True)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("cancelled", flush=True)
            raise

    try:
        with Engine(Scripted(script), max_concurrency=2) as engine:
            engine.evaluate_batch([Task(f"q{i}", ["a"]) for i in range(5)], asks(1))
    finally:
        print("threads", threading.active_count(), flush=True)
"""


def test_ctrl_c_ends_a_batch_within_seconds() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED)],
        cwd=Path(debate.__file__).parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["asked\n"] * 2
        interrupted = time.perf_counter()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert time.perf_counter() - interrupted < 5
    finally:
        process.kill()
    assert out.splitlines() == ["cancelled", "cancelled", "threads 1"]
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert process.returncode == -signal.SIGINT


# ---- starting and closing


def test_backends_are_started_once_and_closed_once() -> None:
    first, second = Startable(), Startable(model="other")
    with Engine({"a": first, "b": second}) as engine:
        assert first.events == []
        assert engine.start() is engine
        engine.evaluate(tasks(1)[0], asks(1))
        engine.evaluate_batch(tasks(2), asks(1))
    assert first.events == second.events == ["start", "aclose"]


def test_an_engine_can_be_closed_without_a_start_and_more_than_once() -> None:
    backend = Startable()
    engine = Engine(backend)
    engine.close()
    engine.close()
    assert "start" not in backend.events


def test_a_closed_engine_can_be_used_again() -> None:
    backend = Startable()
    engine = Engine(backend)
    for _ in range(2):
        with engine:
            assert engine.evaluate(tasks(1)[0], asks(1)).status == "ok"
    assert backend.events == ["start", "aclose"] * 2


def test_an_engine_is_an_async_context_manager_too() -> None:
    backend = Startable()

    async def scene() -> str:
        async with Engine(backend) as engine:
            return (await engine.aevaluate(tasks(1)[0], asks(1))).status

    assert asyncio.run(scene()) == "ok"
    assert backend.events == ["start", "aclose"]


def test_a_backend_that_does_not_start_is_tried_again_at_the_next_call() -> None:
    backend = Startable(faults=2)
    with Engine(backend) as engine:
        for _ in range(2):
            with pytest.raises(BackendError, match="out of memory"):
                engine.evaluate(tasks(1)[0], asks(1))
        assert engine.evaluate(tasks(1)[0], asks(1)).status == "ok"
    assert backend.events.count("start") == 1


def test_when_one_backend_does_not_start_the_others_are_let_go() -> None:
    fine, faulty = Startable(), Startable(model="faulty", faults=1)
    with Engine({"a": fine, "b": faulty}) as engine:
        with pytest.raises(BackendError, match="out of memory"):
            engine.start()
        assert fine.events == ["start", "aclose"]
        engine.start()
    assert fine.events == ["start", "aclose", "start", "aclose"]


def test_closing_ends_an_evaluation_that_another_thread_waits_for() -> None:
    asked = threading.Event()

    async def script(call: Call) -> str:
        asked.set()
        await asyncio.sleep(60)
        return "1"

    engine = Engine(Scripted(script))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engine.evaluate, tasks(1)[0], asks(1))
        assert asked.wait(5)
        engine.close()
        assert isinstance(waiting.exception(5), BaseException)
