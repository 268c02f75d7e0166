"""Column types and small pieces of SQL that every store of the package needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
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


def insert_whole(connection: Connection, table: Table[Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows that have every column, by a statement that is compiled once.

    Those of a table with `keep_first` in its `info` stay as they are where their key is there already.
    """
    statement, is_positional, columns = _compiled(connection.dialect, table)
    encoded = ([row[name] if encode is None else encode(row[name]) for name, encode in columns] for row in rows)
    names = [name for name, _ in columns]
    make: Callable[[list[Any]], Any] = tuple if is_positional else lambda values: dict(zip(names, values, strict=True))
    connection.exec_driver_sql(statement, [make(values) for values in encoded])


@lru_cache(maxsize=64)
def _compiled(dialect: Dialect, table: Table[Any]) -> tuple[str, bool, list[tuple[str, Callable[[Any], Any] | None]]]:
    """The statement that inserts a row, whether its parameters go by position, and their names and encoders."""
    statement: Any = _INSERTS.get(dialect.name, insert)(table)
    if table.info.get("keep_first"):
        statement = statement.on_conflict_do_nothing()
    compiled = statement.compile(dialect=dialect, column_keys=[column.name for column in table.columns])
    names: list[str] = compiled.positiontup or list(compiled.params)
    kinds = [table.columns[name].type.dialect_impl(dialect) for name in names]
    encoders = [kind.bind_processor(dialect) for kind in kinds]
    return str(compiled), compiled.positional, list(zip(names, encoders, strict=True))


_INSERTS: Mapping[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
