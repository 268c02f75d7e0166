"""Pairs and small sets of responses with a label: RewardBench, JudgeBench, LLMBar, PandaLM, FairEval and ChatEval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from debate.jobs.formats.making import Placed, as_text, in_hidden_order, messages_text, placed, with_input
from debate.jobs.formats.records import Record
from debate.types import Candidate


def reward_bench(records: Iterator[Record]) -> Iterator[Placed]:
    """`prompt`, `chosen`, `rejected`: texts, messages, or lists of texts (version 2).

    The chosen response is always first in the file; here the order is a hash of the id. `metadata.best` is the chosen
    one; where several are as good, `metadata.label` lists them.
    """
    for record in records:
        good, bad = (_responses(record, key) for key in ("chosen", "rejected"))
        subset = record.optional_text("subset")
        name = record.optional_text("id") or str(record.line)
        name = f"{subset}/{name}" if subset else name
        shown, order = in_hidden_order([*good, *bad], name)
        best = [place for place, n in enumerate(order) if n < len(good)]
        label = {"best": best[0]} if len(best) == 1 else {"label": {"kind": "best_of", "best": best}}
        metadata = {**record.among("subset"), **label}
        yield placed(record, _prompt(record), shown, name, metadata)


def _prompt(record: Record) -> str:
    if isinstance(record.data.get("prompt"), list):
        return messages_text(record.items("prompt"))
    return record.text("prompt")


def _responses(record: Record, key: str) -> list[Candidate]:
    """A text, a conversation, or a list of texts."""
    value: Any = record.data.get(key)
    is_list_of_texts = isinstance(value, list) and all(isinstance(text, str) for text in record.items(key))
    several: list[Any] = record.items(key) if is_list_of_texts else [value]
    model = record.optional_text(f"{key}_model")
    return [Candidate(as_text(text, record, key), generator=model) for text in several]


def judge_bench(records: Iterator[Record]) -> Iterator[Placed]:
    """`pair_id`, `question`, `response_A`, `response_B`, `label` (`A>B`, `B>A`, `A=B`)."""
    for record in records:
        model = record.optional_text("response_model")
        pair = [Candidate(record.text(f"response_{name}"), generator=model) for name in "AB"]
        label = record.optional_text("label")
        if label is not None and label not in _JUDGED:
            record.refuse(f"must be one of {', '.join(_JUDGED)}, got {label!r}", "label")
        metadata = {**record.among("source", "original_id"), **(_JUDGED[label] if label else {})}
        yield placed(record, record.text("question"), pair, record.text("pair_id"), metadata)


_TIE: dict[str, Any] = {"label": {"kind": "pairwise", "winner": "tie"}}
_JUDGED: dict[str, dict[str, Any]] = {"A>B": {"best": 0}, "B>A": {"best": 1}, "A=B": _TIE}


def llmbar(records: Iterator[Record]) -> Iterator[Placed]:
    """`input`, `output_1`, `output_2`, `label` (1 or 2)."""
    for record in records:
        label = record.data.get("label")
        if label not in (None, 1, 2):
            record.refuse(f"must be 1 or 2, got {label!r}", "label")
        metadata = {} if label is None else {"best": label - 1}
        pair = [record.text("output_1"), record.text("output_2")]
        yield placed(record, record.text("input"), pair, record.optional_text("id"), metadata)


def pandalm(records: Iterator[Record]) -> Iterator[Placed]:
    """`instruction`, `input`, `response1`, `response2`, and the votes of `annotator1`, ... (0 is a tie, 1, 2).

    `metadata.best` is what most annotators chose; without a majority, or where it is a tie, `metadata.label` says so.
    """
    for record in records:
        generators = (record.optional_text("cmp_key") or "").split("_")
        names = generators if len(generators) == 2 else [None, None]
        pair = [Candidate(record.text(f"response{n + 1}"), generator=name) for n, name in enumerate(names)]
        votes = [record.data[key] for key in sorted(record.data) if key.startswith("annotator")]
        for vote in votes:
            if vote not in (0, 1, 2):
                record.refuse(f"must be 0, 1 or 2, got {vote!r}", "annotator")
        x = with_input(record.text("instruction"), record.optional_text("input"))
        name = record.optional_text("idx")
        yield placed(record, x, pair, name, {**record.among("motivation_app"), **_majority(votes)})


def _majority(votes: list[int]) -> dict[str, Any]:
    if not votes:
        return {}
    (choice, count), *_ = Counter(votes).most_common()
    kept = {"kind": "votes", "votes": votes}
    if choice and 2 * count > len(votes):
        return {"best": choice - 1, "label": {**kept, "winner": choice - 1}}
    return {"label": {**kept, "winner": "tie"}}


def chat_eval(records: Iterator[Record]) -> Iterator[Placed]:
    """`question` and `response`, an object {model: text}, of FairEval and ChatEval; any number of responses."""
    for record in records:
        responses = record.mapping("response")
        candidates = [
            Candidate(as_text(text, record, f"response.{name}"), generator=name) for name, text in responses.items()
        ]
        name = record.optional_text("question_id")
        yield placed(record, record.text("question"), candidates, name, record.among("category"))
