"""How a run goes on, on stderr: one live line on a terminal, a plain line now and then elsewhere.

It counts what it is told. On a terminal nothing else writes through the line: what the engine's processes write to
stderr meanwhile goes to a log, and is shown when the run fails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskID
from rich.progress import Progress as Bar
from rich.text import Text

from debate.backends import Call
from debate.cli.console import open_console
from debate.cli.streams import CapturedOutput
from debate.evaluation import Evaluation, abstained_cells
from debate.flow import Completion
from debate.types import Price, Usage, cost_of

if TYPE_CHECKING:  # it loads SQLAlchemy
    from debate.store.workers import Others

PLAIN_SECONDS = 10.0
"""Between two lines where there is no terminal."""
_LOADING = "loading the model"
_WIDE = 100
"""Columns of a terminal from which on there is room for a longer bar."""
_TOLD_LINES = 20
"""Of the log, when the run fails."""


def cached_share(usage: Usage) -> float:
    """Share of the prompt tokens that were cached; 0 without any."""
    return usage.cached_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0


def money(cost: float) -> str:
    """A sum of money: two decimals, four where it is less than 1."""
    if 0 < cost < 0.00005:
        return "less than 0.0001"
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.4f}"


def clock_time(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:30`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


class Progress:
    """A `debate.jobs.run.RunListener` that shows what it is told, and keeps the totals for the summary.

    Args:
        model: that is loaded; empty where none is.
        prices: of the models, by which it says what the replies cost.
        console: that is written on; None is stderr.
        log: the file that takes what is written to stderr by other means while the live line stands; None leaves
            stderr as it is.
        clock: in seconds.
    """

    def __init__(
        self,
        *,
        model: str,
        prices: Mapping[str, Price] | None = None,
        console: Console | None = None,
        log: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console or open_console(stderr=True)
        self.prices: Mapping[str, Price] = prices or {}
        self.usage = Usage()
        self._clock = clock
        self.failed_turns = 0
        self.failed = 0
        self.abstained = 0
        self.done_before = 0
        self._paid: dict[str, Usage] = {}
        self._model = model
        self._total = 0
        self._here = 0
        self._calls_of_finished = 0
        self._right = self._labeled = 0
        self._failing = "call"
        self._others: Others | None = None
        self._is_loaded = self._is_waiting = False
        self._began = self._clock()
        self._last_line = 0.0
        self._last_done = 0
        self._lock = threading.Lock()
        self._bar: Bar | None = None
        self._bar_task = TaskID(0)
        self._log = log
        self._captured: CapturedOutput | None = None
        self._told_of_log = 0

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            if self._log is not None:
                self._captured = CapturedOutput()
            spinner = SpinnerColumn("line" if self.console.options.ascii_only else "dots")
            bar = BarColumn(24 if self.console.width >= _WIDE else 10)
            self._bar = Bar(spinner, bar, _Line(self), console=self.console, transient=True)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._last_done != self._done:
            self._show(is_due=True)
        if self._captured is not None:
            self._captured.release()
            if kind is not None and issubclass(kind, Exception):
                self._tell_log()

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self.console.print(text, soft_wrap=True)

    def started(self, total: int, done_before: int) -> None:
        """Say how many tasks there are, and how many have a result already."""
        self._total, self.done_before, self._last_done = total, done_before, done_before
        if done_before:
            self.note(f"{done_before} of {total} tasks have a result already")
        if done_before < total and self._bar is not None:
            self._bar_task = self._bar.add_task("", total=total, completed=done_before)

    def loading(self) -> None:
        """Say that the model is loaded now."""
        self._began, self._is_loaded = self._clock(), False
        if self._captured is not None and self._log is not None:
            self._tell_log()  # where it is loaded again, because the engine died
            self._captured.into(self._log)
        if self._model:
            self.note(f"loading {self._model}")

    def loaded(self) -> None:
        """Say how long loading took; tokens per second count from here."""
        if self._model:
            self.note(f"loaded in {self._clock() - self._began:.0f} s")
        self._began = self._last_line = self._clock()
        self._is_loaded = True

    def answered(self, call: Call, completion: Completion) -> None:
        """Count a reply. Comes from the engine's thread."""
        with self._lock:
            self.usage += completion.usage
            if not completion.cached:
                self._paid[call.model] = self._paid.get(call.model, Usage()) + completion.usage
        self._is_waiting = False
        self._show()

    def finished(self, evaluation: Evaluation) -> None:
        """Count a task."""
        self._here += 1
        self._calls_of_finished += evaluation.usage.calls
        self.failed += evaluation.status == "failed"
        self.failed_turns += len(evaluation.failures)
        if any(each.round is not None for each in evaluation.failures):
            self._failing = "turn"
        self.abstained += abstained_cells(evaluation)[0]
        self._show(is_due=self._done == self._total)

    def judged(self, right: int, labeled: int) -> None:
        """Say how many of the labeled tasks with a result came out right."""
        self._right, self._labeled = right, labeled

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
        return self._clock() - self._began

    def status(self) -> str:
        """Calls, speed, share of cached prompt tokens, failures, abstained cells; empty where nothing was asked."""
        return ", ".join(text for _, text in self._work())

    def line(self, width: int) -> str:
        """The live line, without what does not fit into so many columns; the least important goes first."""
        shown = [(0, f"{self._done:,}/{self._total:,}"), *self._doing()]
        while len(shown) > 1 and len(", ".join(text for _, text in shown)) > width:
            shown.remove(max(shown, key=lambda part: part[0]))
        return ", ".join(text for _, text in shown)[:width]

    @property
    def _done(self) -> int:
        """Tasks that have a result, whoever made it; what others did last may be counted late."""
        elsewhere = 0 if self._others is None else self._others.tasks
        return min(self.done_before + self._here + elsewhere, self._total)

    def _doing(self) -> Iterator[tuple[int, str]]:
        """What is told besides the number of tasks: each with its rank, of which the highest is dropped first."""
        others = 0 if self._others is None else self._others.workers
        left = self._total - self._done
        if not self._is_loaded:
            yield 1, _LOADING if self._model else "starting"
        elif self._is_waiting and others and left:
            yield 1, f"waiting for {_counted(others, 'worker')}"
            yield 2, f"{_counted(left, 'task')} left"
        else:
            yield from self._results()
            yield from self._work()
            if self._bar is not None and others:
                yield 8, _counted(others + 1, "worker")
        if self._bar is not None:
            yield 11, clock_time(self.seconds)

    def _results(self) -> Iterator[tuple[int, str]]:
        if (left := self._seconds_left()) is not None:
            yield 1, f"{clock_time(left)} left"
        if self.failed:
            yield 2, f"{self.failed:,} failed"
        if self._labeled:
            yield 3, f"{self._right / self._labeled:.0%} right"
        if self.prices:
            yield 4, f"cost {money(cost_of({**self._paid}, self.prices))}"

    def _work(self) -> Iterator[tuple[int, str]]:
        used, seconds = self.usage, max(self.seconds, 1e-9)
        if used.calls:
            yield 5, _counted(used.calls, "call")
        if used.completion_tokens:
            yield 7, f"{used.completion_tokens / seconds:,.0f} tok/s"
        if used.prompt_tokens:
            yield 10, f"{cached_share(used):.0%} cached"
        if self.failed_turns:
            yield 6, f"{_counted(self.failed_turns, f'failed {self._failing}')}"
        if self.abstained:
            yield 9, f"abstained: {_counted(self.abstained, 'cell')}"

    def _seconds_left(self) -> float | None:
        """By the calls that the finished tasks took, and those made for the others; by tasks where that says nothing.

        None before a task is finished.
        """
        elsewhere = 0 if self._others is None else self._others.tasks
        finished, left = self._here + elsewhere, self._total - self._done
        if not (finished and left and self._here):
            return None
        calls, each = self.usage.calls, self._calls_of_finished / self._here
        if elsewhere or not (calls and each):
            return self.seconds / finished * left
        open_calls = max(calls - self._calls_of_finished, 0)
        return self.seconds / calls * max(left * each - open_calls, 0.0)

    def _show(self, *, is_due: bool = False) -> None:
        if self._bar is not None:
            if self._bar.tasks:
                self._bar.update(self._bar_task, completed=self._done)
            return
        now = self._clock()
        if is_due or now - self._last_line >= PLAIN_SECONDS:
            self._last_line, self._last_done = now, self._done
            n_workers = 1 if self._others is None else self._others.workers + 1
            is_shared = n_workers > 1 or self._done > self.done_before + self._here
            team = f" ({_counted(n_workers, 'worker')}, {self._here} here)" if is_shared else ""
            done = f"{self._done} of {self._total} tasks{team}"
            self.note(", ".join([done, *(text for _, text in self._doing()), f"{self.seconds:.0f} s"]))

    def _tell_log(self) -> None:
        """Show the end of what was captured and not shown yet, and where the rest is."""
        captured = self._captured
        if captured is None or not (lines := captured.since_told()):
            return
        if len(lines) > _TOLD_LINES:
            self.note(f"the last {_TOLD_LINES} of {len(lines):,} lines that the engine wrote; all are in {self._log}")
        for each in lines[-_TOLD_LINES:]:
            self.note(f"  {each}")


class _Line(ProgressColumn):
    """The text beside the bar, made anew whenever the screen is: the time goes on, and the width is that of now."""

    max_refresh = None

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress

    def render(self, task: Task) -> Text:
        width = self._progress.console.width
        taken = 2 + (24 if width >= _WIDE else 10) + 2  # the spinner, the bar, and what stands between and behind them
        return Text(self._progress.line(width - taken), no_wrap=True, overflow="crop")
