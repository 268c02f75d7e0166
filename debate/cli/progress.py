"""How a run goes on, on stderr: one live line on a terminal, a plain line now and then elsewhere.

It counts what it is told.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from debate.backends import Call
from debate.cli.console import open_console
from debate.evaluation import Evaluation
from debate.flow import Completion
from debate.types import Usage

if TYPE_CHECKING:  # it loads SQLAlchemy
    from debate.store.workers import Others

PLAIN_SECONDS = 10.0
"""Between two lines where there is no terminal."""


def cached_share(usage: Usage) -> float:
    """Share of the prompt tokens that were cached; 0 without any."""
    return usage.cached_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0


class Progress:
    """A `debate.jobs.run.RunListener` that shows what it is told, and keeps the totals for the summary."""

    def __init__(self, *, model: str, console: Console | None = None) -> None:
        self.console = console or open_console(stderr=True)
        self.usage = Usage()
        self.failed_turns = 0
        self.failed = 0
        self.done_before = 0
        self._model = model
        self._total = 0
        self._done = 0
        self._began = time.monotonic()
        self._last_line = 0.0
        self._lock = threading.Lock()
        self._bar: Bar | None = None
        self._bar_task = TaskID(0)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), MofNCompleteColumn())
            self._bar = Bar(SpinnerColumn(), *columns, TimeElapsedColumn(), console=self.console, transient=True)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self.console.print(text, soft_wrap=True)

    def started(self, total: int, done_before: int) -> None:
        """Say how many tasks there are, and how many have a result already."""
        self._total, self._done, self.done_before = total, done_before, done_before
        if done_before:
            self.note(f"{done_before} of {total} tasks have a result already")
        if done_before < total and self._bar is not None:
            self._bar_task = self._bar.add_task("loading the model", total=total, completed=done_before)

    def loading(self) -> None:
        """Say that the model is loaded now."""
        self._began = time.monotonic()
        if self._model:
            self.note(f"loading {self._model}")

    def loaded(self) -> None:
        """Say how long loading took; tokens per second count from here."""
        if self._model:
            self.note(f"loaded in {time.monotonic() - self._began:.0f} s")
        self._began = self._last_line = time.monotonic()

    def answered(self, call: Call, completion: Completion) -> None:
        """Count a reply. Comes from the engine's thread."""
        with self._lock:
            self.usage += completion.usage
        self._show()

    def finished(self, evaluation: Evaluation) -> None:
        """Count a task."""
        self._done += 1
        self.failed += evaluation.status == "failed"
        self.failed_turns += len(evaluation.failures)
        self._show(is_last=self._done == self._total)

    def shared(self, others: Others) -> None:
        """Hear of the other processes that work on the run. Comes from the store's thread."""

    @property
    def seconds(self) -> float:
        """Since the model was loaded."""
        return time.monotonic() - self._began

    def status(self) -> str:
        """Turns, speed, share of cached prompt tokens, failures."""
        used, seconds = self.usage, max(self.seconds, 1e-9)
        speed = f"{used.completion_tokens / seconds:,.0f} tok/s"
        failures = f", {self.failed_turns} failed turns" if self.failed_turns else ""
        return f"{used.calls} turns, {speed}, {cached_share(used):.0%} cached{failures}"

    def _show(self, *, is_last: bool = False) -> None:
        if self._bar is not None:
            self._bar.update(self._bar_task, description=self.status(), completed=self._done)
            return
        now = time.monotonic()
        if is_last or now - self._last_line >= PLAIN_SECONDS:
            self._last_line = now
            self.note(f"{self._done} of {self._total} debates, {self.status()}, {self.seconds:.0f} s")
