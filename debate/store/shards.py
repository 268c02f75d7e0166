"""The work on a run in shards, some tasks each, which workers claim and finish.

A claim is committed at once, and nothing is held open while a shard is worked on. The shards of a worker that died are
free for others; a worker that only seemed to be dead is told so when it finishes one, by the number of its claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, insert, literal, or_, select, update

from debate.store.tables import SHARDS
from debate.store.workers import Worker

_MOST_TASKS = 256
_FEWEST_SHARDS = 64


@dataclass(frozen=True, slots=True)
class Shard:
    """Some tasks that this process has claimed: the pending ones of these positions, both included."""

    number: int
    first: int
    last: int
    claim: int
    """How often the shard was claimed so far."""


def tasks_per_shard(pending: int) -> int:
    """So many that claims are rare, and so few that several workers get some."""
    return min(max(pending // _FEWEST_SHARDS, 1), _MOST_TASKS)


def share(undone: int, workers: int) -> int:
    """How many unfinished shards one of the workers may hold, so that some are left for those that still load."""
    return max(1, -(-undone // max(workers, 1)))


def plan(connection: Connection, run_id: int, pending: Select[Any], n_pending: int) -> None:
    """Divide the work anew; `pending` selects the positions."""
    connection.execute(SHARDS.delete().where(SHARDS.c.run_id == run_id))
    position = pending.subquery().c.position
    shard = (func.row_number().over(order_by=position) - 1) // tasks_per_shard(n_pending)
    each = select(position, shard.label("shard")).subquery().c
    new: dict[str, Any] = {
        "run_id": literal(run_id),
        "shard": each.shard,
        "first": func.min(each.position),
        "last": func.max(each.position),
        "claim": literal(0),
        "is_done": literal(False),
    }
    rows: Any = select(*new.values()).group_by(each.shard)
    connection.execute(insert(SHARDS).from_select(list(new), rows, include_defaults=False))


def undone(run_id: int) -> ColumnElement[bool]:
    """The shards that are not done."""
    return (SHARDS.c.run_id == run_id) & ~SHARDS.c.is_done


_THIS_RUN = (SHARDS.c.run_id == bindparam("run")) & ~SHARDS.c.is_done
_COUNTS = select(func.count(), func.count().filter(SHARDS.c.worker == bindparam("me"))).where(_THIS_RUN)
_IS_FREE = or_(SHARDS.c.worker.is_(None), SHARDS.c.worker.not_in(bindparam("living", expanding=True)))
_FREE = select(SHARDS).where(_THIS_RUN, _IS_FREE).order_by(SHARDS.c.shard).limit(1).with_for_update(skip_locked=True)
_THIS = (SHARDS.c.run_id == bindparam("run")) & (SHARDS.c.shard == bindparam("number"))
_TAKE = update(SHARDS).where(_THIS).values(worker=bindparam("me"), claim=SHARDS.c.claim + 1)
_FINISH = update(SHARDS).where(_THIS, SHARDS.c.claim == bindparam("claimed")).values(is_done=True)


def claim(connection: Connection, run_id: int, worker: Worker) -> Shard | None:
    """The first shard that nobody works on; None where there is none, or the worker has its share."""
    here = {"run": run_id, "me": worker.number}
    n_undone, n_mine = connection.execute(_COUNTS, here).one()
    living = worker.living(connection)
    if not n_undone or n_mine >= share(n_undone, len(living)):
        return None
    found = connection.execute(_FREE, {"run": run_id, "living": [*living]}).first()
    # Now that its row is locked, nobody else can claim it; a worker that came to life meanwhile may have done so.
    if found is None or (found.worker is not None and found.worker in worker.living(connection)):
        return None
    connection.execute(_TAKE, {**here, "number": found.shard})
    return Shard(found.shard, found.first, found.last, found.claim + 1)


def finish(connection: Connection, run_id: int, shard: Shard) -> bool:
    """Record that all tasks of a shard are evaluated; False where it was taken from us."""
    claimed = {"run": run_id, "number": shard.number, "claimed": shard.claim}
    return connection.execute(_FINISH, claimed).rowcount == 1
