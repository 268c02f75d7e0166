"""The SQL database that memories live in: SQLite in a file, or PostgreSQL for a team.

What is committed is safe, and what is deleted is overwritten. Every fault becomes a `StoreError` that names the place.
The tables hold the truth; every index is made from them.

    memory_about                   the store's own id, its embedder
    memory_collections ── memories
    memory_vectors                 by embedder and hash of the text: a text is embedded once

Times are seconds since 1970 in UTC. Texts are JSON-encoded, so that NULs survive in every database.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from debate.errors import ConfigError
from debate.memory.embedders.base import Embedder, slices
from debate.sql.connect import FAULTS, READ_ONLY, connect, described, normalize_url, sqlite_file, store_error
from debate.sql.migrate import Schema
from debate.sql.types import Json, Serial, insert_new, table_of


class Base(DeclarativeBase):
    """All tables of a memory store."""


class AboutRow(Base):
    """One fact about the store."""

    __tablename__ = "memory_about"

    key: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    value: Mapped[Any] = mapped_column(Json)


class CollectionRow(Base):
    """One collection, and how far it has come: what tells a reader that its copy is out of date."""

    __tablename__ = "memory_collections"

    id: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(sa.String(200), unique=True)
    version: Mapped[int] = mapped_column(sa.BigInteger)
    """Counts up with every change."""
    erased: Mapped[int] = mapped_column(sa.BigInteger)
    """Counts up when memories are forgotten; while it stays, newer versions have only more rows."""


class MemoryRow(Base):
    """One memory."""

    __tablename__ = "memories"
    __table_args__ = (sa.Index("memories_in_order", "collection_id", "seq"), {"sqlite_autoincrement": True})

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    """Rises within a collection, in the order of the commits; never used twice."""
    id: Mapped[str] = mapped_column(sa.String(200), unique=True)
    collection_id: Mapped[int] = mapped_column(sa.ForeignKey("memory_collections.id"))
    text: Mapped[Any] = mapped_column(Json)
    text_hash: Mapped[str] = mapped_column(sa.String(64), index=True)
    kind: Mapped[str] = mapped_column(sa.String(16))
    importance: Mapped[float]
    """In 0..10."""
    created_at: Mapped[float]
    source: Mapped[str | None] = mapped_column(sa.String(500), index=True)
    """Where it came from: a task's id, a file, a run."""
    details: Mapped[Any] = mapped_column("metadata", Json)


class VectorRow(Base):
    """The vector of one text under one embedder: D little-endian float32, of unit length."""

    __tablename__ = "memory_vectors"

    embedder: Mapped[str] = mapped_column(sa.String(300), primary_key=True)
    text_hash: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    data: Mapped[bytes] = mapped_column(sa.LargeBinary)


ABOUT, COLLECTIONS, MEMORIES, VECTORS = map(table_of, (AboutRow, CollectionRow, MemoryRow, VectorRow))
"""The same tables for statements that deal in many rows."""
COLLECTED = MEMORIES.join(COLLECTIONS)
"""Each memory with its collection."""
NEWER = {"version": COLLECTIONS.c.version + 1}
ERASED = {**NEWER, "erased": COLLECTIONS.c.erased + 1}
"""What changes in a collection when memories are added, and when some are erased."""

SCHEMA = Schema(
    Path(__file__).parent / "migrations",
    Base.metadata,
    head="0001",
    marker="memory_about",
    version_table="memory_version",
    unversioned="0001",
)
REBUILD = "debate memory rebuild"
"""The command that repairs vectors and indexes."""

AT_ONCE = 5000
"""Values that one statement takes of any database."""


def select_in(
    connection: sa.Connection, query: sa.Select[*tuple[Any, ...]], column: sa.ColumnElement[Any], values: Iterable[Any]
) -> list[sa.Row[Any]]:
    """The rows of a query where the column has one of the values, however many these are."""
    parts = slices(sorted(values), AT_ONCE)
    return [row for part in parts for row in connection.execute(query.where(column.in_(part)))]


