"""Opens the databases that stores live in: SQLite in a file or in memory, or PostgreSQL.

SQLite is opened in WAL mode, where readers and the one writer do not wait for each other and a killed process leaves
nothing behind.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from debate.errors import ConfigError, InputError, StoreError
from debate.files import make_private_file

BUSY_SECONDS = 30
"""How long a writer waits for another process's transaction."""


class DamagedError(SQLAlchemyError):
    """What is recorded is not as any version writes it."""


@contextmanager
def reading(what: str) -> Generator[None]:
    """Decorate a function that makes something of recorded values: where it cannot, they are damaged.

    Raises:
        DamagedError: which names `what`.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, InputError, zlib.error) as error:
        raise DamagedError(f"{what} is damaged: {type(error).__name__}: {error}") from error


FAULTS = (SQLAlchemyError, sqlite3.Error)
"""What a driver raises; `store_error` puts it into words."""
READ_ONLY = "debate_read_only"
"""Execution option of an engine whose transactions only look; others take SQLite's write lock when they begin."""
_HINT = "sqlite:///PATH, a path, or postgresql://USER@HOST/NAME"
_DAMAGED = "put a copy from before in its place; a run's results.jsonl still holds what was finished"
_SECRETS = {"password", "sslpassword"}
"""What libpq takes in an address's query and nobody is to see."""


def normalize_url(url: str, field: str = "store") -> URL:
    """The address in full: a bare path is a SQLite file, `postgresql:` goes through psycopg.

    Raises:
        ConfigError: for an address of no supported database; `field` names the setting it came from.
    """
    if "://" not in url:
        return URL.create("sqlite", database=str(Path(url).expanduser()))
    parsed = _parsed(url, field)
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    name, backend = parsed.drivername, parsed.get_backend_name()
    if backend != "postgresql" and name not in ("sqlite", "sqlite+pysqlite"):
        raise ConfigError(f"{name!r} is not supported", field=field, hint=_HINT)
    return parsed


def _parsed(url: str, field: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):  # its text is not shown: it may hold a password
        raise ConfigError("is not the address of a database", field=field, hint=_HINT) from None


def described(url: URL) -> str:
    """The place for messages: the file, or the address without its passwords."""
    if url.get_backend_name() != "sqlite":
        return _bare(url).render_as_string()
    return url.database or "in memory"


def without_password(url: str, field: str = "store") -> str:
    """The address as it may be written down; psycopg takes a password from PGPASSWORD or ~/.pgpass too.

    Raises:
        ConfigError: for an address that cannot be read; names `field`.
    """
    return url if "://" not in url else _bare(_parsed(url, field)).render_as_string()


def _bare(url: URL) -> URL:
    query = {key: value for key, value in url.query.items() if key not in _SECRETS}
    return URL.create(url.drivername, url.username, None, url.host, url.port, url.database, query)


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


def store_error(url: URL, error: Exception, hint: str) -> StoreError:
    """The driver's own words, with the place, the free space, and what can be done."""
    error = getattr(error, "orig", None) or error
    reason = str(error).strip().splitlines()[0]
    if isinstance(error, DamagedError) or type(error) is sqlite3.DatabaseError:
        return StoreError(f"{described(url)}: {reason}", hint=_DAMAGED)
    space = free_space(url)
    return StoreError(f"{described(url)}: {reason}" + (f" ({space})" if space else ""), hint=hint)


def connect(url: URL, field: str = "store", pragmas: Sequence[str] = ()) -> Engine:
    """Make an engine; nothing is opened yet.

    Args:
        url: from `normalize_url`.
        field: the setting that the address came from, for messages.
        pragmas: further pragmas of SQLite, such as `secure_delete=ON`.

    Raises:
        ConfigError: when the driver is not installed.
        StoreError: when the file's folder cannot be made.
    """
    try:
        if url.get_backend_name() == "sqlite":
            return _sqlite(url, pragmas)
        return create_engine(url, pool_pre_ping=True)
    except (ModuleNotFoundError, NoSuchModuleError):
        if url.get_backend_name() == "sqlite":
            raise ConfigError(f"{url.drivername!r} is not supported", field=field, hint=_HINT) from None
        hint = "pip install 'debate-eval[postgres]'"
        raise ConfigError("PostgreSQL needs a driver", field=field, hint=hint) from None


def connect_read_only(url: URL, field: str = "store") -> Engine:
    """Make an engine whose connections the database itself keeps from writing; nothing is opened yet.

    Of a SQLite file each transaction has a connection of its own, see `read_only`.

    Raises:
        ConfigError: when the driver is not installed, or the database is in memory.
    """
    if url.get_backend_name() != "sqlite":
        engine = connect(url, field)
        event.listen(engine, "connect", _only_look)
        return engine
    if (file := sqlite_file(url)) is None:
        raise ConfigError("a database in memory is gone with the process that made it", field=field, hint=_HINT)
    made = create_engine(url, creator=lambda: read_only(file), poolclass=NullPool)
    made = made.execution_options(**{READ_ONLY: True})
    event.listen(made, "begin", _begin)
    return made


def _only_look(connection: Any, record: object) -> None:
    connection.autocommit = True  # else what is set would go with the transaction that it is set in
    connection.execute("SET default_transaction_read_only = on")
    connection.autocommit = False


def _sqlite(url: URL, pragmas: Sequence[str]) -> Engine:
    file = sqlite_file(url)
    if file is not None and is_read_only(file):
        return create_engine(url, creator=lambda: read_only(file)).execution_options(**{READ_ONLY: True})
    arguments: dict[str, Any] = {"connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False}}
    if file is None:
        arguments["poolclass"] = StaticPool
    else:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            make_private_file(file)
        except OSError as error:
            raise StoreError(f"{file}: cannot be made: {error.strerror}") from None
    engine = create_engine(url, **arguments)

    def prepare(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver would begin transactions late, and take the lock later still
        for pragma in ("synchronous=NORMAL", "foreign_keys=ON", *pragmas):
            connection.execute(f"PRAGMA {pragma}")
        _use_wal(connection)

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", _begin)
    return engine


def is_read_only(file: Path) -> bool:
    """Whether a file is there that can be read and not written, or whose folder takes no log beside it."""
    return file.exists() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))


def read_only(file: Path) -> sqlite3.Connection:
    """A connection that only looks, also where no log can be made beside the file."""
    address = f"{file.resolve().as_uri()}?mode=ro"
    is_whole = not Path(f"{file}-wal").exists()  # else what was committed last stands in the log
    options: dict[str, Any] = {"uri": True, "isolation_level": None, "check_same_thread": False}
    return sqlite3.connect(address + "&immutable=1" * is_whole, timeout=BUSY_SECONDS, **options)


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


def _begin(connection: Connection) -> None:
    # IMMEDIATE waits for its turn; a transaction that turns from reading to writing would fail at once instead.
    only_reads = connection.get_execution_options().get(READ_ONLY)
    connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")
