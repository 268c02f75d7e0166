"""The output of OpenAI's batch API, and of vLLM's `run-batch`, with the input that says what was asked.

Replies to equal messages are the candidates of one task: of one request with `n` choices, of several requests, or of
several batches, one per model.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from debate.dataset.build import Format, LocatedTask, conversation, located_task
from debate.dataset.join import by_key
from debate.dataset.readers import RecordFile
from debate.dataset.records import Record
from debate.errors import TaskError
from debate.tasks.conversations import Message
from debate.types import Candidate


@dataclass(slots=True)
class _Request:
    """What was asked under a custom id, in how many inputs, and how many replies there are."""

    record: Record
    x: str
    messages: tuple[Message, ...] = ()
    asked: int = 0
    answered: int = 0


def openai_batch(outputs: Iterator[Record], files: Sequence[RecordFile]) -> Iterator[LocatedTask]:
    """An output (`custom_id`, `response`), and in further files its input (`custom_id`, `body`) and more of both.

    A task's id is the first custom id among its replies; a candidate's is CUSTOM_ID#N, its generator the model. Calls
    of tools are shown as `debate.tasks.conversations` says. A
    request that failed or has no reply is an error, as is a reply to no request: take its lines out of input and
    output to judge the others. All files are held in memory.
    """
    requests, replies = _sorted_out(files)
    if not requests:
        where = getattr(next(outputs, None), "file", None)
        raise TaskError("says nothing of what was asked", file=where, hint="give the batch's input file with --answers")
    tasks: dict[str, tuple[Record, _Request, list[Candidate]]] = {}
    for record in itertools.chain(by_key(outputs, "custom_id").values(), replies):
        name = record.text("custom_id")
        if (request := requests.get(name)) is None:
            record.refuse("was not asked in the batch's input", "custom_id")
        request.answered += 1
        tasks.setdefault(request.x, (record, request, []))[2].extend(_candidates(record, name))
    _check_all_answered(requests)
    for x, (record, request, candidates) in tasks.items():
        yield located_task(record, x, candidates, record.text("custom_id"), messages=request.messages)


def _sorted_out(files: Sequence[RecordFile]) -> tuple[dict[str, _Request], list[Record]]:
    """The requests of the files that are inputs, and the replies of those that are outputs."""
    requests: dict[str, _Request] = {}
    replies: list[Record] = []
    for file in files:
        found = by_key(file, "custom_id")
        if any("response" in record.data for record in found.values()):
            replies.extend(found.values())
            continue
        for name, record in found.items():
            x, messages = conversation(record.mapping("body").mappings("messages"))
            request = requests.setdefault(name, _Request(record, x, messages))
            if request.x != x:
                where = f"{request.record.file}:{request.record.line}"
                record.refuse(f"{name!r} asks something else than at {where}", "custom_id")
            request.asked += 1
    return requests, replies


def _check_all_answered(requests: dict[str, _Request]) -> None:
    for name, request in requests.items():
        if request.answered < request.asked:
            hint = "it may stand in the batch's error file; take the request out to judge the others"
            request.record.refuse(f"{name!r} has no reply in the output", "custom_id", hint)


def _candidates(record: Record, name: str) -> list[Candidate]:
    hint = "take it out of input and output to judge the others"
    if record.data.get("error"):
        record.refuse(f"failed: {record.data['error']}", "error", hint)
    response = record.mapping("response")
    if response.data.get("status_code", 200) != 200:
        record.refuse(f"failed with status {response.data['status_code']}", "response", hint)
    body = response.mapping("body")
    model = body.optional_text("model")
    said = [conversation([choice.mapping("message")], "assistant") for choice in body.mappings("choices")]
    return [Candidate(text, f"{name}#{n}", model, messages=own) for n, (text, own) in enumerate(said)]


OPENAI_BATCH = Format(openai_batch, ("custom_id response",), "files")
