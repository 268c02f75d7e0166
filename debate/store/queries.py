"""Reads what is recorded of some tasks, a query a table however many tasks there are; hands answers to other runs.

What a run came to, counted by the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, and_, case, func, insert, select

from debate.evaluation import Evaluation
from debate.journal import Answer
from debate.store.serialization import as_answer, as_evaluation, turn_data
from debate.store.tables import CALLS, EVALUATIONS, TASKS, TURNS
from debate.store.task_journal import INHERITED, Kept
from debate.types import Usage

_CHUNK = 200


def kept_answers(
    connection: Connection, run_id: int, positions: Sequence[int]
) -> dict[int, dict[tuple[str, int], Kept]]:
    """Answers by position and (address, attempt): of each, that of the latest take."""
    query = select(CALLS).where(CALLS.c.run_id == run_id, CALLS.c.position.in_(positions), CALLS.c.take != INHERITED)
    found: dict[int, dict[tuple[str, int], Kept]] = {}
    for row in connection.execute(query.order_by(CALLS.c.take)):
        found.setdefault(row.position, {})[row.address, row.attempt] = Kept(row.take, row.prompt_hash, as_answer(row))
    return found


def inherited_answers(
    connection: Connection, run_id: int, positions: Sequence[int]
) -> dict[int, dict[tuple[str, int | None], Answer]]:
    """What was taken over from another run, by position and (hash of the prompt, seed)."""
    query = select(CALLS).where(CALLS.c.run_id == run_id, CALLS.c.position.in_(positions), CALLS.c.take == INHERITED)
    found: dict[int, dict[tuple[str, int | None], Answer]] = {}
    for row in connection.execute(query):
        found.setdefault(row.position, {})[row.prompt_hash, row.seed] = as_answer(row)
    return found


def kept_evaluations(connection: Connection, run_id: int, positions: Sequence[int]) -> dict[int, Evaluation]:
    """Evaluations by position, with their turns."""
    turns: dict[int, dict[str, list[dict[str, Any]]]] = {}
    query = select(TURNS).where(TURNS.c.run_id == run_id, TURNS.c.position.in_(positions)).order_by(TURNS.c.ordinal)
    for row in connection.execute(query):
        turns.setdefault(row.position, {}).setdefault(row.member, []).append(turn_data(row))
    evaluations = select(EVALUATIONS.c.position, EVALUATIONS.c.data).where(
        EVALUATIONS.c.run_id == run_id, EVALUATIONS.c.position.in_(positions)
    )
    return {
        position: as_evaluation(data, turns.get(position, {})) for position, data in connection.execute(evaluations)
    }


def all_calls(connection: Connection, run_id: int, after: int) -> list[dict[str, Any]]:
    """The calls of the next tasks after a position that have any, with their `task_id`; empty at the end."""
    positions = select(CALLS.c.position).where(CALLS.c.run_id == run_id, CALLS.c.position > after).distinct()
    chunk = list(connection.execute(positions.order_by(CALLS.c.position).limit(_CHUNK)).scalars())
    same = (CALLS.c.run_id == TASKS.c.run_id) & (CALLS.c.position == TASKS.c.position)
    query = select(CALLS, TASKS.c.task_id).select_from(CALLS.join(TASKS, same))
    query = query.where(CALLS.c.run_id == run_id, CALLS.c.position.in_(chunk)).order_by(CALLS.c.position, CALLS.c.take)
    return [dict(row) for row in connection.execute(query).mappings()]


def take_over(connection: Connection, run_id: int, rows: Sequence[dict[str, Any]]) -> int:
    """Put another run's calls into this one, by task id; of each the latest take. Returns how many."""
    names = {row["task_id"] for row in rows}
    query = select(TASKS.c.task_id, TASKS.c.position).where(TASKS.c.run_id == run_id, TASKS.c.task_id.in_(names))
    positions = {task_id: position for task_id, position in connection.execute(query)}
    latest = {(row["task_id"], row["address"], row["attempt"]): row for row in rows if row["task_id"] in positions}
    copied = [
        {
            **{key: value for key, value in row.items() if key != "task_id"},
            "run_id": run_id,
            "position": positions[row["task_id"]],
            "take": INHERITED,
            "is_inherited": True,
        }
        for row in latest.values()
    ]
    if copied:
        connection.execute(insert(CALLS), copied)
    return len(copied)


