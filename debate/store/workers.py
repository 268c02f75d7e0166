"""The processes that share a run: each has a row, and a lock that says that it lives."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from debate.errors import RunLockedError, StoreError
from debate.store.database import Database
from debate.store.lease import RUN, SETUP, RunLocks, in_use
from debate.store.tables import SHARDS, WORKERS
from debate.types import Usage


@dataclass(frozen=True, slots=True)
class Others:
    """What all other workers of a run have done since its work was divided."""

    workers: int
    """How many of them live."""
    tasks: int
    tokens: int
    used: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    """What they asked of each model."""


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker, as the store has it."""

    number: int
    about: Mapping[str, Any]
    """`host`, `process` and `device`, and `used`: what it asked of each model."""
    state: Literal["alive", "ended", "died"]
    started_at: float
    last_commit: float
    tasks: int
    """How many it has evaluated."""
    tokens: int
    shards: int
    """How many it has claimed and not finished."""


_NOT_ENDED = select(WORKERS.c.worker).where(WORKERS.c.run_id == bindparam("run"), WORKERS.c.ended_at.is_(None))


class Worker:
    """The process as one of those that work on a run. Made by `Store.join`, under the setup lock."""

    def __init__(self, database: Database, locks: RunLocks, run: str, run_id: int, *, is_alone: bool) -> None:
        self.number = secrets.randbelow(2**31 - 1) + 1
        self.is_alone = is_alone
        self._database = database
        self._locks = locks
        self._run = run
        self._run_id = run_id
        self._is_working = False

    def require_alone(self, what: str) -> None:
        """Refuse what others must not be disturbed by.

        Raises:
            RunLockedError: naming the others.
        """
        if not self.is_alone:
            who = self._database.run(lambda connection: living_workers(connection, self._locks, self._run_id))
            problem = f"{what} needs the run {self._run!r} for itself, and it is in use by {who or 'another process'}"
            raise RunLockedError(problem, hint="wait until they have ended, or stop them; then run the command again")

    def begin(self) -> None:
        """Be one of the workers from now on."""
        is_taken = self._locks.take(str(self.number))
        assert is_taken, "a random number is nobody else's"
        now = time.time()
        row = {
            "run_id": self._run_id,
            "worker": self.number,
            "about": self._about({}),
            "started_at": now,
            "last_commit": now,
        }
        self._database.run(lambda connection: connection.execute(insert(WORKERS), row))
        self._is_working = True

    def let_others_in(self) -> None:
        """End the setup: others may join.

        Raises:
            RunLockedError: when somebody has taken the run for himself meanwhile.
        """
        if self.is_alone and not self._locks.take(RUN, shared=True):
            raise in_use(self._run, "another process")
        self._locks.release(SETUP)

    def _about(self, used: Mapping[str, Usage]) -> dict[str, Any]:
        return {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "device": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
            "used": plain_usage(used),
        }

    def report(self, tasks: int, used: Mapping[str, Usage]) -> Future[Others]:
        """Record what this worker has done, and learn what the others have."""
        me = (WORKERS.c.run_id == self._run_id) & (WORKERS.c.worker == self.number)
        tokens = sum(usage.total_tokens for usage in used.values())
        done = (
            update(WORKERS)
            .where(me)
            .values(tasks=tasks, tokens=tokens, about=self._about(used), last_commit=time.time())
        )

        def report(connection: Connection) -> Others:
            connection.execute(done)
            return self.others(connection)

        return self._database.submit(report)

    def others(self, connection: Connection) -> Others:
        """What the other workers have done."""
        rows = [row for row in worker_rows(connection, self._run_id) if row.worker != self.number]
        living = self._locks.living(connection, [row.worker for row in rows if row.ended_at is None])
        tasks, tokens = sum(row.tasks for row in rows), sum(row.tokens for row in rows)
        used: dict[str, Usage] = {}
        for row in rows:
            for model, usage in read_usage(row.about.get("used")).items():
                used[model] = used.get(model, Usage()) + usage
        return Others(len(living), tasks, tokens, used)

    def living(self, connection: Connection) -> set[int]:
        """The numbers of the workers that live, this one included."""
        numbers = connection.execute(_NOT_ENDED, {"run": self._run_id}).scalars()
        return self._locks.living(connection, list(numbers))

    def close(self) -> None:
        """Record the end; where that cannot be recorded any more, the lock shows it."""
        me = (WORKERS.c.run_id == self._run_id) & (WORKERS.c.worker == self.number)
        ended = update(WORKERS).where(me).values(ended_at=time.time())
        with suppress(StoreError):
            if self._is_working:
                self._database.run(lambda connection: connection.execute(ended))


def plain_usage(used: Mapping[str, Usage]) -> dict[str, list[int]]:
    """What was asked of each model, as plain data."""
    return {name: [each.prompt_tokens, each.cached_tokens, each.completion_tokens] for name, each in used.items()}


def read_usage(data: Mapping[str, Sequence[int]] | None) -> dict[str, Usage]:
    """What `plain_usage` wrote; nothing of a record that an earlier version has made."""
    return {name: Usage(*tokens) for name, tokens in (data or {}).items()}


def worker_rows(connection: Connection, run_id: int) -> list[Row[Any]]:
    """All workers of a run that are recorded, in the order in which they began."""
    here = select(WORKERS).where(WORKERS.c.run_id == run_id).order_by(WORKERS.c.started_at)
    return list(connection.execute(here).all())


def worker_states(connection: Connection, locks: RunLocks, run_id: int) -> list[WorkerState]:
    """All workers of a run, in the order in which they began."""
    rows = worker_rows(connection, run_id)
    living = locks.living(connection, [row.worker for row in rows if row.ended_at is None])
    undone = select(SHARDS.c.worker, func.count()).where(SHARDS.c.run_id == run_id, ~SHARDS.c.is_done)
    shards = {number: count for number, count in connection.execute(undone.group_by(SHARDS.c.worker))}
    return [
        WorkerState(
            row.worker,
            row.about,
            "ended" if row.ended_at is not None else "alive" if row.worker in living else "died",
            row.started_at,
            row.last_commit,
            row.tasks,
            row.tokens,
            shards.get(row.worker, 0),
        )
        for row in rows
    ]


def living_workers(connection: Connection, locks: RunLocks, run_id: int) -> str:
    """The workers that live, for messages; empty where there are none."""
    living = [each.about for each in worker_states(connection, locks, run_id) if each.state == "alive"]
    return ", ".join(f"process {about['process']} on {about['host']}" for about in living)
