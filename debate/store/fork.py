"""Forking: a new run takes over the recorded answers of another run, also of another store, that still fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from debate.journal import Answer
from debate.sql.types import insert_new
from debate.store.serialization import used_texts
from debate.store.tables import CALLS, TASKS, TEXTS

_CHUNK = 200
INHERITED = -1
"""The `retry_generation` of calls that were taken over."""
Inherited = Mapping[tuple[str, int | None], Answer]
"""Answers by what was asked: (hash of the prompt, seed)."""


def calls_after(connection: Connection, run_id: int, after: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The calls of the next tasks after a position that have any, with their `task_id`, and their texts."""
    positions = select(CALLS.c.position).where(CALLS.c.run_id == run_id, CALLS.c.position > after).distinct()
    chunk = list(connection.execute(positions.order_by(CALLS.c.position).limit(_CHUNK)).scalars())
    same = (CALLS.c.run_id == TASKS.c.run_id) & (CALLS.c.position == TASKS.c.position)
    here = (CALLS.c.run_id == run_id) & CALLS.c.position.in_(chunk)
    calls = select(CALLS, TASKS.c.task_id).select_from(CALLS.join(TASKS, same)).where(here)
    calls = calls.order_by(CALLS.c.position, CALLS.c.retry_generation)
    used = [query.where(here) for query in used_texts(CALLS)]
    texts = select(TEXTS).where(TEXTS.c.hash.in_(used[0].union(*used[1:])))
    return (
        [dict(row) for row in connection.execute(calls).mappings()],
        [dict(row) for row in connection.execute(texts).mappings()],
    )


def take_over(
    connection: Connection, run_id: int, calls: Sequence[dict[str, Any]], texts: Sequence[dict[str, Any]]
) -> int:
    """Put another run's calls into this one, by task id; of each the latest. Returns how many."""
    names = {row["task_id"] for row in calls}
    query = select(TASKS.c.task_id, TASKS.c.position).where(TASKS.c.run_id == run_id, TASKS.c.task_id.in_(names))
    positions = {task_id: position for task_id, position in connection.execute(query)}
    latest = {(row["task_id"], row["address"], row["attempt"]): row for row in calls if row["task_id"] in positions}
    own = {"run_id": run_id, "retry_generation": INHERITED, "is_inherited": True}
    copied = [{**row, **own, "position": positions[row["task_id"]]} for row in latest.values()]
    if copied:
        insert_new(connection, TEXTS, texts)
        connection.execute(insert(CALLS), [{key: each[key] for key in CALLS.c.keys()} for each in copied])  # noqa: SIM118
    return len(copied)
