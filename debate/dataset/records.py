"""A record of a file with its place: its getters refuse what is missing or of another kind. Files that are hashed."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from debate.errors import TaskError
from debate.files import DuplicateKey, whole_number, without_duplicates

JSON = json.JSONDecoder(object_pairs_hook=without_duplicates, parse_int=whole_number, parse_constant=lambda name: None)
"""Reads NaN and Infinity, which are no JSON, as null."""
_WHOLE = re.compile(r"\d{1,9}(\.0)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping out of a file."""

    data: Mapping[str, Any]
    file: Path
    line: int
    """From 1; of a parquet file the row."""
    inside: str = ""
    """Where in the line it stands, when it is not all of it: `choices.0`, or the place in an array on one line."""

    def text(self, key: str) -> str:
        """A string; a number or a truth value, as test sets hold here and there, in JSON's spelling."""
        value = self.data.get(key)
        return self.as_text(json.dumps(value) if isinstance(value, bool | int | float) else value, key)

    def as_text(self, value: Any, field: str) -> str:
        """The value, which must be a string and valid Unicode; `field` says where it stands."""
        if not isinstance(value, str):
            self.refuse("is missing" if value is None else f"must be a string, got {type(value).__name__}", field)
        if not is_unicode(value):
            hint = "the text was cut inside a character; repair or drop that character"
            self.refuse("is not valid Unicode: it holds a lone surrogate", field, hint)
        return value

    def optional_text(self, key: str) -> str | None:
        """A string, or None where there is none."""
        return None if self.data.get(key) in (None, "") else self.text(key)

    def cell(self, key: str) -> Any:
        """A value of a table: what stands as text in CSV, a whole number or a JSON list or object, is read."""
        match self.data.get(key):
            case "":
                return None
            case str(text) if _WHOLE.fullmatch(text):
                return int(float(text))
            case str(text) if text.lstrip().startswith(("[", "{")):
                return self.parsed(key)
            case value:
                return value

    def parsed(self, key: str) -> Any:
        """The list or object that a text holds in JSON."""
        try:
            return JSON.decode(self.text(key))
        except DuplicateKey as error:
            self.refuse("duplicate key", f"{key}.{error.args[0]}")
        except (ValueError, RecursionError) as error:
            self.refuse(f"must be a JSON list or object: {error}", key)

    def whole(self, key: str, *allowed: int) -> int:
        """One of some whole numbers; as text, too, as in CSV."""
        value = self.data.get(key)
        for number in allowed:
            if not isinstance(value, bool) and value in (number, str(number)):
                return number
        self.refuse(f"must be {' or '.join(map(str, allowed))}, got {value!r}", key)

    def items(self, key: str) -> list[Any]:
        """A list."""
        value = self.data.get(key)
        if not isinstance(value, list):
            self.refuse("is missing" if value is None else f"must be a list, got {type(value).__name__}", key)
        return cast("list[Any]", value)

    def texts(self, key: str) -> list[str]:
        """A list of strings, at least one."""
        return [self.as_text(value, f"{key}.{n}") for n, value in enumerate(self._filled(key))]

    def mapping(self, key: str) -> Record:
        """An object."""
        return self._within(self.data.get(key), key)

    def mappings(self, key: str) -> list[Record]:
        """A list of objects, at least one."""
        return [self._within(value, f"{key}.{n}") for n, value in enumerate(self._filled(key))]

    def among(self, *keys: str) -> dict[str, Any]:
        """Those of the keys that are there and not null, for metadata."""
        return {key: self.data[key] for key in keys if self.data.get(key) is not None}

    def refuse(self, problem: str, field: str | None = None, hint: str | None = None) -> NoReturn:
        """Raise the `TaskError` for something in this record."""
        raise TaskError(problem, file=self.file, line=self.line, field=self._field(field), hint=hint) from None

    def _filled(self, key: str) -> list[Any]:
        return self.items(key) or self.refuse("is empty", key)

    def _within(self, value: Any, field: str) -> Record:
        if not isinstance(value, dict):
            self.refuse("is missing" if value is None else f"must be an object, got {type(value).__name__}", field)
        return Record(cast("dict[str, Any]", value), self.file, self.line, self._field(field) or "")

    def _field(self, field: str | None) -> str | None:
        return ".".join(part for part in (self.inside, field) if part) or None


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: a lone surrogate, left where a text was cut inside a character, cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class HashedStream(io.RawIOBase):
    """A file that is hashed (SHA-256) as it is read."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self.hash = hashlib.sha256()
        self.is_read = False
        """Whether the end was reached."""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes, and hash them."""
        count = self._file.readinto(buffer) or 0
        self.hash.update(memoryview(buffer)[:count])
        self.is_read = self.is_read or count == 0
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


@contextmanager
def opened(file: Path) -> Generator[HashedStream]:
    """The file in bytes.

    Raises:
        TaskError: when it cannot be read, or is a folder.
    """
    try:
        if file.is_dir():
            raise TaskError("is a folder, not an eval set", file=file, hint="name the JSONL file in it")
        stream = file.open("rb", buffering=0)
    except FileNotFoundError:
        raise TaskError("there is no such file", file=file) from None
    except (OSError, ValueError) as error:
        raise TaskError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=file) from None
    with stream:
        yield HashedStream(stream)