class Database:
    """One database, its tables made or migrated when opened. Thread-safe.

    Raises:
        ConfigError: for the address of an unsupported database.
        StoreError: when it cannot be opened, or was written by a newer version.
    """

    def __init__(self, url: str) -> None:
        self.url = normalize_url(url, "memory")
        self.file = sqlite_file(self.url)
        """The SQLite file; None for a database in memory and for servers."""
        self.place = described(self.url)
        is_sqlite = self.url.get_backend_name() == "sqlite"
        # A database in memory is a single connection, for one thread at a time.
        self._alone: AbstractContextManager[Any] = threading.RLock() if is_sqlite and not self.file else nullcontext()
        SCHEMA.check(self.url)
        self._engine = connect(self.url, "memory", ["secure_delete=ON"])
        # All that one transaction reads is of one moment; in SQLite it always is.
        level: Any = {} if is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._reading = self._engine.execution_options(**{READ_ONLY: True}, **level)
        try:
            with self.write() as connection:
                SCHEMA.migrate(connection)
                insert_new(connection, ABOUT, [{"key": "store", "value": uuid4().hex}])
        except BaseException:
            self.close()
            raise

    @contextmanager
    def read(self) -> Generator[sa.Connection]:
        """A transaction that only reads."""
        with self._alone, self._faults_in_words(), self._reading.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Generator[sa.Connection]:
        """A transaction that is committed at its end, or not at all."""
        with self._alone, self._faults_in_words(), self._engine.begin() as connection:
            yield connection

    def about(self, connection: sa.Connection) -> dict[str, Any]:
        """All facts about the store: its id, and its embedder once it has one."""
        return {key: value for key, value in connection.execute(sa.select(ABOUT.c.key, ABOUT.c.value))}

    def check_embedder(self, connection: sa.Connection, embedder: Embedder, *, is_new_allowed: bool = False) -> bool:
        """Whether the store has vectors, which then are of this embedder: vectors of two are never mixed.

        A store without vectors takes this embedder, where `is_new_allowed`.

        Raises:
            ConfigError: when its vectors are of another embedder or dimension; the hint says what to do.
        """
        kept = self.about(connection).get("embedder")
        if kept is None and is_new_allowed:
            self.set_embedder(connection, embedder)
        if kept is None:
            return is_new_allowed
        if kept["id"] != embedder.id:
            hint = f"give the embedder {kept['id']}, or rebuild all vectors with this one: {REBUILD}"
            problem = f"{self.place} holds vectors of {kept['id']}, and {embedder.id} was given"
            raise ConfigError(problem, field="embedder", hint=hint)
        if kept["dimension"] != embedder.dimension:
            n, dimension = kept["dimension"], embedder.dimension
            hint = f"the model behind that name has changed; rebuild all vectors: {REBUILD}"
            problem = f"{self.place} holds vectors of {n} numbers, {embedder.id} makes {dimension}"
            raise ConfigError(problem, field="embedder", hint=hint)
        return True

    def set_embedder(self, connection: sa.Connection, embedder: Embedder) -> None:
        """Note that from now on the store's vectors are of this embedder."""
        value = {"id": embedder.id, "dimension": embedder.dimension}
        insert_new(connection, ABOUT, [{"key": "embedder", "value": value}])
        connection.execute(sa.update(ABOUT).where(ABOUT.c.key == "embedder").values(value=value))

    def scrub(self) -> None:
        """Leave nothing of what was deleted in SQLite's log beside the file, as far as no reader holds it."""
        if self.file is None:
            return
        with self._faults_in_words(), closing(cast("Any", self._engine.raw_connection())) as raw:
            raw.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def faults(self) -> list[str]:
        """What SQLite finds wrong with its files; nothing for servers."""
        if self.url.get_backend_name() != "sqlite":
            return []
        with self.read() as connection:
            found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        """Close the connections. Safe to call twice."""
        self._engine.dispose()

    @contextmanager
    def _faults_in_words(self) -> Generator[None]:
        try:
            yield
        except FAULTS as error:
            raise store_error(self.url, error, "what was acknowledged before is kept") from error
