"""Blocking work in daemon threads, awaited from an event loop.

Executors (and anyio's workers) are joined at interpreter exit; work that never ends would hold up the process. A daemon
thread does not.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from debate.concurrency.exits import is_carried

T = TypeVar("T")
_log = logging.getLogger("debate")


class DaemonThread:
    """A daemon thread that does one piece of work after the other until closed, in the context of whoever asks.

    Raises:
        RuntimeError: for what the work raises and a future cannot carry, see `is_carried`; all else reaches whoever
            awaits it as it is.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._pieces: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=_do_all, args=(self._pieces,), name=name, daemon=True).start()

    def do(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Queue some work; the future has what it returns or raises.

        Cancelling the future leaves the thread to itself: nothing can end it.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        self._pieces.put(partial(_do, partial(context.run, work), future, loop, self._name))
        return future

    def close(self) -> None:
        """End the thread once its work is done."""
        self._pieces.put(None)


def in_daemon_thread(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Run `work` in a new daemon thread called `name`; the future has what it returns or raises, as `DaemonThread`."""
    thread = DaemonThread(name)
    future = thread.do(work)
    thread.close()
    return future


def _do_all(pieces: SimpleQueue[Callable[[], None] | None]) -> None:
    while (piece := pieces.get()) is not None:
        piece()
        del piece  # it holds the work's result until the next one comes


def _do(work: Callable[[], Any], future: asyncio.Future[Any], loop: asyncio.AbstractEventLoop, name: str) -> None:
    setter: Callable[[Any], None] = future.set_result
    try:
        value: Any = work()
    except BaseException as error:
        setter, value = future.set_exception, error if is_carried(error) else RuntimeError(repr(error))

    def settle() -> None:
        if not future.done():
            setter(value)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        _log.debug("the thread %s ended after its event loop", name)
