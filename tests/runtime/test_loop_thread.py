"""A loop in a thread: reachable from anywhere, and nothing is left running behind whoever stops waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from debate.errors import EngineError
from debate.runtime.loop_thread import LoopThread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread("under-test")
    yield thread
    thread.close()


async def who() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def fail() -> None:
    raise LookupError("lost")


class Slow:
    """Work that takes a minute, and a moment to clean up when it is cancelled."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.cleaned_up = False

    async def work(self) -> str:
        self.began.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            self.cleaned_up = True
        return "done"


def test_work_runs_in_the_thread_and_its_result_comes_back(loop: LoopThread) -> None:
    assert loop.run(who()) == "under-test"


def test_plain_calls_work_inside_a_running_loop(loop: LoopThread) -> None:
    async def notebook() -> str:
        return loop.run(who())

    assert asyncio.run(notebook()) == "under-test"


def test_another_loop_can_wait_without_being_blocked(loop: LoopThread) -> None:
    async def server() -> list[str]:
        return list(await asyncio.gather(loop.arun(who()), loop.arun(who())))

    assert asyncio.run(server()) == ["under-test"] * 2


def test_several_threads_share_the_loop(loop: LoopThread) -> None:
    meet = asyncio.Barrier(4)

    async def together() -> str:
        await asyncio.wait_for(meet.wait(), 5)
        return await who()

    with ThreadPoolExecutor(4) as pool:
        names = [pool.submit(lambda: loop.run(together())) for _ in range(4)]
        assert [name.result() for name in names] == ["under-test"] * 4


def test_an_exception_of_the_work_reaches_whoever_waits(loop: LoopThread) -> None:
    with pytest.raises(LookupError, match="lost"):
        loop.run(fail())
    with pytest.raises(LookupError, match="lost"):
        asyncio.run(loop.arun(fail()))
    assert loop.run(who()) == "under-test"


def test_cancelling_the_wait_cancels_the_work_and_waits_for_its_end(loop: LoopThread) -> None:
    slow = Slow()

    async def scene() -> None:
        waiting = asyncio.ensure_future(loop.arun(slow.work()))
        await asyncio.to_thread(slow.began.wait, 5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert slow.cleaned_up

    asyncio.run(scene())


def test_work_cancelled_before_it_began_takes_no_time(loop: LoopThread) -> None:
    async def scene() -> None:
        for _ in range(20):
            waiting = asyncio.ensure_future(loop.arun(asyncio.sleep(60)))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    began = time.perf_counter()
    asyncio.run(scene())
    assert time.perf_counter() - began < 5


def test_an_interrupt_cancels_the_work_and_waits_for_its_end(loop: LoopThread) -> None:
    slow = Slow()

    async def interrupted() -> None:
        asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
        await slow.work()

    with pytest.raises(KeyboardInterrupt):
        loop.run(interrupted())
    assert slow.cleaned_up


def test_closing_cancels_what_still_runs_and_ends_the_thread() -> None:
    thread, slow = LoopThread("to-be-closed"), Slow()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: thread.run(slow.work()))
        assert slow.began.wait(5)
        thread.close()
        with pytest.raises(EngineError, match="closed while this was under way"):
            waiting.result(5)
    assert slow.cleaned_up
    assert "to-be-closed" not in [each.name for each in threading.enumerate()]


def test_work_that_does_not_end_is_left_behind_and_whoever_waits_is_told(caplog: pytest.LogCaptureFixture) -> None:
    thread, began, may_end = LoopThread("blocked"), threading.Event(), threading.Event()

    async def blocks() -> None:
        began.set()
        may_end.wait(30)

    closed: list[str] = []

    async def last() -> None:
        closed.append("last")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: thread.run(blocks()))
        assert began.wait(5)
        thread.close(last, seconds=0.1)
        with pytest.raises(EngineError, match="closed while this was under way"):
            waiting.result(5)
        with pytest.raises(EngineError, match="the engine was closed"):
            thread.run(who())
    assert closed == []
    assert caplog.messages == ["what the engine was doing has not ended after 0.1 s and is left behind"]
    may_end.set()


def test_closing_runs_what_comes_last_once_all_work_has_ended() -> None:
    thread, slow = LoopThread("to-be-closed"), Slow()
    seen: list[bool] = []

    async def last() -> None:
        seen.append(slow.cleaned_up)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: thread.run(slow.work()))
        assert slow.began.wait(5)
        thread.close(last)
        assert isinstance(waiting.exception(5), EngineError)
    assert seen == [True]


def test_an_exit_in_the_work_reaches_whoever_waits_and_the_loop_goes_on(loop: LoopThread) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit, match="3"):
        loop.run(leave())
    with pytest.raises(SystemExit, match="3"):
        asyncio.run(loop.arun(leave()))
    assert loop.run(who()) == "under-test"


def test_work_that_was_cancelled_by_nobody_who_waits_is_an_error_and_no_cancellation(loop: LoopThread) -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def twin() -> None:
        await loop.arun(cancelled())

    for use in (lambda: loop.run(cancelled()), lambda: asyncio.run(twin())):
        with pytest.raises(EngineError, match="cancelled from within"):
            use()


def test_closing_twice_is_closing_once() -> None:
    thread = LoopThread("twice")
    thread.close()
    thread.close()
    assert "twice" not in [each.name for each in threading.enumerate()]


INTERRUPTED = """
    import asyncio, random, signal, sys
    from debate.runtime.loop_thread import LoopThread

    is_waiting, interrupts, draw = False, 0, random.Random(1)

    def interrupt(*_):
        if is_waiting:
            raise KeyboardInterrupt

    sys.setswitchinterval(1e-6)  # an interrupt comes where threads are switched
    sys.unraisablehook = lambda _: None  # of interrupts in finalizers
    signal.signal(signal.SIGALRM, interrupt)
    thread = LoopThread("loop")
    for _ in range(3000):
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, 3e-4))
        try:
            is_waiting = True
            thread.run(asyncio.sleep(0))
            is_waiting = False
        except KeyboardInterrupt:
            is_waiting, interrupts = False, interrupts + 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert thread.run(asyncio.sleep(0, "alive")) == "alive"
    thread.close()
    print(interrupts)
"""


def test_an_interrupt_at_any_moment_leaves_the_loop_running() -> None:
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
