"""The rows of tables, CSV and parquet, as records. Knows nothing of what the columns mean."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from debate.dataset.opening import opened
from debate.dataset.records import Record
from debate.errors import ConfigError, TaskError

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
