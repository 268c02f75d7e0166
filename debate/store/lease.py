"""One process at a time on one run: the operating system, or the database server, holds the lease and frees it.

SQLite: an exclusive lock on a file beside the database, which ends with the process that took it, however it ends; the
file says who that is. PostgreSQL: an advisory lock of a connection of its own, which ends with the connection; the
run's row says who holds it. Nothing has to be renewed, and nothing stale is ever left.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from sqlalchemy import URL, func, select
from sqlalchemy.exc import SQLAlchemyError

from debate.errors import RunLockedError, StoreError
from debate.files import FileInUseError, FileLock
from debate.hashing import digest
from debate.sql.connect import connect, described, sqlite_file


def take_lease(url: URL, run: str, recorded_holder: Callable[[], str | None]) -> ExitStack:
    """The lease of a run, held until it is closed or the process ends.

    `recorded_holder` is asked who holds it, where the lock cannot say.

    Raises:
        RunLockedError: at once, when another process holds it; names that process.
        StoreError: when the lock cannot be reached.
    """
    if url.get_backend_name() != "sqlite":
        return _server_lease(url, run, recorded_holder)
    lease = ExitStack()
    if (file := sqlite_file(url)) is not None:  # a database in memory belongs to this process anyway
        try:
            lock = FileLock(file.with_name(f"{file.name}.{digest(run)[:12]}.lock"))
        except FileInUseError as error:
            raise _in_use(run, error.holder) from None
        lease.callback(lock.release)
    return lease


def _in_use(run: str, holder: str) -> RunLockedError:
    return RunLockedError(f"the run {run!r} is in use by {holder}", hint="wait for it, or stop it; then resume the run")


def _server_lease(url: URL, run: str, recorded_holder: Callable[[], str | None]) -> ExitStack:
    key = int(digest("debate-eval run", run)[:15], 16)
    with ExitStack() as lease:
        engine = connect(url)
        lease.callback(engine.dispose)
        try:
            connection = lease.enter_context(engine.connect()).execution_options(isolation_level="AUTOCOMMIT")
            is_ours = connection.execute(select(func.pg_try_advisory_lock(key))).scalar()
        except SQLAlchemyError as error:
            raise StoreError(f"{described(url)}: {error}") from error
        if not is_ours:
            raise _in_use(run, recorded_holder() or "another process")
        return lease.pop_all()
