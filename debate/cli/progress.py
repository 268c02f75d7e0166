"""How a run goes on, on stderr: one live line on a terminal, a plain line now and then elsewhere.

It counts what it is told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

from debate.backends import Call
from debate.cli.console import open_console
from debate.evaluation import Evaluation, abstained_cells
from debate.flow import Completion
from debate.types import Price, Usage

if TYPE_CHECKING:  # it loads SQLAlchemy
    from debate.store.workers import Others

PLAIN_SECONDS = 10.0
"""Between two lines where there is no terminal."""
_LOADING = "loading the model"


def cached_share(usage: Usage) -> float:
    """Share of the prompt tokens that were cached; 0 without any."""
    return usage.cached_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0


def money(cost: float) -> str:
    """A sum of money: two decimals, four where it is less than 1."""
    if 0 < cost < 0.00005:
        return "less than 0.0001"
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.4f}"


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


class Progress:
    """A `debate.jobs.run.RunListener` that shows what it is told, and keeps the totals for the summary."""

    def __init__(
        self, *, model: str, prices: Mapping[str, Price] | None = None, console: Console | None = None
    ) -> None:
        self.console = console or open_console(stderr=True)
        self.prices: Mapping[str, Price] = prices or {}
        self.usage = Usage()
        self.failed_turns = 0
        self.failed = 0
        self.abstained = 0
        self.done_before = 0
        self._model = model
        self._total = 0
        self._here = 0
        self._others: Others | None = None
        self._is_loaded = self._is_waiting = False
        self._began = time.monotonic()
        self._last_line = 0.0
        self._last_done = 0
        self._lock = threading.Lock()
        self._bar: Bar | None = None
        self._bar_task = TaskID(0)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            whole = Column(no_wrap=True)  # of what must be short, the bar is shortened first
            what = TextColumn("{task.description}", markup=False)
            counts = (MofNCompleteColumn(table_column=whole), TimeElapsedColumn(table_column=whole))
            self._bar = Bar(SpinnerColumn(), what, BarColumn(24), *counts, console=self.console, transient=True)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._last_done != self._done:
            self._show(is_due=True)

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self.console.print(text, soft_wrap=True)

    def started(self, total: int, done_before: int) -> None:
        """Say how many tasks there are, and how many have a result already."""
        self._total, self.done_before, self._last_done = total, done_before, done_before
        if done_before:
            self.note(f"{done_before} of {total} tasks have a result already")
        if done_before < total and self._bar is not None:
            self._bar_task = self._bar.add_task(_LOADING, total=total, completed=done_before)

    def loading(self) -> None:
        """Say that the model is loaded now."""
        self._began, self._is_loaded = time.monotonic(), False
        if self._model:
            self.note(f"loading {self._model}")

    def loaded(self) -> None:
        """Say how long loading took; tokens per second count from here."""
        if self._model:
            self.note(f"loaded in {time.monotonic() - self._began:.0f} s")
        self._began = self._last_line = time.monotonic()
        self._is_loaded = True

    def answered(self, call: Call, completion: Completion) -> None:
        """Count a reply. Comes from the engine's thread."""
        with self._lock:
            self.usage += completion.usage
        self._is_waiting = False
        self._show()

    def finished(self, evaluation: Evaluation) -> None:
        """Count a task."""
        self._here += 1
        self.failed += evaluation.status == "failed"
        self.failed_turns += len(evaluation.failures)
        self.abstained += abstained_cells(evaluation)[0]
        self._show(is_due=self._done == self._total)

    def shared(self, others: Others) -> None:
        """Count the tasks of all workers. Comes from any thread."""
        self._others = others
        self._show()

    def waiting(self) -> None:
        """Say what is waited for."""
        is_new, self._is_waiting = not self._is_waiting, True
        self._show(is_due=is_new)

    @property
    def seconds(self) -> float:
        """Since the model was loaded."""
        return time.monotonic() - self._began

    def status(self) -> str:
        """Calls, speed, share of cached prompt tokens, failures, abstained cells."""
        used, seconds = self.usage, max(self.seconds, 1e-9)
        speed = f"{used.completion_tokens / seconds:,.0f} tok/s"
        failures = f", {self.failed_turns} failed turns" if self.failed_turns else ""
        abstained = f", abstained: {_counted(self.abstained, 'cell')}" if self.abstained else ""
        return f"{used.calls} calls, {speed}, {cached_share(used):.0%} cached{failures}{abstained}"

    @property
    def _done(self) -> int:
        """Tasks that have a result, whoever made it; what others did last may be counted late."""
        elsewhere = 0 if self._others is None else self._others.tasks
        return min(self.done_before + self._here + elsewhere, self._total)

    def _doing(self) -> str:
        others = 0 if self._others is None else self._others.workers
        if not self._is_loaded:
            return _LOADING
        if self._is_waiting and others and self._done < self._total:
            return f"waiting for {_counted(others, 'worker')}, {_counted(self._total - self._done, 'task')} left"
        return self.status()

    def _show(self, *, is_due: bool = False) -> None:
        n_workers = 1 if self._others is None else self._others.workers + 1
        if self._bar is not None:
            team = f", {n_workers} workers" if n_workers > 1 and not self._is_waiting else ""
            if self._bar.tasks:
                self._bar.update(self._bar_task, description=self._doing() + team, completed=self._done)
            return
        now = time.monotonic()
        if is_due or now - self._last_line >= PLAIN_SECONDS:
            self._last_line, self._last_done = now, self._done
            is_shared = n_workers > 1 or self._done > self.done_before + self._here
            team = f" ({_counted(n_workers, 'worker')}, {self._here} here)" if is_shared else ""
            self.note(f"{self._done} of {self._total} debates{team}, {self._doing()}, {self.seconds:.0f} s")
