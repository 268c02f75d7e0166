"""A run page by page, for a reader: what its evaluations are narrowed by, and how many each question finds.

Pages go on from a position (keyset paging), so that the last page of a million tasks takes no longer than the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, collate, func, literal_column, select

from debate.store.tables import EVALUATIONS, RUNS, TASKS

_E = EVALUATIONS.c
QUESTIONS: Mapping[str, ColumnElement[bool]] = {
    "wrong": _E.verdict == "wrong",
    "right": _E.verdict == "right",
    "tied": _E.tied.is_(True),
    "unchosen": _E.selected.is_(None),
    "failed": _E.status == "failed",
    "partial": _E.status == "partial",
    "settled": _E.stop_reason == "settled",
    "rounds": _E.stop_reason == "max_rounds",
    "flipped": _E.flipped.is_(True),
}
"""What evaluations can be narrowed by, beside their group, their stop reason and the ids of their tasks."""
_GROUPS = 500
"""Most groups that are counted, the largest ones."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which evaluations a page is to have.

    Attributes:
        questions: names of `QUESTIONS`, all of which must hold.
        group: of the tasks; "" is none; None takes all.
        stop: stop reason; None takes all.
        search: stands in the task's id, in upper or lower case; "" takes all.
        after: position after which the page begins.
        limit: most evaluations of the page.
    """

    questions: frozenset[str] = frozenset()
    group: str | None = None
    stop: str | None = None
    search: str = ""
    after: int = -1
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Recorded:
    """One evaluated task, as plain data.

    Attributes:
        position: of the task in the run.
        task_id: the task's.
        task: its data.
        evaluation: its evaluation as JSON.
    """

    position: int
    task_id: str
    task: dict[str, Any]
    evaluation: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How many evaluations there are, and how many each question finds.

    Attributes:
        evaluated: in all.
        questions: by name of `QUESTIONS`.
        stops: by stop reason; evaluators without one are left out.
        groups: by group, "" for none, largest first; at most 500.
    """

    evaluated: int
    questions: Mapping[str, int]
    stops: Mapping[str, int]
    groups: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Listed:
    """One run of a store.

    Attributes:
        name: its name.
        created_at: in seconds since 1970.
        tasks: how many it has, those of earlier revisions of its eval set included.
        evaluated: how many of these have an evaluation.
    """

    name: str
    created_at: float
    tasks: int
    evaluated: int


def page(connection: Connection, run_id: int, revision: int, asked: Asked) -> list[Recorded]:
    """The next evaluations that are asked for, in the order of the tasks.

    Raises:
        KeyError: for a question that is not known.
    """
    after, narrowed = _E.position > asked.after, _narrowed(asked)
    if asked.search:
        query = _searched(connection.dialect.name, run_id, revision, asked, [after, *narrowed])
    else:
        query = select(_E.position).where(*_of_run(run_id, revision), after, *narrowed).order_by(_E.position)
    chosen = query.limit(literal_column(str(int(asked.limit))))
    return _recorded(connection, run_id, list(connection.execute(chosen).scalars()))


def _narrowed(asked: Asked) -> list[ColumnElement[bool]]:
    """What evaluations are narrowed by, beside the ids of their tasks; one index has all of it."""
    here = [QUESTIONS[name] for name in sorted(asked.questions)]
    if asked.group is not None:
        here.append(_E.task_group == asked.group if asked.group else _E.task_group.is_(None))
    if asked.stop is not None:
        here.append(_E.stop_reason == asked.stop)
    return here


def _searched(
    dialect: str, run_id: int, revision: int, asked: Asked, narrowed: Sequence[ColumnElement[bool]]
) -> Select[int]:
    """The positions of the tasks with such an id whose evaluations are narrowed so; the tasks are looked at first.

    A single position SQLite would look up in the wide rows; but the positions from one to the same one in the narrow
    index.
    """
    t = TASKS.c
    same = _E.position.between(t.position, t.position) if dialect == "sqlite" else _E.position == t.position
    evaluated = select(_E.run_id).where(_E.run_id == run_id, same, *narrowed).correlate(TASKS).exists()
    here = [*_of_revision(run_id, revision), t.position > asked.after, _is_named(dialect, asked.search), evaluated]
    return select(t.position).where(*here).order_by(t.position)


