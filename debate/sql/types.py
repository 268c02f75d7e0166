"""Column types and small pieces of SQL that every store of the package needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import BigInteger, Connection, Dialect, Integer, Table, Text, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

from debate.files import json_text
from debate.sql.connect import reading

Serial = BigInteger().with_variant(Integer, "sqlite")
"""A number that the database counts up by itself."""


class Json(TypeDecorator[Any]):
    """Any plain value as JSON text in valid Unicode; None is NULL. Columns read back as plain values."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Encode a value for the database."""
        return None if value is None else json_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Decode a value from the database."""
        with reading("a column of JSON"):
            return None if value is None else json.loads(value)


def table_of(row: type[DeclarativeBase]) -> Table[Any]:
    """The table of a mapped class, for statements that deal in many rows."""
    return cast("Table[Any]", row.__table__)


def insert_new(connection: Connection, table: Table[Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; those whose key is there already stay as they are."""
    if rows:
        statement: Any = _INSERTS.get(connection.dialect.name, insert)(table)
        connection.execute(statement.on_conflict_do_nothing(), list(rows))


_INSERTS: Mapping[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
