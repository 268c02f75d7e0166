"""What searches have in common: thoughts, how they are proposed and valued. Knows no order of search."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from debate.engine import Engine, InRun
from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.hashing import digest
from debate.runtime.loop_thread import LoopThread
from debate.types import Task

P = ParamSpec("P")
T = TypeVar("T")
Propose = Callable[[str, str], Iterable[str] | Awaitable[Iterable[str]]]
"""`propose(x, text)`: the texts that may come after `text`, whole; plain or async."""
Solves = Callable[[str, str], bool]
"""`is_solved(x, text)`."""


@dataclass(frozen=True, slots=True)
class Thought:
    """A partial solution."""

    text: str
    score: float | None = None
    """On the evaluator's scale; None for the root, and where it could not be scored."""
    parent: Thought | None = None

    @property
    def path(self) -> tuple[Thought, ...]:
        """The thoughts that lead to it, itself last; without the root."""
        before = self.parent.path if self.parent is not None else ()
        return before if self.parent is None else (*before, self)


@dataclass(frozen=True, slots=True)
class Level:
    """One frontier: what was proposed, and what was kept of it."""

    thoughts: tuple[Thought, ...]
    kept: tuple[int, ...]
    """Indices, best first."""
    tied_at_cut: tuple[int, ...]
    """Indices that share the score at which the frontier was cut: the order of proposal chose among them."""
    evaluation: Evaluation | None
    """None where there was nothing to be valued."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search came to."""

    best: tuple[Thought, ...]
    """Solved ones, if any, or else the last frontier; best first."""
    is_solved: bool
    levels: tuple[Level, ...]

    @property
    def calls(self) -> int:
        """Calls of the model."""
        return sum(level.evaluation.usage.calls for level in self.levels if level.evaluation is not None)


async def proposed(propose: Propose, x: str, parents: Sequence[Thought]) -> list[Thought]:
    """What comes after some thoughts; a text that is proposed twice is the first parent's."""
    found: dict[str, Thought] = {}
    for parent in parents:
        answer = propose(x, parent.text)
        texts = await answer if inspect.isawaitable(answer) else answer
        for text in texts:
            found.setdefault(text, Thought(text, None, parent))
    return list(found.values())


async def valued(
    engine: Engine, evaluator: Evaluator, x: str, thoughts: Sequence[Thought], run: InRun
) -> tuple[list[Thought], Evaluation | None]:
    """The thoughts with their scores, all valued as one task."""
    if not thoughts:
        return [], None
    texts = [thought.text for thought in thoughts]
    task = Task(x, texts, id=f"thoughts/{digest(x, texts)[:16]}")
    evaluation = await engine.aevaluate(task, evaluator, run)
    scores = [None if score != score else float(score) for score in evaluation.scores.tolist()]
    return [Thought(each.text, score, each.parent) for each, score in zip(thoughts, scores, strict=True)], evaluation


def waiting(search: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """A search that is waited for; works inside a running event loop too."""

    @wraps(search)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        thread = LoopThread("debate-search")
        try:
            return thread.run(search(*args, **kwargs))
        finally:
            thread.close()

    return wait


def require(name: str, value: int) -> None:
    """Refuse a number below 1."""
    if value < 1:
        raise ConfigError(f"must be at least 1, got {value}", field=name)
