"""Brings a database to the schema of this version, by the migrations in `migrations/`.

Everything happens in one transaction: a migration that is cut off leaves the old schema.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from debate.errors import StoreError

HEAD = "0001"
"""The newest migration; a test compares it with the folder."""


def migrate(connection: Connection, place: str) -> None:
    """Make or update the tables. A SQLite file of an older version is copied first, to `FILE.REVISION.bak`.

    Raises:
        StoreError: for a database of a newer version, or one that holds something else.
    """
    before = revision(connection)
    if before == HEAD:  # spares loading alembic
        return
    if before is not None:
        if before > HEAD:
            raise StoreError(
                f"{place}: was written by a newer version (schema {before}, this one knows {HEAD})",
                hint="pip install --upgrade debate-eval",
            )
        _back_up(connection, before)
    elif inspect(connection).has_table("runs"):
        raise StoreError(f"{place}: holds a table `runs` that is not ours", hint="give another database")
    _upgrade(connection)


def revision(connection: Connection) -> str | None:
    """The migration that the database stands at; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "store" / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _back_up(connection: Connection, before: str) -> None:
    if connection.dialect.name != "sqlite":
        return
    file = connection.engine.url.database
    if not file or file == ":memory:":
        return
    with sqlite3.connect(file) as source, sqlite3.connect(f"{file}.{before}.bak") as target:
        source.backup(target)
