"""Between the values of the domain and the rows of the tables. Knows nothing of databases."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from debate.evaluation import Evaluation, as_memory, plain
from debate.flow import Call, Completion, Recall
from debate.hashing import digest
from debate.journal import Answer, CallKey, format_address, recall_hash
from debate.types import Candidate, Failure, Task, Usage

Row = dict[str, Any]


def task_data(task: Task) -> Row:
    """A task as plain data, whole."""
    candidates = [
        {"text": one.text, "id": one.id, "generator": one.generator, "metadata": dict(one.metadata)}
        for one in task.candidates
    ]
    return {"x": task.x, "candidates": candidates, "context": list(task.context), "metadata": dict(task.metadata)}


def as_task(task_id: str, data: Mapping[str, Any]) -> Task:
    """The task that `task_data` was called on."""
    candidates = [Candidate(**each) for each in data["candidates"]]
    return Task(data["x"], candidates, task_id, data["context"], data["metadata"])


def task_row(task: Task, data: Row, place: str | None) -> Row:
    """A task's row, without its run and position; `data` is its `task_data`."""
    best = task.metadata.get("best")
    return {
        "task_id": task.id,
        "place": place,
        "content_hash": content_hash(data),
        "data": data,
        "best": best if isinstance(best, int) else None,
        "take": 0,
        "reopened": None,
    }


def content_hash(data: Row) -> str:
    """Of what the task asks: metadata may change without changing the task."""
    return digest(
        data["x"], [[one["text"], one["id"], one["generator"]] for one in data["candidates"]], data["context"]
    )


def call_row(key: CallKey, call: Call | Recall, answer: Answer) -> Row:
    """An answer's row, without its run and position."""
    row: Row = dict.fromkeys(_CALL_COLUMNS)
    row |= {"address": format_address(key.address), "attempt": key.attempt, "take": key.take, "created_at": time.time()}
    row |= {
        "neutralised": 0,
        "is_cached": False,
        "is_inherited": False,
        "prompt_tokens": 0,
        "cached_tokens": 0,
        "completion_tokens": 0,
    }
    if isinstance(call, Call):
        row |= {"kind": "generate", "prompt_hash": call.prompt_hash, "model": call.model, "seed": call.seed}
        row |= {"sampling": call.sampling.to_dict(), "info": _of_the_call(call.info)}
    else:
        row |= {"kind": "recall", "prompt_hash": recall_hash(call)}
    match answer:
        case Completion():
            usage = answer.usage
            row |= {"text": answer.text, "finish_reason": answer.finish_reason, "neutralised": answer.neutralised}
            row |= {"is_cached": answer.cached, "prompt_tokens": usage.prompt_tokens}
            row |= {"cached_tokens": usage.cached_tokens, "completion_tokens": usage.completion_tokens}
        case Failure():
            row |= {"failure": asdict(answer)}
        case tuple():
            row |= {"memories": [plain(memory) for memory in answer]}
    return row


_CALL_COLUMNS = ("model", "sampling", "seed", "info", "text", "finish_reason", "failure", "memories")


def _of_the_call(info: Mapping[str, Any]) -> Row:
    """What tells the call from others of its task; the rest of `info` stands elsewhere."""
    return {key: info[key] for key in ("round", "agent", "sample", "candidate") if key in info}


def as_answer(row: Any) -> Answer:
    """The answer that a row of `calls` holds."""
    if row.kind == "recall":
        return tuple(as_memory(memory) for memory in row.memories)
    if row.failure is not None:
        return Failure(**row.failure)
    usage = Usage(row.prompt_tokens, row.cached_tokens, row.completion_tokens, 1)
    return Completion(row.text, row.finish_reason, usage, row.neutralised, row.address, row.is_cached)


def evaluation_row(evaluation: Evaluation, settings: str) -> tuple[Row, list[Row]]:
    """An evaluation's row and those of its turns, without their run and position."""
    data = evaluation.to_dict()
    turns = list(_turn_rows(data, ""))
    usage = evaluation.usage
    row = {
        "settings": settings,
        "evaluator": evaluation.evaluator,
        "status": evaluation.status,
        "selected": evaluation.selected,
        "stop_reason": evaluation.stop_reason,
        "rounds": evaluation.rounds_run,
        "n_failures": len(evaluation.failures),
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "data": data,
        "created_at": time.time(),
    }
    return row, turns


def _turn_rows(data: Row, member: str) -> Iterator[Row]:
    """Takes the turns out of an evaluation's data, and out of its members'."""
    for ordinal, turn in enumerate(data.pop("transcript")):
        apart = {key: turn.pop(key) for key in ("round", "agent", "scores", "memories", "failure")}
        yield {"member": member, "ordinal": ordinal, **apart, "data": turn}
    for n, each in enumerate(data["members"]):
        yield from _turn_rows(each, f"{member}.{n}" if member else str(n))


def as_evaluation(data: Row, turns: Mapping[str, list[Row]]) -> Evaluation:
    """The evaluation again, from its data and its turns by member."""
    _with_turns(data, turns, "")
    return Evaluation.from_dict(data)


def _with_turns(data: Row, turns: Mapping[str, list[Row]], member: str) -> None:
    data["transcript"] = turns.get(member, [])
    for n, each in enumerate(data["members"]):
        _with_turns(each, turns, f"{member}.{n}" if member else str(n))


def turn_data(row: Any) -> Row:
    """A row of `turns` as the data of a turn."""
    apart = {key: getattr(row, key) for key in ("round", "agent", "scores", "memories", "failure")}
    return {**row.data, **apart}
