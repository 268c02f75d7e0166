"""What a judge does whatever people say: its habits with order and length, what it leaves unread; and what becomes of a
debate from round to round, agent by agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from debate.meta_evaluation.aggregation import Aggregation, Part, choice_of, debates_of
from debate.meta_evaluation.judged import Judged, Shown
from debate.meta_evaluation.people import decided, hits, pairs_of
from debate.statistics import (
    EffectiveJudges,
    Estimate,
    Flips,
    Mean,
    OracleGap,
    conformity,
    effective_judges,
    flips,
    length_slope,
    oracle_gap,
    paired_difference,
    share,
    wilson,
)
from debate.types import FloatArray


@dataclass(frozen=True, slots=True)
class Habits:
    """What order and length do to the judge.

    Attributes:
        consistency: share of tasks decided alike in both orders, of balanced debates; None for others.
        first_shown: how much more often agents choose the candidate shown to them first than chance would; in tasks of
            which people prefer some candidates, more often than these stand there. None without turns.
        length_slope: points of score for one standard deviation of length, between candidates of one task.
        at_equal_labels: whether the slope is that at equal labels.
    """

    consistency: Estimate | None
    first_shown: Mean | None
    length_slope: Estimate
    at_equal_labels: bool


@dataclass(frozen=True, slots=True)
class Missing:
    """What has no score.

    Attributes:
        statuses: number of tasks by `ok`, `partial`, `failed`.
        turns: taken.
        unread: turns whose reply could not be read in the end.
        cells: of the tensors.
        unscored_cells: those without a score.
        candidates: of all tasks.
        unscored_candidates: those without a score.
    """

    statuses: Mapping[str, int]
    turns: int
    unread: int
    cells: int
    unscored_cells: int
    candidates: int
    unscored_candidates: int


@dataclass(frozen=True, slots=True)
class RoundFigures:
    """One round alone.

    Attributes:
        round: from 0.
        tasks: with this round.
        right: over those of them that people decide; None without any.
    """

    round: int
    tasks: int
    right: Mean | None


@dataclass(frozen=True, slots=True)
class AgentFigures:
    """One agent alone.

    Attributes:
        name: the agent's.
        first: how often its first turn is right by itself.
        last: how often its last turn is.
        unread: its turns that could not be read.
        turns: its turns.
    """

    name: str
    first: Mean
    last: Mean
    unread: int
    turns: int


@dataclass(frozen=True, slots=True)
class DebateFigures:
    """What becomes of choices and scores in the course of the debates.

    Attributes:
        rounds: each by itself.
        first: accuracy of the first round alone.
        last: accuracy of the last round alone.
        flips: from the first round to the last, of debates with two rounds or more.
        conformity: share of the changed scores that moved toward the mean of the round before.
        best_agent: the agents by their first turns, beside the panel after all rounds.
        judges_first: effective number of judges in the first round.
        judges_last: in the last.
        agents: each alone.
    """

    rounds: tuple[RoundFigures, ...]
    first: Mean
    last: Mean
    flips: Flips
    conformity: Mean
    best_agent: OracleGap
    judges_first: EffectiveJudges | None
    judges_last: EffectiveJudges | None
    agents: tuple[AgentFigures, ...]


# ---- habits and gaps


def habits(tasks: Sequence[Judged], aggregation: Aggregation | None) -> Habits:
    """What order and length do."""
    orders = [task.order_agreement for task in tasks if task.order_agreement is not None]
    people, judge, lengths, where = pairs_of(tasks)
    is_labeled = not np.isnan(people).all()
    return Habits(
        consistency=wilson(sum(orders), len(orders)) if orders else None,
        first_shown=None if aggregation is None else _first_shown(tasks, aggregation),
        length_slope=length_slope(judge, lengths, people if is_labeled else np.zeros(people.shape), where),
        at_equal_labels=is_labeled,
    )


def _first_shown(tasks: Sequence[Judged], aggregation: Aggregation) -> Mean:
    """Over the agents of each debate, by all of an agent's turns; a tie counts in parts."""
    debates = [(n, debate) for n, task in enumerate(tasks) for debate in debates_of(task) if len(task.scores) > 1]
    orders = [{turn.agent: turn.order for turn in debate.turns} for _, debate in debates]
    found: list[tuple[float, float, int]] = []
    for i in sorted({agent for order in orders for agent in order if agent >= 0}):
        scores = aggregation.scores_of([debate for _, debate in debates], _of_agent(_whole, i))
        for (n, debate), order, each in zip(debates, orders, scores, strict=True):
            if i in order:
                wanted = decided(tasks[n]) or range(len(debate.scores))
                found.append((_part_at(choice_of(each), order[i][0]), _part_at(wanted, order[i][0]), n))
    chosen, expected, where = np.array(found).T if found else np.zeros((3, 0))
    return paired_difference(chosen, expected, where)


def _part_at(choice: Sequence[int], j: int) -> float:
    """How much of a choice is candidate j; NaN without a choice."""
    return (j in choice) / len(choice) if choice else np.nan


