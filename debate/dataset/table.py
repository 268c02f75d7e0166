"""Tables: CSV and parquet, one task a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from debate.dataset.build import Format, LocatedTask, located_task
from debate.dataset.labels import LABELS
from debate.dataset.records import Record
from debate.tasks.conversations import is_conversation

NAMES = ("x", "id", "best", "context", "reference", "components", "candidates")
"""What a column can be."""
_SEVERAL = re.compile(r"(candidate|response|output)_?(\d+|[a-z])", re.IGNORECASE)
_CONFUSED = "name the columns: --column candidates=FIRST,SECOND"


def table(rows: Iterator[Record], columns: Mapping[str, str]) -> Iterator[LocatedTask]:
    """Rows with `x` and candidates, and where they are there `id`, `best` (the label), `context`, `reference` and
    `components` (the task's own: a list of mappings, in CSV as JSON).

    Candidates stand in a column `candidates` (a list, in CSV as JSON), or in several, in the order of their numbers or
    letters: `candidate_1`, ..., `response_a`, ... Of numbered columns the last ones may be empty, where a task has
    fewer candidates. `columns` names other columns, {"x": "prompt", "candidates": "first,second"}, in that order.
    All that is left becomes metadata.
    """
    for row in rows:
        _check_named(row, columns)
        named = {key: columns.get(key, key) for key in NAMES}
        several = _several(row, columns.get("candidates", "candidates"))
        used = {*named.values(), *several}
        kept = {key: value for key, value in row.data.items() if key not in used and value not in (None, "")}
        metadata = {key: row.cell(key) if key in LABELS else value for key, value in kept.items()}
        yield located_task(
            row,
            _input(row, named["x"]),
            _from_columns(row, several) if several else _from_list(row, named["candidates"]),
            row.optional_text(named["id"]),
            metadata,
            _context(row, named["context"]),
            row.optional_text(named["reference"]),
            components=row.cell(named["components"]) or (),
            best=row.cell(named["best"]),
            best_key=named["best"],
        )


def _check_named(row: Record, columns: Mapping[str, str]) -> None:
    for key, column in columns.items():
        if key != "candidates" and column not in row.data:
            row.refuse(f"there is no such column among {', '.join(row.data)}", column, f"--column {key}= names it")


def _several(row: Record, named: str) -> list[str]:
    """The columns with a candidate each; none when one column holds them all."""
    if named in row.data:
        return []
    if "," in named:
        found = [name.strip() for name in named.split(",")]
        for name in found:
            if name not in row.data:
                row.refuse(f"there is no such column among {', '.join(row.data)}", name, _CONFUSED)
        return found
    matches = [match for name in row.data if (match := _SEVERAL.fullmatch(name))]
    if named != "candidates" or not matches:
        row.refuse(f"there is no such column among {', '.join(row.data)}", named, _CONFUSED)
    if len({(match[1].lower(), match[2].isdigit()) for match in matches}) > 1:
        row.refuse(f"could be each of {', '.join(match[0] for match in matches)}", named, _CONFUSED)
    return [match[0] for match in sorted(matches, key=lambda match: (len(match[2]), match[2].lower()))]


def _from_columns(row: Record, columns: list[str]) -> list[str]:
    may_end_early = all(column[-1].isdigit() for column in columns)
    while may_end_early and columns and row.data.get(columns[-1]) in (None, ""):
        columns = columns[:-1]
    for column in columns:
        if row.data.get(column) in (None, ""):
            row.refuse("is empty", column, "a response that is empty can stand in a list, in one column `candidates`")
    return [row.text(column) for column in columns]


def _input(row: Record, column: str) -> Any:
    """A text, or a list of messages, which only JSON and parquet can hold."""
    value: Any = row.data.get(column)
    return cast("Any", value) if is_conversation(value) else row.text(column)


def _from_list(row: Record, column: str) -> list[Any]:
    value: Any = row.data.get(column)
    if isinstance(value, str):
        value = row.parsed(column)
    if not isinstance(value, list):
        row.refuse("must be a list of texts", column)
    said = enumerate(cast("list[Any]", value))
    return [each if is_conversation(each) else row.as_text(each, f"{column}.{n}") for n, each in said]


def _context(row: Record, column: str) -> list[str]:
    if isinstance(row.data.get(column), list):
        return row.texts(column) if row.data[column] else []
    context = row.optional_text(column)
    return [context] if context else []


TABLE = Format(table, takes="columns", in_tables=True)
