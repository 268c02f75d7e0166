"""Asking a server again: when, how often, and when to stop asking altogether.

A server's fault is retried here, unseen by the flow that asked: time-outs, broken connections, 408, 409, 429 and 5xx,
with jittered exponential backoff, or after as long as the server says. What cannot get better is not: 400, 401, 404.
Time is monotonic. Knows nothing of what is sent.
"""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from debate.errors import BackendDead, CallError, ConfigError

T = TypeVar("T")


class ServerFault(Exception):
    """What a server, or the way to it, did instead of answering. `retry_after` is in seconds, where it said so."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        is_retryable: bool,
        retry_after: float | None = None,
        is_fatal: bool = False,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.is_retryable = is_retryable
        self.retry_after = retry_after
        self.is_fatal = is_fatal
        """Whether every other call would meet the same: a wrong key, a model that is not there."""
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long and how often a call is tried. Seconds throughout."""

    attempts: int = 5
    timeout: float = 120.0
    """Of one attempt."""
    deadline: float = 600.0
    """Of a call, with all its attempts and waits."""
    first_wait: float = 0.5
    longest_wait: float = 60.0
    """Also caps what a server asks for in Retry-After."""
    breaker: int = 20
    """So many failed attempts in a row, over all calls, and the server counts as gone."""

    def __post_init__(self) -> None:
        for name in ("attempts", "breaker"):
            if getattr(self, name) < 1:
                raise ConfigError(f"must be at least 1, got {getattr(self, name)}", field=name)
        for name in ("timeout", "deadline", "longest_wait"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"must be above 0, got {getattr(self, name)}", field=name)

    def wait_before(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait before attempt number `attempt` (from 1), jittered so that callers do not come in step."""
        if retry_after is not None:
            return min(max(retry_after, 0.0), self.longest_wait) + random.uniform(0, self.first_wait)
        longest = min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)
        return random.uniform(longest / 2, longest)


class Persistence:
    """Tries calls as patiently as it is told. One for each server: its breaker counts over all calls."""

    def __init__(self, patience: Patience, server: str) -> None:
        self.patience = patience
        self.attempts = 0
        """Attempts made, over all calls."""
        self._server = server
        self._failed_in_a_row = 0
        self._death: BackendDead | None = None

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of `ask`, tried again while that may help.

        Raises:
            CallError: when this call failed for good.
            BackendDead: when no call can succeed any more.
        """
        gives_up_at = time.monotonic() + self.patience.deadline
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(ask, gives_up_at)
            except ServerFault as fault:
                wait = self._consider(fault, attempt, gives_up_at)
            await asyncio.sleep(wait)

    async def _attempt(self, ask: Callable[[], Awaitable[T]], gives_up_at: float) -> T:
        if self._death is not None:
            raise self._death
        self.attempts += 1
        limit = max(min(self.patience.timeout, gives_up_at - time.monotonic()), 0.001)
        try:
            async with asyncio.timeout(limit):
                answer = await ask()
        except TimeoutError:
            raise ServerFault("timeout", f"no answer within {limit:.0f} s", is_retryable=True) from None
        self._failed_in_a_row = 0
        return answer

    def _consider(self, fault: ServerFault, attempt: int, gives_up_at: float) -> float:
        """How long to wait before the next attempt; raises when there is none."""
        if self._death is not None:
            raise self._death
        if fault.is_fatal:
            raise self._die(fault.message)
        if not fault.is_retryable:
            raise CallError(fault.reason, fault.message)
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= self.patience.breaker:
            raise self._die(f"{self._failed_in_a_row} attempts in a row failed; the last: {fault.message}")
        wait = self.patience.wait_before(attempt, fault.retry_after)
        if attempt >= self.patience.attempts or time.monotonic() + wait >= gives_up_at:
            raise CallError(fault.reason, f"{fault.message} (given up after {attempt} attempts)")
        return wait

    def _die(self, message: str) -> BackendDead:
        self._death = BackendDead(f"{self._server}: {message}")
        return self._death


def retry_after(header: str | None, *, now: float | None = None) -> float | None:
    """Seconds to wait according to a Retry-After header: a number of seconds or an HTTP date; None when unreadable."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = date.timestamp() - (time.time() if now is None else now)
    return max(seconds, 0.0) if seconds == seconds and seconds != float("inf") else None


def fault_of_status(status: int, message: str, header: str | None) -> ServerFault:
    """The fault that an HTTP status stands for."""
    text = f"HTTP {status}: {message}"
    if status in (401, 403):
        return ServerFault("unauthorized", text, is_retryable=False, is_fatal=True, status=status)
    if status == 404:
        return ServerFault("not_found", text, is_retryable=False, is_fatal=True, status=status)
    if status in (408, 409, 429) or status >= 500:
        return ServerFault("server_error", text, is_retryable=True, retry_after=retry_after(header), status=status)
    return ServerFault("refused", text, is_retryable=False, status=status)
