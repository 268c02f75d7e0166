"""Records of a file, each with its place: JSON lines, a JSON array, CSV, parquet. Knows nothing of what they mean."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

from debate.errors import ConfigError, TaskError
from debate.jobs.formats.opening import opened


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping out of a file. Its getters refuse what is missing or of another kind, with file, line and field."""

    data: Mapping[str, Any]
    file: Path
    line: int
    """From 1; of a parquet file the row."""

    def text(self, key: str) -> str:
        """A string; a number or a truth value, as test sets hold here and there, in JSON's spelling."""
        value = self.data.get(key)
        if isinstance(value, bool | int | float):
            return json.dumps(value)
        if not isinstance(value, str):
            self.refuse("is missing" if value is None else f"must be a string, got {type(value).__name__}", key)
        return value

    def optional_text(self, key: str) -> str | None:
        """A string, or None where there is none."""
        return None if self.data.get(key) in (None, "") else self.text(key)

    def items(self, key: str) -> list[Any]:
        """A list."""
        value = self.data.get(key)
        if not isinstance(value, list):
            self.refuse("is missing" if value is None else f"must be a list, got {type(value).__name__}", key)
        return cast("list[Any]", value)

    def texts(self, key: str) -> list[str]:
        """A list of strings."""
        for n, value in enumerate(items := self.items(key)):
            if not isinstance(value, str):
                self.refuse(f"must be a string, got {type(value).__name__}", f"{key}.{n}")
        return items

    def mapping(self, key: str) -> dict[str, Any]:
        """An object."""
        value = self.data.get(key)
        if not isinstance(value, dict):
            self.refuse("is missing" if value is None else f"must be an object, got {type(value).__name__}", key)
        return cast("dict[str, Any]", value)

    def among(self, *keys: str) -> dict[str, Any]:
        """Those of the keys that are there and not null, for metadata."""
        return {key: self.data[key] for key in keys if self.data.get(key) is not None}

    def refuse(self, problem: str, field: str | None = None, hint: str | None = None) -> NoReturn:
        """Raise the `TaskError` for something in this record."""
        raise TaskError(problem, file=self.file, line=self.line, field=field, hint=hint)


def records(file: Path) -> Iterator[Record]:
    """The records of a file, by its ending or by its first character.

    Raises:
        TaskError: for what cannot be read, at its place.
        ConfigError: when a parquet file cannot be read for want of a library.
    """
    match file.suffix.lower():
        case ".csv" | ".tsv":
            return _csv(file)
        case ".parquet":
            return _parquet(file)
        case _:
            return _array(file) if _begins_with_bracket(file) else _lines(file)


def _begins_with_bracket(file: Path) -> bool:
    with opened(file) as stream:
        return stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _text(file: Path) -> str:
    with opened(file) as stream:
        try:
            return stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise TaskError(f"is not UTF-8, at byte {error.start + 1}", file=file, hint="save it as UTF-8") from None


def _lines(file: Path) -> Iterator[Record]:
    with opened(file) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if text:
                    yield _record(json.loads(text), file, number)
            except UnicodeDecodeError as error:
                raise TaskError(f"is not UTF-8, at byte {error.start + 1}", file=file, line=number) from None
            except (ValueError, RecursionError) as error:
                raise TaskError(f"is not valid JSON: {error}", file=file, line=number) from None


def _array(file: Path) -> Iterator[Record]:
    """The elements one after the other, so that each has its line."""
    text = _text(file)
    decoder = json.JSONDecoder()
    place, line, counted = _skip(text, text.index("[") + 1), 1, 0
    while place < len(text) and text[place] != "]":
        line += text.count("\n", counted, place)
        counted = place
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise TaskError(f"is not valid JSON: {error}", file=file, line=line) from None
        yield _record(value, file, line)
        place = _skip(text, place)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != "]":
            raise TaskError("is not valid JSON: the array is not closed", file=file, line=line)
    if text[place + 1 :].strip():
        raise TaskError("is not valid JSON: something follows the array", file=file)


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def _csv(file: Path) -> Iterator[Record]:
    with opened(file) as stream:
        lines = io.TextIOWrapper(cast("io.BufferedReader", stream), "utf-8-sig", newline="")
        reader = csv.DictReader(lines, strict=True, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
        csv.field_size_limit(1 << 30)
        try:
            for row in reader:
                if None in row or None in row.values():
                    found = "more" if None in row else "fewer"
                    raise TaskError(f"has {found} fields than the first line", file=file, line=reader.line_num)
                yield Record(row, file, reader.line_num)
        except (csv.Error, UnicodeDecodeError) as error:
            raise TaskError(f"is not valid CSV: {error}", file=file, line=reader.line_num) from None


def _parquet(file: Path) -> Iterator[Record]:
    try:
        arrow: Any = import_module("pyarrow")  # it has no types
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise ConfigError("parquet needs a library", file=file, hint="pip install 'debate-eval[parquet]'") from None
    try:
        with opened(file), parquet.ParquetFile(file) as source:
            number = 0
            for batch in source.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(row, file, number)
    except arrow.ArrowException as error:
        raise TaskError(f"is not valid parquet: {error}", file=file) from None


def _record(value: Any, file: Path, line: int) -> Record:
    if not isinstance(value, dict):
        raise TaskError(f"must be a JSON object, got {type(value).__name__}", file=file, line=line)
    return Record(cast("dict[str, Any]", value), file, line)
