"""Depth-first thought search: the best next thought first, back where none is good enough (Yao et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field

from debate.engine import Engine
from debate.evaluators.base import Evaluator
from debate.flow import Flow
from debate.runtime.run_registry import InRun
from debate.search.thoughts import Level, Propose, SearchResult, Solves, Thought, driven, proposed, require, valued
from debate.selection import keep_best


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
        thoughts = yield from proposed(self.propose, self.x, [thought])
        scored, evaluation = yield from valued(self.engine, self.evaluator, self.x, thoughts, self.run)
        if not scored:
            return []
        scale = self.evaluator.scale
        ranked = keep_best([each.score for each in scored], self.width, scale.higher_is_better)
        kept = [j for j in ranked if scale.to_unit(scored[j].score or 0.0) >= self.threshold]
        self.levels.append(Level(tuple(scored), tuple(kept), (), evaluation))
        return [scored[j] for j in kept]


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
    for name, value in (("width", width), ("depth", depth), ("max_visits", max_visits)):
        require(name, value)
    search = _Search(engine, x, propose, evaluator, is_solved, width, depth, threshold, max_visits, run)
    solution = yield from search.visit(Thought(root))
    best = solution or search.best
    return SearchResult(() if best is None else (best,), solution is not None, tuple(search.levels))


depth_first = driven(depth_first_flow)
"""`depth_first_flow`, driven by its engine."""
