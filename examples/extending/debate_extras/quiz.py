"""A format of eval sets: quiz questions with several options, of which one is right.

{"question": "What is 2 + 2?", "options": ["3", "4"], "answer": "4", "topic": "sums"}
"""

from __future__ import annotations

from collections.abc import Iterator

from debate.dataset import LocatedTask, Record, located_task


def quiz(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`question`, `options` and `answer`, perhaps `topic`.

    A record's getters refuse what is missing or of another type, with file, line and field.
    """
    for record in records:
        options, answer = record.texts("options"), record.text("answer")
        if answer not in options:
            record.refuse("must be one of the options", "answer")
        metadata = {"best": options.index(answer), "group": record.optional_text("topic")}
        yield located_task(record, record.text("question"), options, None, metadata)
