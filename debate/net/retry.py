"""What may go wrong with a server, and how long and how often a call is tried nevertheless.

Knows nothing of connections or of what is sent.

Asking a server again: when, how often, and when to stop asking altogether.

A server's fault is retried here, unseen by the flow that asked: time-outs, broken connections, 408, 409, 429 and 5xx,
with jittered exponential backoff, or after as long as the server says. What cannot get better is not: 400, 401, 404.
Time is monotonic. Knows nothing of what is sent.

A circuit breaker: many failed attempts in a row, over all calls, and a server is left in peace but for probes.

A busy server may refuse a whole burst of requests and be well a second later, so a row of failures alone is no death.
It opens the breaker: then one attempt at a time goes out, after a wait that grows. An answer closes it; when the probes
fail as often as a call may, and nothing is under way any more, the server is dead. Knows nothing of what is sent.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TypeVar

from debate.errors import BackendError, BackendUnavailableError, CallError, ConfigError


class TransportError(Exception):
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
        details: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.is_retryable = is_retryable
        self.retry_after = retry_after
        self.is_fatal = is_fatal
        """Whether every other call would meet the same: a wrong key, a model that is not there."""
        self.status = status
        self.details = details
        """All that the server said, as far as it is for programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
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
    """After this many failed attempts in a row, over all calls, the server is only probed; see `CircuitBreaker`."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            value: object = getattr(self, spec.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"must be a number, got {value!r}", field=spec.name)
        for name in ("attempts", "breaker"):
            if getattr(self, name) < 1:
                raise ConfigError(f"must be at least 1, got {getattr(self, name)}", field=name)
        for name in ("timeout", "deadline", "longest_wait"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"must be above 0 and finite, got {getattr(self, name)}", field=name)
        if not 0 <= self.first_wait < math.inf:
            raise ConfigError(f"must be at least 0 and finite, got {self.first_wait}", field="first_wait")

    def wait_before(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait before attempt number `attempt` (from 1), jittered so that callers do not come in step."""
        if retry_after is not None:
            return min(max(retry_after, 0.0), self.longest_wait) + random.uniform(0, self.first_wait)
        longest = min(self.first_wait * 2.0 ** min(attempt - 1, 60), self.longest_wait)
        return random.uniform(longest / 2, longest)


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
    """The fault that an HTTP status stands for; `header` is that of Retry-After."""
    text = f"HTTP {status}: {message}"
    if status in (408, 409, 429) or status >= 500:
        return TransportError(
            "server_error", text, is_retryable=True, retry_after=retry_after(header), status=status, details=details
        )
    if 300 <= status < 400:
        text = f"HTTP {status}: a redirect, which is not followed; give the final address as --base-url"
    # Whatever is asked, these come back: a wrong key, an empty account, a model or an address that is not there.
    is_fatal = 300 <= status < 400 or status in (401, 402, 403, 404)
    reason = {401: "unauthorized", 403: "unauthorized", 404: "not_found"}.get(status, "refused")
    return TransportError(reason, text, is_retryable=False, is_fatal=is_fatal, status=status, details=details)


T = TypeVar("T")


