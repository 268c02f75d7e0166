"""How one call of the engine goes on, in one live line: on a terminal, in a notebook, or as lines of text now and then.

It is written from the engine's own loop, a few times a second, so that it also goes on while a model is loaded.
"""

from __future__ import annotations

import asyncio
import html
import logging
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, Self

from debate.backends.base import Call
from debate.evaluation import Evaluation
from debate.flow import Completion

if TYPE_CHECKING:
    from rich.progress import Progress

_log = logging.getLogger("debate")
_SECONDS = 0.25
_LOADING = "loading"
PLAIN_SECONDS = 10.0
"""Between two lines where there is neither a terminal nor a notebook."""


class Screen(Protocol):
    """Where the line is shown."""

    def show(self, text: str, done: int, total: int | None) -> None:
        """Show the line in place of the one before."""
        ...

    def close(self) -> None:
        """Leave the last line standing."""
        ...


class LiveLine:
    """Counts what one call of the engine does and shows it; `total` is None where nobody knows how many tasks come.

    What showing raises is logged, once, and changes no result.
    """

    def __init__(self, total: int | None, *, is_shown: bool, screen: Screen | None = None) -> None:
        self._total = total
        self._is_shown = is_shown
        self._screen = screen
        self._ticking: asyncio.Task[None] | None = None
        self._done = self._failed = self._calls = self._tokens = 0
        self._loading = ""
        self._began = self._loaded = time.monotonic()

    async def __aenter__(self) -> Self:
        if self._is_shown:
            self._try(self._open)
            self._ticking = asyncio.ensure_future(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticking
            self._try(self._show)
            self._try(self._close)

    @contextmanager
    def loading(self, models: str) -> Generator[None]:
        """Say inside which models are loaded now, and count the speed from its end."""
        self._loading, self._began = models, time.monotonic()
        yield
        self._loading, self._loaded = "", time.monotonic()

    def answered(self, call: Call, completion: Completion) -> None:
        """Count a reply."""
        self._calls += completion.usage.calls
        self._tokens += completion.usage.completion_tokens

    def finished(self, evaluation: Evaluation) -> Evaluation:
        """Count a task, and hand it on."""
        self._done += 1
        self._failed += evaluation.status == "failed"
        return evaluation

    def text(self) -> str:
        """The line: tasks, calls, speed, failures, and the time left where it can be told."""
        now = time.monotonic()
        if self._loading:
            return f"{_LOADING} {self._loading}, {_span(now - self._began)}"
        seconds = max(now - self._loaded, 1e-9)
        tasks = (
            _counted(self._done, "task")
            if self._total is None
            else (f"{self._done:,} of {_counted(self._total, 'task')}")
        )
        parts = [tasks, _counted(self._calls, "call"), f"{self._tokens / seconds:,.0f} tok/s"]
        parts += [f"{self._failed:,} failed"] if self._failed else []
        is_over = self._total is not None and self._done >= self._total
        if self._total is not None and self._done and not is_over:
            parts.append(f"about {_span(seconds / self._done * (self._total - self._done))} left")
        return ", ".join([*parts, *([_span(seconds)] if is_over else [])])

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS)
            self._try(self._show)

    def _open(self) -> None:
        self._screen = self._screen or _screen()

    def _show(self) -> None:
        if self._screen is not None:
            self._screen.show(self.text(), self._done, self._total)

    def _close(self) -> None:
        if self._screen is not None:
            self._screen.close()

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            _log.error("the progress line cannot be shown; no result is changed", exc_info=error)
            self._screen = None


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _span(seconds: float) -> str:
    """Minutes and seconds, or hours and minutes."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def _screen() -> Screen:
    ipython: Any = sys.modules.get("IPython")
    shell: Any = ipython and ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        return _Notebook()
    from rich.console import Console

    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    return _Terminal(console) if console.is_terminal else _Lines()


class _Terminal:
    """A spinner, a bar and the line, drawn by rich."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        text = TextColumn("{task.description}", markup=False)
        self._bar: Progress = Bar(SpinnerColumn(), BarColumn(16), text, TimeElapsedColumn(), console=console)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def show(self, text: str, done: int, total: int | None) -> None:
        self._bar.update(self._task, description=text, completed=done, total=total, refresh=True)

    def close(self) -> None:
        self._bar.stop()


class _Notebook:
    """One output of the cell, which is replaced."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = ""

    def show(self, text: str, done: int, total: int | None) -> None:
        from IPython.display import DisplayHandle

        if text == self._last:
            return
        amount = "" if total is None else f' value="{done}" max="{max(total, 1)}"'
        shown = {"text/plain": text, "text/html": f"<progress{amount}></progress> {html.escape(text)}"}
        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(shown, raw=True)
        else:
            self._handle.update(shown, raw=True)
        self._last = text

    def close(self) -> None:
        """The last one stands."""


class _Lines:
    """A line on stderr now and then, and at the end."""

    def __init__(self) -> None:
        self._due = 0.0
        self._text = self._written = ""

    def show(self, text: str, done: int, total: int | None) -> None:
        is_new = self._written.startswith(_LOADING) != text.startswith(_LOADING)
        self._text = text
        if is_new or time.monotonic() >= self._due:
            self._write()

    def close(self) -> None:
        if self._text != self._written:
            self._write()

    def _write(self) -> None:
        self._due, self._written = time.monotonic() + PLAIN_SECONDS, self._text
        print(self._text, file=sys.stderr, flush=True)  # noqa: T201