def missing(tasks: Sequence[Judged]) -> Missing:
    """What has no score."""
    debates = [debate for task in tasks for debate in debates_of(task)]
    tensors = [debate.tensor for debate in debates if debate.tensor is not None]
    turns = _turns(tasks)
    return Missing(
        statuses=dict(Counter(task.status for task in tasks)),
        turns=len(turns),
        unread=sum(turn.is_unread for turn in turns),
        cells=sum(tensor.size for tensor in tensors),
        unscored_cells=sum(int(np.isnan(tensor).sum()) for tensor in tensors),
        candidates=sum(len(task.scores) for task in tasks),
        unscored_candidates=sum(int(np.isnan(task.scores).sum()) for task in tasks),
    )


# ---- debates


def debate_figures(tasks: Sequence[Judged], aggregation: Aggregation) -> DebateFigures | None:
    """What becomes of choices and scores in the course of the debates; None where no task has a tensor."""
    tasks = [task for task in tasks if any(debate.tensor is not None for debate in debates_of(task))]
    if not tasks:
        return None
    names = max((debate.agents for task in tasks for debate in debates_of(task)), key=len)
    first, last, whole = (_right(tasks, aggregation, part) for part in (_first, _last, _whole))
    agents = [[_right(tasks, aggregation, _of_agent(part, i)) for i in range(len(names))] for part in (_first, _last)]
    firsts, lasts = (np.stack(each, axis=1) for each in agents)  # (n, I) each
    is_long = np.array([_rounds(task) > 1 for task in tasks])
    return DebateFigures(
        rounds=tuple(_by_round(tasks, aggregation)),
        first=_accuracy(first, tasks),
        last=_accuracy(last, tasks),
        flips=flips(np.where(is_long, first, np.nan), last),
        conformity=_conformity(tasks),
        best_agent=oracle_gap(firsts, whole),
        judges_first=effective_judges(1 - firsts) if len(names) > 1 else None,
        judges_last=effective_judges(1 - lasts) if len(names) > 1 else None,
        agents=tuple(_agents(names, firsts, lasts, tasks)),
    )


def _first(tensor: FloatArray) -> FloatArray:
    return tensor[:1]


def _last(tensor: FloatArray) -> FloatArray:
    return tensor[-1:]


def _whole(tensor: FloatArray) -> FloatArray:
    return tensor


def _of_agent(part: Part, i: int) -> Part:
    return lambda tensor: part(tensor)[:, i : i + 1]


def _right(tasks: Sequence[Judged], aggregation: Aggregation, part: Part) -> FloatArray:
    """Whether a part of the debates chose rightly, (n,); NaN where it chose nothing or people prefer none."""
    chosen = [choice_of(scores) for scores in aggregation.scores_of(tasks, part)]
    return np.where([bool(choice) for choice in chosen], hits(tasks, chosen), np.nan)


def _accuracy(right: FloatArray, tasks: Sequence[Judged]) -> Mean:
    """The share of right choices over the decided tasks; what is unscored is not right."""
    return share(np.where([bool(decided(task)) for task in tasks], np.nan_to_num(right), np.nan))


def _by_round(tasks: Sequence[Judged], aggregation: Aggregation) -> Iterator[RoundFigures]:
    n_rounds = [_rounds(task) for task in tasks]
    for r in range(max(n_rounds)):
        there = [task for task, n in zip(tasks, n_rounds, strict=True) if n > r]
        right = _right(there, aggregation, lambda tensor, r=r: tensor[r : r + 1])
        found = _accuracy(right, there)
        yield RoundFigures(r, len(there), found if found.n else None)


def _rounds(task: Judged) -> int:
    return max(len(debate.tensor) for debate in debates_of(task) if debate.tensor is not None)


def _agents(
    names: Sequence[str], firsts: FloatArray, lasts: FloatArray, tasks: Sequence[Judged]
) -> Iterator[AgentFigures]:
    turns = Counter((turn.agent, turn.is_unread) for turn in _turns(tasks))
    for i, name in enumerate(names):
        first, last = _accuracy(firsts[:, i], tasks), _accuracy(lasts[:, i], tasks)
        yield AgentFigures(name, first, last, unread=turns[i, True], turns=turns[i, True] + turns[i, False])


def _turns(tasks: Sequence[Judged]) -> list[Shown]:
    return [turn for task in tasks for debate in debates_of(task) for turn in debate.turns]


def _conformity(tasks: Sequence[Judged]) -> Mean:
    """Over all cells of all tasks, from each round to the next."""
    before, after, where = [np.zeros((0, 1))], [np.zeros((0, 1))], [np.zeros(0)]
    for n, task in enumerate(tasks):
        for debate in debates_of(task):
            if debate.tensor is not None and len(debate.tensor) > 1:
                cells = debate.tensor.transpose(0, 2, 3, 1)  # (R, J, K, I)
                n_agents = cells.shape[-1]
                before.append(cells[:-1].reshape(-1, n_agents))
                after.append(cells[1:].reshape(-1, n_agents))
                where.append(np.full(len(before[-1]), float(n)))
    kept = slice(1 if len(before) > 1 else 0, None)
    return conformity(np.concatenate(before[kept]), np.concatenate(after[kept]), np.concatenate(where[kept]))
