"""A run page by page, for a reader: what its evaluations are narrowed by, and how many each question finds.

Pages go on from a position (keyset paging), so that the last page of a million tasks takes no longer than the first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, collate, false, func, inspect, literal_column, select

from debate.store.tables import EVALUATIONS, RUNS, TASKS

_E = EVALUATIONS.c
QUESTIONS: Mapping[str, ColumnElement[bool]] = {
    "wrong": _E.verdict == "wrong",
    "right": _E.verdict == "right",
    "tied": _E.tied.is_(True),
    "unchosen": _E.selected.is_(None),
    "unscored": _E.unscored.is_(True),
    "failed": _E.status == "failed",
    "partial": _E.status == "partial",
    "settled": _E.stop_reason == "settled",
    "rounds": _E.stop_reason == "max_rounds",
    "flipped": _E.flipped.is_(True),
    "order": _E.orders_disagree.is_(True),
}
"""What evaluations can be narrowed by, beside their group, their stop reason, their rounds and their tasks' ids."""
_LATER = frozenset({"unscored", "order"})
"""Those that a store of schema 0007 or older has no columns for, which is read as it is."""
_GROUPS = 500
"""Most groups that are counted, the largest ones."""
_FEW = 500
"""Tasks that a search finds and that are then taken one by one."""
_KEPT = 64
"""Searches that are remembered."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which evaluations a page is to have.

    Attributes:
        questions: names of `QUESTIONS`, all of which must hold.
        group: of the tasks; "" is none; None takes all.
        stop: stop reason; None takes all.
        rounds: taken; None takes all.
        search: stands in the task's id, in upper or lower case; "" takes all.
        exact: of a search, True is the one task whose id it is, found by an index; False are all others; None is both.
        after: position after which the page begins.
        limit: most evaluations of the page.
    """

    questions: frozenset[str] = frozenset()
    group: str | None = None
    stop: str | None = None
    rounds: int | None = None
    search: str = ""
    exact: bool | None = None
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
        questions: by name of `QUESTIONS`, those that the store can answer.
        stops: by stop reason; evaluators without one are left out.
        rounds: by the rounds taken.
        groups: by group, "" for none, largest first; at most 500.
    """

    evaluated: int
    questions: Mapping[str, int]
    stops: Mapping[str, int]
    rounds: Mapping[int, int]
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


class Searches:
    """The latest searches of ids and the few tasks each has found, so that only new tasks are looked through again."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[int, float, str], tuple[int, list[int]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def few(self, connection: Connection, run_id: int, search: str) -> list[int] | None:
        """The positions of all tasks of a run whose ids hold a text; None where they are many."""
        began = connection.execute(select(RUNS.c.created_at).where(RUNS.c.id == run_id)).scalar_one()
        last = connection.execute(select(func.max(TASKS.c.position)).where(TASKS.c.run_id == run_id)).scalar()
        before, found = self._found.get(key := (run_id, began, search), (-1, list[int]()))
        if len(found) < _FEW and last is not None and last > before:
            more = TASKS.c.position.between(before + 1, last)
            found = [*found, *connection.execute(_first_named(connection, run_id, search, more)).scalars()]
            # Until something is evaluated, the tasks of a run may still be others.
            if connection.execute(select(_E.position).where(_E.run_id == run_id).limit(1)).first():
                self._remember(key, last, found)
        return found if len(found) < _FEW else None

    def _remember(self, key: tuple[int, float, str], last: int, found: list[int]) -> None:
        self._found[key] = last, found
        self._found.move_to_end(key)
        while len(self._found) > _KEPT:
            self._found.popitem(last=False)


def page(
    connection: Connection, run_id: int, revision: int, asked: Asked, searches: Searches | None = None
) -> list[Recorded]:
    """The next evaluations that are asked for, in the order of the tasks.

    searches: what was found before; whoever asks again gives the same.

    Raises:
        KeyError: for a question that is not known.
    """
    here = [*_of_run(run_id, revision), _E.position > asked.after, *_narrowed(asked)]
    if asked.search:
        here.append(_is_found(connection, run_id, asked, Searches() if searches is None else searches))
    query = select(_E.position).where(*here).order_by(_E.position).limit(_literal(asked.limit))
    return _recorded(connection, run_id, list(connection.execute(query).scalars()))


