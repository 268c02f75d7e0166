"""The models of an eval set in an order: who wins how often by a run's scores, with and without the help of length.

Knows no labels: a judge that prefers one model's style ranks it higher, whatever people say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from debate.errors import InputError
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.selection import level_ties
from debate.statistics import ELO, Estimate, bradley_terry
from debate.types import FloatArray, FloatOrNaN

_DRAWS = (200, 1000)
_ROWS = 10_000_000
"""Draws of the bootstrap, fewest and most, and how many games they may come to."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model among the others.

    Attributes:
        model: its name, the `generator` of candidates.
        elo: points of the Elo scale around the mean of all models; `n` counts its games, which are pairs of candidates
            of one task, one of them its own.
        elo_at_equal_length: the same as if its candidates were as long as those they play against.
        won: share of these games that it wins, a tie as half; NaN where none was scored.
        characters: mean length of its candidates.
    """

    model: str
    elo: Estimate
    elo_at_equal_length: Estimate
    won: FloatOrNaN
    characters: float


@dataclass(frozen=True, slots=True)
class ModelRanking:
    """The models of a run, the best first.

    Attributes:
        run: its folder.
        models: by `elo`.
        length: points of Elo for one standard deviation of the relative difference of lengths, (a - b) / (a + b).
        tasks: number of tasks with a game.
        games: pairs of candidates that were compared.
        unscored: pairs that were not, as one of them has no score.
        unnamed: candidates without a model, which play no games.
        draws: of the bootstrap over tasks that makes the intervals.
        reason: why the points are held together by a small ridge and are not measured; None where they are.
    """

    run: str
    models: tuple[Model, ...]
    length: Estimate
    tasks: int
    games: int
    unscored: int
    unnamed: int
    draws: int
    reason: str | None


_Game = tuple[int, str, str, float, float]
"""Task, two models, outcome (1 where the first wins, 1/2 for a tie, NaN where one is unscored), how much longer."""


def rank_models(run: JudgedRun, *, seed: int = 0) -> ModelRanking:
    """Rank the models that wrote the candidates, by Bradley and Terry on the pairs of candidates within each task.

    The higher score wins, equal ones are a tie. Intervals are of whole tasks drawn again. See
    `debate.statistics.bradley_terry`; the column of length is that of LMArena's style control.

    Args:
        run: whose candidates name their `generator`.
        seed: of the bootstrap.

    Raises:
        InputError: when no task has candidates of two models.
    """
    games = [game for n, task in enumerate(run.tasks) for game in _games(n, task)]
    if not games:
        raise _no_games(run)
    draws = int(np.clip(_ROWS // len(games), *_DRAWS))
    tasks, first, second, outcomes, longer = zip(*games, strict=True)
    plain, level = (
        bradley_terry(first, second, outcomes, tasks, style, draws=draws, seed=seed)
        for style in (None, np.array(longer)[:, None])
    )
    at_equal_length = {skill.player: _points(skill) for skill in level.skills}
    won = np.array([outcomes, 1 - np.array(outcomes)])  # (2, games)
    players, lengths = np.array([first, second]), _lengths(run.tasks)  # (2, games)
    models = tuple(
        Model(
            model=str(skill.player),
            elo=_points(skill),
            elo_at_equal_length=at_equal_length[skill.player],
            won=_mean(won[players == skill.player]),
            characters=lengths[str(skill.player)],
        )
        for skill in plain.skills
    )
    return ModelRanking(
        run=str(run.directory.path),
        models=models,
        length=_points(level.style[0]),
        tasks=len(set(tasks)),
        games=plain.n,
        unscored=plain.left_out,
        unnamed=sum(task.generators.count("") for task in run.tasks),
        draws=draws,
        reason=plain.reason or level.reason,
    )


def _games(n: int, task: Judged) -> Iterator[_Game]:
    """The pairs of a task's candidates that two models wrote."""
    sign = 1.0 if task.scale.higher_is_better else -1.0
    scores, lengths = (sign * level_ties(task.scores)).tolist(), task.lengths.tolist()
    for i, j in combinations(range(len(scores)), 2):
        first, second = task.generators[i], task.generators[j]
        if first and second and first != second:
            outcome = (1 + float(np.sign(scores[i] - scores[j]))) / 2
            yield n, first, second, outcome, (lengths[i] - lengths[j]) / max(lengths[i] + lengths[j], 1)


def _points(skill: Estimate) -> Estimate:
    low, high = skill.interval
    return Estimate(ELO * skill.estimate, (ELO * low, ELO * high), skill.n, skill.reason, skill.left_out)


def _mean(outcomes: FloatArray) -> float:
    known = outcomes[~np.isnan(outcomes)]
    return float(known.mean()) if known.size else math.nan


def _lengths(tasks: Sequence[Judged]) -> dict[str, float]:
    """The mean length of each model's candidates, in characters."""
    found: dict[str, list[float]] = {}
    for task in tasks:
        for model, length in zip(task.generators, task.lengths.tolist(), strict=True):
            found.setdefault(model, []).append(length)
    return {model: float(np.mean(each)) for model, each in found.items()}


def _no_games(run: JudgedRun) -> InputError:
    named = {model for task in run.tasks for model in task.generators if model}
    why = "no two stand in one task" if named else "its candidates have no `generator`"
    if len(named) == 1:
        why = f"all of them are of {named.pop()!r}"
    hint = 'write candidates as {"text": "...", "generator": "MODEL"}, of two models or more per task'
    return InputError(f"names no two models to compare: {why}", file=run.directory.path, hint=hint)
