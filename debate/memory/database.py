"""The SQL database that memories live in: SQLite in a file, or PostgreSQL for a team. Committed is safe.

SQLite is opened in WAL mode: readers and the one writer do not wait for each other, and a killed process leaves nothing
behind. What is deleted is overwritten. Every fault becomes a `StoreError` that names the place. Knows nothing of what
the tables mean.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, func, insert, make_url, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from debate.errors import ConfigError, StoreError
from debate.memory.tables import ABOUT, SCHEMA, Base

_FAULTS = (SQLAlchemyError, sqlite3.Error)
_BUSY_SECONDS = 30
_MAKING = 0x6D656D6F7279
"""Of the advisory lock under which tables are made."""
_HINT = "sqlite:///PATH, a path, or postgresql://USER@HOST/NAME"
_PRAGMAS = ("synchronous=NORMAL", "foreign_keys=ON", "secure_delete=ON")


class Database:
    """One database, its tables made when opened. Thread-safe.

    Raises:
        ConfigError: for an address of no database we know.
        StoreError: when it cannot be opened, or was written by a newer version.
    """

    def __init__(self, url: str) -> None:
        self.url = _spelt_out(url)
        self.file = _file(self.url)
        """The SQLite file; None for one in memory and for servers."""
        self.place = str(self.file) if self.file else self.url.render_as_string(hide_password=True)
        in_memory = self.url.get_backend_name() == "sqlite" and self.file is None
        # A database in memory is a single connection, for one thread at a time.
        self._alone: AbstractContextManager[Any] = threading.RLock() if in_memory else nullcontext()
        self._engine = self._opened()
        self._writing = self._engine.execution_options(debate_writes=True)
        # All that one transaction reads is of one moment; SQLite has it no other way.
        is_server = self.url.get_backend_name() != "sqlite"
        self._reading = self._engine.execution_options(isolation_level="REPEATABLE READ") if is_server else self._engine

    @contextmanager
    def read(self) -> Generator[Connection]:
        """A transaction that only looks."""
        with self._alone, self._told(), self._reading.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Generator[Connection]:
        """A transaction that is committed at its end, or not at all."""
        with self._alone, self._told(), self._writing.begin() as connection:
            yield connection

    def insert_new(self, connection: Connection, table: Table[Any], rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows; those that are there already stay as they are."""
        if rows:
            made: Any = _INSERTS.get(self.url.get_backend_name(), insert)(table)
            connection.execute(made.on_conflict_do_nothing(), list(rows))

    def set_about(self, connection: Connection, **facts: Any) -> None:
        """Set facts about the store."""
        self.insert_new(connection, ABOUT, [{"key": key, "value": value} for key, value in facts.items()])
        for key, value in facts.items():
            connection.execute(update(ABOUT).where(ABOUT.c.key == key).values(value=value))

    def about(self, connection: Connection) -> dict[str, Any]:
        """All facts about the store."""
        return {key: value for key, value in connection.execute(select(ABOUT.c.key, ABOUT.c.value))}

    def scrub(self) -> None:
        """Leave nothing of what was deleted in SQLite's log beside the file, as far as no reader holds it."""
        if self.file is None:
            return
        with self._told():
            raw: Any = self._engine.raw_connection()
            try:
                raw.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                raw.close()

    def faults(self) -> list[str]:
        """What the database itself finds wrong with its files."""
        if self.url.get_backend_name() != "sqlite":
            return []
        with self.read() as connection:
            found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        """Let go of the connections. Safe to call twice."""
        self._engine.dispose()

    def _opened(self) -> Engine:
        engine = _connect(self.url, self.file)
        try:
            with engine.execution_options(debate_writes=True).begin() as connection:
                if engine.dialect.name == "postgresql":  # two processes may make the tables at once
                    connection.execute(select(func.pg_advisory_xact_lock(_MAKING)))
                Base.metadata.create_all(connection)
                self.insert_new(
                    connection, ABOUT, [{"key": "schema", "value": SCHEMA}, {"key": "store", "value": uuid4().hex}]
                )
                found = self.about(connection)["schema"]
        except _FAULTS as error:
            engine.dispose()
            raise self._as_store_error(error) from error
        if found != SCHEMA:
            engine.dispose()
            raise StoreError(
                f"{self.place}: memories were written by a newer version (schema {found}, this one knows {SCHEMA})",
                hint="pip install --upgrade debate-eval",
            )
        return engine

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except _FAULTS as error:
            raise self._as_store_error(error) from error

    def _as_store_error(self, error: Exception) -> StoreError:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        return StoreError(f"{self.place}: {reason}", hint="what was acknowledged before is kept")


_INSERTS: Mapping[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def _spelt_out(url: str) -> URL:
    """The address in full: a bare path is a SQLite file, `postgresql:` goes through psycopg."""
    if "://" not in url:
        return URL.create("sqlite", database=str(Path(url).expanduser()))
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigError(f"is no address of a database: {url!r}", field="memory", hint=_HINT) from None
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConfigError(f"{parsed.get_backend_name()!r} is not supported", field="memory", hint=_HINT)
    return parsed


def _file(url: URL) -> Path | None:
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return Path(url.database)


def _connect(url: URL, file: Path | None) -> Engine:
    if url.get_backend_name() != "sqlite":
        try:
            return create_engine(url, pool_pre_ping=True)
        except (ModuleNotFoundError, NoSuchModuleError):
            hint = "pip install 'debate-eval[postgres]'"
            raise ConfigError("PostgreSQL needs a driver", field="memory", hint=hint) from None
    arguments: dict[str, Any] = {"connect_args": {"timeout": _BUSY_SECONDS, "check_same_thread": False}}
    if file is None:
        arguments["poolclass"] = StaticPool
    else:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{file}: its folder cannot be made: {error.strerror}") from None
    try:
        engine = create_engine(url, **arguments)
    except NoSuchModuleError:
        raise ConfigError(f"{url.drivername!r} is not supported", field="memory", hint=_HINT) from None
    event.listen(engine, "connect", _prepared)
    event.listen(engine, "begin", _begun)
    return engine


def _prepared(connection: Any, record: object) -> None:
    connection.isolation_level = None  # the driver would begin transactions late, and take the lock later still
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    _use_wal(connection)


def _use_wal(connection: Any) -> None:
    """Two processes may open a new file at once; the switch to WAL does not wait for the other by itself."""
    until = time.monotonic() + _BUSY_SECONDS
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
    writes = connection.get_execution_options().get("debate_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
