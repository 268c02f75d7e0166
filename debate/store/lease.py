"""One process at a time on one run: the operating system, or the database server, holds the lease and frees it.

SQLite: an exclusive lock on a file beside the database, which ends with the process that took it, however it ends; the
file says who that is. PostgreSQL: an advisory lock of a connection of its own, which ends with the connection; the
run's row says who holds it. Nothing has to be renewed, and nothing stale is ever left.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from sqlalchemy import URL, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from debate.errors import RunLockedError, StoreError
from debate.files import FileInUseError, FileLock
from debate.hashing import digest
from debate.sql.connect import connect, described, sqlite_file


class Lease(Protocol):
    """Held until released, or until the process ends."""

    def release(self) -> None:
        """Let go. Safe to call twice."""
        ...


def take_lease(url: URL, run: str, recorded_holder: Callable[[], str | None]) -> Lease:
    """The lease of a run. `recorded_holder` is asked who holds it, where the lock cannot say.

    Raises:
        RunLockedError: at once, when another process holds it; names that process.
        StoreError: when the lock cannot be reached.
    """
    if url.get_backend_name() != "sqlite":
        return _ServerLease(url, run, recorded_holder)
    if (file := sqlite_file(url)) is None:
        return _NoLease()
    try:
        return FileLock(lock_file(file, run))
    except FileInUseError as error:
        raise _in_use(run, error.holder) from None


def lock_file(database: Path, run: str) -> Path:
    """Path of the run's lock file, next to the database."""
    return database.with_name(f"{database.name}.{digest(run)[:12]}.lock")


def _in_use(run: str, holder: str) -> RunLockedError:
    return RunLockedError(f"the run {run!r} is in use by {holder}", hint="wait for it, or stop it; then resume the run")


class _NoLease:
    """A database in memory belongs to this process anyway."""

    def release(self) -> None:
        pass


class _ServerLease:
    def __init__(self, url: URL, run: str, recorded_holder: Callable[[], str | None]) -> None:
        self._engine: Engine | None = connect(url)
        key = int(digest("debate-eval run", run)[:15], 16)
        try:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            is_ours = self._connection.execute(select(func.pg_try_advisory_lock(key))).scalar()
        except SQLAlchemyError as error:
            self._engine.dispose()
            raise StoreError(f"{described(url)}: {error}") from error
        if not is_ours:
            self.release()
            raise _in_use(run, recorded_holder() or "another process")

    def release(self) -> None:
        if self._engine is not None:
            self._connection.close()
            self._engine.dispose()
            self._engine = None
