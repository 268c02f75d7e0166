"""Turns the values of the domain into rows of the tables, and back."""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy import Select, Table, select

from debate.errors import TaskError
from debate.evaluation import Evaluation, abstained_cells, from_plain, plain
from debate.flow import Call, Completion, Recall
from debate.hashing import digest
from debate.journal import Answer, CallKey, format_address, recall_hash
from debate.selection import keep_best
from debate.sql.connect import reading
from debate.store.tables import TEXTS
from debate.types import Candidate, Failure, FloatArray, LabelDistribution, Memory, Scale, Task, Usage, labeled_best

Row = dict[str, Any]


def task_data(task: Task) -> Row:
    """A task as plain data, whole.

    Raises:
        TaskError: for metadata that JSON cannot hold.
    """
    candidates = [_candidate_data(candidate) for candidate in task.candidates]
    try:
        json.dumps([task.metadata, [one.metadata for one in task.candidates]], check_circular=False)
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"task {task.id!r} cannot be recorded, as its metadata are no plain JSON data: {error}"
        raise TaskError(problem, field="metadata") from None
    data: Row = {"x": task.x, "candidates": candidates, "context": list(task.context), "metadata": dict(task.metadata)}
    if task.reference is not None:
        data["reference"] = task.reference
    if task.messages:
        data["messages"] = list(task.messages)
    if task.components:
        data["components"] = [asdict(component) for component in task.components]
    return data


def _candidate_data(one: Candidate) -> Row:
    data: Row = {"text": one.text, "id": one.id, "generator": one.generator, "metadata": dict(one.metadata)}
    return {**data, "messages": list(one.messages)} if one.messages else data


@reading("a task")
def as_task(task_id: str, data: Mapping[str, Any]) -> Task:
    """The task that `task_data` was called on."""
    candidates = [Candidate(**each) for each in data["candidates"]]
    about = (task_id, data["context"], data["metadata"], data.get("reference"))
    return Task(data["x"], candidates, *about, components=data.get("components", ()), messages=data.get("messages", ()))


def task_row(task: Task, data: Row, place: str | None) -> Row:
    """A task's row, without its run and position; `data` is its `task_data`."""
    return {"task_id": task.id, "place": place, "content_hash": content_hash(data), "data": data}


def content_hash(data: Mapping[str, Any]) -> str:
    """Of what the task asks: metadata may change without changing the task."""
    candidates = [[one["text"], one["id"], one["generator"]] for one in data["candidates"]]
    more = [*([data["reference"]] if "reference" in data else ())]
    more += [{"components": data["components"]}] if "components" in data else []
    return digest(data["x"], candidates, data["context"], *more)


def call_row(key: CallKey, call: Call | Recall, answer: Answer) -> Row:
    """An answer's row, without its run and position."""
    said = answer if isinstance(answer, Completion) else Completion("", usage=Usage())
    asked = call if isinstance(call, Call) else None
    return {
        "address": format_address(key.address),
        "attempt": key.attempt,
        "retry_generation": key.retry_generation,
        "kind": "recall" if isinstance(call, Recall) else "generate",
        "prompt_hash": recall_hash(call) if isinstance(call, Recall) else call.prompt_hash,
        "model": asked and asked.model,
        "sampling": asked and asked.sampling.to_dict(),
        "seed": asked and asked.seed,
        "info": asked and about_call(asked.info),
        "text_hash": text_hash(said.text) if said is answer else None,
        "thinking_hash": text_hash(said.thinking) if said.thinking else None,
        "finish_reason": said.finish_reason if said is answer else None,
        "escaped_special_tokens": said.escaped_special_tokens,
        "is_cached": said.cached,
        "is_inherited": False,
        "failure": asdict(answer) if isinstance(answer, Failure) else None,
        "memories": [plain(memory) for memory in answer] if isinstance(answer, tuple) else None,
        "distributions": stored_distributions(said.distributions),
        "prompt_tokens": said.usage.prompt_tokens,
        "cached_tokens": said.usage.cached_tokens,
        "completion_tokens": said.usage.completion_tokens,
        "thinking_tokens": said.usage.thinking_tokens or None,
        "created_at": time.time(),
    }


