"""Locks on a run, which the operating system or the database server holds and frees; nothing has to be renewed.

    run lock      whoever works on the run: exclusive for an engine of the API, shared by the workers of a batch run
    setup lock    whoever begins to work on it, for a short time: a worker that comes meanwhile waits
    worker lock   one per worker, under a number of its own: it says that the worker lives

SQLite: locks on files beside the database, which end with the process that took them, however it ends; the files say
who that is. PostgreSQL: advisory locks of a connection, which end with the connection. Those of a worker are held by
the very connection that it writes through, so that a process that has lost its locks cannot write either.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, Connection, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from debate.errors import RunLockedError, StoreError
from debate.files import FileInUseError, FileLock, is_locked
from debate.hashing import digest
from debate.sql.connect import connect, described, sqlite_file
from debate.store.database import Database

RUN, SETUP = "", ".setup"
"""Names of two locks of a run; that of a worker is its number."""
_WORKERS = 0x64656261
"""First half of the key of the workers' locks at a server, where the second is the worker's number."""


class RunLocks(Protocol):
    """The locks of one run that this process holds."""

    def take(self, name: str, *, shared: bool = False) -> bool:
        """Take a lock, or have one that is held exclusive shared from now on; False at once where others hold it."""
        ...

    def release(self, name: str) -> None:
        """Let others take it."""
        ...

    def close(self) -> None:
        """Release all that are held."""
        ...

    def living(self, connection: Connection, workers: Collection[int]) -> set[int]:
        """Those of the workers that hold their lock."""
        ...


def run_locks(database: Database, run: str) -> RunLocks:
    """The locks of a run, none of which is taken yet."""
    if database.url.get_backend_name() != "sqlite":
        return _ServerLocks(database, run)
    return _FileLocks(sqlite_file(database.url), run)


class _FileLocks:
    """Locks on files beside a SQLite database; one in memory belongs to this process anyway."""

    def __init__(self, file: Path | None, run: str) -> None:
        self._stem = None if file is None else file.with_name(f"{file.name}.{digest(run)[:12]}")
        self._held: dict[str, FileLock] = {}

    def take(self, name: str, *, shared: bool = False) -> bool:
        if self._stem is None:
            return True
        try:
            if name in self._held:
                self._held[name].lock(shared=shared)
            else:
                self._held[name] = FileLock(self._path(name), shared=shared)
        except FileInUseError:
            return False
        if name == RUN and not shared:  # no worker lives: these are what killed ones have left
            for file in self._stem.parent.glob(f"{glob.escape(self._stem.name)}.[0-9]*.lock"):
                file.unlink(missing_ok=True)
        return True

    def release(self, name: str) -> None:
        if name in self._held:
            self._held.pop(name).release(remove=name not in (RUN, SETUP))

    def close(self) -> None:
        for name in [*self._held]:
            self.release(name)

    def living(self, connection: Connection, workers: Collection[int]) -> set[int]:
        return {each for each in workers if self._stem is None or is_locked(self._path(str(each)))}

    def _path(self, name: str) -> Path:
        stem = self._stem or Path()
        return stem.with_name(f"{stem.name}{f'.{name}' if name.isdecimal() else name}.lock")


class _ServerLocks:
    """Advisory locks of the connection that a pinned database writes through."""

    def __init__(self, database: Database, run: str) -> None:
        self._database = database
        self._keys = {RUN: (_run_key(run),), SETUP: (int(digest("debate-eval setup", run)[:15], 16),)}
        self._held: dict[str, bool] = {}
        """Whether each is shared."""

    def take(self, name: str, *, shared: bool = False) -> bool:
        attempt = func.pg_try_advisory_lock_shared if shared else func.pg_try_advisory_lock
        is_taken = bool(self._call(attempt, name))
        if is_taken:
            if name in self._held:
                self.release(name)
            self._held[name] = shared
        return is_taken

    def release(self, name: str) -> None:
        if name in self._held:
            is_shared = self._held.pop(name)
            self._call(func.pg_advisory_unlock_shared if is_shared else func.pg_advisory_unlock, name)

    def close(self) -> None:
        for name in [*self._held]:
            with suppress(StoreError):  # they ended with the connection
                self.release(name)

    def living(self, connection: Connection, workers: Collection[int]) -> set[int]:
        return set(workers) & set(connection.execute(_LIVING).scalars()) if workers else set()

    def _call(self, function: Any, name: str) -> Any:
        query = select(function(*self._keys.get(name) or (_WORKERS, int(name))))
        return self._database.run(lambda connection: connection.execute(query).scalar())


_LIVING = text(
    "SELECT CAST(objid AS bigint) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND "
    f"classid = {_WORKERS} AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def _run_key(run: str) -> int:
    return int(digest("debate-eval run", run)[:15], 16)


def in_use(run: str, holder: str) -> RunLockedError:
    """The error of a run that others hold."""
    return RunLockedError(f"the run {run!r} is in use by {holder}", hint="wait for it, or stop it; then resume the run")


def take_lease(url: URL, run: str, recorded_holder: Callable[[], str]) -> ExitStack:
    """The run lock, exclusive, of a connection of its own; held until it is closed or the process ends.

    `recorded_holder` is asked who holds it, where the lock cannot say.

    Raises:
        RunLockedError: at once, when another process holds it; names that process.
        StoreError: when the lock cannot be reached.
    """
    if url.get_backend_name() != "sqlite":
        return _server_lease(url, run, recorded_holder)
    locks, lease = _FileLocks(sqlite_file(url), run), ExitStack()
    if not locks.take(RUN):
        raise in_use(run, recorded_holder())
    lease.callback(locks.close)
    return lease


def _server_lease(url: URL, run: str, recorded_holder: Callable[[], str]) -> ExitStack:
    with ExitStack() as lease:
        engine = connect(url)
        lease.callback(engine.dispose)
        try:
            connection = lease.enter_context(engine.connect()).execution_options(isolation_level="AUTOCOMMIT")
            is_ours = connection.execute(select(func.pg_try_advisory_lock(_run_key(run)))).scalar()
        except SQLAlchemyError as error:
            raise StoreError(f"{described(url)}: {error}") from error
        if not is_ours:
            raise in_use(run, recorded_holder())
        return lease.pop_all()
