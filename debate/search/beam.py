"""Breadth-first search over thoughts: of each level keep the best few (Yao et al. 2023)."""

from __future__ import annotations

from debate.engine import Engine
from debate.evaluators.base import Evaluator
from debate.flow import Flow
from debate.runtime.run_registry import InRun
from debate.search.thoughts import Level, Propose, SearchResult, Solves, Thought, driven, proposed, require, valued
from debate.selection import keep_best, tied_at_cut


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
    require("width", width)
    require("depth", depth)
    frontier = [Thought(root)]
    levels: list[Level] = []
    for _ in range(depth):
        thoughts = yield from proposed(propose, x, frontier)
        if not thoughts:
            break
        level = yield from _level(engine, evaluator, x, thoughts, width, run)
        levels.append(level)
        ranked = [level.thoughts[j] for j in level.kept]
        solved = [each for each in level.thoughts if is_solved is not None and is_solved(x, each.text)]
        if solved:
            ahead = [each for each in ranked if each in solved]
            return SearchResult((*ahead, *(each for each in solved if each not in ahead)), True, tuple(levels))
        frontier = ranked
        if not frontier:
            break
    return SearchResult(tuple(frontier), False, tuple(levels))


beam = driven(beam_flow)
"""`beam_flow`, driven by its engine."""


def _level(
    engine: Engine, evaluator: Evaluator, x: str, thoughts: list[Thought], width: int, run: InRun
) -> Flow[Level]:
    scored, evaluation = yield from valued(engine, evaluator, x, thoughts, run)
    scores = [thought.score for thought in scored]
    is_rising = evaluator.scale.higher_is_better
    kept = keep_best(scores, width, is_rising)
    return Level(tuple(scored), tuple(kept), tuple(tied_at_cut(scores, width, is_rising)), evaluation)
