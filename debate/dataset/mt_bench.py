"""MT-bench's files, and those of its forerunner Vicuna: questions, and one file of answers per model.

A question of several turns is rendered as `debate.dataset.build` says, `User, turn 1:` and so on; an answer
under `Assistant, turn 1:`, so that question and answer can be matched turn by turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from debate.dataset.build import Format, LocatedTask, located_task, turns_text
from debate.dataset.join import Answers, by_key
from debate.dataset.readers import RecordFile
from debate.dataset.records import Record
from debate.errors import TaskError
from debate.types import Candidate


def mt_bench(questions: Iterator[Record], files: Sequence[RecordFile]) -> Iterator[LocatedTask]:
    """`question_id` with `turns` (or `text`), and answer files of `question_id`, `model_id` and `choices` (or `text`).

    A `reference` becomes the context. Where a model answered several times, each of its choices is a candidate.
    """
    if not files:
        where = getattr(next(questions, None), "file", None)
        raise TaskError("holds questions alone", file=where, hint="give the answer files with --answers FILE ...")
    answers = Answers(files, partial(by_key, key="question_id"))
    for record in questions:
        name = record.text("question_id")
        turns = record.texts("turns") if "turns" in record.data else [record.text("text")]
        found = answers.take(name, record, f"answer to question {name!r},")
        candidates = [candidate for answer in found for candidate in _candidates(answer)]
        x = turns_text(turns, "User")
        yield located_task(record, x, candidates, name, record.among("category"), _context(record))
    for answer in answers.left_over():
        answer.refuse("answers no question of the eval set", "question_id")


def _context(record: Record) -> list[str]:
    value: Any = record.data.get("reference")
    if not value:
        return []
    turns = record.texts("reference") if isinstance(value, list) else [record.text("reference")]
    return [turns_text(turns, "Reference")]


def _candidates(answer: Record) -> list[Candidate]:
    model = answer.optional_text("model_id") or answer.file.stem
    name = answer.optional_text("answer_id")
    if "choices" not in answer.data:
        return [Candidate(answer.text("text"), name, model)]
    texts = [turns_text(choice.texts("turns"), "Assistant") for choice in answer.mappings("choices")]
    if len(texts) == 1:
        return [Candidate(texts[0], name, model)]
    return [Candidate(text, f"{name}#{n}" if name else None, model) for n, text in enumerate(texts)]


MT_BENCH = Format(mt_bench, ("question_id turns", "question_id text"), "files")
