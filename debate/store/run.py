"""One run in the store: its tasks, what is recorded of them, and what they came to.

Works in chunks of tasks, so that its memory does not grow with their number. Knows nothing of engines or files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, or_, select, update

from debate.evaluation import Evaluation
from debate.flow import RunContext
from debate.store.database import Database
from debate.store.lease import Lease
from debate.store.queries import (
    Totals,
    accuracy_by_group,
    all_calls,
    inherited_answers,
    kept_answers,
    kept_evaluations,
    take_over,
    totals,
)
from debate.store.serialization import as_task
from debate.store.tables import CALLS, EVALUATIONS, TASKS, TURNS
from debate.store.task_journal import SqlTaskJournal
from debate.store.tasks import add_task, add_tasks
from debate.types import Task

_CHUNK = 200
"""Tasks that are read at a time."""


class StoredRun:
    """A run. Made by `Store.run`, which holds its lease, or by `Store.read`, which holds none and only looks.

    Attributes:
        reading: number of the eval set's latest reading; only tasks that it saw are pending. 0 where tasks come one
            by one from the API.
    """

    def __init__(
        self,
        database: Database,
        run_id: int,
        name: str,
        context: RunContext,
        *,
        started_at: float,
        about: Any,
        lease: Lease | None,
    ) -> None:
        self.name = name
        self.context = context
        self.started_at = started_at
        """When the run began, in seconds since 1970; a memory counts ages to this moment."""
        self.about = about
        """What was recorded for people: eval set, settings, versions."""
        self.reading = int(about.get("reading", 0))
        self._database = database
        self._run_id = run_id
        self._lease = lease
        self._read_ahead: dict[str, SqlTaskJournal] = {}

    @property
    def place(self) -> str:
        """Where it is kept, for messages."""
        return self._database.place

    def close(self) -> None:
        """Let others work on the run."""
        if self._lease is not None:
            self._lease.release()

    # ---- tasks

    def read_evalset(self, tasks: Iterable[tuple[Task, str | None, int | None]], about: Any) -> int:
        """Take the tasks of an eval set into the run, (task, file, line) each, and `about` into its record.

        All or nothing, in one transaction. Tasks that the run has already are recognised by id; of equal tasks without
        an id, later ones get `-2`, `-3`, ... Tasks that are not among `tasks` stay recorded, but are not pending.

        Raises:
            TaskError: when an id stands twice, or the run has another task of that id; with file and line.
        """
        self.reading += 1
        self.about = {**about, "reading": self.reading}
        return self._database.run(
            lambda connection: add_tasks(connection, self._run_id, self.reading, tasks, self.about)
        )

    def pending(self, settings: str) -> Iterator[Task]:
        """Tasks without an evaluation under these settings, in order; what is recorded of them is read along."""
        return self._tasks(or_(EVALUATIONS.c.settings.is_(None), EVALUATIONS.c.settings != settings), settings)

    def stale(self, settings: str) -> Iterator[Task]:
        """Tasks whose evaluation was made under other settings."""
        return self._tasks(EVALUATIONS.c.settings != settings, settings)

    def _tasks(self, which: ColumnElement[bool], settings: str) -> Iterator[Task]:
        last = -1
        while True:
            chunk = self._database.run(lambda connection, after=last: self._chunk(connection, which, after, settings))
            if not chunk:
                return
            last = chunk[-1][1].position
            self._read_ahead.update((kept.task_id, kept) for _, kept in chunk)
            yield from (task for task, _ in chunk)

    def _chunk(
        self, connection: Connection, which: ColumnElement[bool], after: int, settings: str
    ) -> list[tuple[Task, SqlTaskJournal]]:
        query = self._with_evaluations().where(TASKS.c.reading == self.reading, TASKS.c.position > after, which)
        rows = connection.execute(query.order_by(TASKS.c.position).limit(_CHUNK)).all()
        return [
            (as_task(row.task_id, row.data), kept)
            for row, kept in zip(rows, self._kept(connection, rows, settings), strict=True)
        ]

    def _with_evaluations(self) -> Select[Any, Any]:
        same = (EVALUATIONS.c.run_id == TASKS.c.run_id) & (EVALUATIONS.c.position == TASKS.c.position)
        query = select(TASKS, EVALUATIONS.c.settings).select_from(TASKS.outerjoin(EVALUATIONS, same))
        return query.where(TASKS.c.run_id == self._run_id)

    def _kept(self, connection: Connection, rows: Iterable[Row[Any, Any]], settings: str) -> list[SqlTaskJournal]:
        """The records of some tasks, with their answers."""
        rows = list(rows)
        positions = [row.position for row in rows]
        answers = kept_answers(connection, self._run_id, positions)
        inherited = inherited_answers(connection, self._run_id, positions)
        return [
            SqlTaskJournal(
                database=self._database,
                run_id=self._run_id,
                position=row.position,
                task_id=row.task_id,
                settings=settings,
                recorded=answers.get(row.position, {}),
                inherited=inherited.get(row.position, {}),
                is_stale=row.settings is not None,
                current_take=row.take,
                reopened=frozenset(row.reopened or ()),
            )
            for row in rows
        ]

    def task(self, task_id: str) -> Task | None:
        """A task by its id."""
        query = select(TASKS.c.data).where(TASKS.c.run_id == self._run_id, TASKS.c.task_id == task_id)
        data = self._database.run(lambda connection: connection.execute(query).scalar())
        return None if data is None else as_task(task_id, data)

    # ---- evaluations

    async def open(self, task: Task, settings: str) -> SqlTaskJournal:
        """What is recorded of a task so far; a new task is added to the run.

        Raises:
            TaskError: when the run has another task of that id.
        """
        read = self._read_ahead.pop(task.id, None)
        if read is not None and read.settings == settings:
            return read
        return await self._database.arun(lambda connection: self._opened(connection, task, settings))

    def _opened(self, connection: Connection, task: Task, settings: str) -> SqlTaskJournal:
        position = add_task(connection, self._run_id, self.reading, task)
        row = connection.execute(self._with_evaluations().where(TASKS.c.position == position)).one()
        (kept,) = self._kept(connection, [row], settings)
        if row.settings == settings:
            found = kept_evaluations(connection, self._run_id, [position])
            kept.finished = found[position]
        return kept

    def results(self, settings: str | None = None) -> Iterator[tuple[Task, Evaluation]]:
        """Every evaluated task of the latest reading with its evaluation, in the order of the tasks.

        `settings` leaves out what was evaluated under others.
        """
        which = EVALUATIONS.c.settings.is_not(None) if settings is None else EVALUATIONS.c.settings == settings
        last = -1
        while True:
            chunk = self._database.run(lambda connection, after=last: self._results(connection, which, after))
            if not chunk:
                return
            last = chunk[-1][0]
            yield from ((task, evaluation) for _, task, evaluation in chunk)

    def _results(
        self, connection: Connection, which: ColumnElement[bool], after: int
    ) -> list[tuple[int, Task, Evaluation]]:
        query = self._with_evaluations().where(TASKS.c.reading == self.reading, TASKS.c.position > after, which)
        rows = connection.execute(query.order_by(TASKS.c.position).limit(_CHUNK)).all()
        found = kept_evaluations(connection, self._run_id, [row.position for row in rows])
        return [(row.position, as_task(row.task_id, row.data), found[row.position]) for row in rows]

    def reopen_failed(self) -> int:
        """Make every task that failed, in whole or in part, pending again; returns how many.

        The calls that failed will be asked again, under a new seed; all other answers stay, those of later turns too.
        """
        return self._database.run(self._reopen_failed)

    def _reopen_failed(self, connection: Connection) -> int:
        bad = or_(EVALUATIONS.c.status != "ok", EVALUATIONS.c.n_failures > 0)
        query = select(EVALUATIONS.c.position, EVALUATIONS.c.data).where(EVALUATIONS.c.run_id == self._run_id, bad)
        rows = connection.execute(query).all()
        for position, data in rows:
            # What ran out of time has no answer on record: it is asked as if for the first time.
            failed = [each for each in data["failures"] if each["reason"] != "time_budget"]
            addresses = sorted({each["call"] for each in failed if each["call"]})
            task = (TASKS.c.run_id == self._run_id) & (TASKS.c.position == position)
            connection.execute(update(TASKS).where(task).values(take=TASKS.c.take + 1, reopened=addresses))
            for table in (EVALUATIONS, TURNS):
                connection.execute(
                    delete(table).where((table.c.run_id == self._run_id) & (table.c.position == position))
                )
        return len(rows)

    def inherit(self, parent: StoredRun) -> int:
        """Take over the answers that another run, also of another store, has for the same tasks; returns how many.

        They count wherever the same is asked of the same task under the same seed.
        """
        count = 0
        for rows in parent.calls():
            count += self._database.run(lambda connection, rows=rows: take_over(connection, self._run_id, rows))
        return count

    def calls(self) -> Iterator[list[dict[str, Any]]]:
        """All recorded calls, as rows with their `task_id`, some tasks at a time."""
        last = -1
        while rows := self._database.run(lambda connection, after=last: all_calls(connection, self._run_id, after)):
            yield rows
            last = rows[-1]["position"]

    def totals(self) -> Totals:
        """What the run came to so far."""
        return self._database.run(lambda connection: totals(connection, self._run_id, self.reading))

    def accuracy_by_group(self) -> dict[str, tuple[int, int]]:
        """Right and known by the `group` in the tasks' metadata; empty where tasks name none."""
        return self._database.run(lambda connection: accuracy_by_group(connection, self._run_id, self.reading))

    def n_tasks(self) -> int:
        """How many tasks the latest reading saw."""
        here = (TASKS.c.run_id == self._run_id) & (TASKS.c.reading == self.reading)
        return self._database.run(lambda connection: connection.execute(select(func.count()).where(here)).scalar_one())

    def n_evaluated(self, settings: str) -> int:
        """How many of these are evaluated under these settings."""
        same = (EVALUATIONS.c.run_id == TASKS.c.run_id) & (EVALUATIONS.c.position == TASKS.c.position)
        query = select(func.count()).select_from(TASKS.join(EVALUATIONS, same))
        here = (TASKS.c.run_id == self._run_id) & (TASKS.c.reading == self.reading)
        query = query.where(here, EVALUATIONS.c.settings == settings)
        return self._database.run(lambda connection: connection.execute(query).scalar_one())

    def tokens_spent(self) -> int:
        """Prompt and completion tokens of all calls that a model was asked."""
        tokens = func.sum(CALLS.c.prompt_tokens + CALLS.c.completion_tokens)
        here = (CALLS.c.run_id == self._run_id) & ~CALLS.c.is_cached & ~CALLS.c.is_inherited
        return self._database.run(lambda connection: connection.execute(select(tokens).where(here)).scalar() or 0)