def _narrowed(asked: Asked) -> list[ColumnElement[bool]]:
    """What evaluations are narrowed by, beside the ids of their tasks; one index has all of it."""
    here = [QUESTIONS[name] for name in sorted(asked.questions)]
    if asked.group is not None:
        here.append(_E.task_group == asked.group if asked.group else _E.task_group.is_(None))
    if asked.stop is not None:
        here.append(_E.stop_reason == asked.stop)
    if asked.rounds is not None:
        here.append(_E.rounds == asked.rounds)
    return here


def _is_found(connection: Connection, run_id: int, asked: Asked, searches: Searches) -> ColumnElement[bool]:
    """Whether the id of an evaluation's task holds what is searched for.

    The ids are looked through first. Where few tasks are found, these are it. Of many the evaluations soon fill a page,
    or other filters leave few of them, so each is asked for its task's id.
    """
    t, dialect = TASKS.c, connection.dialect.name
    of_the_id = select(t.position).where(t.run_id == run_id, t.task_id == asked.search)
    exact = None if asked.exact is None else connection.execute(of_the_id).scalar()
    if asked.exact:
        return _E.position == exact
    found = searches.few(connection, run_id, asked.search)
    if found is None:
        following = connection.execute(_first_named(connection, run_id, asked.search, t.position > asked.after))
        found = following.scalars().all()
    if len(found) < _FEW:
        found = [position for position in found if position > asked.after and position != exact]
        return _E.position.in_(found) if found else false()
    named = [t.run_id == run_id, _is_named(dialect, asked.search), *([] if exact is None else [t.position != exact])]
    # SQLite looks a single position up in the wide rows, but the positions from one to the same one in the index.
    same = t.position.between(_E.position, _E.position) if dialect == "sqlite" else t.position == _E.position
    return select(t.run_id).where(*named, same).correlate(EVALUATIONS).exists()


def _first_named(connection: Connection, run_id: int, search: str, where: ColumnElement[bool]) -> Select[int]:
    """The positions of the first tasks there whose ids hold a text."""
    named = (TASKS.c.run_id == run_id, where, _is_named(connection.dialect.name, search))
    return select(TASKS.c.position).where(*named).order_by(TASKS.c.position).limit(_literal(_FEW))


def _literal(number: int) -> ColumnElement[int]:
    """A number that a server's planner sees: it expects a parameter to ask for a tenth of the rows."""
    return literal_column(str(int(number)))


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


def questions(connection: Connection) -> list[str]:
    """The names of `QUESTIONS` that the store can answer."""
    there = {column["name"] for column in inspect(connection).get_columns(EVALUATIONS.name)}
    return [name for name in QUESTIONS if "unscored" in there or name not in _LATER]


def counts(connection: Connection, run_id: int, revision: int) -> Counts:
    """Count them, in two passes over the run."""
    here = _of_run(run_id, revision)
    names = questions(connection)
    found = [func.count().filter(QUESTIONS[name]).label(f"n_{name}") for name in names]
    by_end = select(_E.stop_reason, _E.rounds, func.count(), *found).where(*here).group_by(_E.stop_reason, _E.rounds)
    rows = connection.execute(by_end).all()
    stops, rounds = Counter[str](), Counter[int]()
    for stop, taken, count, *_ in rows:
        stops[stop or ""] += count
        rounds[taken] += count
    del stops[""]
    many = func.count().label("many")
    by_group = select(_E.task_group, many).where(*here).group_by(_E.task_group).order_by(many.desc()).limit(_GROUPS)
    return Counts(
        evaluated=rounds.total(),
        questions={name: sum(getattr(row, f"n_{name}") for row in rows) for name in names},
        stops=dict(stops),
        rounds=dict(sorted(rounds.items())),
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
