"""The line itself: what it says when, and that nothing depends on whether it can be shown."""

from __future__ import annotations

import asyncio
import io
import logging
import sys

import pytest

from debate.runtime import live_line
from debate.runtime.live_line import LiveLine
from tests.small_flows import scored, tasks


class Seen:
    """A screen that keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, int, int | None]] = []
        self.is_closed = False

    def show(self, text: str, done: int, total: int | None) -> None:
        self.shown.append((text, done, total))

    def close(self) -> None:
        self.is_closed = True


def test_it_says_the_time_left_once_a_task_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(live_line.time, "monotonic", lambda: now[0])
    line = LiveLine(4, is_shown=False)
    with line.loading("judge"):
        now[0] += 61
        assert line.text() == "loading judge, 1 min 1 s"
    now[0] += 10
    assert line.text() == "0 of 4 tasks, 0 calls, 0 tok/s"
    line.finished(scored(tasks(1)[0], 1.0))
    assert line.text() == "1 of 4 tasks, 0 calls, 0 tok/s, about 30 s left"
    for _ in range(3):
        line.finished(scored(tasks(1)[0], 1.0))
    assert line.text() == "4 of 4 tasks, 0 calls, 0 tok/s, 10 s"


def test_where_nobody_knows_how_many_tasks_come_it_counts_them() -> None:
    line = LiveLine(None, is_shown=False)
    line.finished(scored(tasks(1)[0], 1.0))
    assert line.text().startswith("1 task, 0 calls")


def test_it_goes_on_while_it_waits_and_is_closed_at_the_end() -> None:
    screen = Seen()

    async def scene() -> None:
        async with LiveLine(2, is_shown=True, screen=screen) as line:
            await asyncio.sleep(0.6)
            line.finished(scored(tasks(1)[0], 1.0))

    asyncio.run(scene())
    assert len(screen.shown) >= 3
    assert screen.shown[-1][1:] == (1, 2)
    assert screen.is_closed


def test_a_screen_that_raises_is_told_of_once_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Seen):
        def show(self, text: str, done: int, total: int | None) -> None:
            raise OSError("no space")

    async def scene() -> str:
        async with LiveLine(2, is_shown=True, screen=Broken()):
            await asyncio.sleep(0.6)
            return "done"

    with caplog.at_level(logging.ERROR, "debate"):
        assert asyncio.run(scene()) == "done"
    assert caplog.text.count("the progress line cannot be shown") == 1


def test_on_a_terminal_it_is_one_line_that_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    async def scene() -> None:
        async with LiveLine(2, is_shown=True) as line:
            with line.loading("judge [bold]"):
                await asyncio.sleep(0.3)
            line.finished(scored(tasks(1)[0], 1.0))

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    asyncio.run(scene())
    assert "loading judge [bold]" in terminal.getvalue()
    assert "1 of 2 tasks" in terminal.getvalue()
