"""Long tables: every cell of S, and every turn. Rounds count from 0 and candidates by their index, as in all records.

A cell that was not scored is null with the reason beside it, never 0. Members of an evaluation (the two orders of a
balanced debate, the members of a panel) have rows of their own; `member` is the path to them: empty, `0`, `1.0`.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from operator import methodcaller
from pathlib import Path
from typing import Any

from debate.errors import ConfigError
from debate.evaluation import Evaluation, plain
from debate.export.writer import Export, ExportSummary, Results
from debate.files import atomic_write, valid_unicode
from debate.types import Task, Turn

_BATCH = 4096
Row = dict[str, Any]
Columns = Mapping[str, Callable[[Any], Any]]
"""Names, and from the pyarrow module the type of each; pyarrow is loaded for parquet alone."""

_text, _number, _real = methodcaller("string"), methodcaller("int32"), methodcaller("float64")


def _list_of(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda arrow: arrow.list_(kind(arrow))


def _memory(arrow: Any) -> Any:
    texts = [(name, arrow.string()) for name in ("text", "id", "collection", "kind", "source")]
    return arrow.struct(
        [*texts, *((name, arrow.float64()) for name in ("score", "relevance", "recency", "importance"))]
    )


_PLACE: Columns = {"run": _text, "task": _text, "member": _text}
_SCORES: Columns = {
    **_PLACE,
    "round": _number,
    "agent": _text,
    "candidate": _number,
    "generator": _text,
    "component": _text,
    "score": _real,
    "comment": _text,
    "reason": _text,
}
_TURNS: Columns = {
    **_PLACE,
    "position": _number,
    "round": _number,
    "agent": _text,
    "shown": _list_of(_number),
    "overall": _text,
    "comments": _list_of(_text),
    "failure_reason": _text,
    "failure_message": _text,
    "invalid_replies": _list_of(_text),
    "escaped_special_tokens": _number,
    "memories": _list_of(_memory),
}


def write_scores(results: Results, path: Path, run: str) -> ExportSummary:
    """Columns: run, task, member, round, agent, candidate, generator, component, score, comment, reason."""
    rows = (row for task, evaluation in results for row in _score_rows(run, task, evaluation, ""))
    return _write(rows, path, _SCORES)


def write_turns(results: Results, path: Path, run: str) -> ExportSummary:
    """Columns: run, task, member, position, round, agent, overall, comments, failure, memories, and more."""
    rows = (row for task, evaluation in results for row in _turn_rows(run, task, evaluation, ""))
    return _write(rows, path, _TURNS)


def _members(evaluation: Evaluation, member: str) -> Iterator[tuple[Evaluation, str]]:
    for n, each in enumerate(evaluation.members):
        yield each, f"{member}.{n}" if member else str(n)


def _score_rows(run: str, task: Task, evaluation: Evaluation, member: str) -> Iterator[Row]:
    place: Row = {"run": run, "task": task.id, "member": member}
    for turn in evaluation.transcript:
        yield from _cells(place, task, evaluation, turn)
    if not evaluation.transcript.turns and not evaluation.members:
        reason = evaluation.failures[0].reason if evaluation.failures else "unscored"
        for j, score in enumerate(evaluation.scores.tolist()):
            row = {**place, "round": None, "agent": None, **_candidate(task, j), "component": evaluation.evaluator}
            yield {**row, **_scored(score, reason), "comment": None}
    for each, path in _members(evaluation, member):
        yield from _score_rows(run, task, each, path)


def _cells(place: Row, task: Task, evaluation: Evaluation, turn: Turn) -> Iterator[Row]:
    reason = "unscored" if turn.failure is None else turn.failure.reason
    for j, scores in enumerate(turn.scores.tolist()):
        comment = turn.comments[j] if j < len(turn.comments) else None
        for component, score in zip(evaluation.components, scores, strict=True):
            cell = {"round": turn.round, "agent": turn.agent, **_candidate(task, j), "component": component}
            yield {**place, **cell, **_scored(score, reason), "comment": comment}


def _candidate(task: Task, j: int) -> Row:
    return {"candidate": j, "generator": task.candidates[j].generator}


def _scored(score: float, reason: str) -> Row:
    return {"score": None, "reason": reason} if math.isnan(score) else {"score": score, "reason": None}


def _turn_rows(run: str, task: Task, evaluation: Evaluation, member: str) -> Iterator[Row]:
    for position, turn in enumerate(evaluation.transcript):
        failure = turn.failure
        yield {
            "run": run,
            "task": task.id,
            "member": member,
            "position": position,
            "round": turn.round,
            "agent": turn.agent,
            "shown": [j for _, j in turn.labels.items()],
            "overall": turn.overall,
            "comments": list(turn.comments),
            "failure_reason": None if failure is None else failure.reason,
            "failure_message": None if failure is None else failure.message,
            "invalid_replies": [invalid.reason for invalid in turn.invalid_replies],
            "escaped_special_tokens": turn.escaped_special_tokens,
            "memories": [plain(memory) for memory in turn.memories],
        }
    for each, path in _members(evaluation, member):
        yield from _turn_rows(run, task, each, path)


def _write(rows: Iterable[Row], path: Path, columns: Columns) -> ExportSummary:
    return (_write_csv if path.suffix.lower() == ".csv" else _write_parquet)(rows, path, columns)


def _write_parquet(rows: Iterable[Row], path: Path, columns: Columns) -> ExportSummary:
    try:
        arrow: Any = import_module("pyarrow")  # it has no types
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        hint = "pip install 'debate-eval[parquet]', or name a file that ends in .csv"
        raise ConfigError("parquet needs a library", file=path, hint=hint) from None
    schema = arrow.schema([(name, kind(arrow)) for name, kind in columns.items()])
    written, rows = ExportSummary(), iter(rows)
    with atomic_write(path) as temporary, parquet.ParquetWriter(temporary, schema) as file:
        while batch := list(islice(rows, _BATCH)):
            file.write_table(arrow.Table.from_pylist([_valid(row) for row in batch], schema=schema))
            written.rows += len(batch)
    return written


def _valid(value: Any) -> Any:
    """The same in valid Unicode: half a surrogate pair in a reply stands as its escape."""
    match value:
        case str():
            return valid_unicode(value)
        case dict():
            return {key: _valid(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_valid(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _write_csv(rows: Iterable[Row], path: Path, columns: Columns) -> ExportSummary:
    """Null is an empty field; a list is JSON in its field."""
    written = ExportSummary()
    with (
        atomic_write(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _field(value) for name, value in row.items()})
            written.rows += 1
    return written


def _field(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


SCORES = Export(write_scores, "scores.parquet")
TURNS = Export(write_turns, "turns.parquet")
