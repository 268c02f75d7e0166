"""A folder for embedded Chroma: made by us, marked as ours, and open in one process at a time.

Two processes that write to one folder destroy it, and what a second one reads is out of date; neither is told so by
Chroma. And a folder may name a function to embed with, which Chroma then runs: so none that was made elsewhere is
opened. Knows nothing of Chroma's client.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import sqlite3
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from debate.errors import ConfigError, StoreError

MARKER = "debate-memory-index.json"


class ChromaFolder:
    """The folder, held until closed or until the process ends.

    Args:
        path: where it is or shall be; a lock lies beside it.
        store: id of the memory store that it is the index of.

    Raises:
        ConfigError: when something else is there, or the index of another store.
        StoreError: when another process holds it, or it cannot be made.
    """

    def __init__(self, path: Path, store: str) -> None:
        self.path = path
        self._store = store
        self._lock = _locked(path)
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    @property
    def current(self) -> Path:
        """The subfolder that Chroma is to open, checked; made where there is none.

        Raises:
            ConfigError: when what lies there names an embedding function.
        """
        folder = self.path / str(self._marker().get("current"))
        if not folder.is_dir():
            return self.renewed()
        _check_no_function(folder)
        return folder

    def renewed(self) -> Path:
        """A new, empty subfolder in place of the current one. Chroma must not have that open any more."""
        fresh = uuid4().hex
        try:
            (self.path / fresh).mkdir(parents=True)
            unfinished = self.path / f".{MARKER}"
            unfinished.write_text(json.dumps({"made_by": "debate-eval", "store": self._store, "current": fresh}))
            unfinished.replace(self.path / MARKER)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written: {error.strerror}") from None
        for each in self.path.iterdir():
            if each.is_dir() and each.name != fresh:
                shutil.rmtree(each, ignore_errors=True)
        return self.path / fresh

    def close(self) -> None:
        """Let others open it. Safe to call twice."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _check(self) -> None:
        there = [each.name for each in self.path.iterdir()] if self.path.is_dir() else []
        if not there or there == [f".{MARKER}"]:
            return
        hint = "give another folder with chroma=..., or move this one away"
        if MARKER not in there:
            raise ConfigError(
                "was not made by debate-eval, and is not opened", file=self.path, field="chroma", hint=hint
            )
        if self._marker().get("store") != self._store:
            raise ConfigError("is the index of another memory store", file=self.path, field="chroma", hint=hint)

    def _marker(self) -> dict[str, Any]:
        try:
            found: object = json.loads((self.path / MARKER).read_text())
        except (OSError, ValueError):
            return {}
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _locked(path: Path) -> int:
    """A descriptor that holds the exclusive lock; the system frees it with the process."""
    file = path.with_name(f"{path.name}.lock")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(f"{file}: cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        who = _holder(descriptor)
        os.close(descriptor)
        raise StoreError(
            f"{path}: is in use by {who}; an embedded Chroma belongs to one process at a time",
            hint="wait for it, name a Chroma server with chroma='http://HOST:PORT', or use index='exact'",
        ) from None
    with suppress(OSError):  # the lock is what counts; on a full disk it cannot say whose it is
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}, since {since}".encode(), 0)
    return descriptor


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 500, 0).decode("utf-8", "replace") or "another process"


def _check_no_function(folder: Path) -> None:
    """Refuse a database whose collections name an embedding function: ours never do, so somebody changed it."""
    file = folder / "chroma.sqlite3"
    if not file.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT * FROM collections").fetchall()
    except sqlite3.OperationalError:
        return  # it was never used, or belongs to another version: no collections, no functions
    except sqlite3.Error as error:
        raise StoreError(f"{file}: cannot be read: {error}", hint="debate memory rebuild") from None
    if any(_names_function(value) for row in rows for value in row):
        raise ConfigError(
            "names an embedding function, which no index of ours does; it is not opened",
            file=file,
            field="chroma",
            hint="remove the folder; `debate memory rebuild` makes it anew",
        )


def _names_function(value: object) -> bool:
    if not isinstance(value, str) or "embedding_function" not in value:
        return False
    try:
        return _has_function(json.loads(value))
    except (ValueError, RecursionError):
        return True


def _has_function(value: object) -> bool:
    if isinstance(value, list):
        return any(_has_function(each) for each in cast("list[object]", value))
    if not isinstance(value, dict):
        return False
    fields = cast("dict[str, object]", value)
    return any(
        each not in _NONE if key == "embedding_function" else _has_function(each) for key, each in fields.items()
    )


_NONE: tuple[object, ...] = (None, {"type": "legacy"}, {"type": "unknown"})
"""How Chroma spells that there is none."""
