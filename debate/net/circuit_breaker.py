"""A circuit breaker: many failed attempts in a row, over all calls, and a server is left in peace but for probes.

A busy server may refuse a whole burst of requests and be well a second later, so a row of failures alone is no death.
It opens the breaker: then one attempt at a time goes out, after a wait that grows. An answer closes it; when the probes
fail as often as a call may, and nothing is under way any more, the server is dead. Knows nothing of what is sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from debate.errors import BackendUnavailableError, CallError
from debate.net.retry import RetryPolicy, TransportError

T = TypeVar("T")


class CircuitBreaker:
    """Makes attempts and counts how they end. One for each server, and for one event loop."""

    def __init__(self, patience: RetryPolicy, server: str) -> None:
        self.attempts = 0
        """Made, over all calls."""
        self.answers = 0
        """Attempts that the server answered, were it with a refusal."""
        self._patience = patience
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
            waited = f"the server failed all calls, and the deadline of {self._patience.deadline:g} s passed"
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
        return self._failed_in_a_row >= self._patience.breaker

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
        limit = max(min(self._patience.timeout, gives_up_at - time.monotonic()), 0.001)
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
        if self._failed_in_a_row == self._patience.breaker:
            self._opened_at = time.monotonic()
        if is_probe or self._failed_in_a_row == self._patience.breaker:
            self._wait = self._patience.wait_before(self._failed_probes + 1, fault.retry_after)
        if self._failed_probes >= self._patience.attempts and not self.is_busy_since(self._opened_at):
            self.die(f"{self._failed_in_a_row} attempts in a row failed; the last: {fault.message}")

    def _close(self) -> None:
        self.answers += 1
        self._failed_in_a_row = self._failed_probes = 0

    def _raise_death(self) -> None:
        if self._death is not None:
            raise self._death
