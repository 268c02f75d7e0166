"""Thoughts, and how a search proposes and values them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from debate.engine import Engine
from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.flow import Flow, call_function, gather
from debate.hashing import digest
from debate.runtime.run_registry import InRun
from debate.types import Failure, Task

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


def proposed(propose: Propose, x: str, parents: Sequence[Thought]) -> Flow[list[Thought]]:
    """The thoughts that may come after some others; a text that is proposed twice belongs to the first parent.

    Raises:
        ConfigError: when `propose` raises.
    """

    def proposer(parent: Thought) -> Any:
        answer = propose(x, parent.text)
        return answer if inspect.isawaitable(answer) else list(answer)

    found: dict[str, Thought] = {}
    answers = yield from gather([call_function(proposer, parent) for parent in parents])
    for parent, answer in zip(parents, answers, strict=True):
        if isinstance(answer, Failure):
            raise ConfigError(answer.message, field="propose")
        for text in answer:
            found.setdefault(text, Thought(text, None, parent))
    return list(found.values())


def valued(
    engine: Engine, evaluator: Evaluator, x: str, thoughts: Sequence[Thought], run: InRun
) -> Flow[tuple[list[Thought], Evaluation | None]]:
    """The thoughts with their scores: candidates of one task, evaluated and recorded like any other."""
    if not thoughts:
        return [], None
    texts = [thought.text for thought in thoughts]
    task = Task(x, texts, id=f"thoughts/{digest(x, texts)[:16]}")

    async def evaluate() -> Evaluation | Exception:
        try:
            return await engine.aevaluate(task, evaluator, run)
        except Exception as error:  # raised below: the engine would make a failure of it
            return error

    evaluation = yield from call_function(evaluate)
    if isinstance(evaluation, Exception):
        raise evaluation
    scores = [None if score != score else float(score) for score in evaluation.scores.tolist()]
    return [Thought(each.text, score, each.parent) for each, score in zip(thoughts, scores, strict=True)], evaluation


def driven(search: Callable[Concatenate[Engine, P], Flow[T]]) -> Callable[Concatenate[Engine, P], T]:
    """A search that the engine drives to its end."""

    @wraps(search)
    def drive(engine: Engine, *args: P.args, **kwargs: P.kwargs) -> T:
        return engine.drive(search(engine, *args, **kwargs))

    return drive


def require(name: str, value: int) -> None:
    """Refuse a number below 1."""
    if value < 1:
        raise ConfigError(f"must be at least 1, got {value}", field=name)
