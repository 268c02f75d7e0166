"""Blocking work beside an event loop: its result, its errors, and work that nobody waits for any more."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from debate.concurrency.daemon_thread import in_daemon_thread


def test_work_runs_in_a_daemon_thread_of_the_given_name() -> None:
    async def scene() -> threading.Thread:
        return await in_daemon_thread(threading.current_thread, "worker")

    thread = asyncio.run(scene())
    assert (thread.name, thread.daemon) == ("worker", True)


@pytest.mark.parametrize(
    ("raised", "met"),
    [
        (ValueError("no"), ValueError),
        (SystemExit(1), SystemExit),
        (StopIteration(), RuntimeError),
        (GeneratorExit(), RuntimeError),
        (asyncio.CancelledError(), RuntimeError),
    ],
)
def test_what_the_work_raises_reaches_whoever_waits(raised: BaseException, met: type[BaseException]) -> None:
    def work() -> None:
        raise raised

    async def scene() -> None:
        await asyncio.wait_for(in_daemon_thread(work, "worker"), 5)

    with pytest.raises(met):
        asyncio.run(scene())


def test_work_that_outlives_its_loop_is_left_to_itself() -> None:
    done = threading.Event()

    def work() -> None:
        time.sleep(0.2)
        done.set()

    async def scene() -> None:
        async with asyncio.timeout(0.01):
            await in_daemon_thread(work, "worker")

    with pytest.raises(TimeoutError):
        asyncio.run(scene())
    assert done.wait(5)
