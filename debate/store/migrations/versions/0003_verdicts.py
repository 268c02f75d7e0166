"""Labels of any form: whether the choice was right, and what chance comes to, in place of the index of the best."""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from debate.errors import TaskError
from debate.evaluation import Evaluation
from debate.sql.types import Json
from debate.store.serialization import label_columns
from debate.types import Candidate, Task

revision = "0003"
down_revision = "0002"

TASKS: Any = sa.table("tasks", sa.column("run_id"), sa.column("position"), sa.column("data", Json))
EVALUATIONS: Any = sa.table("evaluations", *map(sa.column, ("run_id", "position", "data", "verdict", "chance")))
NUMBER: sa.types.TypeEngine[float] = sa.Double()


def upgrade() -> None:
    """Read every label anew, and compare the evaluations with it."""
    op.add_column("evaluations", sa.Column("verdict", sa.String()))
    op.add_column("evaluations", sa.Column("chance", NUMBER))
    connection = op.get_bind()
    for run_id, position in _keys():
        task, evaluation = (_at(table, run_id, position) for table in (TASKS, EVALUATIONS))
        data = connection.execute(sa.select(TASKS.c.data).where(task)).scalar_one()
        metadata = _with_readable_label(data)
        if metadata != data["metadata"]:
            connection.execute(sa.update(TASKS).where(task).values(data={**data, "metadata": metadata}))
        found = connection.execute(sa.select(EVALUATIONS.c.data).where(evaluation)).scalar()
        if found is not None:
            columns = label_columns(Evaluation.from_dict(json.loads(found)), metadata)
            values = {name: columns[name] for name in ("verdict", "chance")}
            connection.execute(sa.update(EVALUATIONS).where(evaluation).values(values))
    with op.batch_alter_table("evaluations") as table:
        table.drop_column("best")


def _keys() -> Iterator[Any]:
    """(run, position) of every task; those of one run at a time."""
    connection = op.get_bind()
    for run_id in connection.execute(sa.select(TASKS.c.run_id).distinct()).scalars().all():
        yield from connection.execute(sa.select(TASKS.c.run_id, TASKS.c.position).where(TASKS.c.run_id == run_id)).all()


def _at(table: Any, run_id: int, position: int) -> Any:
    return (table.c.run_id == run_id) & (table.c.position == position)


def _with_readable_label(data: Any) -> Any:
    """The task's metadata with its label as it is kept now; one that nobody could read keeps its text elsewhere."""
    try:
        candidates = [Candidate(**each) for each in data["candidates"]]
        return dict(Task(data["x"], candidates, metadata=data["metadata"]).metadata)
    except TaskError:
        return {"unreadable_best" if key == "best" else key: value for key, value in data["metadata"].items()}
