"""Tables: a row per task, per turn, or per cell of S. Rounds count from 0 and candidates by their index, as in all
records.

A cell that was not scored is null with the reason beside it, never 0. `probabilities` and `mass` are the distribution
of a score that was read out, `spread` its standard deviation. Members of an evaluation (the two orders of a
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

import numpy as np

from debate.evaluation import Evaluation, plain, why_unscored
from debate.export.writer import Export, ExportSummary, Results, Row, finite_or_none
from debate.files import atomic_write, load_pyarrow, valid_unicode
from debate.scoring.distributions import moments
from debate.types import FloatArray, LabelDistribution, Task

_BATCH = 4096
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a text begins with that a spreadsheet takes for a formula; the last four are = + - @ in full width."""
_PLACE = ("run", "task", "member")
_FOUND = ("best", "selected", "right", "tied", "scores", "p_best", "scale", "margin", "cv", "rounds", "stop_reason")
_USAGE = ("prompt_tokens", "cached_tokens", "completion_tokens", "calls")
TASK_COLUMNS = ("run", "task", "group", "evaluator", "status", "error", *_FOUND, *_USAGE)
FOUND_COLUMNS = (
    "task",
    "evaluator",
    "status",
    "error",
    *(name for name in _FOUND if name not in ("best", "right")),
    *_USAGE,
)
CELL_COLUMNS = (*_PLACE, "r", "i", "j", "k", "agent", "component", "score", "spread")
_READ = ("spread", "probabilities", "mass")
SCORE_COLUMNS = (*_PLACE, "round", "agent", "candidate", "generator", "component", "score", *_READ, "comment", "reason")
_FAILURE = ("abstained", "failure_reason", "failure_message", "invalid_replies", "escaped_special_tokens")
TURN_COLUMNS = (*_PLACE, "position", "round", "agent", "shown", "overall", "comments", *_FAILURE, "memories")


def write_tasks(results: Results, path: Path, run: str) -> ExportSummary:
    """A row per task: what its label says (`best`), what was selected, whether that is right, the scores, and more.

    `right` is null without a label, and false for a tie or where nothing was scored; its mean is the accuracy. `tied`
    are those that share the best score, `margin` is the distance of the two best scores, and `cv` that of the last
    round. `p_best` is the probability of each candidate being the best, where scores were read out. `rounds` counts how
    many were run.
    """
    return _write(task_rows(results, run), path, TASK_COLUMNS)


def task_rows(results: Results, run: str) -> Iterator[Row]:
    """The rows of `write_tasks`."""
    return (_task_row(task, each, run) for task, each in results)


def _task_row(task: Task, evaluation: Evaluation, run: str) -> Row:
    verdict, group = evaluation.verdict(task.best), task.metadata.get("group")
    return {
        **found_row(evaluation),
        "run": run,
        "task": task.id,
        "group": None if group is None else str(group),
        "best": list(task.best),
        "right": None if verdict is None else verdict == "right",
    }


def found_row(evaluation: Evaluation) -> Row:
    """What `write_tasks` writes of an evaluation, without its task."""
    cv = evaluation.cv[-1] if evaluation.cv else math.nan
    return {
        "task": evaluation.task_id,
        "evaluator": evaluation.evaluator,
        "status": evaluation.status,
        "error": evaluation.error,
        "selected": evaluation.selected,
        "tied": list(evaluation.tied),
        "scores": [finite_or_none(score) for score in evaluation.scores.tolist()],
        "p_best": None if evaluation.p_best is None else evaluation.p_best.tolist(),
        "scale": [evaluation.scale.low, finite_or_none(evaluation.scale.high)],
        "margin": _margin(evaluation),
        "cv": finite_or_none(cv),
        "rounds": evaluation.rounds_run,
        "stop_reason": evaluation.stop_reason,
        **{name: getattr(evaluation.usage, name) for name in _USAGE},
    }


def _margin(evaluation: Evaluation) -> float | None:
    """Distance of the two best scores; 0 for a tie, None where fewer than two candidates have one."""
    best = evaluation.keep_best(2)
    if len(best) < 2:
        return None
    return 0.0 if evaluation.tied else abs(float(evaluation.scores[best[0]] - evaluation.scores[best[1]]))


def write_scores(results: Results, path: Path, run: str) -> ExportSummary:
    """A row per cell: run, task, member, round, agent, candidate, generator, component, score, comment, and more.

    The `reason` of a cell without a score is that of the failure, `abstained`, `not_shown` where the agent did not see
    the candidate, or `label_mass` where the model gave the labels too little of its probability.
    """
    return _write(score_rows(results, run), path, SCORE_COLUMNS)


