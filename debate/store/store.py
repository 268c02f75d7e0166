"""A store: the runs and the cached replies in one database."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from sqlalchemy import Connection, delete, insert, select, update

from debate import files
from debate.errors import ConfigError, RunMismatchError, StoreError
from debate.files import this_process
from debate.settings import check_value
from debate.sql.connect import sqlite_file
from debate.store.database import Database
from debate.store.identity import differences, prompt_identity
from debate.store.lease import RUN, SETUP, RunLocks, in_use, run_locks, take_lease
from debate.store.pages import Listed, listed, questions
from debate.store.queries import delete_records, has_answers
from debate.store.read_only import ReadOnlyDatabase
from debate.store.reply_cache import DAY, ReplyCache
from debate.store.run import StoredRun
from debate.store.tables import RUNS
from debate.store.workers import Worker, living_workers

_POLL_SECONDS = 0.1
_TRIES_UNTOLD = 3
"""Most setups take a moment, and who begins one is recorded a moment later."""
_SHOWN = 5
"""Differences that a message lists."""


class Store:
    """Runs and cached replies in one SQL database; made and migrated when opened. Close it when done.

    >>> with Store("sqlite:///evals.sqlite") as store, Engine(backend, store=store) as engine:
    ...     engine.evaluate_batch(tasks, DebateEvaluator("general"), run="monday")

    Args:
        url: `sqlite:///PATH`, a bare path, or `postgresql://USER@HOST/NAME`.
        read_only: only looks: nothing is made, migrated or changed.

    Raises:
        ConfigError: for an address of no database we know.
        StoreError: when it cannot be opened.
    """

    def __init__(self, url: str | Path, *, read_only: bool = False) -> None:
        kind = ReadOnlyDatabase if read_only else Database
        self._database = kind(str(check_value("store", url, str | Path)))
        self._leases = ExitStack()
        self._joined = ExitStack()

    @property
    def place(self) -> str:
        """The file, or the server's address without its password."""
        return self._database.place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit what is queued and let go, of the runs that are held too. Safe to call twice."""
        self._joined.close()
        self._database.close()
        self._leases.close()

    def run(self, name: str, identity: Mapping[str, Any], *, seed: int = 0, today: str | None = None) -> StoredRun:
        """Hold the run of that name; it is made where there is none, and anew where it has recorded nothing.

        `identity` is what shapes the run's prompts, as plain data; keys called `aggregation` are left out of it.
        `seed` and `today` are of a new run; one that exists keeps its own.

        Raises:
            RunLockedError: when another process holds it.
            RunMismatchError: when it was made under another identity; the message shows the differences.
        """
        new = _new_run(identity, seed, today)
        with take_lease(self._database.url, name, lambda: self._holder(name)) as taken:
            row = self._database.run(lambda connection: self._held(connection, name, new, is_alone=True))
            lease = self._leases.enter_context(taken.pop_all())
        return StoredRun(self._database, row, lease)

    @contextmanager
    def join(
        self,
        name: str,
        identity: Mapping[str, Any],
        *,
        seed: int = 0,
        today: str | None = None,
        note: Callable[[str], object] = lambda text: None,
    ) -> Generator[StoredRun]:
        """Share the run of that name with other processes.

        In the block the run is set up: other processes wait for its end. The first one there is alone, and may change
        the run; whoever comes while others work may not, see `StoredRun.require_alone`. From `StoredRun.plan` on the
        process is one of the run's workers, until the run or the store is closed or the process ends. The store talks
        over one connection from now on, with which the worker dies.

        Args:
            name: of the run, as the three that follow as for `run`.
            identity: what shapes the run's prompts.
            seed: of a new run.
            today: the date of a new run.
            note: is told whom this waits for.

        Raises:
            RunLockedError: when an engine holds the run for itself.
            RunMismatchError: as `run`.
            StoreError: when the connection is lost, now or later.
        """
        self._database.pin()
        locks = run_locks(self._database, name)
        with ExitStack() as held:
            held.callback(locks.close)
            self._wait_for_setup(locks, name, note)
            is_alone = locks.take(RUN)
            if not is_alone and not locks.take(RUN, shared=True):
                raise in_use(name, self._holder(name))
            new = _new_run(identity, seed, today)
            row = self._database.run(lambda connection: self._held(connection, name, new, is_alone=is_alone))
            worker = Worker(self._database, locks, name, row.id, is_alone=is_alone)
            run = StoredRun(self._database, row, ExitStack(), worker)
            held.callback(worker.close)
            yield run
            worker.let_others_in()
            run.take_lease(held.pop_all())
            self._joined.callback(run.close)

    def _wait_for_setup(self, locks: RunLocks, name: str, note: Callable[[str], object]) -> None:
        tries = 0
        while not locks.take(SETUP):
            tries += 1
            if tries == _TRIES_UNTOLD:
                note(f"waiting for {self._holder(name)}, which sets the run up")
            time.sleep(_POLL_SECONDS)
        if (file := sqlite_file(self._database.url)) is not None and not file.exists():
            raise StoreError(f"{file}: was removed meanwhile, as its run could not begin", hint="start the run again")

    def _held(self, connection: Connection, name: str, new: dict[str, Any], *, is_alone: bool) -> Any:
        row = connection.execute(select(RUNS).where(RUNS.c.name == name)).first()
        found = [] if row is None else differences(row.identity, new["identity"])
        if row is not None and found and is_alone and not has_answers(connection, row.id):
            delete_records(connection, row.id)
            connection.execute(delete(RUNS).where(RUNS.c.id == row.id))
            row = None
        if row is None:
            values = {"name": name, "created_at": time.time(), "holder": this_process(), **new}
            connection.execute(insert(RUNS), values)
        else:
            if found:
                more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
                raise RunMismatchError(
                    f"the run {name!r} was made with other settings: {'; '.join(found[:_SHOWN])}{more}",
                    hint="give the settings of before to go on with it, or another --run or --out for a new run; "
                    "--fork begins one that keeps the calls that still fit",
                )
            connection.execute(update(RUNS).where(RUNS.c.id == row.id).values(holder=this_process()))
        return connection.execute(select(RUNS).where(RUNS.c.name == name)).one()

    def read(self, name: str | None = None) -> StoredRun:
        """A run to look at, without holding it; None where there is but one.

        Raises:
            ConfigError: when there is no such run.
        """
        rows = self._database.run(lambda connection: connection.execute(select(RUNS)).all())
        found = [row for row in rows if name is None or row.name == name]
        if len(found) != 1:
            there = ", ".join(repr(row.name) for row in rows[-8:]) or "none"
            problem = "the store holds several runs; name one" if found else f"there is no run {name!r}"
            raise ConfigError(problem, file=self._database.place, field="run", hint=f"runs here: {there}")
        return StoredRun(self._database, found[0], None)

    def runs(self) -> list[str]:
        """The names of all runs, oldest first."""
        return self._database.run(
            lambda connection: list(connection.execute(select(RUNS.c.name).order_by(RUNS.c.id)).scalars())
        )

    def begun(self) -> list[tuple[str, float]]:
        """The names of all runs and when they began, in seconds since 1970; the newest first."""
        query = select(RUNS.c.name, RUNS.c.created_at).order_by(RUNS.c.id.desc())
        return self._database.run(lambda connection: [(row.name, row.created_at) for row in connection.execute(query)])

    def listed(self) -> list[Listed]:
        """All runs with what they hold, the newest first."""
        return self._database.run(listed)

    def questions(self) -> list[str]:
        """The names of `debate.store.pages.QUESTIONS` that the evaluations can be narrowed by."""
        return self._database.run(questions)

    def cache(self, ttl: float | None = 7 * DAY) -> ReplyCache:
        """The cached replies; a reply is good for `ttl` seconds, None is for ever."""
        return ReplyCache(self._database, ttl)

    def _holder(self, name: str) -> str:
        """Who works on a run, for messages: its workers, or who took it last."""

        def holder(connection: Connection) -> str:
            row = connection.execute(select(RUNS.c.id, RUNS.c.holder).where(RUNS.c.name == name)).first()
            living = "" if row is None else living_workers(connection, run_locks(self._database, name), row.id)
            return living or (row is not None and row.holder) or "another process"

        return self._database.run(holder)


def _new_run(identity: Mapping[str, Any], seed: int, today: str | None) -> dict[str, Any]:
    return {
        "identity": prompt_identity({**identity, "seed": seed}),
        "seed": seed,
        "today": today or files.today(),
        "about": {},
    }


def new_run_name() -> str:
    """A name for a run that was given none: when it began, and something of its own."""
    return f"{datetime.now().astimezone():%Y-%m-%dT%H-%M-%S}-{uuid4().hex[:6]}"
