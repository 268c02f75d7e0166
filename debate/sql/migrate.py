"""Brings a database to the schema of this version, by alembic migrations.

Everything happens in one transaction: a migration that is cut off leaves the old schema.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sqlalchemy import URL, Column, Connection, MetaData, String, Table, func, inspect, select, text

from debate.errors import StoreError
from debate.files import make_private_file
from debate.sql.connect import described, read_only, sqlite_file

_KINDS = (("runs", "alembic_version"), ("memory_about", "memory_version"))
"""Marker and version table of our stores, which may share a database."""
_LOCK = 0x646562617465
"""Key of PostgreSQL's advisory lock under which tables are made."""


@dataclass(frozen=True)
class Schema:
    """The schema of one kind of store. Several kinds can share a database, each with a version table of its own.

    Attributes:
        folder: alembic's script location: `env.py` and `versions/`. `env.py` finds the connection and the name of the
            version table in `config.attributes`.
        tables: the tables of the newest migration, which are made at once in an empty database.
        head: revision of the newest migration; knowing it spares loading alembic where nothing is to be migrated.
        marker: a table that every database of this kind has.
        version_table: holds the revision that a database stands at.
        unversioned: revision of databases that have the marker but no version table, made before there were
            migrations; None refuses them.
        readable: the earliest revision whose tables have the columns of the newest, so that what only reads can read
            it as it is, if more slowly; None is the newest.
    """

    folder: Path
    tables: MetaData
    head: str
    marker: str
    version_table: str = "alembic_version"
    unversioned: str | None = None
    readable: str | None = None

    def check(self, url: URL) -> None:
        """Look at a database before anything in it is touched.

        Raises:
            StoreError: for a SQLite file that is somebody else's, or none.
        """
        file = sqlite_file(url)
        if file is None or not file.exists() or not file.stat().st_size:
            return
        try:
            with closing(read_only(file)) as connection:
                rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{file}: {error}", hint="give another database") from None
        names = {str(name) for (name,) in rows}
        is_ours = any({marker, version} <= names for marker, version in _KINDS) or self.marker in names
        if names and not is_ours:
            raise StoreError(f"{file}: is a database of something else", hint="give another database")

    def revision(self, connection: Connection) -> str | None:
        """The migration that the database stands at; None for an empty one.

        Raises:
            StoreError: when the marker table is not ours.
        """
        tables, place = inspect(connection), described(connection.engine.url)
        if not tables.has_table(self.marker):
            return None
        if tables.has_table(self.version_table):
            return connection.execute(text(f"SELECT version_num FROM {self.version_table}")).scalar()
        if self.unversioned is None:
            raise StoreError(f"{place}: holds a table `{self.marker}` that is not ours", hint="give another database")
        return self.unversioned

    @cached_property
    def _known(self) -> set[str]:
        return {path.name.partition("_")[0] for path in (self.folder / "versions").glob("[0-9]*.py")}

    def migrate(self, connection: Connection) -> None:
        """Make or update the tables. A SQLite file of an older version is copied first, to `FILE.REVISION.bak`.

        Raises:
            StoreError: for a database of a newer version, or one that holds something else or something damaged.
        """
        if connection.dialect.name == "postgresql":  # two processes may make the tables at once
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        before = self.revision(connection)
        place = described(connection.engine.url)
        if before == self.head:
            return
        if before is None:
            self._make(connection)
        elif before in self._known:
            _back_up(connection, before)
            self._upgrade(connection, before)
        else:
            raise self._unknown(place, before)

    def require(self, connection: Connection) -> None:
        """Check that the database stands at a migration that this version reads, and change nothing.

        Raises:
            StoreError: when it does not; says what brings it there.
        """
        found, place = self.revision(connection), described(connection.engine.url)
        if found == self.head:
            return
        if found is None:
            raise StoreError(f"{place}: holds nothing yet", hint="begin a run there first")
        if found not in self._known:
            raise self._unknown(place, found)
        if self.readable is not None and found >= self.readable:
            return
        raise StoreError(
            f"{place}: was written by an earlier version (schema {found}, this one reads {self.head}), "
            "and is only read here, never changed",
            hint="any other command that opens it, such as `debate workers RUN`, brings it up to date; "
            f"of a SQLite file it keeps a copy, FILE.{found}.bak",
        )

    def _unknown(self, place: str, found: str) -> StoreError:
        if found.isdecimal() and found > self.head:
            return StoreError(
                f"{place}: was written by a newer version (schema {found}, this one knows {self.head})",
                hint="pip install --upgrade debate-eval",
            )
        return StoreError(f"{place}: has a schema that no version has: {found!r}", hint="give another database")

    def _make(self, connection: Connection) -> None:
        self.tables.create_all(connection)
        version = Table(self.version_table, MetaData(), Column("version_num", String(32), primary_key=True))
        version.create(connection)
        connection.execute(version.insert(), {"version_num": self.head})

    def _upgrade(self, connection: Connection, before: str) -> None:
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(self.folder).replace("%", "%%"))
        config.attributes.update(connection=connection, version_table=self.version_table)
        if not inspect(connection).has_table(self.version_table):
            command.stamp(config, before)
        try:
            command.upgrade(config, "head")
        except ValueError as error:  # what is recorded is not as that version wrote it
            hint = "start anew in another place; the version that wrote it can still read it"
            raise StoreError(f"{described(connection.engine.url)}: cannot be migrated: {error}", hint=hint) from error


def _back_up(connection: Connection, before: str) -> None:
    if (file := sqlite_file(connection.engine.url)) is not None:
        make_private_file(copy := Path(f"{file}.{before}.bak"))
        with sqlite3.connect(file) as source, sqlite3.connect(copy) as target:
            source.backup(target)
