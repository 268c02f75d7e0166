"""Keeps the workers of a run going: starts them, starts those again that die, knows when all is done.

The only place that restarts anything. It knows neither where workers run nor what they do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from debate.fleet.worker import End

LONGEST_PAUSE = 60.0
"""Seconds before a worker is started again; 1, 2, 4, ... up to these."""
_WAIT = 0.5


class Launcher(Protocol):
    """Starts workers somewhere, and tells what becomes of them."""

    def start(self, number: int) -> None:
        """Start a worker, or have it started as soon as there is room."""
        ...

    def events(self, seconds: float) -> list[tuple[int, str | End]]:
        """What happened since the last call, waiting at most so long: where a worker runs now, or how it ended."""
        ...

    def close(self) -> None:
        """End all workers in order, soon."""
        ...


@dataclass
class Supervision:
    """N workers, of which each is started again a number of times.

    A worker's exit code says what follows. In `done`: the run is over; workers that run are waited for, and nobody is
    started any more. In `hopeless`: it would be the same again, so all are ended. Any other end is a death, and the
    worker is started again after a pause, as long as it may be.

    Attributes:
        launcher: starts the workers.
        n_workers: how many there are.
        restarts: of each worker, at most.
        done, hopeless: exit codes.
        tell: is told of every event, in a line or more.
        tick: is called about twice a second with the number of workers that run.
    """

    launcher: Launcher
    n_workers: int
    restarts: int
    done: Collection[int]
    hopeless: Collection[int]
    tell: Callable[[str], None]
    tick: Callable[[int], None] = lambda running: None
    pause: float = 1.0
    _deaths: dict[int, int] = field(default_factory=dict[int, int], init=False)
    _due: dict[int, float] = field(default_factory=dict[int, float], init=False)
    """When a worker is to be started."""
    _waiting: set[int] = field(default_factory=set[int], init=False)
    """Workers that have no place yet."""
    _running: set[int] = field(default_factory=set[int], init=False)
    _last: End | None = field(default=None, init=False)
    """How the run ended, once a worker said so; else the last death."""
    _is_over: bool = field(default=False, init=False)

    def run(self) -> End:
        """Work until the run is over, cannot go on, or every worker has died for good; returns the end that says so."""
        self._due = dict.fromkeys(range(1, self.n_workers + 1), 0.0)
        try:
            while self._running or (not self._is_over and (self._due or self._waiting)):
                self._start_due()
                for number, event in self.launcher.events(_WAIT):
                    if isinstance(event, str):
                        self._started(number, event)
                    elif self._ended(number, event) in self.hopeless:
                        return event
                self.tick(len(self._running))
        finally:
            self.launcher.close()
        assert self._last is not None
        return self._last

    def _start_due(self) -> None:
        now = time.monotonic()
        for number in [number for number, due in self._due.items() if due <= now and not self._is_over]:
            del self._due[number]
            self._waiting.add(number)
            self.launcher.start(number)

    def _started(self, number: int, place: str) -> None:
        self._waiting.discard(number)
        self._running.add(number)
        self.tell(f"worker {number} started: {place}")

    def _ended(self, number: int, end: End) -> int | None:
        """Note an end, and what follows from it; returns its exit code."""
        self._waiting.discard(number)
        self._running.discard(number)
        if end.code in self.done:
            self.tell(f"worker {number} ended: exit code {end.code}")
            self._is_over, self._last = True, end
        elif end.code not in self.hopeless:
            self._died(number, end)
        return end.code

    def _died(self, number: int, end: End) -> None:
        self.tell(f"worker {number} died, {end}")
        if self._is_over:
            return
        self._last = end
        deaths = self._deaths[number] = self._deaths.get(number, 0) + 1
        if deaths > self.restarts:
            self.tell(f"worker {number} is not started again: it died {deaths} times")
            return
        pause = min(self.pause * 2 ** (deaths - 1), LONGEST_PAUSE)
        self._due[number] = time.monotonic() + pause
        self.tell(f"worker {number} is started again in {pause:.0f} s, restart {deaths} of {self.restarts}")
