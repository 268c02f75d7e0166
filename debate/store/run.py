"""One run in the store: its tasks, what is recorded of them, and what they came to.

Works in chunks of tasks, so that its memory does not grow with their number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, delete, func, literal_column, or_, select, update

from debate.evaluation import Evaluation
from debate.flow import RunContext
from debate.sql.connect import reading
from debate.statistics import Accuracy
from debate.store.database import Database
from debate.store.fork import calls_after, take_over
from debate.store.lease import run_locks
from debate.store.pages import Asked, Counts, Recorded, Searches, counts, one, page, progress
from debate.store.queries import (
    Decoded,
    Part,
    Totals,
    accuracy,
    accuracy_by_group,
    decoded_calls,
    delete_records,
    has_answers,
    kept_answers,
    kept_evaluation,
    parts_by_settling,
    totals,
    used,
)
from debate.store.serialization import as_task, task_data
from debate.store.shards import Shard, claim, finish, plan, undone
from debate.store.standings import Standing, standings
from debate.store.tables import EVALUATIONS, RUNS, TASKS, WORKERS
from debate.store.task_journal import Replay, SqlTaskJournal, delete_evaluation
from debate.store.tasks import add_task, add_tasks
from debate.store.workers import Others, Worker, WorkerState, plain_usage, read_usage, worker_states
from debate.types import Task, Usage

T = TypeVar("T")
_CHUNK = 200
"""Tasks that are read at a time."""


class StoredRun:
    """A run. Made by `Store.run`, which holds its lease, or by `Store.read`, which holds none and only looks.

    Attributes:
        started_at: when the run began, in seconds since 1970; a memory counts ages to this moment.
        identity: what shapes its prompts, as plain data; under `evaluator` what the evaluator says in `describe()`.
        about: what was recorded for people: eval set, settings, versions.
        evalset_revision: how many versions of its eval set the run has read; only tasks of the latest are pending. 0
            where tasks come one by one from the API.
    """

    def __init__(self, database: Database, row: Any, lease: ExitStack | None, worker: Worker | None = None) -> None:
        self.name: str = row.name
        self.context = RunContext(row.seed, row.today)
        self.started_at: float = row.created_at
        self.identity: Mapping[str, Any] = row.identity
        self.about = row.about
        self.evalset_revision = int(row.about.get("evalset_revision", 0))
        self._database = database
        self._run_id: int = row.id
        self._lease = lease
        self._worker = worker
        self._read_ahead: dict[str, SqlTaskJournal] = {}

    def take_lease(self, lease: ExitStack) -> None:
        """Close this, too, with the run."""
        assert self._lease is not None
        self._lease.enter_context(lease)

    def close(self) -> None:
        """Let others work on the run. Safe to call twice."""
        if self._lease is not None:
            self._lease.close()

    def note(self, **about: Any) -> None:
        """Add to what is recorded of the run for people."""
        if self.about != (noted := {**self.about, **about}):
            self.about = noted
            here = update(RUNS).where(RUNS.c.id == self._run_id).values(about=noted)
            self._database.run(lambda connection: connection.execute(here))

    # ---- work that is shared: for a run that was joined

    @property
    def worker(self) -> Worker:
        """The process among those that share the run."""
        assert self._worker is not None, "a run is shared by those that have joined it, see `Store.join`"
        return self._worker

    @property
    def is_alone(self) -> bool:
        """Whether no other process worked on the run when this one joined."""
        return self.worker.is_alone

    def require_alone(self, what: str) -> None:
        """Refuse what others must not be disturbed by: with a RunLockedError that names them."""
        self.worker.require_alone(what)

    def plan(self, settings: str) -> dict[str, Usage]:
        """Divide what is pending under these settings into shards, or take part in what others have divided.

        Returns what was asked of each model before.

        Raises:
            RunLockedError: when others work under other settings.
        """
        key = {"evalset_revision": self.evalset_revision, "settings": settings}
        planned = self.about.get("plan", {})
        if any(planned.get(name) != value for name, value in key.items()):
            self.require_alone("another eval set, or other weights, thresholds or rounds,")
        if self.is_alone:
            self._plan(key, settings)
        self.worker.begin()
        plan = self.about["plan"]  # that of an earlier version says only how many tokens
        return read_usage(plan.get("used_before", {"": [plan["tokens_before"], 0, 0]}))

    def _plan(self, key: dict[str, Any], settings: str) -> None:
        left = self._with_evaluations().where(self._latest, ~_done_under(settings)).with_only_columns(TASKS.c.position)
        n_left, used = self.n_tasks() - self.n_evaluated(settings), self.used()

        def replace(connection: Connection) -> None:
            connection.execute(delete(WORKERS).where(WORKERS.c.run_id == self._run_id))
            plan(connection, self._run_id, left, n_left)

        self._database.run(replace)
        spent = sum(each.total_tokens for each in used.values())
        self.note(plan={**key, "tokens_before": spent, "used_before": plain_usage(used)})

    def claim(self) -> Shard | None:
        """Claim the next shard; None where none is free, or this worker holds its share."""
        return self._database.run(lambda connection: claim(connection, self._run_id, self.worker))

    def tasks_of(self, shard: Shard, settings: str) -> Iterator[Task]:
        """The tasks of a shard that are pending under these settings, as `pending`."""
        return self._tasks(~_done_under(settings) & (TASKS.c.position <= shard.last), settings, shard.first)

    def finish_shard(self, shard: Shard) -> bool:
        """Record that a shard is done; False where another worker has claimed it meanwhile."""
        return self._database.run(lambda connection: finish(connection, self._run_id, shard))

    def n_undone(self) -> int:
        """How many shards are not done."""
        return self._scalar(select(func.count()).where(undone(self._run_id)))

    def report(self, tasks: int, used: Mapping[str, Usage]) -> Future[Others]:
        """Record what this worker has done in all, and learn what the others have."""
        return self.worker.report(tasks, used)

    def others(self) -> Others:
        """What the other workers have done."""
        return self._database.run(self.worker.others)

    def workers(self) -> list[WorkerState]:
        """All workers since the work was divided, in the order in which they began."""
        locks = run_locks(self._database, self.name)
        return self._database.run(lambda connection: worker_states(connection, locks, self._run_id))

    # ---- tasks

    def read_evalset(self, tasks: Iterable[tuple[Task, str | None, int | None]], about: Callable[[], Any]) -> int:
        """Take the tasks of an eval set into the run, (task, file, line) each; returns how many there are.

        All or nothing, in one transaction. Tasks that the run has already are recognized by id; of equal tasks without
        an id, later ones get `-2`, `-3`, ... Tasks that are not among `tasks` stay recorded, but are not pending.
        `about`, called when all are read, goes into the run's record.

        Raises:
            TaskError: for a duplicate id, or where the run has another task of that id; with file and line.
        """
        revision = self.evalset_revision + 1

        def read(connection: Connection) -> int:
            if not has_answers(connection, self._run_id):
                delete_records(connection, self._run_id)
            count = add_tasks(connection, self._run_id, revision, tasks)
            self.about = {**self.about, **about(), "evalset_revision": revision}
            connection.execute(update(RUNS).where(RUNS.c.id == self._run_id).values(about=self.about))
            return count

        count = self._database.run(read)
        self.evalset_revision = revision
        return count

    def discard_if_empty(self) -> None:
        """Delete a run that has no tasks."""
        tasks = select(TASKS.c.position).where(TASKS.c.run_id == RUNS.c.id)
        empty = delete(RUNS).where(RUNS.c.id == self._run_id, ~tasks.exists())
        self._database.run(lambda connection: connection.execute(empty))

    def pending(self, settings: str) -> Iterator[Task]:
        """Tasks without an evaluation under these settings, in order; what is recorded of them is read along."""
        return self._tasks(~_done_under(settings), settings)

    def stale(self, settings: str) -> Iterator[Task]:
        """Tasks whose evaluation was made under other settings."""
        return self._tasks(EVALUATIONS.c.settings != settings, settings)

    def _tasks(self, which: ColumnElement[bool], settings: str, first: int = 0) -> Iterator[Task]:
        for row, kept in self._each(which, lambda connection, rows: self._kept(connection, rows, settings), first):
            self._read_ahead[row.task_id] = kept
            with self._database.faults_in_words():
                task = as_task(row.task_id, row.data)
            yield task

    def _each(
        self,
        which: ColumnElement[bool],
        read: Callable[[Connection, Sequence[Row[Any]]], Sequence[T]],
        first: int = 0,
    ) -> Iterator[tuple[Row[Any], T]]:
        """The tasks of the latest revision with their evaluations, and what `read` makes of each chunk of them.

        first: position below which there is nothing to look for.
        """

        def chunk(connection: Connection, after: int) -> list[tuple[Row[Any], T]]:
            query = self._with_evaluations(after).where(self._latest, TASKS.c.position > after, which)
            # A number that a server's planner sees: it expects a parameter to ask for a tenth of the rows.
            limited = query.order_by(TASKS.c.position).limit(literal_column(str(_CHUNK)))
            rows = connection.execute(limited).all()
            return list(zip(rows, read(connection, rows), strict=True))

        last, is_more = first - 1, True
        while is_more:
            found = self._database.run(lambda connection, after=last: chunk(connection, after))
            yield from found
            if is_more := len(found) == _CHUNK:
                last = found[-1][0].position

    @property
    def _latest(self) -> ColumnElement[bool]:
        return (TASKS.c.run_id == self._run_id) & (TASKS.c.evalset_revision == self.evalset_revision)

    def _with_evaluations(self, after: int = -1) -> Any:
        same = (EVALUATIONS.c.run_id == TASKS.c.run_id) & (EVALUATIONS.c.position == TASKS.c.position)
        # Equal to a position that is above `after`, but PostgreSQL does not conclude so, and would read all below it.
        same &= EVALUATIONS.c.position > after
        columns = (TASKS, EVALUATIONS.c.settings, EVALUATIONS.c.data.label("evaluation"))
        query: Any = select(*columns).select_from(TASKS.outerjoin(EVALUATIONS, same))
        return query.where(TASKS.c.run_id == self._run_id)

    @reading("a task")
    def _kept(self, connection: Connection, rows: Sequence[Row[Any]], settings: str) -> list[SqlTaskJournal]:
        """The records of some tasks, with their answers."""
        positions = [row.position for row in rows]
        answers, inherited = kept_answers(connection, self._run_id, positions)
        return [
            SqlTaskJournal(
                database=self._database,
                run_id=self._run_id,
                position=row.position,
                task_id=row.task_id,
                metadata=row.data["metadata"],
                settings=settings,
                recorded=answers.get(row.position, {}),
                inherited=inherited.get(row.position, {}),
                is_stale=row.settings is not None,
                current_generation=row.retry_generation,
                reopened=frozenset(row.reopened or ()),
            )
            for row in rows
        ]

    # ---- evaluations

    async def open(self, task: Task, settings: str) -> SqlTaskJournal:
        """What is recorded of a task so far; a new task is added to the run.

        Raises:
            TaskError: when the task holds what the store cannot keep.
            RunMismatchError: when the run has another task of that id.
        """
        read = self._read_ahead.pop(task.id, None)
        if read is not None and read.settings == settings:
            return read
        data = task_data(task)
        return await self._database.arun(lambda connection: self._opened(connection, task, data, settings))

    def _opened(self, connection: Connection, task: Task, data: dict[str, Any], settings: str) -> SqlTaskJournal:
        position = add_task(connection, self._run_id, self.evalset_revision, task, data)
        row = connection.execute(self._with_evaluations().where(TASKS.c.position == position)).one()
        (kept,) = self._kept(connection, [row], settings)
        if row.settings == settings:
            kept.finished = kept_evaluation(row.evaluation)
        return kept

    def results(self, task_id: str | None = None) -> Iterator[tuple[Task, Evaluation]]:
        """Every evaluated task of the latest revision with its evaluation, in the order of the tasks; or one alone."""
        which = _under(None) if task_id is None else _under(None) & (TASKS.c.task_id == task_id)
        for row, _ in self._each(which, lambda _, rows: rows):
            with self._database.faults_in_words():
                found = as_task(row.task_id, row.data), kept_evaluation(row.evaluation)
            yield found

    def result_data(self) -> Iterator[tuple[str, dict[str, Any], str]]:
        """Id, plain data, and the evaluation's JSON of every evaluated task, in order; quicker than `results`."""
        for row, _ in self._each(_under(None), lambda _, rows: rows):
            yield row.task_id, row.data, row.evaluation

    def replays(self, task_id: str | None = None) -> Iterator[tuple[Task, str, Replay]]:
        """Every evaluated task, its evaluation's JSON, and its record, to be sent to a fresh flow; or one alone."""
        which = _under(None) if task_id is None else _under(None) & (TASKS.c.task_id == task_id)
        for row, kept in self._each(which, lambda connection, rows: self._kept(connection, rows, "")):
            with self._database.faults_in_words():
                task = as_task(row.task_id, row.data)
            yield task, row.evaluation, Replay(kept)

    def has_answers(self) -> bool:
        """Whether a model's reply or an evaluation is recorded."""
        return self._database.run(lambda connection: has_answers(connection, self._run_id))

    def evaluated(self, *, every: bool = False) -> list[str]:
        """The ids of the tasks that `results` yields.

        every: those of earlier revisions too, and those that were evaluated and are to be evaluated again.
        """
        which = or_(_under(None), TASKS.c.retry_generation > 0) if every else self._latest & _under(None)
        query = self._with_evaluations().where(which).order_by(TASKS.c.position)
        ids = query.with_only_columns(TASKS.c.task_id)
        return self._database.run(lambda connection: list(connection.execute(ids).scalars()))

    def result_lines(self, settings: str | None = None) -> Iterator[str]:
        """The JSON of the evaluations under these settings, or any, in the order of the tasks."""
        return (row.evaluation for row, _ in self._each(_under(settings), lambda _, rows: rows))

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
            failed = [each for each in json.loads(data)["failures"] if each["reason"] != "time_budget"]
            addresses = sorted({each["call"] for each in failed if each["call"]})
            task = (TASKS.c.run_id == self._run_id) & (TASKS.c.position == position)
            again = {"retry_generation": TASKS.c.retry_generation + 1, "reopened": addresses}
            connection.execute(update(TASKS).where(task).values(again))
            delete_evaluation(connection, self._run_id, position)
        return len(rows)

    def inherit(self, parent: StoredRun) -> int:
        """Take over the answers that another run, also of another store, has for the same tasks; returns how many.

        They count wherever the same is asked of the same task under the same seed.
        """
        count, last = 0, -1
        while True:
            calls, texts = parent.calls_after(last)
            if not calls:
                return count
            last = calls[-1]["position"]
            count += self._database.run(
                lambda connection, rows=(calls, texts): take_over(connection, self._run_id, *rows)
            )

    def calls_after(self, position: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The recorded calls of the next tasks after a position, with their `task_id`, and the texts of the replies."""
        return self._database.run(lambda connection: calls_after(connection, self._run_id, position))

    # ---- what it came to

    def totals(self) -> Totals:
        """What the run came to so far."""
        return self._database.run(lambda connection: totals(connection, self._run_id, self.evalset_revision))

    def page(self, asked: Asked, searches: Searches | None = None) -> list[Recorded]:
        """The next evaluations that are asked for, in the order of the tasks.

        searches: what was found before; whoever asks again gives the same.
        """
        return self._database.run(
            lambda connection: page(connection, self._run_id, self.evalset_revision, asked, searches)
        )

    def one(self, task_id: str) -> Recorded | None:
        """One evaluated task as plain data; None where it has no evaluation."""
        return self._database.run(lambda connection: one(connection, self._run_id, task_id))

    def progress(self) -> tuple[int, int]:
        """How many tasks have an evaluation, and how many there are."""
        return self._database.run(lambda connection: progress(connection, self._run_id, self.evalset_revision))

    def counts(self) -> Counts:
        """How many evaluations each question finds."""
        return self._database.run(lambda connection: counts(connection, self._run_id, self.evalset_revision))

    def accuracy(self, settings: str) -> Accuracy:
        """Accuracy over the tasks with a label that are evaluated under these settings."""
        here = self._with_evaluations().where(self._latest, _under(settings))
        return self._database.run(lambda connection: accuracy(connection, here))

    def accuracy_by_group(self) -> dict[str, Accuracy]:
        """Accuracy by the `group` in the tasks' metadata; empty where tasks name none."""
        return self._database.run(lambda connection: accuracy_by_group(connection, self._run_id, self.evalset_revision))

    def parts_by_settling(self) -> dict[bool, Part]:
        """What was settled without a debate (True), and the rest; see `debate.store.queries.parts_by_settling`."""
        return self._database.run(lambda connection: parts_by_settling(connection, self._run_id, self.evalset_revision))

    def standings(self, key: str = "group", worst: int | None = None) -> list[Standing]:
        """How the evaluated tasks came out, in their order; or only the worst so many of them, the wrong ones first.

        key: the key of the tasks' metadata that names their groups.
        """
        return self._database.run(
            lambda connection: standings(connection, self._run_id, self.evalset_revision, key, worst)
        )

    def n_tasks(self) -> int:
        """Number of tasks of the latest revision."""
        return self._scalar(select(func.count()).where(self._latest))

    def n_evaluated(self, settings: str | None = None) -> int:
        """How many of these are evaluated under these settings, or any."""
        evaluated = self._with_evaluations().where(self._latest, _under(settings))
        return self._scalar(evaluated.with_only_columns(func.count()))

    def n_done(self) -> int:
        """How many of these have a result under the settings that the run was last worked on with."""
        return self.n_evaluated(self.about.get("results_under"))

    def used(self) -> dict[str, Usage]:
        """What was asked of each model, by the name that the run has for it; see `debate.store.queries.used`."""
        return self._database.run(lambda connection: used(connection, self._run_id))

    def tokens_spent(self) -> int:
        """Prompt and completion tokens of all calls that a model was asked."""
        return sum(each.total_tokens for each in self.used().values())

    def decoded(self) -> Iterator[tuple[str, list[Decoded]]]:
        """What the calls of each evaluated task decoded, by its id, in the order of the tasks; retries included."""

        def read(connection: Connection, rows: Sequence[Row[Any]]) -> list[list[Decoded]]:
            calls: dict[int, list[Decoded]] = {row.position: [] for row in rows}
            for call in decoded_calls(connection, self._run_id, min(calls, default=0), max(calls, default=-1)):
                calls.setdefault(call.position, []).append(call)
            return [calls[row.position] for row in rows]

        for row, calls in self._each(_under(None), read):
            yield row.task_id, calls

    def _scalar(self, query: Any) -> int:
        return self._database.run(lambda connection: connection.execute(query).scalar())  # pyright: ignore[reportReturnType]


def _done_under(settings: str) -> ColumnElement[bool]:
    """Evaluated under these settings; unlike `_under` it can be negated."""
    return EVALUATIONS.c.settings.is_not(None) & (EVALUATIONS.c.settings == settings)


def _under(settings: str | None) -> ColumnElement[bool]:
    """Evaluated, under these settings or any."""
    return EVALUATIONS.c.settings.is_not(None) if settings is None else EVALUATIONS.c.settings == settings