class Retrier:
    """Tries calls as patiently as it is told. One for each server, and for one event loop."""

    def __init__(self, retry_policy: RetryPolicy, server: str) -> None:
        self.retry_policy = retry_policy
        self.breaker = CircuitBreaker(retry_policy, server)

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of `ask`, tried again while that may help.

        Raises:
            CallError: when this call failed for good.
            BackendUnavailableError: when no call can succeed any more.
        """
        gives_up_at = time.monotonic() + self.retry_policy.deadline
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
        wait = self.retry_policy.wait_before(attempt, fault.retry_after)
        return wait if attempt < self.retry_policy.attempts and time.monotonic() + wait < gives_up_at else None

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


class CircuitBreaker:
    """Makes attempts and counts how they end. One for each server, and for one event loop."""

    def __init__(self, retry_policy: RetryPolicy, server: str) -> None:
        self.attempts = 0
        """Made, over all calls."""
        self.answers = 0
        """Attempts that the server answered, were it with a refusal."""
        self._retry_policy = retry_policy
        self._server = server
        self._under_way: list[float] = []  # when each began
        self._opened_at = 0.0
        self._failed_in_a_row = 0
        self._failed_probes = 0
        self._wait = 0.0
        self._probing = asyncio.Lock()
        self._is_dead = asyncio.Event()
        self._death: BackendUnavailableError | None = None

    def is_busy_since(self, moment: float) -> bool:
        """Whether an attempt that began before `moment` is still under way: the server may be working on it."""
        return any(began < moment for began in self._under_way)

    async def attempt(self, ask: Callable[[], Awaitable[T]], gives_up_at: float) -> T:
        """The answer of `ask`, as soon as it may be asked; `gives_up_at` is on the monotonic clock.

        Raises:
            TransportError: when the attempt failed.
            CallError: when its time was over before it could be made.
            BackendUnavailableError: when the server is dead.
        """
        try:
            async with asyncio.timeout(gives_up_at - time.monotonic()):
                is_probe = await self._admitted()
        except TimeoutError:
            waited = f"the server failed all calls, and the deadline of {self._retry_policy.deadline:g} s passed"
            raise CallError("timeout", waited) from None
        try:
            return await self._counted(ask, gives_up_at, is_probe=is_probe)
        finally:
            if is_probe:
                self._probing.release()

    async def pause(self, seconds: float) -> None:
        """Wait, but no longer than the server is alive.

        Raises:
            BackendUnavailableError: when it is not.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_dead.wait()
        self._raise_death()

    def die(self, message: str) -> BackendUnavailableError:
        """The death of the server, for good; the first one counts."""
        self._death = self._death or BackendUnavailableError(f"{self._server}: {message}")
        self._is_dead.set()
        return self._death

    @property
    def _is_open(self) -> bool:
        return self._failed_in_a_row >= self._retry_policy.breaker

    async def _admitted(self) -> bool:
        """Wait while the breaker is open and others probe. Whether this attempt is a probe; it then holds the lock."""
        self._raise_death()
        while self._is_open:
            await self._probing.acquire()
            is_probe = False
            try:
                if self._is_open:
                    await self.pause(self._wait)
                is_probe = self._is_open
            finally:
                if not is_probe:
                    self._probing.release()
            if is_probe:
                return True
        return False

    async def _counted(self, ask: Callable[[], Awaitable[T]], gives_up_at: float, *, is_probe: bool) -> T:
        began = time.monotonic()
        self.attempts += 1
        self._under_way.append(began)
        try:
            answer = await self._in_time(ask, gives_up_at)
        except TransportError as fault:
            self._note(fault, is_probe=is_probe)
            raise
        finally:
            self._under_way.remove(began)
        self._close()
        return answer

    async def _in_time(self, ask: Callable[[], Awaitable[T]], gives_up_at: float) -> T:
        limit = max(min(self._retry_policy.timeout, gives_up_at - time.monotonic()), 0.001)
        try:
            async with asyncio.timeout(limit):
                return await ask()
        except TimeoutError:
            raise TransportError("timeout", f"no answer within {limit:.3g} s", is_retryable=True) from None

    def _note(self, fault: TransportError, *, is_probe: bool) -> None:
        if not fault.is_retryable:
            self._close()
            return
        self._failed_in_a_row += 1
        if not self._is_open:
            return
        self._failed_probes += is_probe
        if self._failed_in_a_row == self._retry_policy.breaker:
            self._opened_at = time.monotonic()
        if is_probe or self._failed_in_a_row == self._retry_policy.breaker:
            self._wait = self._retry_policy.wait_before(self._failed_probes + 1, fault.retry_after)
        if self._failed_probes >= self._retry_policy.attempts and not self.is_busy_since(self._opened_at):
            self.die(f"{self._failed_in_a_row} attempts in a row failed; the last: {fault.message}")

    def _close(self) -> None:
        self.answers += 1
        self._failed_in_a_row = self._failed_probes = 0

    def _raise_death(self) -> None:
        if self._death is not None:
            raise self._death
