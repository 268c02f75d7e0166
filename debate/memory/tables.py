"""The tables of a memory store, as SQLAlchemy types. They hold the truth; every index is made from them.

    memory_about                   the store's own id, its embedder
    memory_collections ── memories
    memory_vectors                 by embedder and hash of the text: a text is embedded once

Times are seconds since 1970 in UTC. Texts are JSON-encoded, so that NULs survive in every database.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from debate.sql.types import Json, Serial, table_of


class Base(DeclarativeBase):
    """All tables of a memory store."""


class AboutRow(Base):
    """One fact about the store."""

    __tablename__ = "memory_about"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[Any] = mapped_column(Json)


class CollectionRow(Base):
    """One collection, and how far it has come: what tells a reader that its copy is out of date."""

    __tablename__ = "memory_collections"

    id: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    version: Mapped[int] = mapped_column(BigInteger)
    """Counts up with every change."""
    erased: Mapped[int] = mapped_column(BigInteger)
    """Counts up when memories are forgotten; while it stays, newer versions have only more rows."""


class MemoryRow(Base):
    """One memory."""

    __tablename__ = "memories"
    __table_args__ = (Index("memories_in_order", "collection_id", "seq"), {"sqlite_autoincrement": True})

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    """Rises within a collection, in the order of the commits; never used twice."""
    id: Mapped[str] = mapped_column(String(200), unique=True)
    collection_id: Mapped[int] = mapped_column(ForeignKey("memory_collections.id"))
    text: Mapped[Any] = mapped_column(Json)
    text_hash: Mapped[str] = mapped_column(String(64), index=True)
    kind: Mapped[str] = mapped_column(String(16))
    importance: Mapped[float]
    """In 0..10."""
    created_at: Mapped[float]
    source: Mapped[str | None] = mapped_column(String(500), index=True)
    """Where it came from: a task's id, a file, a run."""
    details: Mapped[Any] = mapped_column("metadata", Json)


class VectorRow(Base):
    """The vector of one text under one embedder: D little-endian float32, of unit length."""

    __tablename__ = "memory_vectors"

    embedder: Mapped[str] = mapped_column(String(300), primary_key=True)
    text_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)


ABOUT, COLLECTIONS, MEMORIES, VECTORS = map(table_of, (AboutRow, CollectionRow, MemoryRow, VectorRow))
"""The same tables for statements that deal in many rows."""
