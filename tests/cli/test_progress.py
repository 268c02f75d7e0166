"""The live line: one that stays whole on a small terminal, lines of plain text elsewhere, the other workers counted."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from debate.backends import Call, Scripted
from debate.cli import progress as module
from debate.cli.progress import Progress
from debate.engine import Engine
from debate.store.workers import Others
from debate.testing import reply_for
from debate.types import Task
from tests.small_flows import debates

N_TASKS = 3


@pytest.fixture(autouse=True)
def every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAIN_SECONDS", 0.0)


def told(*heard: Others | None, width: int = 0) -> list[str]:
    """The lines of a run of three debates here, 500 in all, in which this was heard: None is that one has to wait."""
    written = StringIO()
    console = Console(file=written, width=width or 200, force_terminal=bool(width), color_system=None)
    tasks = [Task("Q?", ["a", "b"], id=f"t{n}") for n in range(N_TASKS)]

    def reply(call: Call) -> str:
        return reply_for(call)

    with Progress(model="", console=console) as progress:
        progress.started(500, 100)
        progress.loading()
        with Engine(Scripted(reply), on_completion=progress.answered) as engine:
            progress.loaded()
            for evaluation in engine.iter_evaluate(tasks, debates(rounds=1)):
                progress.finished(evaluation)
        for each in heard:
            progress.waiting() if each is None else progress.shared(each)
    return [line for line in written.getvalue().replace("\r", "\n").splitlines() if line]


def test_a_run_of_one_process_counts_its_debates_and_no_workers() -> None:
    assert told(Others(0, 0, 0))[-1].startswith("103 of 500 debates, ")


def test_debates_of_all_workers_are_counted_and_ones_own_apart() -> None:
    assert told(Others(2, 297, 0))[-1].startswith("400 of 500 debates (3 workers, 3 here), ")


def test_others_that_have_ended_are_still_counted_by_what_they_did() -> None:
    assert told(Others(2, 290, 0), Others(0, 297, 0))[-1].startswith("400 of 500 debates (1 worker, 3 here), ")


def test_who_waits_says_for_how_many_workers_and_tasks() -> None:
    assert "(2 workers, 3 here), waiting for 1 worker, 100 tasks left" in told(Others(1, 297, 0), None)[-1]


def test_nobody_waits_for_workers_that_are_not_there() -> None:
    assert "waiting" not in told(Others(0, 297, 0), None)[-1]


def test_the_line_of_a_small_terminal_keeps_the_counts() -> None:
    assert any("3 workers" in line and "400/500" in line for line in told(Others(2, 297, 0), width=80))
