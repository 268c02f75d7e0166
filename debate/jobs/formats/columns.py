"""Tables: CSV and parquet, one task a row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from debate.jobs.formats.making import Placed, placed
from debate.jobs.formats.records import Record

_NUMBERED = re.compile(r"candidate_?\d+|response_?(\d+|[a-z])|output_?\d+", re.IGNORECASE)


def table(rows: Iterator[Record], columns: Mapping[str, str]) -> Iterator[Placed]:
    """Rows with `x` and candidates, and where they are there `id`, `best` (index from 0) and `context`.

    Candidates stand in a column `candidates` (a list, in CSV as JSON), or in several: `candidate_1`, `response_a`, ...
    `columns` names other columns, {"x": "prompt", "candidates": "first,second"}. All others become metadata.
    """
    for row in rows:
        named = {key: columns.get(key, key) for key in ("x", "id", "best", "context", "candidates")}
        its_candidates = _candidate_columns(row, named["candidates"])
        used = {*named.values(), *its_candidates}
        metadata = {key: value for key, value in row.data.items() if key not in used and value not in (None, "")}
        context = row.optional_text(named["context"])
        yield placed(
            row,
            row.text(named["x"]),
            _candidates(row, its_candidates),
            row.optional_text(named["id"]),
            {**metadata, **_best(row, named["best"])},
            [context] if context else [],
        )


def _candidate_columns(row: Record, named: str) -> list[str]:
    if named in row.data:
        return [named]
    several = (
        [name.strip() for name in named.split(",")] if "," in named else list(filter(_NUMBERED.fullmatch, row.data))
    )
    if not several:
        hint = "name the columns: --column candidates=FIRST,SECOND"
        row.refuse(f"there is no such column among {', '.join(row.data)}", named, hint)
    return several


def _candidates(row: Record, columns: list[str]) -> list[str]:
    value: Any = row.data.get(columns[0])
    if len(columns) > 1 or _NUMBERED.fullmatch(columns[0]):
        return [row.text(column) for column in columns if row.data.get(column) not in (None, "")]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            row.refuse(f"must be a JSON list of texts: {error}", columns[0])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in cast("list[Any]", value)):
        row.refuse("must be a list of texts", columns[0])
    return cast("list[str]", value)


def _best(row: Record, column: str) -> dict[str, Any]:
    value = row.data.get(column)
    if value in (None, ""):
        return {}
    try:
        return {"best": int(cast("str", value))}
    except (TypeError, ValueError):
        row.refuse(f"must be an index from 0, got {value!r}", column)