def score_rows(results: Results, run: str) -> Iterator[Row]:
    """The rows of `write_scores`."""
    return (row for place, task, each in _evaluations(results, run) for row in _score_rows(place, task, each))


def all_cells(results: Results, run: str) -> Iterator[Row]:
    """The rows of `cell_rows` of all evaluations."""
    return ({"run": run, **row} for _, evaluation in results for row in cell_rows(evaluation))


def cell_rows(evaluation: Evaluation) -> Iterator[Row]:
    """A row per cell of S: `r`, `i`, `j` and `k` from 0, the names of agent and component, the score and its spread.

    An evaluation without rounds has a row per candidate, where `r`, `i` and `k` are null. Members have rows of their
    own in place of those of what they were made into.
    """
    for each, member in _with_members(evaluation, ""):
        place: Row = {"task": evaluation.task_id, "member": member}
        if each.tensor is not None:
            yield from ({**place, **cell} for cell in _tensor_cells(each, each.tensor))
        elif not each.members:
            for j, score in enumerate(each.scores.tolist()):
                yield {**place, "j": j, "component": each.evaluator, "score": finite_or_none(score)}


def _tensor_cells(evaluation: Evaluation, tensor: FloatArray) -> Iterator[Row]:
    spread = evaluation.spread
    for r, i, j, k in np.ndindex(tensor.shape):
        place: Row = {"r": r, "i": i, "j": j, "k": k}
        doubt = None if spread is None else finite_or_none(float(spread[r, i, j, k]))
        names: Row = {"agent": evaluation.agents[i], "component": evaluation.components[k]}
        yield {**place, **names, "score": finite_or_none(float(tensor[r, i, j, k])), "spread": doubt}


def write_turns(results: Results, path: Path, run: str) -> ExportSummary:
    """A row per turn: run, task, member, position, round, agent, overall, comments, failure, memories, and more.

    `abstained` counts the cells from which the agent abstained.
    """
    return _write(turn_rows(results, run), path, TURN_COLUMNS)


def turn_rows(results: Results, run: str) -> Iterator[Row]:
    """The rows of `write_turns`."""
    return (row for place, _, each in _evaluations(results, run) for row in _turn_rows(place, each))


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
        for j, scores in enumerate(turn.scores.tolist()):
            comment = turn.comments[j] if j < len(turn.comments) else None
            said: Row = {**place, "round": turn.round, "agent": turn.agent, "comment": comment}
            for k, (component, score) in enumerate(zip(evaluation.components, scores, strict=True)):
                read = turn.distributions[j][k] if turn.distributions else None
                yield {**said, "component": component, **_cell(task, j, score, why_unscored(turn, j, k), read)}
    if not evaluation.transcript.turns and not evaluation.members:
        for j, score in enumerate(evaluation.scores.tolist()):
            about = [each for each in evaluation.judgments if each.candidates == (j,)]
            failures = [*(each.failure for each in about if each.failure is not None), *evaluation.failures]
            reason = failures[0].reason if failures else "unscored"
            read = about[0].distribution if len(about) == 1 else None
            yield {**place, "component": evaluation.evaluator, **_cell(task, j, score, reason, read)}


def _cell(task: Task, j: int, score: float, reason: str | None, read: LabelDistribution | None) -> Row:
    """A score, or why there is none, and the distribution that it was read from, if it was."""
    cell: Row = {"candidate": j, "generator": task.candidates[j].generator}
    cell |= {"score": None, "reason": reason} if math.isnan(score) else {"score": score, "reason": None}
    if read is None:
        return cell
    spread = finite_or_none(moments(read)[1])
    return {**cell, "spread": spread, "probabilities": dict(read.probabilities), "mass": read.mass}


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
            "abstained": [why_unscored(turn, *cell) for cell in np.ndindex(turn.scores.shape)].count("abstained"),
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
    counts = ("position", "round", "abstained", "candidate", "escaped_special_tokens", "selected", "rounds", *_USAGE)
    types = (
        dict.fromkeys(counts, whole) | dict.fromkeys(("score", *_READ, "margin", "cv"), real) | {"right": arrow.bool_()}
    )
    types |= {"memories": arrow.list_(memory)} | dict.fromkeys(("scores", "p_best", "scale"), arrow.list_(real))
    types |= dict.fromkeys(("shown", "best", "tied"), arrow.list_(whole))
    types["probabilities"] = arrow.map_(text, real)
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
    """Null is an empty field; lists and maps are JSON in theirs; an apostrophe is before what would be a formula."""
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
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


TASKS = Export(write_tasks, "tasks.parquet")
SCORES = Export(write_scores, "scores.parquet")
TURNS = Export(write_turns, "turns.parquet")
