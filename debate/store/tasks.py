"""Takes tasks into a run: names equal ones apart, recognizes those it has, refuses those that changed.

All questions are put to the database, so that an eval set of any length is read in constant memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from debate.errors import TaskError
from debate.evaluation import Evaluation
from debate.files import json_text
from debate.store.serialization import Row, content_hash, label_columns, task_data, task_row
from debate.store.tables import EVALUATIONS, TASKS
from debate.types import Task

_CHUNK = 500
Placed = tuple[Task, str | None, int | None]


def add_task(connection: Connection, run_id: int, revision: int, task: Task) -> int:
    """The position of one task, which is added when it is new."""
    data = task_data(task)
    same_id = (TASKS.c.run_id == run_id) & (TASKS.c.task_id == task.id)
    row = connection.execute(select(TASKS.c.position, TASKS.c.content_hash, TASKS.c.data).where(same_id)).first()
    if row is not None:
        if row.content_hash != content_hash(data):
            raise _another(task.id, None, None)
        _take_metadata(connection, run_id, row.position, row.data, task.metadata)
        return row.position
    position = _next_position(connection, run_id)
    added = {**task_row(task, data, None), "run_id": run_id, "position": position, "evalset_revision": revision}
    connection.execute(insert(TASKS), added)
    return position


def add_tasks(connection: Connection, run_id: int, revision: int, tasks: Iterable[Placed]) -> int:
    """Take the tasks of a revision of the eval set into the run; returns how many there are."""
    adding = _Adding(connection, run_id, revision, _next_position(connection, run_id))
    n_tasks = 0
    tasks = iter(tasks)
    while chunk := list(islice(tasks, _CHUNK)):
        adding.add(chunk)
        n_tasks += len(chunk)
    return n_tasks


def _next_position(connection: Connection, run_id: int) -> int:
    newest = connection.execute(select(func.max(TASKS.c.position)).where(TASKS.c.run_id == run_id)).scalar()
    return 0 if newest is None else newest + 1


@dataclass(slots=True)
class _Known:
    """A task that the run has, from before or from this chunk."""

    content_hash: str
    place: str | None
    revision: int
    position: int
    data: Row


@dataclass(slots=True)
class _Adding:
    """One revision of an eval set, added chunk by chunk."""

    connection: Connection
    run_id: int
    revision: int
    position: int
    """Where the next new task goes."""

    def add(self, chunk: list[Placed]) -> None:
        known = self._known([task.id for task, _, _ in chunk])
        new: list[Row] = []
        again: list[int] = []
        for task, file, line in chunk:
            data = task_data(task)
            name = self._name(task, file, line, known)
            place = f"{file}:{line}" if file else None
            if (before := known.get(name)) is None:
                row = {**task_row(task, data, place), "task_id": name}
                new.append({**row, "run_id": self.run_id, "position": self.position, "evalset_revision": self.revision})
                known[name] = _Known(row["content_hash"], place, self.revision, self.position, data)
                self.position += 1
            elif before.content_hash != content_hash(data):
                raise _another(name, file, line)
            else:
                before.revision = self.revision
                again.append(before.position)
                _take_metadata(self.connection, self.run_id, before.position, before.data, task.metadata)
        if new:
            self.connection.execute(insert(TASKS), new)
        if again:
            here = (TASKS.c.run_id == self.run_id) & TASKS.c.position.in_(again)
            self.connection.execute(update(TASKS).where(here).values(evalset_revision=self.revision))

    def _known(self, names: list[str]) -> dict[str, _Known]:
        columns = (TASKS.c.content_hash, TASKS.c.place, TASKS.c.evalset_revision, TASKS.c.position, TASKS.c.data)
        query = select(TASKS.c.task_id, *columns).where(TASKS.c.run_id == self.run_id, TASKS.c.task_id.in_(names))
        return {row.task_id: _Known(*row[1:]) for row in self.connection.execute(query)}

    def _name(self, task: Task, file: str | None, line: int | None, known: dict[str, _Known]) -> str:
        """The task's id, or where this revision had it already and it was not given, the next free one."""
        for name in chain([task.id], (f"{task.id}-{number}" for number in count(2))):
            if name not in known:
                known.update(self._known([name]))
            if (before := known.get(name)) is None or before.revision < self.revision:
                return name
            if task.has_given_id:
                first = f", first at {before.place}" if before.place else ""
                raise TaskError(f"{task.id!r} is a duplicate{first}", file=file, line=line, field="id")
        raise AssertionError  # the names never end


def _take_metadata(connection: Connection, run_id: int, position: int, data: Row, metadata: Mapping[str, Any]) -> None:
    """Give a task that the run has the metadata of now, label and group, and its evaluation what follows from them.

    The metadata of candidates, which step judges read, stay as they were recorded.
    """
    if json_text(dict(metadata)) == json_text(data["metadata"]):
        return
    task = (TASKS.c.run_id == run_id) & (TASKS.c.position == position)
    connection.execute(update(TASKS).where(task).values(data={**data, "metadata": dict(metadata)}))
    evaluation = (EVALUATIONS.c.run_id == run_id) & (EVALUATIONS.c.position == position)
    found = connection.execute(select(EVALUATIONS.c.data).where(evaluation)).scalar()
    if found is not None:
        columns = label_columns(Evaluation.from_dict(json.loads(found)), metadata)
        connection.execute(update(EVALUATIONS).where(evaluation).values(columns))


def _another(name: str, file: str | None, line: int | None) -> TaskError:
    return TaskError(
        f"the run has another task of the id {name!r}",
        file=file,
        line=line,
        field="id",
        hint="it was changed since the run began: undo that, give it a new id, or start anew with --fork",
    )
