"""Logs of inspect, `.eval` or `.json`: one file per model, joined by sample."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from debate.dataset.build import Format, LocatedTask, located_task
from debate.dataset.join import Answers
from debate.dataset.labels import LABELS
from debate.dataset.readers import RecordFile
from debate.dataset.records import Record
from debate.tasks.conversations import Message
from debate.types import Candidate

_Epochs = list[Record]
"""What a log holds of a sample: one record for each epoch."""
_WORTH = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""What inspect's letters for correct, incorrect, partial and no answer are worth."""


def inspect_log(first: Iterator[Record], files: Sequence[RecordFile]) -> Iterator[LocatedTask]:
    """The samples of a log (`id`, `epoch`, `input`, `output`, `target`), and in further files those of other logs.

    The outputs of one sample, of all its epochs and in all logs, are the candidates of one task. The target is the
    reference answer, as for the scorer `debate/debate`; choices are context. What inspect's scorers gave is the label
    `scores`, by the scorer's name, and after a point the key where it gave several. The sample's metadata are the
    task's, except under the names of labels. Of an agent's work only the final output is judged. A sample that failed
    is an error, as is one that a further log does not hold. All logs are held in memory.
    """
    others = Answers(files, _samples)
    for name, epochs in _samples(first).items():
        record = epochs[0]
        outputs = [*epochs, *(each for found in others.take(name, record, f"sample {name!r}") for each in found)]
        for each in outputs:
            _check_same(each, record)
        candidates = [_candidate(each) for each in outputs]
        metadata = _metadata(record) | _scores(outputs)
        context = context_of_choices(record.texts("choices") if record.data.get("choices") else [])
        yield located_task(
            record, _asked(record), candidates, name, metadata, context, _target(record), under="metadata"
        )
    for epochs in others.left_over():
        epochs[0].refuse("is a sample that the first log does not hold", "id")


def _samples(records: Iterable[Record]) -> dict[str, _Epochs]:
    known: dict[str, _Epochs] = {}
    for record in records:
        known.setdefault(record.text("id"), []).append(record)
    return known


def _check_same(record: Record, first: Record) -> None:
    if record is not first and record.data.get("input") != first.data.get("input"):
        record.refuse(f"is not that of the sample {first.text('id')!r} at {first.file}:{first.line}", "input")


def _asked(record: Record) -> str | list[Message]:
    """The input: a text, or messages in the form of OpenAI's chat API."""
    if not isinstance(record.data.get("input"), list):
        return record.text("input")
    return [_message(each) for each in record.mappings("input")]


def _message(record: Record) -> Message:
    role = record.text("role")
    message: dict[str, Any] = {"role": role, "content": _content(record)}
    if record.data.get("tool_calls"):
        message["tool_calls"] = [_tool_call(each) for each in record.mappings("tool_calls")]
    if (called := record.optional_text("tool_call_id")) is not None:
        message["tool_call_id"] = called
    return message


def _tool_call(record: Record) -> Message:
    arguments = json.dumps(record.data.get("arguments") or {}, ensure_ascii=False)
    about = {"name": record.text("function"), "arguments": arguments}
    return {"id": record.text("id"), "type": "function", "function": about}


def _content(record: Record) -> str:
    """The text of a message; of several parts those that are text, without what a model thought."""
    if not isinstance(record.data.get("content"), list):
        return record.text("content")
    texts: list[str] = []
    for part in record.mappings("content") if record.data["content"] else ():
        match part.text("type"):
            case "text":
                texts.append(part.text("text"))
            case "reasoning":
                continue
            case kind:
                part.refuse(f"is of the kind {kind!r}, and judges read texts alone", "type")
    return "\n".join(texts)


def _candidate(record: Record) -> Candidate:
    hint = f"`inspect eval-retry {record.file}` asks again for the samples that failed, in a new log"
    if record.data.get("error"):
        record.refuse(f"the sample {record.text('id')!r} failed: {_told(record.data['error'])}", "error", hint)
    output = record.mapping("output")
    if output.data.get("error"):
        record.refuse(f"the model's answer failed: {_told(output.data['error'])}", "output.error", hint)
    text = _content(output.mappings("choices")[0].mapping("message"))
    about = record.among("epoch", "log")
    return Candidate(text, None, record.optional_text("model") or output.optional_text("model"), about)


def _told(error: Any) -> str:
    """What inspect keeps of an error, in a few words."""
    text = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error
    return f"{text}"[:200]


def context_of_choices(choices: Sequence[str]) -> list[str]:
    """What judges see of the choices that a sample offers, as the context of a task; nothing without any."""
    lines = [f"{chr(ord('A') + n)}) {text}" for n, text in enumerate(choices)]
    return ["\n".join(["Choices:", *lines])] if lines else []


def _target(record: Record) -> str | None:
    if isinstance(record.data.get("target"), list):
        return "\n".join(record.texts("target")) if record.data["target"] else None
    return record.optional_text("target")


def _metadata(record: Record) -> dict[str, Any]:
    if record.data.get("metadata") is None:
        return {}
    return {key: value for key, value in record.mapping("metadata").data.items() if key not in LABELS}


def _scores(outputs: Sequence[Record]) -> dict[str, Any]:
    """The label of the candidates, with what each scorer gave; null where it gave nothing that is a number."""
    given = [dict(_numbers(each)) for each in outputs]
    names = dict.fromkeys(name for found in given for name in found)
    scores = {name: [found.get(name) for found in given] for name in names}
    return {"scores": scores} if scores else {}


def _numbers(record: Record) -> Iterator[tuple[str, float]]:
    if record.data.get("scores") is None:
        return
    scores = record.mapping("scores")
    for name in scores.data:
        value = scores.mapping(name).data.get("value")
        several = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": value}
        for key, each in several.items():
            number = _WORTH.get(each) if isinstance(each, str) else each
            if isinstance(number, int | float):
                yield (f"{name}.{key}" if key else name), +number  # of a truth value, a number


INSPECT_LOG = Format(inspect_log, ("epoch input output target",), "files")
