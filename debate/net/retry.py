"""Retrying: which faults of a server are retried, when, how often, and when the server counts as unavailable.

Time-outs, broken connections, 408, 409, 425, 429 and 5xx are retried, with jittered exponential backoff or after as
long as Retry-After says; a refusal (400, 401, 404) is not. Time is monotonic, in seconds.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from debate.errors import BackendError, BackendUnavailableError, CallError
from debate.settings import check_settings, documented, setting

T = TypeVar("T")


@dataclass(eq=False)
class TransportError(Exception):
    """What a server, or the way to it, did instead of answering."""

    reason: str
    """A short code, such as `timeout`, `no_connection`, `bad_answer`, `server_error`, `unauthorized`, `refused`."""
    message: str
    is_retryable: bool
    retry_after: float | None = None
    """Seconds to wait, where the server said so."""
    is_fatal: bool = False
    """Whether every other call would meet the same: a wrong key, a model that is not there."""
    status: int | None = None
    """Of HTTP."""
    details: str = ""
    """All that the server said, for programs."""

    def as_call_error(self, server: str | None = None) -> CallError:
        """The error of a call that failed for good."""
        return CallError(self.reason, f"{server}: {self.message}" if server else self.message)

    def as_unavailable(self, server: str) -> BackendUnavailableError:
        """The error of all calls of a server that cannot be used."""
        return BackendUnavailableError(f"{server}: {self.message}")


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long and how often a call is tried. Seconds throughout; a value out of range raises `ConfigError`."""

    attempts: int = setting(5, "Attempts that are made of a call, at most.", ge=1)
    timeout: float = setting(120.0, "Seconds that one attempt may take.", gt=0)
    deadline: float = setting(600.0, "Seconds that a call may take, with all its attempts and waits.", gt=0)
    first_wait: float = setting(0.5, "Seconds to wait before the second attempt; doubled for each further one.", ge=0)
    longest_wait: float = setting(
        60.0, "Longest wait in seconds; it also caps what a server asks for in Retry-After.", gt=0
    )
    breaker: int = setting(
        20, "After this many failed attempts in a row, over all calls, the server is only probed; see `Retrier`.", ge=1
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def wait_before(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after failed attempt number `attempt` (from 1), jittered so that callers spread out."""
        if retry_after is not None:
            return min(max(retry_after, 0.0), self.longest_wait) + random.uniform(0, self.first_wait)
        longest = min(self.first_wait * 2.0 ** min(attempt - 1, 60), self.longest_wait)
        return random.uniform(longest / 2, longest)

    def wait_after(self, error: TransportError, attempt: int, gives_up_at: float) -> float | None:
        """Seconds to wait before the next attempt, or None to give up."""
        if not error.is_retryable:
            return None
        wait = self.wait_before(attempt, error.retry_after)
        return wait if attempt < self.attempts and time.monotonic() + wait < gives_up_at else None


def retry_after(header: str | None, *, now: float | None = None) -> float | None:
    """Seconds to wait according to a Retry-After header: a number of seconds or an HTTP date; None when unreadable.

    `now` is in seconds since the epoch; None takes the clock.
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(header)
            seconds = date.timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def error_from_status(status: int, message: str, header: str | None, *, details: str = "") -> TransportError:
    """The error that an HTTP status stands for; `header` is that of Retry-After."""
    text = f"HTTP {status}: {message}"
    if status in (408, 409, 425, 429) or status >= 500:
        wait = retry_after(header)
        return TransportError("server_error", text, True, wait, status=status, details=details)
    if 300 <= status < 400:
        text += " (a redirect is not followed; give the final address as --base-url)"
    # Whatever is asked, these come back: a wrong key, an empty account, a model or an address that is not there.
    is_fatal = 300 <= status < 400 or status in (401, 402, 403, 404)
    reason = {401: "unauthorized", 403: "unauthorized", 404: "not_found"}.get(status, "refused")
    return TransportError(reason, text, False, is_fatal=is_fatal, status=status, details=details)


@dataclass(slots=True, eq=False)
class _Limits:
    """When a call is given up, and the limit of the attempt that is under way."""

    gives_up_at: float
    attempt: asyncio.Timeout | None = None


_LIMITS: ContextVar[_Limits] = ContextVar("limits")
"""Of the call that the present asyncio task makes."""


async def held_back(waiting: Awaitable[T]) -> T:
    """Await what holds a request back before it is sent; that is no time of the server's, and counts to no limit.

    It may be called in what `Retrier.call` is given to ask.
    """
    limits, began = _LIMITS.get(), time.monotonic()
    attempt = limits.attempt
    ends_at = None if attempt is None else attempt.when()
    if attempt is not None:
        attempt.reschedule(None)
    answer = await waiting
    waited = time.monotonic() - began
    limits.gives_up_at += waited
    if attempt is not None and ends_at is not None:
        attempt.reschedule(ends_at + waited)
    return answer


class Retrier:
    """Makes the attempts of all calls to one server, in one event loop, with a circuit breaker.

    A busy server may refuse a whole burst of requests and recover a second later, so failures alone do not make it
    unavailable. `breaker` consecutive failures open the breaker: then one attempt at a time goes out, a probe, after a
    wait that grows. An answer closes it. When `attempts` probes fail and nothing older is under way, the server is
    unavailable for good. So it is when a call gives up that found nobody there, or a server that never answered.
    """

    def __init__(self, policy: RetryPolicy, server: str) -> None:
        self._policy = policy
        self._server = server
        self._answers = 0  # attempts that the server answered, were it with a refusal
        self._failures = 0  # in a row
        self._failed_probes = 0
        self._wait = 0.0  # before the next probe
        self._opened_at = 0.0
        self._under_way: list[float] = []  # when each attempt began
        self._probing = asyncio.Lock()
        self._is_unavailable = asyncio.Event()
        self._unavailable: BackendUnavailableError | None = None

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of `ask`, tried again while that may help.

        Raises:
            CallError: when this call failed for good.
            BackendUnavailableError: when no call can succeed any more.
        """
        limits = _Limits(time.monotonic() + self._policy.deadline)
        outside = _LIMITS.set(limits)
        try:
            return await self._tried(ask, limits)
        finally:
            _LIMITS.reset(outside)

    async def _tried(self, ask: Callable[[], Awaitable[T]], limits: _Limits) -> T:
        attempt, failing_since, answers_before = 0, 0.0, 0
        while True:
            attempt += 1
            try:
                return await self._admitted(ask, limits)
            except TransportError as error:
                if attempt == 1:
                    failing_since, answers_before = time.monotonic(), self._answers
                wait = self._policy.wait_after(error, attempt, limits.gives_up_at)
                if wait is None:
                    raise self._given_up(error, attempt, failing_since, answers_before) from None
            await self._pause(wait)

    def _given_up(self, error: TransportError, attempt: int, failing_since: float, answers_before: int) -> BackendError:
        if error.is_retryable:
            error.message += f" (given up after {attempt} attempt{'s' if attempt > 1 else ''})"
            # A server that was of use before, and can be reached, has the benefit of the doubt until the breaker opens.
            is_silent = self._answers == answers_before and not self._is_busy_since(failing_since)
            error.is_fatal = is_silent and (error.reason == "no_connection" or self._answers == 0)
        return self._give_up_server(error) if error.is_fatal else error.as_call_error()

    async def _admitted(self, ask: Callable[[], Awaitable[T]], limits: _Limits) -> T:
        """One attempt, as soon as it may be made."""
        self._raise_if_unavailable()
        while self._is_open:
            try:
                async with asyncio.timeout(limits.gives_up_at - time.monotonic()) as waiting, self._probing:
                    if self._is_open:
                        await self._pause(self._wait)
                    if self._is_open:
                        waiting.reschedule(None)  # the attempt has its own limit
                        return await self._attempt(ask, limits, is_probe=True)
            except TimeoutError:
                waited = f"the server failed all calls, and the deadline of {self._policy.deadline:g} s passed"
                raise CallError("timeout", waited) from None
        return await self._attempt(ask, limits)

    async def _attempt(self, ask: Callable[[], Awaitable[T]], limits: _Limits, *, is_probe: bool = False) -> T:
        began = time.monotonic()
        limit = max(min(self._policy.timeout, limits.gives_up_at - began), 0.001)
        self._under_way.append(began)
        try:
            async with asyncio.timeout(limit) as limits.attempt:
                answer = await ask()
        except (TransportError, TimeoutError) as raised:
            error = raised
            if isinstance(error, TimeoutError):
                error = TransportError("timeout", f"no answer within {limit:.3g} s", is_retryable=True)
            self._count_failure(error, is_probe=is_probe)
            raise error from None
        finally:
            limits.attempt = None
            self._under_way.remove(began)
        self._count_answer()
        return answer

    def _count_answer(self) -> None:
        self._answers += 1
        self._failures = self._failed_probes = 0

    def _count_failure(self, error: TransportError, *, is_probe: bool) -> None:
        if not error.is_retryable:
            return self._count_answer()
        self._failures += 1
        self._failed_probes += is_probe
        opens = self._failures == self._policy.breaker
        if opens:
            self._opened_at = time.monotonic()
        if opens or is_probe:
            self._wait = self._policy.wait_before(self._failed_probes + 1, error.retry_after)
        if self._failed_probes >= self._policy.attempts and not self._is_busy_since(self._opened_at):
            error.message = f"{self._failures} attempts in a row failed; the last: {error.message}"
            self._give_up_server(error)

    async def _pause(self, seconds: float) -> None:
        """Wait, but no longer than the server is available."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_unavailable.wait()
        self._raise_if_unavailable()

    @property
    def _is_open(self) -> bool:
        return self._failures >= self._policy.breaker

    def _is_busy_since(self, moment: float) -> bool:
        """Whether an attempt that began before `moment` is still under way: the server may be working on it."""
        return any(began < moment for began in self._under_way)

    def _give_up_server(self, error: TransportError) -> BackendUnavailableError:
        self._unavailable = self._unavailable or error.as_unavailable(self._server)  # the first reason counts
        self._is_unavailable.set()
        return self._unavailable

    def _raise_if_unavailable(self) -> None:
        if self._unavailable is not None:
            raise self._unavailable
