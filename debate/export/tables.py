"""Long tables: every cell of S, and every turn. Rounds count from 0 and candidates by their index, as in all records.

A cell that was not scored is null with the reason beside it, never 0. Members of an evaluation (the two orders of a
balanced debate, the members of a panel) have rows of their own; `member` is the path to them: empty, `0`, `1.0`.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from debate.evaluation import Evaluation, plain
from debate.export.writer import Export, ExportSummary, Results, Row
from debate.files import atomic_write, load_pyarrow, valid_unicode
from debate.types import Task

_BATCH = 4096
_PLACE = ("run", "task", "member")
_SCORES = (*_PLACE, "round", "agent", "candidate", "generator", "component", "score", "comment", "reason")
_FAILURE = ("failure_reason", "failure_message", "invalid_replies", "escaped_special_tokens")
_TURNS = (*_PLACE, "position", "round", "agent", "shown", "overall", "comments", *_FAILURE, "memories")


def write_scores(results: Results, path: Path, run: str) -> ExportSummary:
    """Columns: run, task, member, round, agent, candidate, generator, component, score, comment, reason."""
    rows = (row for place, task, each in _evaluations(results, run) for row in _score_rows(place, task, each))
    return _write(rows, path, _SCORES)


def write_turns(results: Results, path: Path, run: str) -> ExportSummary:
    """Columns: run, task, member, position, round, agent, overall, comments, failure, memories, and more."""
    rows = (row for place, _, each in _evaluations(results, run) for row in _turn_rows(place, each))
    return _write(rows, path, _TURNS)


def _evaluations(results: Results, run: str) -> Iterator[tuple[Row, Task, Evaluation]]:
    """Every evaluation and member, with the columns of its place."""
    for task, evaluation in results:
        for each, member in _with_members(evaluation, ""):
            yield {"run": run, "task": task.id, "member": member}, task, each


def _with_members(evaluation: Evaluation, path: str) -> Iterator[tuple[Evaluation, str]]:
    yield evaluation, path
    for n, member in enumerate(evaluation.members):
        yield from _with_members(member, f"{path}.{n}" if path else str(n))


def _score_rows(place: Row, task: Task, evaluation: Evaluation) -> Iterator[Row]:
    for turn in evaluation.transcript:
        reason = "unscored" if turn.failure is None else turn.failure.reason
        for j, scores in enumerate(turn.scores.tolist()):
            comment = turn.comments[j] if j < len(turn.comments) else None
            said: Row = {**place, "round": turn.round, "agent": turn.agent, "comment": comment}
            for component, score in zip(evaluation.components, scores, strict=True):
                yield {**said, "component": component, **_cell(task, j, score, reason)}
    if not evaluation.transcript.turns and not evaluation.members:
        reason = evaluation.failures[0].reason if evaluation.failures else "unscored"
        for j, score in enumerate(evaluation.scores.tolist()):
            yield {**place, "component": evaluation.evaluator, **_cell(task, j, score, reason)}


def _cell(task: Task, j: int, score: float, reason: str) -> Row:
    scored = {"score": None, "reason": reason} if math.isnan(score) else {"score": score, "reason": None}
    return {"candidate": j, "generator": task.candidates[j].generator, **scored}


def _turn_rows(place: Row, evaluation: Evaluation) -> Iterator[Row]:
    for position, turn in enumerate(evaluation.transcript):
        failure = turn.failure
        yield {
            **place,
            "position": position,
            "round": turn.round,
            "agent": turn.agent,
            "shown": list(turn.labels.values()),
            "overall": turn.overall,
            "comments": list(turn.comments),
            "failure_reason": None if failure is None else failure.reason,
            "failure_message": None if failure is None else failure.message,
            "invalid_replies": [invalid.reason for invalid in turn.invalid_replies],
            "escaped_special_tokens": turn.escaped_special_tokens,
            "memories": [plain(memory) for memory in turn.memories],
        }


def _schema(arrow: Any, columns: Sequence[str]) -> Any:
    """The type of each column; of those that are not named here, text."""
    text, whole, real = arrow.string(), arrow.int32(), arrow.float64()
    texts = [(name, text) for name in ("text", "id", "collection", "kind", "source")]
    memory = arrow.struct([*texts, *((name, real) for name in ("score", "relevance", "recency", "importance"))])
    types = dict.fromkeys(("position", "round", "candidate", "escaped_special_tokens"), whole)
    types |= {"score": real, "shown": arrow.list_(whole), "memories": arrow.list_(memory)}
    types |= dict.fromkeys(("comments", "invalid_replies"), arrow.list_(text))
    return arrow.schema([(name, types.get(name, text)) for name in columns])


def _write(rows: Iterable[Row], path: Path, columns: Sequence[str]) -> ExportSummary:
    return (_write_csv if path.suffix.lower() == ".csv" else _write_parquet)(rows, path, columns)


def _write_parquet(rows: Iterable[Row], path: Path, columns: Sequence[str]) -> ExportSummary:
    arrow, parquet = load_pyarrow(path, ", or name a file that ends in .csv")
    schema = _schema(arrow, columns)
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


def _write_csv(rows: Iterable[Row], path: Path, columns: Sequence[str]) -> ExportSummary:
    """Null is an empty field; a list is JSON in its field."""
    written = ExportSummary()
    with (
        atomic_write(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _field(value) for name, value in row.items()})
            written.rows += 1
    return written


def _field(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


SCORES = Export(write_scores, "scores.parquet")
TURNS = Export(write_turns, "turns.parquet")
