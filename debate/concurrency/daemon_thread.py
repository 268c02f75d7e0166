"""Blocking work in a daemon thread of its own, awaited from an event loop.

Executors (and anyio's workers) are joined at interpreter exit; work that never ends would hold up the process. A daemon
thread does not.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_log = logging.getLogger("debate")


def in_daemon_thread(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Run `work` in a new daemon thread called `name`; the future has what it returns or raises.

    Cancelling the future leaves the thread to itself: nothing can end it. What is no `Exception` (SystemExit), and
    StopIteration, which a future cannot hold, become a RuntimeError.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(setter: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            setter(value)

    def run() -> None:
        setter: Callable[[Any], None] = future.set_result
        try:
            value: Any = work()
        except BaseException as error:
            fits = isinstance(error, Exception) and not isinstance(error, StopIteration)
            setter, value = future.set_exception, error if fits else RuntimeError(repr(error))
        try:
            loop.call_soon_threadsafe(settle, setter, value)
        except RuntimeError:
            _log.debug("the thread %s ended after its event loop", name)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
