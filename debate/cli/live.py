"""A debate on the screen while it goes on: every turn as soon as it is taken, and on a terminal what is awaited."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Self

from rich.console import Console

from debate.cli.console import section
from debate.cli.render_debate import View, render_round_end, render_turn, said_before
from debate.evaluators.base import Evaluator
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.flow import RoundEnd
from debate.types import Task, Turn


class Shown:
    """Prints the turns that an engine tells it of, on a console.

    Of an evaluator that is not one debate, turns would come from several debates at once: nothing is printed.

    Attributes:
        is_live: whether turns are printed.
    """

    def __init__(self, console: Console, view: View, evaluator: Evaluator) -> None:
        self._console = console
        self._view = view
        self._evaluator = evaluator
        self._turns: list[Turn] = []
        self._status = console.status("asking", spinner="line") if console.is_terminal else None
        self.is_live = isinstance(evaluator, DebateEvaluator) and evaluator.candidate_order != "balanced"

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def awaits(self, what: str) -> bool:
        """Say what is awaited, on a terminal; returns whether that is shown."""
        if self._status is not None:
            self._status.update(what)
        return self._status is not None

    def tell(self, task: Task, news: Turn | RoundEnd) -> None:
        """Print a turn, or how a round ended. Comes from the engine's thread."""
        if not (self.is_live and isinstance(self._evaluator, DebateEvaluator)):
            return
        if isinstance(news, RoundEnd):
            self._console.print(render_round_end(news.cv, news.stop_reason, self._view))
            self.awaits("the result" if news.stop_reason else f"round {news.round + 2}")
            return
        if not any(turn.round == news.round for turn in self._turns):
            self._console.print(section(f"Round {news.round + 1}"))
        components = tuple(each.name for each in self._evaluator.of_task(task).components)
        news = replace(news, memories=tuple(replace(each, score=math.nan) for each in news.memories))  # texts alone
        for part in render_turn(news, components, self._view, said_before(news, self._turns)):
            self._console.print(part)
        self._turns.append(news)
        n = sum(turn.round == news.round for turn in self._turns)
        self.awaits(f"round {news.round + 1}: {n} of {len(self._evaluator.personas)} agents have spoken")
