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
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from debate.concurrency.exits import EXITS, is_being_cancelled
from debate.errors import EngineError

T = TypeVar("T")
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
        self._is_closed = False
        self._under_way: set[Future[Any]] = set()
        self._thread = threading.Thread(target=_keep_running, args=(self._loop,), name=name, daemon=True)
        self._thread.start()
        _OPEN.add(self)

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread."""
        return threading.get_ident() == self._thread.ident

    @property
    def is_foreign(self) -> bool:
        """Whether the process was forked since this was made."""
        return os.getpid() != self._process

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work`. Interrupted (Ctrl-C), it cancels the work and waits a while for it to clean up."""
        future = self._submit(work, is_blocking=True)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise self._cancelled() from None
        except BaseException:
            if not future.done():
                future.cancel()
                with suppress(TimeoutError, EngineError):
                    self._submit(_end_of(work)).result(_GRACE_SECONDS)
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work` from another loop. Being cancelled cancels the work and waits a while for it to clean up."""
        future = self._submit(work)
        try:
            with _kept_awake(asyncio.get_running_loop()):
                return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not is_being_cancelled():
                raise self._cancelled() from None
            future.cancel()
            with suppress(TimeoutError, EngineError):
                await asyncio.wait_for(asyncio.wrap_future(self._submit(_end_of(work))), _GRACE_SECONDS)
            raise

    def finish(self, items: AsyncGenerator[Any]) -> None:
        """Close a stream and wait for its end, where one can: a generator may be finalized in any thread.

        A loop that is closed has closed its streams already, which is also the case when the interpreter ends.
        """
        if not (self._is_closed or self.is_foreign):
            with suppress(EngineError):
                if self.is_current:
                    self._submit(_close(items))
                else:
                    self.run(_close(items))

    async def afinish(self, items: AsyncGenerator[Any]) -> None:
        """Close a stream and wait for its end from another loop, see `finish`."""
        with suppress(EngineError):
            await self.arun(_close(items))

    def close(
        self, last: Callable[[], Coroutine[Any, Any, None]] | None = None, *, seconds: float = _CLOSING_SECONDS
    ) -> None:
        """Cancel what still runs, run `last`, stop the loop and end the thread.

        Work that has not ended after so many seconds is left behind with its thread, and `last` is not run.
        """
        if self._is_closed or self.is_foreign:
            return
        with self._lock:
            ending = self._submit(_cancel_the_rest(), is_blocking=True)
            self._is_closed = True
        try:
            concurrent.futures.wait([ending], seconds)
            if not ending.done():
                _log.warning("what the engine was doing has not ended after %g s and is left behind", seconds)
            elif last is not None:
                self._schedule(last()).result()
        finally:
            self._stop(waits=ending.done())

    def _stop(self, *, waits: bool) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if waits:
            self._thread.join(_GRACE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
        for future in [*self._under_way]:
            future.cancel()

    def _submit(self, work: Coroutine[Any, Any, T], *, is_blocking: bool = False) -> Future[T]:
        try:
            if self.is_foreign:
                raise EngineError("the engine was used before the process was forked", hint=_FORKED)
            if is_blocking and self.is_current:
                raise EngineError(
                    "the engine was called from its own thread, which would wait for itself", hint=_INSIDE
                )
            with self._lock:
                if self._is_closed:
                    raise EngineError("the engine was closed")
                return self._schedule(work)
        except EngineError:
            work.close()
            raise

    def _schedule(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    def _cancelled(self) -> EngineError:
        """What to tell whoever waited for work that was cancelled, and had not asked for that."""
        if self._is_closed:
            return EngineError("the engine was closed while this was under way")
        return EngineError("this was cancelled from within: a CancelledError that nobody had asked for")


def _keep_running(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped.

    An exit (`EXITS`) that a task raises ends a loop; whoever awaits the task has it too, so this one goes on.
    """
    while True:
        try:
            return loop.run_forever()
        except EXITS as error:
            _log.debug("a task raised %r", error)


_OPEN: WeakSet[LoopThread] = WeakSet()
_AWAKE: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
"""Loops that are woken up now and then, and how many calls wait in each."""


@atexit.register
def _close_all() -> None:
    """End what is under way before the interpreter ends: then daemon threads stand still, and waiting has no end."""
    for thread in [*_OPEN]:
        thread.close(seconds=_GRACE_SECONDS)


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
