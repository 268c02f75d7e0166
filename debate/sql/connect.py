"""From an address to a SQLAlchemy engine: which databases there are, and how each is opened.

SQLite is opened in WAL mode, where readers and the one writer do not wait for each other and a killed process leaves
nothing behind. Knows nothing of what is in the database.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import StaticPool

from debate.errors import ConfigError, StoreError

BUSY_SECONDS = 30
"""How long a writer waits for another process's transaction."""


def normalize_url(url: str) -> URL:
    """The address in full: a bare path is a SQLite file, `postgresql:` goes through psycopg."""
    if "://" not in url:
        return URL.create("sqlite", database=str(Path(url).expanduser()))
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigError(f"is no address of a database: {url!r}", field="store", hint=_HINT) from None
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConfigError(f"{parsed.get_backend_name()!r} is not supported", field="store", hint=_HINT)
    return parsed


_HINT = "sqlite:///PATH, a path, or postgresql://USER@HOST/NAME"


def described(url: URL) -> str:
    """The place for messages: the file, or the address without its password; free space where it is short."""
    if url.get_backend_name() != "sqlite":
        return url.render_as_string(hide_password=True)
    return url.database or "in memory"


def without_password(url: str) -> str:
    """The address as it may be written down; psycopg takes a password from PGPASSWORD or ~/.pgpass too."""
    if "://" not in url:
        return url
    full = make_url(url)
    bare = URL.create(full.drivername, full.username, None, full.host, full.port, full.database, full.query)
    return bare.render_as_string()


def free_space(url: URL) -> str:
    """Room left on the disk of a SQLite file, for messages; empty for others."""
    file = sqlite_file(url)
    if file is None:
        return ""
    try:
        return f"{shutil.disk_usage(file.parent).free / 1e6:,.0f} MB free"
    except OSError:
        return ""


def sqlite_file(url: URL) -> Path | None:
    """The file of a SQLite address; None for one in memory and for servers."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return Path(url.database)


def connect(url: URL) -> Engine:
    """An engine that opens connections as they must be; nothing is opened yet.

    Raises:
        ConfigError: when the driver is not installed.
        StoreError: when the file's folder cannot be made.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url)
    try:
        return create_engine(url, pool_pre_ping=True)
    except (ModuleNotFoundError, NoSuchModuleError):
        raise ConfigError(
            "PostgreSQL needs a driver", field="store", hint="pip install 'debate-eval[postgres]'"
        ) from None


def _sqlite(url: URL) -> Engine:
    file = sqlite_file(url)
    arguments: dict[str, Any] = {"connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False}}
    if file is None:
        arguments["poolclass"] = StaticPool
    else:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{file}: its folder cannot be made: {error.strerror}") from None
    engine = create_engine(url, **arguments)
    event.listen(engine, "connect", _prepared)
    event.listen(engine, "begin", _begun)
    return engine


def _prepared(connection: Any, record: object) -> None:
    connection.isolation_level = None  # the driver would begin transactions late, and take the lock later still
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    _use_wal(connection)


def _use_wal(connection: Any) -> None:
    """Two processes may open a new file at once; the switch to WAL does not wait for the other by itself."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _begun(connection: Connection) -> None:
    # IMMEDIATE waits for its turn; a transaction that turns from reading to writing would fail at once instead.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
