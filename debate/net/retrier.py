"""Asking a server again: when, how often, and when to stop asking altogether.

A server's fault is retried here, unseen by the flow that asked: time-outs, broken connections, 408, 409, 429 and 5xx,
with jittered exponential backoff, or after as long as the server says. What cannot get better is not: 400, 401, 404.
Time is monotonic. Knows nothing of what is sent.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from debate.errors import BackendError, CallError
from debate.net.circuit_breaker import CircuitBreaker
from debate.net.retry import RetryPolicy, TransportError

T = TypeVar("T")


class Retrier:
    """Tries calls as patiently as it is told. One for each server, and for one event loop."""

    def __init__(self, patience: RetryPolicy, server: str) -> None:
        self.patience = patience
        self.breaker = CircuitBreaker(patience, server)

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of `ask`, tried again while that may help.

        Raises:
            CallError: when this call failed for good.
            BackendUnavailableError: when no call can succeed any more.
        """
        gives_up_at = time.monotonic() + self.patience.deadline
        attempt, failing_since, answers_before = 0, 0.0, 0
        while True:
            attempt += 1
            try:
                return await self.breaker.attempt(ask, gives_up_at)
            except TransportError as fault:
                if attempt == 1:
                    failing_since, answers_before = time.monotonic(), self.breaker.answers
                wait = self._wait_after(fault, attempt, gives_up_at)
                if wait is None:
                    raise self._given_up(fault, attempt, failing_since, answers_before) from None
            await self.breaker.pause(wait)

    def _wait_after(self, fault: TransportError, attempt: int, gives_up_at: float) -> float | None:
        """How long to wait before the next attempt; None when there is none."""
        if not fault.is_retryable:
            return None
        wait = self.patience.wait_before(attempt, fault.retry_after)
        return wait if attempt < self.patience.attempts and time.monotonic() + wait < gives_up_at else None

    def _given_up(self, fault: TransportError, attempt: int, failing_since: float, answers_before: int) -> BackendError:
        if fault.is_fatal:
            return self.breaker.die(fault.message)
        if not fault.is_retryable:
            return CallError(fault.reason, fault.message)
        message = f"{fault.message} (given up after {attempt} attempt{'s' if attempt > 1 else ''})"
        if self._is_gone(fault, failing_since, answers_before):
            return self.breaker.die(message)
        return CallError(fault.reason, message)

    def _is_gone(self, fault: TransportError, failing_since: float, answers_before: int) -> bool:
        """Whether the server, and not this call, is the trouble: it has answered nobody since the call first failed.

        A server that can be reached, and was of use before, has the benefit of the doubt until the breaker decides.
        """
        if self.breaker.answers > answers_before or self.breaker.is_busy_since(failing_since):
            return False
        return fault.reason == "no_connection" or self.breaker.answers == 0
