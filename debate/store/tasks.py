"""Takes tasks into a run: names equal ones apart, recognizes those it has, refuses those that changed.

All questions are put to the database, so that an eval set of any length is read in constant memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from sqlalchemy import Connection, func, insert, select, update

from debate.errors import RunMismatchError, TaskError
from debate.evaluation import Evaluation
from debate.files import json_text
from debate.store.serialization import Row, content_hash, label_columns, task_data, task_row
from debate.store.tables import EVALUATIONS, TASKS
from debate.types import SHARED_IDS, Task, UniqueIds

_CHUNK = 500
_ANOTHER = "the run has another task of the id"
Placed = tuple[Task, str | None, int | None]


def add_task(connection: Connection, run_id: int, revision: int, task: Task, data: Row) -> int:
    """The position of one task, which is added when it is new; `data` is its `task_data`.

    Raises:
        RunMismatchError: when the run has another task of that id.
    """
    same_id = (TASKS.c.run_id == run_id) & (TASKS.c.task_id == task.id)
    row = connection.execute(select(TASKS.c.position, TASKS.c.content_hash, TASKS.c.data).where(same_id)).first()
    if row is not None:
        if row.content_hash != content_hash(data):
            hint = "give every task an id of its own, or none: then it is known by its content"
            raise RunMismatchError(f"{_ANOTHER} {task.id!r}", field="id", hint=hint)
        _take_metadata(connection, run_id, row.position, row.data, data)
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
    known: dict[str, _Known] = field(default_factory=dict[str, _Known])
    """By id: the tasks of this chunk, and those of the run that it may meet."""
    looked_up: set[str] = field(default_factory=set[str])
    """Ids of which `known` says whether the run has them."""
    ids: UniqueIds = field(init=False)

    def __post_init__(self) -> None:
        self.ids = UniqueIds(self._is_taken)

    def add(self, chunk: list[Placed]) -> None:
        self.looked_up = {task.id for task, _, _ in chunk}
        known = self.known = self._known([*self.looked_up])
        new: list[Row] = []
        again: list[int] = []
        for task, file, line in chunk:
            data, name = self._data(task, file, line), self._name(task, file, line)
            place = f"{file}:{line}" if file else None
            if (before := known.get(name)) is None:
                row = {**task_row(task, data, place), "task_id": name}
                new.append({**row, "run_id": self.run_id, "position": self.position, "evalset_revision": self.revision})
                known[name] = _Known(row["content_hash"], place, self.revision, self.position, data)
                self.position += 1
            elif before.content_hash != content_hash(data):
                hint = "it was changed since the run began: undo that, give it a new id, or start anew with --fork"
                raise TaskError(f"{_ANOTHER} {name!r}", file=file, line=line, field="id", hint=hint)
            else:
                before.revision = self.revision
                again.append(before.position)
                _take_metadata(self.connection, self.run_id, before.position, before.data, data)
        if new:
            self.connection.execute(insert(TASKS), new)
        if again:
            here = (TASKS.c.run_id == self.run_id) & TASKS.c.position.in_(again)
            self.connection.execute(update(TASKS).where(here).values(evalset_revision=self.revision))

    def _known(self, names: list[str]) -> dict[str, _Known]:
        columns = (TASKS.c.content_hash, TASKS.c.place, TASKS.c.evalset_revision, TASKS.c.position, TASKS.c.data)
        query = select(TASKS.c.task_id, *columns).where(TASKS.c.run_id == self.run_id, TASKS.c.task_id.in_(names))
        return {row.task_id: _Known(*row[1:]) for row in self.connection.execute(query)}

    def _is_taken(self, name: str) -> bool:
        """Whether this revision has a task of that id already."""
        if name not in self.looked_up:
            self.looked_up.add(name)
            self.known.update(self._known([name]))
        return name in self.known and self.known[name].revision == self.revision

    def _name(self, task: Task, file: str | None, line: int | None) -> str:
        try:
            return self.ids.of(task)
        except TaskError as error:
            place = self.known[task.id].place
            problem = f"{error.problem}, first at {place}" if place else error.problem
            is_elsewhere = place is not None and not place.startswith(f"{file}:")
            hint = SHARED_IDS if is_elsewhere else error.hint
            raise TaskError(problem, file=file, line=line, field=error.field, hint=hint) from None

    def _data(self, task: Task, file: str | None, line: int | None) -> Row:
        try:
            return task_data(task)
        except TaskError as error:
            raise TaskError(error.problem, file=file, line=line, field=error.field) from None


def _take_metadata(connection: Connection, run_id: int, position: int, before: Row, now: Row) -> None:
    """Give a task that the run has the metadata of now, label and group, and its evaluation what follows from them.

    The metadata of candidates, which step judges read, stay as they were recorded.
    """
    metadata = now["metadata"]
    if json_text(metadata) == json_text(before["metadata"]):
        return
    task = (TASKS.c.run_id == run_id) & (TASKS.c.position == position)
    connection.execute(update(TASKS).where(task).values(data={**before, "metadata": metadata}))
    evaluation = (EVALUATIONS.c.run_id == run_id) & (EVALUATIONS.c.position == position)
    found = connection.execute(select(EVALUATIONS.c.data).where(evaluation)).scalar()
    if found is not None:
        columns = label_columns(Evaluation.from_dict(json.loads(found)), metadata)
        connection.execute(update(EVALUATIONS).where(evaluation).values(columns))
