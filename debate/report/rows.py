"""The index of a report: one row per evaluated task, and the filters by which a reader finds the one to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from debate.evaluation import verdict
from debate.meta_evaluation.aggregation import Aggregation, choice_of
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.types import FloatArray, Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Indexed:
    """A task with what its debate's rounds alone would have chosen.

    Attributes:
        task: as it was judged.
        first: the candidates that the first round alone puts first; empty without rounds.
        last: likewise of the last round.
        other: the same task in a second run; None where one run is reported.
    """

    task: Judged
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    other: Judged | None = None

    @property
    def best(self) -> tuple[int, ...]:
        """The right candidates, from 0; empty without a label."""
        return tuple(self.task.labels.together.best)

    @property
    def other_verdict(self) -> Verdict | None:
        """How the second run's choice stands to the labels of the first."""
        return None if self.other is None else verdict(self.other.choice, self.best)

    @property
    def change(self) -> str:
        """`lost` where the first run alone is right, `won` where the second alone is; else empty."""
        if self.other is None or (self.task.verdict == "right") == (self.other_verdict == "right"):
            return ""
        return "lost" if self.task.verdict == "right" else "won"


@dataclass(frozen=True, slots=True)
class Filter:
    """A question that the table of a report can be narrowed by.

    Attributes:
        name: as it stands in a link.
        label: as a reader sees it.
        holds: whether a task is shown under it.
    """

    name: str
    label: str
    holds: Callable[[Indexed], bool]


def _is_flipped(row: Indexed) -> bool:
    return bool(row.first) and bool(row.last) and set(row.first) != set(row.last)


def _is_rechosen(row: Indexed) -> bool:
    return row.other is not None and set(row.task.choice) != set(row.other.choice)


FILTERS: tuple[Filter, ...] = (
    Filter("lost", "right in the first run alone", lambda row: row.change == "lost"),
    Filter("won", "right in the second run alone", lambda row: row.change == "won"),
    Filter("rechosen", "another choice in the second run", _is_rechosen),
    Filter("wrong", "wrong", lambda row: row.task.verdict == "wrong"),
    Filter("right", "right", lambda row: row.task.verdict == "right"),
    Filter("tied", "tied", lambda row: len(row.task.choice) > 1),
    Filter("unscored", "a candidate unscored", lambda row: bool(np.isnan(row.task.scores).any())),
    Filter("failed", "failed", lambda row: row.task.status == "failed"),
    Filter("partial", "failed in part", lambda row: row.task.status == "partial"),
    Filter("settled", "settled without a debate", lambda row: row.task.stop_reason == "settled"),
    Filter("rounds", "not converged", lambda row: row.task.stop_reason == "max_rounds"),
    Filter("flipped", "another winner in the last round", _is_flipped),
    Filter("order", "orders disagree", lambda row: row.task.order_agreement is False),
)
"""Every filter, in the order shown. A row's `marks` has a bit for each."""


def indexed(run: JudgedRun, other: JudgedRun | None = None) -> list[Indexed]:
    """The tasks of a run with the choices of their first and last rounds; of two runs those that both were asked."""
    by_id = {} if other is None else {task.task_id: task for task in other.tasks}
    rows = [row for row in _by_rounds(run) if other is None or _is_same(row.task, by_id.get(row.task.task_id))]
    return [replace(row, other=by_id.get(row.task.task_id)) for row in rows]


def _is_same(task: Judged, other: Judged | None) -> bool:
    return other is not None and other.content == task.content


def _by_rounds(run: JudgedRun) -> list[Indexed]:
    aggregation = Aggregation.of_run(run)
    if aggregation is None:
        return [Indexed(task) for task in run.tasks]
    first = aggregation.scores_of(run.tasks, lambda tensor: tensor[:1])
    last = aggregation.scores_of(run.tasks, lambda tensor: tensor[-1:])
    choices = ((choice_of(one), choice_of(two)) for one, two in zip(first, last, strict=True))
    return [Indexed(task, *each) for task, each in zip(run.tasks, choices, strict=True)]


def columns(rows: Sequence[Indexed], texts: Sequence[str]) -> dict[str, list[Any]]:
    """The index as columns of equal length; what is not a number is None, candidates count from 0.

    Args:
        rows: one per task.
        texts: the beginning of each task's input.
    """
    return {
        "id": [row.task.task_id for row in rows],
        "text": list(texts),
        "group": [row.task.group for row in rows],
        "chosen": [list(row.task.choice) for row in rows],
        "best": [list(row.best) for row in rows],
        "verdict": [row.task.verdict or "" for row in rows],
        "score": [_number(_top(row.task)) for row in rows],
        "margin": [_number(margin(row.task)) for row in rows],
        "cv": [_number(row.task.cv[-1]) if row.task.cv.size else None for row in rows],
        "rounds": [row.task.rounds_run for row in rows],
        "stop": [row.task.stop_reason or row.task.status for row in rows],
        "tokens": [row.task.usage.total_tokens for row in rows],
        "other": [None if row.other is None else list(row.other.choice) for row in rows],
        "other_verdict": [row.other_verdict or "" for row in rows],
        "change": [row.change for row in rows],
        "marks": [sum(1 << n for n, each in enumerate(FILTERS) if each.holds(row)) for row in rows],
    }


def counts(rows: Sequence[Indexed]) -> dict[str, int]:
    """How many tasks each filter shows."""
    return {each.name: sum(map(each.holds, rows)) for each in FILTERS}


def margin(task: Judged) -> float:
    """How far the winner stands before the next candidate, on the task's scale; NaN with fewer than two scores."""
    scores = np.sort(task.scores[~np.isnan(task.scores)])
    if len(scores) < 2:
        return float("nan")
    return float(scores[-1] - scores[-2] if task.scale.higher_is_better else scores[1] - scores[0])


def _top(task: Judged) -> float:
    return float(task.scores[task.choice[0]]) if task.choice else float("nan")


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)


def scores_of(rows: Sequence[Indexed]) -> Iterator[FloatArray]:
    """The scores of each task that are there, from 0 to 1 of its scale; tasks without a finite scale are left out."""
    for row in rows:
        scale = row.task.scale
        if np.isfinite(scale.high) and np.isfinite(scale.low):
            share = (row.task.scores - scale.low) / (scale.high - scale.low)
            yield share[~np.isnan(share)]
