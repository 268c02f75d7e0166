"""Reads what is recorded of some tasks, a query a table however many tasks there are; hands answers to other runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from debate.evaluation import Evaluation
from debate.journal import Answer
from debate.store.serialization import as_answer, as_evaluation, turn_data
from debate.store.tables import CALLS, EVALUATIONS, TASKS, TURNS
from debate.store.task_journal import INHERITED, Kept

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
