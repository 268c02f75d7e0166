"""Calls functions that are no model's, for flows: async ones in the loop, plain ones each in a thread of its own.

A plain function that takes too long cannot be ended; its thread is left behind and holds up neither other calls nor the
end of the process. Knows nothing of what is computed.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from debate.errors import ENDS_A_RUN
from debate.flow import CallFunction
from debate.types import Failure

_log = logging.getLogger("debate")
_MOST_THREADS = 16


class FunctionExecutor:
    """Answers `CallFunction` requests. Belongs to the event loop that it is first used on."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(_MOST_THREADS)

    async def compute(self, request: CallFunction) -> Any:
        """What the function returns; whatever it raises becomes a failure."""
        name = getattr(request.function, "__name__", type(request.function).__name__)
        try:
            if inspect.iscoroutinefunction(request.function):
                return await _within(request.function(*request.arguments), request.seconds)
            async with self._room:  # its time begins when it does
                answer = await _within(_in_thread(request.function, request.arguments), request.seconds)
            if inspect.isawaitable(answer):
                answer = await _within(answer, request.seconds)
            return answer
        except ENDS_A_RUN:
            raise
        except _TooLong:
            return Failure("timeout", f"{name} took longer than {request.seconds:g} s")
        except Exception as error:
            _log.debug("%s raised", name, exc_info=error)
            return Failure("raised", f"{name} raised {type(error).__name__}: {error}")


class _TooLong(Exception):
    """The time of a call is up."""


async def _within(work: Awaitable[Any], seconds: float | None) -> Any:
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        if time.monotonic() - began < (math.inf if seconds is None else seconds):
            raise  # the function's own
        raise _TooLong from None


async def _in_thread(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))

    def work() -> None:
        value, error = None, None
        try:
            value = function(*arguments)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:
            _log.debug("a function ended after its engine was closed")

    threading.Thread(target=work, name="debate-function", daemon=True).start()
    return await answer
