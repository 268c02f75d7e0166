"""Runs an event loop in a thread of its own, so that plain functions can call async code anywhere.

An engine's backend belongs to one loop. Callers may have none (a script), one of their own (a notebook, a server), or
several threads; all of them reach the engine through here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
_GRACE_SECONDS = 10.0


async def cancel_all(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel what is not done, and wait for its end."""
    pending = [task for task in tasks if not task.done()]
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


class LoopThread:
    """Runs coroutines on a background loop until closed."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work`. Interrupted (Ctrl-C), it cancels the work and waits a while for it to clean up."""
        future = self._submit(work)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                with suppress(TimeoutError):
                    self._submit(_end_of(work)).result(_GRACE_SECONDS)
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work` from another loop. Being cancelled cancels the work and waits a while for it to clean up."""
        future = self._submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                future.cancel()
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.wrap_future(self._submit(_end_of(work))), _GRACE_SECONDS)
            raise

    def _submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Cancel what still runs, stop the loop and end the thread."""
        if self._loop.is_closed():
            return
        self.run(_cancel_the_rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_GRACE_SECONDS)
        self._loop.close()


async def _end_of(work: Coroutine[Any, Any, Any]) -> None:
    """A cancelled future is done at once; the task behind it is done when it has cleaned up."""
    tasks = [task for task in asyncio.all_tasks() if task.get_coro() is work]
    if tasks:
        await asyncio.wait(tasks)


async def _cancel_the_rest() -> None:
    await cancel_all(asyncio.all_tasks() - {asyncio.current_task()})
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
