"""One process at a time on one run: the operating system, or the database server, holds the lease and frees it.

SQLite: an exclusive lock on a file beside the database, which ends with the process that took it, however it ends; the
file says who that is. PostgreSQL: an advisory lock of a connection of its own, which ends with the connection; the
run's row says who holds it. Nothing has to be renewed, and nothing stale is ever left.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from debate.errors import RunLockedError, StoreError
from debate.hashing import digest
from debate.sql.connect import connect, described, sqlite_file


class Lease(Protocol):
    """Held until released, or until the process ends."""

    def release(self) -> None:
        """Let go. Safe to call twice."""
        ...


def holder() -> dict[str, Any]:
    """Who this process is, for others to read."""
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}


def take_lease(url: URL, run: str, recorded_holder: Callable[[], Any]) -> Lease:
    """The lease of a run. `recorded_holder` is asked who holds it, where the lock cannot say.

    Raises:
        RunLockedError: at once, when another process holds it; names that process.
        StoreError: when the lock cannot be reached.
    """
    if url.get_backend_name() != "sqlite":
        return _ServerLease(url, run, recorded_holder)
    file = sqlite_file(url)
    return _NoLease() if file is None else _FileLease(lock_file(file, run), run)


def lock_file(database: Path, run: str) -> Path:
    """Beside the database, one a run."""
    return database.with_name(f"{database.name}.{digest(run)[:12]}.lock")


def _in_use(run: str, by: Any) -> RunLockedError:
    who = f"process {by['pid']} on {by['host']}, since {by['since']}" if by else "another process"
    return RunLockedError(f"the run {run!r} is in use by {who}", hint="wait for it, or stop it; it can be resumed then")


class _NoLease:
    """A database in memory belongs to this process anyway."""

    def release(self) -> None:
        pass


class _FileLease:
    def __init__(self, file: Path, run: str) -> None:
        try:
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{file}: cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            by = _read(self._descriptor)
            os.close(self._descriptor)
            raise _in_use(run, by) from None
        except OSError as error:
            os.close(self._descriptor)
            raise StoreError(f"{file}: cannot be locked: {error.strerror}") from None
        self._write()

    def _write(self) -> None:
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(holder()).encode(), 0)
        except OSError:
            pass  # the lock is what counts; on a full disk it cannot say whose it is

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _read(descriptor: int) -> Any:
    """Who wrote the file; None while it is being written."""
    try:
        return json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return None


class _ServerLease:
    def __init__(self, url: URL, run: str, recorded_holder: Callable[[], Any]) -> None:
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
            raise _in_use(run, recorded_holder())

    def release(self) -> None:
        if self._engine is not None:
            self._connection.close()
            self._engine.dispose()
            self._engine = None
