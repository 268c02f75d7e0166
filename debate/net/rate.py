"""Rate limits: no more requests and tokens per minute than a server allows, counted on our side.

Requests go out evenly, one at a time, rather than in bursts that wait for each other: servers count over shorter times
than they say. Tokens are reserved by an estimate before a request and corrected by what the server states after it.
One instance counts what one process sends to one server.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from debate.errors import ConfigError
from debate.settings import check_value

MINUTE = 60.0
SLACK = 1 / 60
"""Share by which the window is made longer, because one request takes longer to the server than another: a second."""


@dataclass(slots=True, eq=False)
class Start:
    """A request that was let go. `tokens` is what it counts, first by an estimate."""

    at: float
    tokens: int
    is_recent: bool = True
    """Whether its tokens still count."""


class RateLimits:
    """When the next request may start. It waits for nothing and reads no clock.

    In no `window` do more than `rpm` requests start. Those that start in it have no more than `tpm` tokens together,
    as far as they are known; a request of more than that goes alone.

    Args:
        rpm: requests per window; None is without limit.
        tpm: prompt and completion tokens per window; None is without limit.
        window: seconds; a minute, unless a test is in a hurry.
        slack: see `SLACK`.

    Raises:
        ConfigError: for a limit below 1.
    """

    def __init__(
        self, rpm: int | None = None, tpm: int | None = None, *, window: float = MINUTE, slack: float = SLACK
    ) -> None:
        self.rpm: int | None = check_value("rpm", rpm, int | None, ConfigError, ge=1)
        self.tpm: int | None = check_value("tpm", tpm, int | None, ConfigError, ge=1)
        self._window = window * (1 + slack)
        self._free_at = -float("inf")
        self._recent: deque[Start] = deque()
        self._used = 0  # tokens of the recent ones

    @property
    def are_set(self) -> bool:
        """Whether there is a limit."""
        return self.rpm is not None or self.tpm is not None

    def wait(self, now: float, tokens: int) -> float:
        """Seconds until a request of so many tokens may start; 0 where it may start now."""
        return max(self._free_at - now, self._wait_for_tokens(now, tokens), 0.0)

    def begin(self, now: float, tokens: int) -> Start:
        """Count a request that starts now."""
        start = Start(now, tokens, is_recent=self.tpm is not None)
        if self.rpm is not None:
            self._free_at = now + self._window / self.rpm
        if start.is_recent:
            self._recent.append(start)
            self._used += tokens
        return start

    def correct(self, start: Start, tokens: int) -> None:
        """Count what a request really used."""
        if start.is_recent:
            self._used += tokens - start.tokens
        start.tokens = tokens

    def _wait_for_tokens(self, now: float, tokens: int) -> float:
        if self.tpm is None:
            return 0.0
        while self._recent and self._recent[0].at + self._window <= now:
            old = self._recent.popleft()
            old.is_recent = False
            self._used -= old.tokens
        too_many, free_at = self._used + tokens - self.tpm, now
        for start in self._recent:
            if too_many <= 0:
                break
            too_many, free_at = too_many - start.tokens, start.at + self._window
        return free_at - now


class Queue:
    """Requests of one event loop that wait until `limits` let them go, first come first served."""

    def __init__(self, limits: RateLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._first_in_line = asyncio.Lock()
        self._corrected = asyncio.Event()

    async def start(self, tokens: int) -> Start:
        """Wait until a request of so many tokens may start, and count it."""
        async with self._first_in_line:
            while (seconds := self._limits.wait(self._clock(), tokens)) > 0:
                self._corrected.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._corrected.wait()
            return self._limits.begin(self._clock(), tokens)

    def correct(self, start: Start, tokens: int) -> None:
        """Count what a request really used, and look who may go now."""
        self._limits.correct(start, tokens)
        self._corrected.set()
