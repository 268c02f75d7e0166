"""The records of a file, one after the other: JSON lines, a JSON array, CSV, parquet. Knows nothing of what they mean.

JSON lines, CSV and parquet are read as a stream; a JSON array is held whole. NaN and Infinity, which are no JSON but
stand in files that Python wrote, are read as null.

The rows of tables, CSV and parquet, as records. Knows nothing of what the columns mean.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from debate.dataset.records import DuplicateKey, Record, opened, without_duplicates
from debate.errors import ConfigError, TaskError


def records(file: Path) -> Iterator[Record]:
    """The records of a file, by its ending or by its first character.

    Raises:
        TaskError: for what cannot be read, at its place.
        ConfigError: when a parquet file cannot be read for want of a library.
    """
    match file.suffix.lower():
        case ".csv" | ".tsv":
            return csv_rows(file)
        case ".parquet":
            return parquet_rows(file)
        case _:
            return _array(file) if _begins_with_bracket(file) else _lines(file)


_DECODER = json.JSONDecoder(object_pairs_hook=without_duplicates, parse_constant=lambda name: None)


def _begins_with_bracket(file: Path) -> bool:
    with opened(file) as stream:
        return stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _lines(file: Path) -> Iterator[Record]:
    with opened(file) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise TaskError(f"is not UTF-8, at byte {error.start + 1}", file=file, line=number) from None
            if text:
                value, end = _decoded(text, 0, file, number)
                if text[end:].strip():
                    raise TaskError("is not valid JSON: something follows the object", file=file, line=number)
                yield _record(value, file, number)


def _array(file: Path) -> Iterator[Record]:
    """The elements one after the other, so that each has its line; where all stand on one, each has its number."""
    text = _text(file)
    is_one_line = "\n" not in text.strip()
    place, line, counted, number = _skip(text, text.index("[") + 1), 1, 0, 0
    while place < len(text) and text[place] != "]":
        line += text.count("\n", counted, place)
        counted = place
        value, place = _decoded(text, place, file, line)
        yield _record(value, file, line, str(number) if is_one_line else "")
        place, number = _skip(text, place), number + 1
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != "]":
            raise TaskError("is not valid JSON: the array is not closed", file=file, line=line)
    if place >= len(text):
        raise TaskError("is not valid JSON: the array is not closed", file=file, line=line)
    if text[place + 1 :].strip():
        raise TaskError("is not valid JSON: something follows the array", file=file)


def _text(file: Path) -> str:
    with opened(file) as stream:
        try:
            return stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise TaskError(f"is not UTF-8, at byte {error.start + 1}", file=file, hint="save it as UTF-8") from None


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def _decoded(text: str, place: int, file: Path, line: int) -> tuple[Any, int]:
    """The value that begins at `place`, and where it ends."""
    try:
        return _DECODER.raw_decode(text, place)
    except DuplicateKey as error:
        raise TaskError("the key stands twice", file=file, line=line, field=error.args[0]) from None
    except RecursionError:
        raise TaskError("is not valid JSON: nested too deeply", file=file, line=line) from None
    except ValueError as error:
        problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise TaskError(f"is not valid JSON: {problem}", file=file, line=line) from None


def _record(value: Any, file: Path, line: int, inside: str = "") -> Record:
    if not isinstance(value, dict):
        problem = f"must be a JSON object, got {type(value).__name__}"
        raise TaskError(problem, file=file, line=line, field=inside or None)
    return Record(cast("dict[str, Any]", value), file, line, inside)


_BATCH = 256
"""Rows of a parquet file that are held at once."""
_LONGEST_FIELD = 1 << 30
"""Characters; csv's own limit of 131072 is short for a response."""


def csv_rows(file: Path) -> Iterator[Record]:
    """Rows under the names in the first line; `.tsv` is separated by tabs. A row's line is the one it begins on.

    Raises:
        TaskError: for quoting that is not closed, a row of another length, a column that stands twice; at its line.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    with opened(file) as stream:
        lines = io.TextIOWrapper(cast("io.BufferedReader", stream), "utf-8-sig", newline="")
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
            raise TaskError("the column stands twice", file=file, line=1, field=name or "(no name)")
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
    try:
        arrow: Any = import_module("pyarrow")  # it has no types
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise ConfigError("parquet needs a library", file=file, hint="pip install 'debate-eval[parquet]'") from None
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
