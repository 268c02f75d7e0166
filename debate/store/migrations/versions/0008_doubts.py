"""Whether a candidate has no score, and whether two orders disagree: for evaluations of before from what they hold."""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

GLANCE = (
    *("run_id", "position", "status", "verdict", "selected", "tied", "flipped", "unscored", "orders_disagree"),
    *("rounds", "task_group", "stop_reason"),
)
DOUBTS = ("unscored", "orders_disagree")
EVALUATIONS: Any = sa.table("evaluations", *map(sa.column, ("run_id", "position", "data", *DOUBTS)))
_CHUNK = 500
"""Evaluations that are read at a time."""


def upgrade() -> None:
    """Add the columns, and write them where they are true: they are false of most evaluations, which stay untouched."""
    op.drop_index("evaluations_at_a_glance", "evaluations")
    for name in DOUBTS:
        op.add_column("evaluations", sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false()))
    for run_id, position, data in _evaluations():
        if any(doubts := _doubts(json.loads(data))):
            here = (EVALUATIONS.c.run_id == run_id) & (EVALUATIONS.c.position == position)
            values = dict(zip(DOUBTS, doubts, strict=True))
            op.get_bind().execute(sa.update(EVALUATIONS).where(here).values(values))
    op.create_index("evaluations_at_a_glance", "evaluations", list(GLANCE))


def _doubts(evaluation: Any) -> tuple[bool, bool]:
    return None in evaluation.get("scores", ()), evaluation.get("order_agreement") is False


def _evaluations() -> Iterator[Any]:
    """Run, position and JSON of every evaluation, some at a time."""
    keys, last = (EVALUATIONS.c.run_id, EVALUATIONS.c.position), (-1, -1)
    query = sa.select(*keys, EVALUATIONS.c.data).order_by(*keys).limit(_CHUNK)
    while found := op.get_bind().execute(query.where(sa.tuple_(*keys) > sa.tuple_(*last))).all():
        yield from found
        last = (found[-1].run_id, found[-1].position)