def about_call(info: Mapping[str, Any]) -> Row:
    """What tells the call from others of its task; the rest of `info` stands elsewhere."""
    return {key: info[key] for key in ("round", "agent", "sample", "candidate", "step", "pair") if key in info}


@reading("an answer")
def as_answer(row: Any) -> Answer:
    """The answer that a row of `calls` holds, joined with its texts."""
    if row.kind == "recall":
        return tuple(from_plain(Memory, memory) for memory in row.memories)
    if row.failure is not None:
        return Failure(**row.failure)
    usage = Usage(row.prompt_tokens, row.cached_tokens, row.completion_tokens, 1, row.thinking_tokens or 0)
    return Completion(
        text_of(row),
        row.finish_reason,
        usage,
        row.escaped_special_tokens,
        distributions_of(row.distributions),
        row.address,
        row.is_cached,
        thinking=thinking_of(row),
    )


def stored_distributions(given: Sequence[LabelDistribution]) -> list[Any] | None:
    """Distributions in the form that `debate.store.tables` describes; None for none."""
    return [[dict(each.probabilities), each.mass] for each in given] or None


def distributions_of(stored: Sequence[Any] | None) -> tuple[LabelDistribution, ...]:
    """The distributions that `stored_distributions` was called on."""
    return tuple(LabelDistribution(*each) for each in stored or ())


def evaluation_row(evaluation: Evaluation, settings: str) -> Row:
    """An evaluation's row, without its run and position, and without what other functions here give."""
    cv = evaluation.cv[-1] if evaluation.cv else math.nan
    usage = asdict(evaluation.usage)
    del usage["thinking_tokens"]
    return {
        "settings": settings,
        "evaluator": evaluation.evaluator,
        "status": evaluation.status,
        "selected": evaluation.selected,
        "tied": bool(evaluation.tied),
        "flipped": _is_flipped(evaluation),
        "margin": margin_of(evaluation),
        "cv": cv if math.isfinite(cv) else None,
        "stop_reason": evaluation.stop_reason,
        "rounds": evaluation.rounds_run,
        "n_failures": len(evaluation.failures),
        **usage,
        "data": evaluation.to_json(),
        "created_at": time.time(),
    }


def label_columns(evaluation: Evaluation, metadata: Mapping[str, Any]) -> Row:
    """The columns of an evaluation's row that follow from the metadata of its task too."""
    best = labeled_best(metadata)
    return {
        "task_group": group_of(metadata),
        "verdict": evaluation.verdict(best),
        "chance": len(best) / len(evaluation.scores) if best else None,
    }


def cell_columns(evaluation: Evaluation) -> Row:
    """The columns of an evaluation's row that count the cells of its turns."""
    abstained, cells = abstained_cells(evaluation)
    return {"cells": cells, "abstained": abstained} if cells else {"cells": None, "abstained": None}


def thinking_columns(evaluation: Evaluation) -> Row:
    """The columns of an evaluation's row that count its thinking."""
    return {"thinking_tokens": evaluation.usage.thinking_tokens or None}


def doubt_columns(evaluation: Evaluation) -> Row:
    """The columns of an evaluation's row that say what a reader may not rely on."""
    return {
        "unscored": bool(np.isnan(evaluation.scores).any()),
        "orders_disagree": evaluation.order_agreement is False,
    }


def group_of(metadata: Mapping[str, Any], key: str = "group") -> str | None:
    """The group that a task's metadata name by this key."""
    group = metadata.get(key)
    return None if group is None else str(group)


def margin_of(evaluation: Evaluation) -> float | None:
    """Distance of the best score from the second best."""
    best = evaluation.keep_best(2)
    return None if len(best) < 2 else abs(float(evaluation.scores[best[0]] - evaluation.scores[best[1]]))


