"""Searches over thoughts: breadth first with a beam, and depth first (Yao et al. 2023)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from debate.engine import Engine
from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.flow import Flow, call_function, gather
from debate.hashing import digest
from debate.runtime.run_registry import InRun
from debate.selection import keep_best, tied_at_cut
from debate.types import Failure, Scale, Task

P = ParamSpec("P")
T = TypeVar("T")
Propose = Callable[[str, str], Iterable[str] | Awaitable[Iterable[str]]]
"""`propose(x, text)`: the texts that may come after `text`, whole; plain or async."""
Solves = Callable[[str, str], bool]
"""`is_solved(x, text)`."""
SEARCH = "search"
"""Key of a level's metadata under which stands what a tree is drawn from: `parents`, the place of each thought's parent
or None for the root, and `width` and `threshold`, by which thoughts were kept. All levels of a search are one group."""


@dataclass(frozen=True, slots=True)
class Thought:
    """A partial solution."""

    text: str
    score: float | None = None
    """On the evaluator's scale; None for the root, and where it could not be scored."""
    parent: Thought | None = None
    place: tuple[str, int] | None = field(default=None, compare=False, repr=False)
    """The id of the task that valued it, and which of its candidates it is; None for the root."""

    @property
    def path(self) -> tuple[Thought, ...]:
        """The thoughts that lead to it, itself last; without the root."""
        return () if self.parent is None else (*self.parent.path, self)


