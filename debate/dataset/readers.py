"""The records of a file, one after the other: JSON lines, a JSON array, CSV, parquet, a log of inspect.

JSON lines, CSV and parquet are read as a stream; a JSON array is held whole. NaN and Infinity, which are no JSON but
stand in files that Python wrote, are read as null.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, cast

from debate.dataset.inspect_samples import is_log, samples_of
from debate.dataset.records import JSON, HashedStream, Record, opened
from debate.errors import TaskError
from debate.files import DuplicateKey, load_pyarrow

TABLES = {".csv", ".tsv", ".parquet"}
"""Endings of files that hold a table."""


class RecordFile:
    """The records of a file, by its ending or its first character. One pass reads, hashes and decodes it.

    Iterating raises:
        TaskError: for what cannot be read, with its line.
        ConfigError: for a parquet file, when there is no library to read it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream: HashedStream | None = None

    def __iter__(self) -> Iterator[Record]:
        """Read the file from its beginning."""
        match self.path.suffix.lower():
            case ".parquet":
                return parquet_rows(self.path)
            case ".csv" | ".tsv":
                return self._read(csv_rows)
            case ".eval" | ".json" if is_log(self.path):
                return samples_of(self.path)
            case _:
                return self._read(_json_values)

    def digest(self) -> bytes:
        """SHA-256 of the file's bytes; it is read again only where iterating did not reach its end.

        Raises:
            TaskError: when it cannot be read.
        """
        if self._stream is None or not self._stream.is_read:
            with opened(self.path) as self._stream:
                while self._stream.read(1 << 20):
                    pass
        return self._stream.hash.digest()

    def close(self) -> None:
        """Close the file, where iterating did not reach its end."""
        if self._stream is not None:
            self._stream.close()

    def _read(self, rows: Callable[[io.BufferedReader, Path], Iterator[Record]]) -> Iterator[Record]:
        with opened(self.path) as self._stream:
            yield from rows(io.BufferedReader(self._stream, 1 << 16), self.path)


_BOM = b"\xef\xbb\xbf"
_ONE_PER_LINE = "JSON lines hold one object per line; an array begins with ["
_NOT_TEXT = {b"\xff\xfe": "it looks like UTF-16: save the file as UTF-8", b"\x1f\x8b": "it is compressed: unpack it"}


def _json_values(stream: io.BufferedReader, file: Path) -> Iterator[Record]:
    is_array = stream.peek(4096).removeprefix(_BOM).lstrip()[:1] == b"["
    return _array(stream, file) if is_array else json_lines(stream, file)