@dataclass(frozen=True, slots=True)
class Totals:
    """Of the tasks of the latest reading, and of all calls of the run."""

    tasks: int
    statuses: dict[str, int]
    """Evaluated tasks by status; what is missing to `tasks` is not evaluated."""
    stops: dict[str, int]
    """Evaluated tasks by stop reason."""
    rounds: int
    """Summed over the evaluated tasks."""
    failures: int
    usage: Usage
    """Of the evaluations: what they would have cost in one go."""
    known: int
    """Evaluated tasks whose best candidate is known."""
    right: int
    """Of these, those where it was selected."""
    calls: int
    """Answers of models in the store, without those of the run that this one was forked from."""
    answered: int
    """Those of them that are replies, not failures."""
    cached: int
    """Those of them that came from the cache."""
    n_evaluated: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_evaluated", sum(self.statuses.values()))


_EVALUATED = TASKS.join(
    EVALUATIONS, and_(EVALUATIONS.c.run_id == TASKS.c.run_id, EVALUATIONS.c.position == TASKS.c.position)
)


def totals(connection: Connection, run_id: int, reading: int) -> Totals:
    """Count them."""
    tasks = and_(TASKS.c.run_id == run_id, TASKS.c.reading == reading)
    e = EVALUATIONS.c
    is_known = TASKS.c.best.is_not(None)
    sums = [
        func.coalesce(func.sum(column), 0)
        for column in (
            e.rounds, e.n_failures, e.prompt_tokens, e.cached_tokens, e.completion_tokens, e.calls,
            case((is_known, 1), else_=0), case((and_(is_known, e.selected == TASKS.c.best), 1), else_=0),
        )
    ]  # fmt: skip
    summed = connection.execute(select(*sums).select_from(_EVALUATED).where(tasks)).one()
    rounds, failures, prompt, cached, completion, calls, known, right = map(int, tuple(summed))
    by_status = select(e.status, func.count()).select_from(_EVALUATED).where(tasks).group_by(e.status)
    stop = func.coalesce(e.stop_reason, "-")
    by_stop = select(stop, func.count()).select_from(_EVALUATED).where(tasks).group_by(stop)
    recorded = and_(CALLS.c.run_id == run_id, CALLS.c.kind == "generate", CALLS.c.is_inherited.is_(False))
    from_elsewhere = case((CALLS.c.is_cached, 1), else_=0)
    counted = select(func.count(), func.count(CALLS.c.text), func.coalesce(func.sum(from_elsewhere), 0))
    n_calls, answered, elsewhere = connection.execute(counted.where(recorded)).one()
    return Totals(
        tasks=connection.execute(select(func.count()).where(tasks)).scalar_one(),
        statuses={status: count for status, count in connection.execute(by_status)},
        stops={reason: count for reason, count in connection.execute(by_stop)},
        rounds=rounds,
        failures=failures,
        usage=Usage(prompt, cached, completion, calls),
        known=known,
        right=right,
        calls=n_calls,
        answered=answered,
        cached=int(elsewhere),
    )


def accuracy_by_group(connection: Connection, run_id: int, reading: int) -> dict[str, tuple[int, int]]:
    """Of the evaluated tasks whose best candidate is known, how many were right and how many there are.

    By the `group` in a task's metadata, in the order of the tasks; empty where the first task names none.
    """
    e = EVALUATIONS.c
    here = and_(TASKS.c.run_id == run_id, TASKS.c.reading == reading, TASKS.c.best.is_not(None))
    columns = select(TASKS.c.data, TASKS.c.best, e.selected)
    rows = connection.execute(
        columns.select_from(_EVALUATED).where(here).order_by(TASKS.c.position).execution_options(yield_per=1000)
    )
    found: dict[str, tuple[int, int]] = {}
    for data, best, selected in rows:
        group = data["metadata"].get("group")
        if group is None and not found:
            return {}
        right, known = found.get(name := str(group or "no group"), (0, 0))
        found[name] = (right + (selected == best), known + 1)
    return found