def _is_named(dialect: str, text: str) -> ColumnElement[bool]:
    """Whether a task's id holds a text, in upper or lower case; in SQLite only A to Z have both.

    SQLite's LIKE makes no difference between them, and without `lower` takes half the time. PostgreSQL takes a fifth
    where it may compare bytes, as it may where the text has none but ASCII letters.
    """
    name = TASKS.c.task_id
    if dialect == "sqlite":
        return name.contains(text, autoescape=True)
    return (collate(name, "C") if text.isascii() else name).icontains(text, autoescape=True)


def one(connection: Connection, run_id: int, task_id: str) -> Recorded | None:
    """The evaluation of a task; None where there is none."""
    here = select(TASKS.c.position).where(TASKS.c.run_id == run_id, TASKS.c.task_id == task_id)
    return next(iter(_recorded(connection, run_id, list(connection.execute(here).scalars()))), None)


def _recorded(connection: Connection, run_id: int, positions: Sequence[int]) -> list[Recorded]:
    same = (_E.run_id == TASKS.c.run_id) & (_E.position == TASKS.c.position)
    columns = (TASKS.c.position, TASKS.c.task_id, TASKS.c.data, _E.data)
    query = select(*columns).select_from(TASKS.join(EVALUATIONS, same))
    here = query.where(TASKS.c.run_id == run_id, TASKS.c.position.in_(positions)).order_by(TASKS.c.position)
    return [Recorded(*row) for row in connection.execute(here)]


def counts(connection: Connection, run_id: int, revision: int) -> Counts:
    """Count them, in two passes over the run."""
    here = _of_run(run_id, revision)
    found = [func.count().filter(question).label(name) for name, question in QUESTIONS.items()]
    by_stop = select(_E.stop_reason, func.count(), *found).where(*here).group_by(_E.stop_reason)
    rows = connection.execute(by_stop).all()
    many = func.count().label("many")
    by_group = select(_E.task_group, many).where(*here).group_by(_E.task_group).order_by(many.desc()).limit(_GROUPS)
    return Counts(
        evaluated=sum(row[1] for row in rows),
        questions={name: sum(getattr(row, name) for row in rows) for name in QUESTIONS},
        stops={row[0]: row[1] for row in rows if row[0]},
        groups={row[0] or "": row[1] for row in connection.execute(by_group)},
    )


def progress(connection: Connection, run_id: int, revision: int) -> tuple[int, int]:
    """How many tasks have an evaluation, and how many there are."""
    tasks = _of_revision(run_id, revision)
    done = select(func.count()).select_from(EVALUATIONS).where(*_of_run(run_id, revision))
    total = select(func.count()).select_from(TASKS).where(*tasks)
    return connection.execute(done).scalar_one(), connection.execute(total).scalar_one()


def listed(connection: Connection) -> list[Listed]:
    """All runs, the newest first."""
    tasks, evaluated = (
        {run_id: many for run_id, many in connection.execute(select(t.c.run_id, func.count()).group_by(t.c.run_id))}
        for t in (TASKS, EVALUATIONS)
    )
    rows = connection.execute(select(RUNS.c.id, RUNS.c.name, RUNS.c.created_at).order_by(RUNS.c.id.desc()))
    return [Listed(row.name, row.created_at, tasks.get(row.id, 0), evaluated.get(row.id, 0)) for row in rows]


def _of_run(run_id: int, revision: int) -> list[ColumnElement[bool]]:
    """The evaluations of the tasks of a revision; where there was but one, no task has to be looked up for that."""
    here: list[ColumnElement[bool]] = [_E.run_id == run_id]
    if revision > 1:
        its = select(TASKS.c.run_id).where(*_of_revision(run_id, revision), TASKS.c.position == _E.position)
        here.append(its.exists())
    return here


def _of_revision(run_id: int, revision: int) -> list[ColumnElement[bool]]:
    """The tasks of a revision; where there was but one, all of the run."""
    return [TASKS.c.run_id == run_id, *([TASKS.c.evalset_revision == revision] if revision > 1 else [])]
