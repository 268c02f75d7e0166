"""A database to look at: nothing in it is changed, no table is made, and no older schema is brought up to date."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from debate.errors import StoreError
from debate.sql.connect import FAULTS, connect_read_only, sqlite_file
from debate.store.database import SCHEMA, Database


class ReadOnlyDatabase(Database):
    """A database whose connections the database itself keeps from writing. Thread-safe; close it when done.

    Raises:
        ConfigError: for an address that names no database we know.
        StoreError: when there is none, or it is of another version.
    """

    def _opened(self) -> Engine:
        file = sqlite_file(self.url)
        if file is not None and not file.exists():
            raise StoreError(f"{file}: there is no store", hint="`debate run EVALSET --out FOLDER` makes one")
        SCHEMA.check(self.url)
        engine = connect_read_only(self.url)
        try:
            with self.faults_in_words(), engine.begin() as connection:
                SCHEMA.require(connection)
        except BaseException:
            engine.dispose()
            raise
        return engine

    def _results(self, group: Sequence[Any]) -> list[Any]:
        """As of any database; again where a SQLite file that nobody wrote to at first has changed meanwhile.

        Such a file is read without its locks, since those would leave files beside it.
        """
        file = sqlite_file(self.url)
        if file is None:
            return super()._results([*group])
        before = _state(file)
        try:
            found = super()._results([*group])
        except FAULTS:
            if _state(file) == before:
                raise
        else:
            if before[0] or _state(file) == before:
                return found
        return super()._results([*group])


def _state(file: Path) -> tuple[bool, int, int]:
    """Whether somebody has the file open to write; and when it was written last, and its size."""
    found = file.stat()
    return Path(f"{file}-wal").exists(), found.st_mtime_ns, found.st_size
