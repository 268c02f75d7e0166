"""Formats whose candidates stand in several files, one a model: MT-bench, AlpacaEval, lm-eval samples, OpenAI batches.

Nothing is dropped: a question that a file does not answer, and an answer to no question, are errors. The answers are
held in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from debate.errors import TaskError
from debate.jobs.formats.making import Placed, messages_text, placed, turns_text
from debate.jobs.formats.records import Record, records
from debate.types import Candidate


def mt_bench(questions: Iterator[Record], answers: Sequence[Path]) -> Iterator[Placed]:
    """`question_id` with `turns` (or `text`), and answer files of `question_id`, `model_id` and `choices` (or `text`).

    Several turns are rendered under `User, turn 1:` and `Assistant, turn 1:`. A `reference` becomes the context.
    """
    if not answers:
        first = next(questions, None)
        where = first.file if first else None
        raise TaskError("holds questions alone", file=where, hint="give the answer files with --answers FILE ...")
    by_file = [(file, _by_key(file, "question_id")) for file in answers]
    for record in questions:
        name = record.text("question_id")
        turns = record.texts("turns") if "turns" in record.data else [record.text("text")]
        found = [_answer(file, found.pop(name, None), name) for file, found in by_file]
        reference = record.texts("reference") if record.data.get("reference") else []
        context = [turns_text(reference, "Reference")] if reference else []
        yield placed(record, turns_text(turns, "User"), found, name, record.among("category"), context)
    for _, left in by_file:
        for record in left.values():
            record.refuse("answers no question of the eval set", "question_id")


def _by_key(file: Path, key: str) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for record in records(file):
        name = record.text(key)
        if name in found:
            record.refuse(f"{name!r} stands twice, first on line {found[name].line}", key)
        found[name] = record
    return found


def _answer(file: Path, record: Record | None, name: str) -> Candidate:
    if record is None:
        raise TaskError(f"has no answer to question {name!r}", file=file)
    model = record.optional_text("model_id") or file.stem
    if "choices" not in record.data:
        return Candidate(record.text("text"), record.optional_text("answer_id"), model)
    choices = record.items("choices")
    first: Any = choices[0] if choices else None
    if not isinstance(first, dict):
        record.refuse("must hold an object with turns", "choices")
    turns = Record(cast("dict[str, Any]", first), record.file, record.line).texts("turns")
    return Candidate(turns_text(turns, "Assistant"), record.optional_text("answer_id"), model)


def alpaca_eval(first: Iterator[Record], others: Sequence[Path]) -> Iterator[Placed]:
    """`instruction`, `output`, `generator`: one file a model, joined by instruction, the n-th with the n-th."""
    by_file = [(file, _by_occurrence(records(file))) for file in others]
    for key, record in _by_occurrence(first).items():
        found = [record]
        for file, answers in by_file:
            if (answer := answers.pop(key, None)) is None:
                raise TaskError(f"has no output for the instruction of {record.file}:{record.line}", file=file)
            found.append(answer)
        candidates = [Candidate(each.text("output"), generator=each.optional_text("generator")) for each in found]
        yield placed(record, record.text("instruction"), candidates, None, record.among("dataset"))
    for _, left in by_file:
        for record in left.values():
            record.refuse("is an output for no instruction of the eval set", "instruction")


def _by_occurrence(given: Iterator[Record]) -> dict[tuple[str, int], Record]:
    seen: Counter[str] = Counter()
    found: dict[tuple[str, int], Record] = {}
    for record in given:
        text = record.text("instruction")
        found[text, seen[text]] = record
        seen[text] += 1
    return found


def lm_eval(first: Iterator[Record], others: Sequence[Path]) -> Iterator[Placed]:
    """Samples that lm-eval logged: `doc_id`, `arguments`, `resps`; one file a model. Every response is a candidate.

    `target` goes into the metadata; the judges do not see it.
    """
    by_file = [(file, _by_key(file, "doc_id")) for file in others]
    for record in first:
        name = record.text("doc_id")
        candidates = _responses(record)
        for file, samples in by_file:
            if (other := samples.pop(name, None)) is None:
                raise TaskError(f"has no sample of document {name!r}", file=file)
            candidates += _responses(other)
        yield placed(record, _asked(record), candidates, name, record.among("target"))
    for _, left in by_file:
        for record in left.values():
            record.refuse("is a sample of no document of the eval set", "doc_id")


def _asked(record: Record) -> str:
    arguments = record.data.get("arguments")
    while isinstance(arguments, dict | list) and arguments:
        several = cast("dict[str, Any] | list[Any]", arguments)
        arguments = next(iter(several.values())) if isinstance(several, dict) else several[0]
    if not isinstance(arguments, str):
        record.refuse("holds no prompt", "arguments")
    return arguments


def _responses(record: Record) -> list[Candidate]:
    texts: list[str] = []
    for several in record.items("resps"):
        for text in cast("list[Any]", several) if isinstance(several, list) else [several]:
            if not isinstance(text, str):
                record.refuse("holds no texts", "resps", "samples of log-likelihoods cannot be judged")
            texts.append(text)
    return [Candidate(text, generator=record.file.stem) for text in texts]


def openai_batch(outputs: Iterator[Record], inputs: Sequence[Path]) -> Iterator[Placed]:
    """A batch's output, with its input file beside it. Replies to equal messages are the candidates of one task.

    A request that failed is an error: remove its line to judge the others.
    """
    if not inputs:
        first = next(outputs, None)
        where = first.file if first else None
        raise TaskError("says nothing of what was asked", file=where, hint="give the batch's input file with --answers")
    asked = {name: record for file in inputs for name, record in _by_key(file, "custom_id").items()}
    tasks: dict[str, tuple[Record, list[Candidate]]] = {}
    for record in outputs:
        name = record.text("custom_id")
        if (request := asked.get(name)) is None:
            record.refuse("was not asked in the batch's input", "custom_id")
        messages = cast(
            "list[dict[str, Any]]", Record(request.mapping("body"), request.file, request.line).items("messages")
        )
        tasks.setdefault(messages_text(messages), (record, []))[1].extend(_replies(record, name))
    for x, (record, candidates) in tasks.items():
        yield placed(record, x, candidates, record.text("custom_id"))


def _replies(record: Record, name: str) -> list[Candidate]:
    if record.data.get("error"):
        record.refuse(f"failed: {record.data['error']}", "error", "remove the line to judge the others")
    response = Record(record.mapping("response"), record.file, record.line)
    if response.data.get("status_code", 200) != 200:
        record.refuse(f"failed with status {response.data['status_code']}", "response", "remove the line")
    body = Record(response.mapping("body"), record.file, record.line)
    replies = [Record(choice, record.file, record.line).mapping("message") for choice in body.items("choices")]
    return [
        Candidate(Record(reply, record.file, record.line).text("content"), f"{name}#{n}", body.optional_text("model"))
        for n, reply in enumerate(replies)
    ]