def json_lines(lines: Iterable[bytes], file: Path) -> Iterator[Record]:
    """The objects in lines of JSON; `file` is for messages.

    Raises:
        TaskError: for a line that holds something else, at its line.
    """
    for number, raw in enumerate(lines, 1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            hint = _NOT_TEXT.get(raw[:2], "save the file as UTF-8")
            problem = f"is not UTF-8, at byte {error.start + 1} of the line"
            raise TaskError(problem, file=file, line=number, hint=hint) from None
        if text:
            value, end = _decoded(text, 0, file, number)
            if text[end:].strip():
                raise TaskError("is not valid JSON: something follows the object", file=file, line=number)
            yield _record(value, file, number)


def _array(stream: io.BufferedReader, file: Path) -> Iterator[Record]:
    """The elements one after the other, so that each has its line; where all stand on one, each has its number."""
    try:
        text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TaskError(f"is not UTF-8, at byte {error.start + 1}", file=file, hint="save it as UTF-8") from None
    is_one_line = "\n" not in text.strip()
    place, line, counted, number = _skip(text, text.index("[") + 1), 1, 0, 0
    while place < len(text) and text[place] != "]":
        line += text.count("\n", counted, place)
        counted = place
        value, place = _decoded(text, place, file, line)
        yield _record(value, file, line, str(number) if is_one_line else "")
        place, number = _skip(text, place), number + 1
        if text[place : place + 1] != ",":
            break
        place = _skip(text, place + 1)
    if text[place : place + 1] != "]":
        raise TaskError("is not valid JSON: the array is not closed", file=file, line=line)
    if text[place + 1 :].strip():
        raise TaskError("is not valid JSON: something follows the array", file=file)


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def _decoded(text: str, place: int, file: Path, line: int) -> tuple[Any, int]:
    """The value that begins at `place`, and where it ends."""
    try:
        return JSON.raw_decode(text, place)
    except DuplicateKey as error:
        raise TaskError("duplicate key", file=file, line=line, field=error.args[0]) from None
    except RecursionError:
        raise TaskError("is not valid JSON: nested too deeply", file=file, line=line) from None
    except json.JSONDecodeError as error:
        hint = _ONE_PER_LINE if error.pos >= len(text) else None  # an object over several lines ends with its first
        problem = f"is not valid JSON, at column {error.colno}: {error.msg}"
        raise TaskError(problem, file=file, line=line, hint=hint) from None
    except ValueError as error:
        raise TaskError(f"is not valid JSON: {error}", file=file, line=line) from None


def _record(value: Any, file: Path, line: int, inside: str = "") -> Record:
    if not isinstance(value, dict):
        problem = f"must be a JSON object, got {type(value).__name__}"
        raise TaskError(problem, file=file, line=line, field=inside or None)
    return Record(cast("dict[str, Any]", value), file, line, inside)


_BATCH = 256
"""Rows of a parquet file that are held at once."""
_LONGEST_FIELD = 1 << 30
"""Characters; csv's own limit of 131072 is short for a response."""


def csv_rows(stream: io.BufferedReader, file: Path) -> Iterator[Record]:
    """Rows under the names in the first line; `.tsv` is separated by tabs. A row's line is the one it begins on.

    Raises:
        TaskError: for quoting that is not closed, a row of another length, a duplicate column; at its line.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
    reader = csv.reader(lines, strict=True, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
    names: list[str] | None = None
    ended = 0
    try:
        for row in reader:
            line, ended = ended + 1, reader.line_num
            if names is None:
                names = _header(row, file)
            elif row:
                yield Record(_cells(names, row, file, line), file, line)
    except csv.Error as error:
        raise TaskError(f"is not valid CSV: {error}", file=file, line=ended + 1) from None
    except UnicodeDecodeError:
        raise TaskError("is not UTF-8, in this line or soon after", file=file, line=ended + 1) from None


def _header(row: list[str], file: Path) -> list[str]:
    for name, count in Counter(row).items():
        if count > 1:
            raise TaskError("duplicate column", file=file, line=1, field=name or "(no name)")
    return row


def _cells(names: list[str], row: list[str], file: Path, line: int) -> dict[str, str]:
    if len(names) != len(row):
        problem = f"has {'more' if len(row) > len(names) else 'fewer'} fields than the first line"
        raise TaskError(problem, file=file, line=line, hint="put texts with a separator or a line break in quotes")
    return dict(zip(names, row, strict=True))


def parquet_rows(file: Path) -> Iterator[Record]:
    """Rows, some hundred held at once; a row's line is its number from 1.

    Raises:
        TaskError: for what is no parquet file.
        ConfigError: when pyarrow is not installed.
    """
    arrow, parquet = load_pyarrow(file)
    try:
        with opened(file), parquet.ParquetFile(file) as source:
            number = 0
            for batch in source.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield Record({name: _plain(value) for name, value in row.items()}, file, number)
    except (arrow.ArrowException, OSError) as error:  # a damaged page is an OSError
        raise TaskError(f"is not valid parquet: {error}", file=file) from None


def _plain(value: Any) -> Any:
    """As JSON can hold it: dates and decimals as texts, NaN as null, bytes as a note of how many."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case list() | tuple():
            return [_plain(each) for each in cast("list[Any]", value)]
        case dict():
            return {str(key): _plain(each) for key, each in cast("dict[Any, Any]", value).items()}
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return f"({len(value)} bytes)"
        case _:
            return str(value)
