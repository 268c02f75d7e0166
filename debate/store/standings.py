"""How the tasks of a run came out, one small value per task and without their texts: what a list is picked from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, and_, case, func, select

from debate.evaluation import Evaluation
from debate.store.serialization import group_of, margin_of
from debate.store.tables import EVALUATIONS, TASKS
from debate.types import Verdict, labeled_best

Outcome = Literal["wrong", "unscored", "tied", "decided", "right"]
OUTCOMES: tuple[Outcome, ...] = ("wrong", "unscored", "tied", "decided", "right")
"""In the order in which a reader wants them; `decided` is what has no label, and neither failed nor tied."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How one task came out.

    Attributes:
        task_id: the task's.
        group: what the metadata of the task name as its group; None where they name none.
        verdict: how the choice stands to the label; None without one.
        is_failed: whether the evaluation failed.
        is_tied: whether several candidates share the best score.
        margin: distance of the best score from the second best; NaN where fewer than two candidates were scored.
        cv: coefficient of variation of the last round; NaN where there is none.
    """

    task_id: str
    group: str | None
    verdict: Verdict | None
    is_failed: bool
    is_tied: bool
    margin: float
    cv: float

    @classmethod
    def of(cls, evaluation: Evaluation, metadata: Mapping[str, Any], key: str = "group") -> Standing:
        """That of an evaluation, with the metadata of its task."""
        return cls(
            task_id=evaluation.task_id,
            group=group_of(metadata, key),
            verdict=evaluation.verdict(labeled_best(metadata)),
            is_failed=evaluation.status == "failed",
            is_tied=bool(evaluation.tied),
            margin=_or_nan(margin_of(evaluation)),
            cv=evaluation.cv[-1] if evaluation.cv else math.nan,
        )

    @property
    def outcome(self) -> Outcome:
        """The verdict, or what can be said without a label."""
        return self.verdict or ("unscored" if self.is_failed else "tied" if self.is_tied else "decided")


def standings(
    connection: Connection, run_id: int, revision: int, key: str = "group", worst: int | None = None
) -> list[Standing]:
    """Those of all evaluated tasks of a revision, in the order of the tasks.

    Args:
        connection: to the store.
        run_id: of the run.
        revision: of its eval set.
        key: the key of the metadata that names a task's group.
        worst: only so many, in the order of `OUTCOMES`.
    """
    e = EVALUATIONS.c
    columns = (TASKS.c.task_id, e.task_group, e.verdict, e.status, e.tied, e.margin, e.cv)
    joined = TASKS.join(EVALUATIONS, and_(e.run_id == TASKS.c.run_id, e.position == TASKS.c.position))
    here = and_(TASKS.c.run_id == run_id, TASKS.c.evalset_revision == revision)
    query: Any = select(*columns, *([] if key == "group" else [TASKS.c.data])).select_from(joined).where(here)
    if worst is None:
        query = query.order_by(TASKS.c.position)
    else:
        unlabeled = case((e.status == "failed", "unscored"), (e.tied, "tied"), else_="decided")
        places = {outcome: place for place, outcome in enumerate(OUTCOMES)}
        outcome: Any = func.coalesce(e.verdict, unlabeled)
        query = query.order_by(case(places, value=outcome), TASKS.c.position).limit(worst)
    return [_standing(row, key) for row in connection.execute(query)]


def _standing(row: Any, key: str) -> Standing:
    return Standing(
        task_id=row.task_id,
        group=row.task_group if key == "group" else group_of(row.data["metadata"], key),
        verdict=row.verdict,
        is_failed=row.status == "failed",
        is_tied=row.tied,
        margin=_or_nan(row.margin),
        cv=_or_nan(row.cv),
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
