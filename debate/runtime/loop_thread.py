"""Runs an event loop in a thread of its own, so that plain functions can call async code anywhere.

An engine's backend belongs to one loop. Callers may have none (a script), one of their own (a notebook, a server), or
several threads; all of them reach the engine through here. Whoever waits gets an answer or an error, also when the loop
is closed, when the process ends, and in a process that was forked off.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import logging
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from debate.concurrency.exits import EXITS, is_being_cancelled
from debate.errors import EngineError

T = TypeVar("T")
R = TypeVar("R")
Future = concurrent.futures.Future
_log = logging.getLogger("debate")
_GRACE_SECONDS = 10.0
_CLOSING_SECONDS = 60.0
_HEARTBEAT_SECONDS = 0.2
_FORKED = "make the engine in the new process, or start it with multiprocessing's 'spawn'"
_INSIDE = "in a script, a display or an async function, await the async twin (`aevaluate`), or use another engine"


async def cancel_all(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel what is not done, and wait for its end."""
    pending = [task for task in tasks if not task.done()]
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


class LoopThread:
    """Runs coroutines on a background loop until it is closed, at the latest when the process ends.

    Raises:
        EngineError: where one would wait for ever: once this is closed, and for what is under way then; in the loop's
            own thread, which would wait for itself; in a forked process, which has no such thread.
    """

    def __init__(self, name: str) -> None:
        if sys.is_finalizing():  # no thread would start any more
            raise EngineError("the interpreter is shutting down")
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._is_closing = False
        self._is_closed = False
        self._under_way: set[Future[Any]] = set()
        self._waiting: set[SimpleQueue[Any]] = set()
        self._streams: list[AsyncGenerator[Any]] = []
        self._ending: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=_keep_running, args=(self._loop,), name=name, daemon=True)
        self._thread.start()
        _OPEN.add(self)

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread."""
        return threading.get_ident() == self._thread.ident

    def check_can_wait(self) -> None:
        """Raise EngineError in this very thread, which would wait for itself."""
        if self.is_current:
            raise EngineError("the engine was called from its own thread, which would wait for itself", hint=_INSIDE)

    @property
    def is_foreign(self) -> bool:
        """Whether the process was forked since this was made."""
        return os.getpid() != self._process

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for anything here, and the process is still the one that this was made in."""
        return not (self._under_way or self._waiting or self._is_closed or self.is_foreign or self.is_current)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work`. Interrupted (Ctrl-C), it cancels the work and waits a while for it to clean up.

        It waits at a queue, not for a future: an interrupt can leave a future's lock taken, and the loop stuck at it.
        """
        ended: SimpleQueue[asyncio.Task[T] | None] = SimpleQueue()
        tasks = self._submit(work, partial(self._begin, ended=ended), is_blocking=True)
        try:
            task = ended.get()
        except BaseException:
            with suppress(Empty, RuntimeError):  # the loop may be closed by now
                self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
                if not (tasks and tasks[0].done()):  # it may have been taken from the queue just now
                    ended.get(timeout=_GRACE_SECONDS)
            raise
        finally:
            self._waiting.discard(ended)
        if task is None or task.cancelled():
            raise self._cancelled()
        return task.result()

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work` from another loop. Being cancelled cancels the work and waits a while for it to clean up."""
        future = self._submit(work, self._schedule)
        try:
            with _kept_awake(asyncio.get_running_loop()):
                return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not is_being_cancelled():
                raise self._cancelled() from None
            future.cancel()
            with suppress(EngineError):
                ending = self._submit(_end_of(work), self._schedule)
                await asyncio.wait([asyncio.wrap_future(ending)], timeout=_GRACE_SECONDS)
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin `work` and return its future at once. Cancelling the future cancels the work.

        Where the work is cancelled from within, or this is closed, the future has an EngineError.
        """
        future, told = self._submit(work, self._schedule), Future[T]()
        told.add_done_callback(lambda _: future.cancel())
        future.add_done_callback(partial(self._tell, told))
        return told

    def _tell(self, told: Future[T], future: Future[T]) -> None:
        """Pass on what a future came to, unless nobody waits for it any more."""
        if not told.set_running_or_notify_cancel():
            return
        if future.cancelled():
            told.set_exception(self._cancelled())
        elif (error := future.exception()) is not None:
            told.set_exception(error)
        else:
            told.set_result(future.result())

    def finish(self, items: AsyncGenerator[Any]) -> None:
        """Close a stream and wait for its end, where one can: a generator may be finalized in any thread.

        A loop that is closed closes its streams itself, which is also the case when the interpreter ends.
        """
        self._streams.append(items)  # while the loop is being closed, nobody else may hold it any more
        if not (self._is_closed or self.is_foreign):
            with suppress(EngineError):
                if self.is_current:
                    self._submit(_close(items), self._schedule)
                else:
                    self.run(_close(items))
                self._streams.remove(items)

    async def afinish(self, items: AsyncGenerator[Any]) -> None:
        """Close a stream and wait for its end from another loop, see `finish`."""
        self._streams.append(items)
        with suppress(EngineError):
            await self.arun(_close(items))
            self._streams.remove(items)

    def close(
        self, last: Callable[[], Coroutine[Any, Any, None]] | None = None, *, seconds: float = _CLOSING_SECONDS
    ) -> None:
        """Cancel what still runs, run `last`, stop the loop and end the thread.

        Work that has not ended after so many seconds is left behind with its thread, and `last` is not run.
        """
        if self._is_closed or self.is_foreign:
            return
        with self._lock:
            self._is_closing = True  # before anything is cancelled, which the loop may tell of at once
            try:
                ending = self._submit(_cancel_the_rest(), self._schedule, is_blocking=True)
            except EngineError:
                self._is_closing = False
                raise
            self._is_closed = True
        try:
            concurrent.futures.wait([ending], seconds)
            if not ending.done():
                _log.warning("what the engine was doing has not ended after %g s and is left behind", seconds)
            elif last is not None:
                self._schedule(last()).result()
        finally:
            is_left_behind = not ending.done()
            ending.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._loop.stop))  # now, or then
            for future in self._under_way - {ending}:
                future.cancel()
            for ended in [*self._waiting]:
                ended.put(None)
            if not is_left_behind:
                self._thread.join(_GRACE_SECONDS)

    def forget(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel what still runs, run `last` and end the thread, all from within it. Returns at once.

        It takes no lock and starts no thread, so that the garbage collector may call it anywhere.
        """
        if self._is_closed or self.is_foreign or sys.is_finalizing():
            return
        self._is_closed = True
        _FORGOTTEN.add(self)
        self._loop.call_soon_threadsafe(self._begin_to_end, last)

    def _begin_to_end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._ending = asyncio.ensure_future(self._end(last))  # kept, as loops hold their tasks by weak references

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await _cancel_the_rest()
            await last()
        except Exception as error:
            _log.error("an engine that was forgotten could not be closed", exc_info=error)
        finally:
            self._loop.stop()

    @property
    def is_alive(self) -> bool:
        """Whether the thread has not ended."""
        return self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread."""
        self._thread.join(seconds)

    def _submit(
        self, work: Coroutine[Any, Any, T], begin: Callable[[Coroutine[Any, Any, T]], R], *, is_blocking: bool = False
    ) -> R:
        try:
            if self.is_foreign:
                raise EngineError("the engine was used before the process was forked", hint=_FORKED)
            if is_blocking:
                self.check_can_wait()
            with self._lock:
                if self._is_closed:
                    raise EngineError("the engine was closed")
                return begin(work)
        except EngineError:
            work.close()
            raise

    def _schedule(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    def _begin(self, work: Coroutine[Any, Any, T], ended: SimpleQueue[asyncio.Task[T] | None]) -> list[asyncio.Task[T]]:
        """Begin `work`, whose task comes into the list then and into the queue when it has ended."""
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            tasks.append(asyncio.ensure_future(work))
            tasks[0].add_done_callback(ended.put)

        self._waiting.add(ended)
        self._loop.call_soon_threadsafe(begin)
        return tasks

    def _cancelled(self) -> EngineError:
        """What to tell whoever waited for work that was cancelled, and had not asked for that."""
        if self._is_closing or self._is_closed:
            return EngineError("the engine was closed while this was under way")
        return EngineError("this was cancelled from within: a CancelledError that nobody had asked for")


def _keep_running(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and close it.

    An exit (`EXITS`) that a task raises ends a loop; whoever awaits the task has it too, so this one goes on.
    """
    with closing(loop):
        while True:
            try:
                return loop.run_forever()
            except EXITS as error:
                _log.debug("a task raised %r", error)


_OPEN: WeakSet[LoopThread] = WeakSet()
_FORGOTTEN: WeakSet[LoopThread] = WeakSet()
"""Threads that end on their own."""
_AWAKE: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
"""Loops that are woken up now and then, and how many calls wait in each."""


@atexit.register
def _close_all() -> None:
    """End what is under way before the interpreter ends: then daemon threads stand still, and waiting has no end."""
    for thread in [*_OPEN]:
        with suppress(EngineError):  # somebody closes it just now
            thread.close(seconds=_GRACE_SECONDS)
    if waiting := wait_for_the_forgotten(_GRACE_SECONDS):
        waiting()


def wait_for_the_forgotten(seconds: float = _CLOSING_SECONDS) -> Callable[[], None] | None:
    """What waits for the threads that end on their own, each for so long; None where there are none."""
    threads = [thread for thread in [*_FORGOTTEN] if thread.is_alive and not thread.is_foreign]

    def wait() -> None:
        for thread in threads:
            thread.join(seconds)

    return wait if threads else None


@contextmanager
def _kept_awake(caller: asyncio.AbstractEventLoop) -> Generator[None]:
    """Wake a loop now and then while it waits: notebooks interrupt by a callback that only a loop that wakes runs."""
    if caller not in _AWAKE:
        caller.call_later(_HEARTBEAT_SECONDS, _beat, caller)
    _AWAKE[caller] = _AWAKE.get(caller, 0) + 1
    try:
        yield
    finally:
        _AWAKE[caller] -= 1


def _beat(caller: asyncio.AbstractEventLoop) -> None:
    if _AWAKE[caller]:
        caller.call_later(_HEARTBEAT_SECONDS, _beat, caller)
    else:
        del _AWAKE[caller]


async def _close(items: AsyncGenerator[Any]) -> None:
    await items.aclose()


async def _end_of(work: Coroutine[Any, Any, Any]) -> None:
    """A cancelled future is done at once; the task behind it is done when it has cleaned up."""
    tasks = [task for task in asyncio.all_tasks() if task.get_coro() is work]
    if tasks:
        await asyncio.wait(tasks)


async def _cancel_the_rest() -> None:
    """Cancel all other tasks, and those that they begin while they end; then close the streams that are open."""
    while rest := asyncio.all_tasks() - {asyncio.current_task()}:
        await cancel_all(rest)
    await asyncio.get_running_loop().shutdown_asyncgens()