def _is_flipped(evaluation: Evaluation) -> bool | None:
    """Whether the last round had another winner than the first, by the mean over agents and components.

    Of a balanced debate, by the mean of both of its debates.
    """
    debates = evaluation.members if evaluation.evaluator == "debate" and evaluation.members else (evaluation,)
    tensors = [each.tensor for each in debates if each.tensor is not None and len(each.tensor)]
    if len(tensors) < len(debates) or max(map(len, tensors)) < 2:
        return None
    winners = [_winner([tensor[r] for tensor in tensors], evaluation.scale) for r in (0, -1)]
    return None if None in winners else winners[0] != winners[1]


def _winner(rounds: Sequence[FloatArray], scale: Scale) -> int | None:
    """The best candidate of a round (I, J, K) of each debate."""
    means = [_means(scores) for scores in rounds]  # (J,) each
    return next(iter(keep_best(np.mean(means, axis=0), 1, scale.higher_is_better)), None)


def _means(scores: FloatArray) -> FloatArray:
    n = np.isfinite(scores).sum(axis=(0, 2))  # (J,)
    return np.nansum(scores, axis=(0, 2)) / np.where(n, n, np.nan)  # (J,)


def turn_rows(evaluation: Evaluation, member: str = "") -> Iterator[Row]:
    """The rows of an evaluation's turns and of its members', without run and position."""
    for ordinal, turn in enumerate(evaluation.transcript):
        yield {
            "member": member,
            "ordinal": ordinal,
            "round": turn.round,
            "agent": turn.agent,
            "scores": [[None if score != score else score for score in row] for row in turn.scores.tolist()],
            "distribution": [stored_distributions(row) for row in turn.distributions] or None,
            "failure": None if turn.failure is None else asdict(turn.failure),
        }
    for n, each in enumerate(evaluation.members):
        yield from turn_rows(each, f"{member}.{n}" if member else str(n))


_LEAST = 200
"""Bytes from which on a text is compressed."""


def text_hash(text: str) -> str:
    """The key of a text."""
    return digest(text)


def text_row(text: str) -> dict[str, Any]:
    """A text as a row of `texts`. Half a surrogate pair is kept as it is."""
    data = text.encode("utf-8", "surrogatepass")
    is_compressed = len(data) >= _LEAST
    stored = zlib.compress(data) if is_compressed else data
    return {"hash": text_hash(text), "data": stored, "is_compressed": is_compressed}


def text_rows(completion: Completion) -> list[dict[str, Any]]:
    """The rows of `texts` that a completion needs."""
    return [text_row(completion.text), *([text_row(completion.thinking)] if completion.thinking else ())]


def text_of(row: Any) -> str:
    """The reply of a row that a query made `with_texts`."""
    return _text(row.text_data, row.is_compressed)


def thinking_of(row: Any) -> str:
    """The thinking of a row that a query made `with_texts`; empty without any."""
    return "" if row.thinking_data is None else _text(row.thinking_data, row.thinking_is_compressed)


def _text(data: bytes, is_compressed: bool) -> str:
    return (zlib.decompress(data) if is_compressed else data).decode("utf-8", "surrogatepass")


def with_texts(table: Table, *columns: Any) -> Select[Any]:
    """A query of columns of `calls` or `replies` together with their texts; see `text_of` and `thinking_of`."""
    thinking = TEXTS.alias("thinking")
    texts = (
        TEXTS.c.data.label("text_data"),
        TEXTS.c.is_compressed,
        thinking.c.data.label("thinking_data"),
        thinking.c.is_compressed.label("thinking_is_compressed"),
    )
    joined = table.outerjoin(TEXTS, TEXTS.c.hash == table.c.text_hash)
    joined = joined.outerjoin(thinking, thinking.c.hash == table.c.thinking_hash)
    chosen: list[Any] = [*columns, *texts]
    query: Any = select(*chosen).select_from(joined)
    return query


def used_texts(table: Table) -> Sequence[Select[Any]]:
    """Queries of the keys in `texts` that `calls` or `replies` refer to."""
    return [select(column).where(column.is_not(None)) for column in (table.c.text_hash, table.c.thinking_hash)]
