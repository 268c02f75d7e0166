"""Files written whole or not at all, locks that end with their process, JSON text in valid Unicode, and the date."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import Any

from debate.errors import ConfigError, StoreError


def valid_unicode(text: str) -> str:
    """The text with every lone surrogate replaced by its escape, so that it can be written as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def json_text(value: Any) -> str:
    """One line of compact JSON in valid Unicode."""
    return valid_unicode(_COMPACT.encode(value))


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class DuplicateKey(Exception):
    """A duplicate key in one object, of which `json` would silently drop the first."""


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some pairs, for `object_pairs_hook`.

    Raises:
        DuplicateKey: with the first duplicate key.
    """
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for n, key in enumerate(keys) if key in keys[:n])
        raise DuplicateKey(repr(twice if len(twice) <= 60 else twice[:57] + "...")[1:-1])
    return data


_MOST_DIGITS = 1000


def whole_number(literal: str) -> int:
    """A whole number as JSON writes it, for `parse_int`. Raises ValueError for one of more than 1,000 digits."""
    if len(literal) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(literal):,} digits")
    return int(literal)


def load_pyarrow(file: Path, or_else: str = "") -> tuple[Any, Any]:
    """The modules `pyarrow` and `pyarrow.parquet`, which have no types.

    Raises:
        ConfigError: when they are not installed; `or_else` adds to its hint.
    """
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        hint = f"pip install 'debate-eval[parquet]'{or_else}"
        raise ConfigError("parquet needs a library", file=file, hint=hint) from None


PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Permissions of what the owner alone may read."""


def make_private_file(path: Path) -> None:
    """Make an empty file that its owner alone can read; one that is there already stays as it is.

    Raises:
        OSError: when it cannot be made.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))


@contextmanager
def atomic_write(path: Path, hint: str | None = None, mode: int = 0o666, folder_mode: int = 0o777) -> Generator[Path]:
    """Yield a temporary file beside `path`, which takes its name when the block ends; after an error nothing is left.

    The folder is made where there is none. What was written is on the disk before the name changes. A link at `path` is
    replaced, not followed.

    Args:
        path: of the file.
        hint: of the error.
        mode: permissions of the file, less the umask.
        folder_mode: those of its folder, where it is made.

    Raises:
        StoreError: for an `OSError` of the block or of the renaming; names the path, with `hint`.
    """
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.tmp")
    try:
        path.parent.mkdir(folder_mode, parents=True, exist_ok=True)
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}", hint=hint) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a small UTF-8 file, whole or not at all; `mode` as in `atomic_write`.

    Raises:
        StoreError: when it cannot be written.
    """
    with atomic_write(path, mode=mode) as temporary:
        temporary.write_text(text, encoding="utf-8")


class FileInUseError(Exception):
    """Another process holds the lock. `holder` says who, as far as the file tells."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


def this_process() -> str:
    """Who this process is, for others to read."""
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()}, since {since}"


def today() -> str:
    """Today's date in the machine's time zone, as ISO text such as "2026-01-31".

    It is called by its module's name everywhere, so that tests can hold it still.
    """
    return datetime.now().astimezone().date().isoformat()


def is_locked(path: Path) -> bool:
    """Whether some process holds an exclusive lock on a file, or may hold one: the file cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)


class FileLock:
    """A lock on a file that names its holder. The operating system frees it when the process ends.

    An exclusive one excludes all others, a `shared` one exclusive ones.

    Raises:
        FileInUseError: at once, when another process holds it.
        StoreError: when the file cannot be opened or locked.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened: {error.strerror}") from None
        self.lock(shared=shared)
        with suppress(OSError):  # the lock is what counts; on a full disk it cannot say whose it is
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, this_process().encode(), 0)

    def lock(self, *, shared: bool) -> None:
        """Make a lock that is held shared or exclusive. It is released where that fails, as for a new one."""
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 500, 0).decode("utf-8", "replace")
            self.release()
            if isinstance(error, BlockingIOError):
                raise FileInUseError(holder or "another process") from None
            raise StoreError(f"{self._path}: cannot be locked: {error.strerror}") from None

    def release(self, *, remove: bool = False) -> None:
        """Let others take it. Safe to call twice. `remove` deletes the file, which nobody else may want to lock."""
        if remove:
            self._path.unlink(missing_ok=True)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
