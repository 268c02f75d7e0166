"""Calls functions that are no model's, for flows: async ones in the loop, plain ones each in a thread of its own.

A plain function that takes too long cannot be ended; its thread is left behind and holds up neither other calls nor the
end of the process. Knows nothing of what is computed.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import time
from collections.abc import Awaitable
from functools import partial
from typing import Any

from debate.concurrency.daemon_thread import in_daemon_thread
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
                answer = await _within(
                    in_daemon_thread(partial(request.function, *request.arguments), "debate-function"), request.seconds
                )
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
