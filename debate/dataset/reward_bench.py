"""RewardBench, versions 1 and 2: a prompt, and chosen and rejected responses.

The chosen response is always first in the file, which would give it away: here the order of the candidates is a hash
of the task's id, the same in every process, and `metadata.best` follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from debate.dataset.build import Format, LocatedTask, content_text, in_hidden_order, located_task, messages_text
from debate.dataset.records import Record
from debate.types import Candidate

_KEPT = ("subset", "num_correct", "num_incorrect", "models", "additional_metadata")


def reward_bench(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`prompt`, `chosen`, `rejected`: texts, conversations, or lists of texts (version 2); perhaps `subset` and `id`.

    `metadata.best` is the chosen one, or a list where several are as good. The id is `subset/id`,
    because version 1 numbers its subsets apart; without an id it is the line. Of conversations the last messages are
    the candidates, and what goes before, which must be the same in all, is the input.
    """
    for record in records:
        sides = [_side(record, key) for key in ("chosen", "rejected")]
        subset = record.optional_text("subset")
        name = record.optional_text("id") or (f"{record.line}:{record.inside}" if record.inside else str(record.line))
        name = f"{subset}/{name}" if subset else name
        shown, order = in_hidden_order([candidate for side in sides for candidate in side], name)
        best = [place for place, n in enumerate(order) if n < len(sides[0])]
        yield located_task(record, _asked(record), shown, name, {**record.among(*_KEPT), "best": best})


def _side(record: Record, key: str) -> list[Candidate]:
    """The candidates under a key: a text, the end of a conversation, or a list of texts."""
    value: Any = record.data.get(key)
    if not isinstance(value, list):
        texts = [record.text(key)]
    elif _is_conversation(record, key):
        texts = [content_text(record.mappings(key)[-1])]
    else:
        texts = record.texts(key)
    model = record.optional_text(f"{key}_model")
    return [Candidate(text, generator=model) for text in texts]


def _is_conversation(record: Record, key: str) -> bool:
    value: Any = record.data.get(key)
    return isinstance(value, list) and any(isinstance(each, dict) for each in record.items(key))


def _asked(record: Record) -> str:
    conversations = [key for key in ("chosen", "rejected") if _is_conversation(record, key)]
    before = {messages_text(record.mappings(key)[:-1]) for key in conversations}
    if len(before) > 1:
        record.refuse("is another conversation than that of `chosen`, before its last message", "rejected")
    if any(before):
        return before.pop()
    return messages_text(record.mappings("prompt")) if _is_conversation(record, "prompt") else record.text("prompt")


REWARD_BENCH = Format(reward_bench, ("prompt chosen rejected",), in_tables=True)
