"""The records of a file, one after the other: JSON lines, a JSON array, CSV, parquet. Knows nothing of what they mean.

JSON lines, CSV and parquet are read as a stream; a JSON array is held whole. NaN and Infinity, which are no JSON but
stand in files that Python wrote, are read as null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from debate.dataset.json_text import DuplicateKey, without_duplicates
from debate.dataset.opening import opened
from debate.dataset.records import Record
from debate.dataset.tables import csv_rows, parquet_rows
from debate.errors import TaskError


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