@dataclass(frozen=True, slots=True)
class Level:
    """One frontier: what was proposed, and what was kept of it."""

    thoughts: tuple[Thought, ...]
    kept: tuple[int, ...]
    """Indices, best first."""
    tied_at_cut: tuple[int, ...]
    """Indices that share the score at which the frontier was cut: the order of proposal chose among them."""
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search."""

    best: tuple[Thought, ...]
    """Solved ones, if any, or else the last frontier; best first."""
    is_solved: bool
    levels: tuple[Level, ...]

    @property
    def calls(self) -> int:
        """Calls of the model."""
        return sum(level.evaluation.usage.calls for level in self.levels)


def _proposed(propose: Propose, x: str, parents: Sequence[Thought]) -> Flow[list[Thought]]:
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


def kept_of(scores: Sequence[float | None], width: int, scale: Scale, threshold: float | None = None) -> list[int]:
    """Which thoughts of a level are gone on with, best first.

    Args:
        scores: None where a thought could not be scored.
        width: kept at most.
        scale: of the scores.
        threshold: those below it are not kept; on the scale as 0 (worst) to 1; None keeps them.
    """
    best = keep_best(scores, width, scale.higher_is_better)
    return [j for j in best if threshold is None or scale.to_unit(scores[j] or 0.0) >= threshold]


def _level(
    engine: Engine,
    evaluator: Evaluator,
    x: str,
    thoughts: Sequence[Thought],
    width: int,
    run: InRun,
    threshold: float | None = None,
) -> Flow[Level]:
    """The thoughts with their scores: candidates of one task, evaluated and recorded like any other."""
    texts = [thought.text for thought in thoughts]
    name = f"thoughts/{digest(x, texts)[:16]}"
    task = Task(x, texts, id=name, metadata=_about(name, thoughts, width, threshold))

    async def evaluate() -> Evaluation | Exception:
        try:
            return await engine.aevaluate(task, evaluator, run)
        except Exception as error:  # raised below: the engine would make a failure of it
            return error

    evaluation = yield from call_function(evaluate)
    if isinstance(evaluation, Exception):
        raise evaluation
    scores = [None if score != score else float(score) for score in evaluation.scores.tolist()]
    valued = zip(thoughts, scores, strict=True)
    scored = tuple(Thought(each.text, score, each.parent, (name, j)) for j, (each, score) in enumerate(valued))
    good = {*kept_of(scores, len(scores), evaluator.scale, threshold)}
    tied = [j for j in tied_at_cut(scores, width, evaluator.scale.higher_is_better) if j in good]
    return Level(scored, tuple(kept_of(scores, width, evaluator.scale, threshold)), tuple(tied), evaluation)


def _about(name: str, thoughts: Sequence[Thought], width: int, threshold: float | None) -> dict[str, Any]:
    """The metadata of a level: which search it is of, by its first level, and what the thoughts go on from."""
    first = next((each.path[0].place for each in thoughts if len(each.path) > 1), None)
    group = SEARCH + (name if first is None else first[0]).removeprefix("thoughts")
    parents = [
        None if each.parent is None or each.parent.place is None else list(each.parent.place) for each in thoughts
    ]
    return {"group": group, SEARCH: {"parents": parents, "width": width, "threshold": threshold}}


def _driven(search: Callable[Concatenate[Engine, P], Flow[T]]) -> Callable[Concatenate[Engine, P], T]:
    """A search that the engine drives to its end."""

    @wraps(search)
    def drive(engine: Engine, *args: P.args, **kwargs: P.kwargs) -> T:
        return engine.drive(search(engine, *args, **kwargs))

    return drive


def beam_flow(
    engine: Engine,
    x: str,
    propose: Propose,
    evaluator: Evaluator,
    *,
    width: int = 5,
    depth: int = 3,
    root: str = "",
    is_solved: Solves | None = None,
    run: InRun = None,
) -> Flow[SearchResult]:
    """Search from `root`, level by level.

    Args:
        engine: evaluates; give it a store and a `run` to have the search recorded and resumable.
        x: the problem.
        propose: what may come after a thought.
        evaluator: of any kind; all thoughts of a level are the candidates of one task.
        width: thoughts kept of each level; the best by the evaluator's scale, and among equals the first proposed.
        depth: levels at most.
        root: the text to begin with.
        is_solved: ends the search at the first level that holds a solution.
        run: as in `Engine.evaluate`; each level is a task of it.
    """
    _at_least_one(width=width, depth=depth)
    frontier = [Thought(root)]
    levels: list[Level] = []
    for _ in range(depth):
        thoughts = yield from _proposed(propose, x, frontier)
        if not thoughts:
            break
        level = yield from _level(engine, evaluator, x, thoughts, width, run)
        levels.append(level)
        ranked = [level.thoughts[j] for j in level.kept]
        solved = [each for each in level.thoughts if is_solved is not None and is_solved(x, each.text)]
        if solved:
            ahead = [each for each in ranked if each in solved]
            return SearchResult((*ahead, *(each for each in solved if each not in ahead)), True, tuple(levels))
        if not ranked:  # nothing of this level has a score: those before it are the best that is known
            break
        frontier = ranked
    return SearchResult(tuple(frontier), False, tuple(levels))


beam = _driven(beam_flow)
"""`beam_flow`, driven by its engine."""


@dataclass
class _Search:
    engine: Engine
    x: str
    propose: Propose
    evaluator: Evaluator
    is_solved: Solves
    width: int
    depth: int
    threshold: float
    max_visits: int
    run: InRun
    levels: list[Level] = field(default_factory=list[Level])
    visits: int = 0
    best: Thought | None = None
    """The deepest, and of equally deep ones the first visited."""

    def visit(self, thought: Thought) -> Flow[Thought | None]:
        """The first solution below a thought, or None."""
        self.visits += 1
        if self.best is None or len(thought.path) > len(self.best.path):
            self.best = thought
        if self.is_solved(self.x, thought.text):
            return thought
        if len(thought.path) >= self.depth:
            return None
        for child in (yield from self._children(thought)):
            if self.visits >= self.max_visits:
                return None
            solution = yield from self.visit(child)
            if solution is not None:
                return solution
        return None

    def _children(self, thought: Thought) -> Flow[list[Thought]]:
        """What may come next and is good enough, best first; all valued in one batch."""
        thoughts = yield from _proposed(self.propose, self.x, [thought])
        if not thoughts:
            return []
        level = yield from _level(self.engine, self.evaluator, self.x, thoughts, self.width, self.run, self.threshold)
        self.levels.append(level)
        return [level.thoughts[j] for j in level.kept]


def depth_first_flow(
    engine: Engine,
    x: str,
    propose: Propose,
    evaluator: Evaluator,
    is_solved: Solves,
    *,
    width: int = 5,
    depth: int = 3,
    threshold: float = 0.0,
    max_visits: int = 100,
    root: str = "",
    run: InRun = None,
) -> Flow[SearchResult]:
    """Search from `root` until the first solution.

    Args:
        engine: evaluates; see `beam_flow`.
        x: the problem.
        propose: what may come after a thought.
        evaluator: of any kind; the children of a thought are the candidates of one task.
        is_solved: whether a thought is a solution.
        width: children looked into of each thought, at most.
        depth: thoughts on a path, at most.
        threshold: children below it are not looked into; on the evaluator's scale as 0 (worst) to 1.
        max_visits: thoughts looked into in all, at most.
        root: the text to begin with.
        run: as in `Engine.evaluate`.
    """
    _at_least_one(width=width, depth=depth, max_visits=max_visits)
    search = _Search(engine, x, propose, evaluator, is_solved, width, depth, threshold, max_visits, run)
    solution = yield from search.visit(Thought(root))
    best = solution or search.best
    return SearchResult(() if best is None else (best,), solution is not None, tuple(search.levels))


depth_first = _driven(depth_first_flow)
"""`depth_first_flow`, driven by its engine."""


def _at_least_one(**limits: int) -> None:
    for name, value in limits.items():
        if value < 1:
            raise ConfigError(f"must be at least 1, got {value}", field=name)
