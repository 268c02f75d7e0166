"""A store: the runs and the cached replies in one database."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from sqlalchemy import Connection, delete, insert, select, update

from debate.errors import ConfigError, RunMismatchError
from debate.files import this_process
from debate.settings import check_value
from debate.store.database import Database
from debate.store.identity import differences, prompt_identity
from debate.store.lease import take_lease
from debate.store.queries import delete_records, has_answers
from debate.store.reply_cache import DAY, ReplyCache
from debate.store.run import StoredRun
from debate.store.tables import RUNS

_SHOWN = 5
"""Differences that a message lists."""


class Store:
    """Runs and cached replies in one SQL database; made and migrated when opened. Close it when done.

    >>> with Store("sqlite:///evals.sqlite") as store, Engine(backend, store=store) as engine:
    ...     engine.evaluate_batch(tasks, DebateEvaluator("general"), run="monday")

    Args:
        url: `sqlite:///PATH`, a bare path, or `postgresql://USER@HOST/NAME`.

    Raises:
        ConfigError: for an address of no database we know.
        StoreError: when it cannot be opened.
    """

    def __init__(self, url: str | Path) -> None:
        self._database = Database(str(check_value("store", url, str | Path)))
        self._leases = ExitStack()

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
        new: dict[str, Any] = {
            "identity": prompt_identity({**identity, "seed": seed}),
            "seed": seed,
            "today": today or datetime.now().astimezone().date().isoformat(),
            "about": {},
        }
        with take_lease(self._database.url, name, lambda: self._holder(name)) as taken:
            row = self._database.run(lambda connection: self._held(connection, name, new))
            lease = self._leases.enter_context(taken.pop_all())
        return StoredRun(self._database, row, lease)

    def _held(self, connection: Connection, name: str, new: dict[str, Any]) -> Any:
        row = connection.execute(select(RUNS).where(RUNS.c.name == name)).first()
        found = [] if row is None else differences(row.identity, new["identity"])
        if row is not None and found and not has_answers(connection, row.id):
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
                    hint="give the settings of before to go on with it, or another name (--out) for a new run; "
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

    def cache(self, ttl: float | None = 7 * DAY) -> ReplyCache:
        """The cached replies; a reply is good for `ttl` seconds, None is for ever."""
        return ReplyCache(self._database, ttl)

    def _holder(self, name: str) -> Any:
        return self._database.run(
            lambda connection: connection.execute(select(RUNS.c.holder).where(RUNS.c.name == name)).scalar()
        )


def new_run_name() -> str:
    """A name for a run that was given none: when it began, and something of its own."""
    return f"{datetime.now().astimezone():%Y-%m-%dT%H-%M-%S}-{uuid4().hex[:6]}"
