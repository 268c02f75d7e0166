"""A debate on the screen while it goes on: what is awaited is said on a terminal, and nowhere else."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from debate.cli.live import Shown
from debate.cli.render_debate import View
from debate.evaluators.base import Evaluator
from debate.flow import RoundEnd
from debate.types import Memory, Task, Turn
from tests.driving import evaluator, task

TASK = task(2)
TURN = Turn(
    round=0,
    agent="agent0",
    labels={"A": 0, "B": 1},
    scores=np.array([[7.0, 8.0], [2.0, 3.0]]),  # (J, K)
    overall="The first.",
    comments=("Right.", "Wrong."),
    memories=(Memory(text="Sums are exact.", score=0.5, relevance=0.5, recency=0.5, importance=0.5),),
)


def told(settings: Evaluator, *news: Turn | RoundEnd, is_terminal: bool, on: Task = TASK) -> str:
    """What is on the screen after some news."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=is_terminal, width=80, color_system=None)
    with Shown(console, View.of(console), settings) as shown:
        assert shown.awaits("loading a model") == is_terminal
        for each in news:
            shown.tell(on, each)
    return screen.getvalue()


def test_a_terminal_says_what_is_awaited() -> None:
    assert "loading a model" in told(evaluator(), is_terminal=True)
    assert "round 1: 1 of 2 agents have spoken" in told(evaluator(), TURN, is_terminal=True)
    assert "round 2" in told(evaluator(), TURN, RoundEnd(0, 0.5, None), is_terminal=True)


def test_elsewhere_turns_and_ends_of_rounds_alone_are_printed() -> None:
    shown = told(evaluator(), TURN, RoundEnd(0, 0.5, "converged"), is_terminal=False)
    assert "\x1b" not in shown
    assert "agents have spoken" not in shown
    parts = ["Round 1", "agent0", "The first.", "Right.", "CV 0.500", "stopped: the agents agree"]
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)


def test_what_was_recalled_is_shown_by_its_text_alone() -> None:
    shown = told(evaluator(), TURN, is_terminal=False)
    assert "Sums are exact." in shown
    assert "relevance" not in shown


def test_debates_side_by_side_are_not_printed_as_they_go() -> None:
    assert told(evaluator(candidate_order="balanced"), TURN, RoundEnd(0, 0.5, None), is_terminal=False) == ""
