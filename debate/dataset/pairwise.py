"""Small sets of responses in one record, with a label: JudgeBench, LLMBar, PandaLM, FairEval and ChatEval.

Positions are as in the file: in these sets the better response stands now here, now there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from debate.dataset.build import TIE, Format, LocatedTask, located_task, with_input
from debate.dataset.labels import labels_of
from debate.dataset.records import Record
from debate.types import Candidate

_JUDGED: Mapping[str, Mapping[str, Any]] = {"A>B": {"best": 0}, "B>A": {"best": 1}, "A=B": TIE}
_VOTES: Sequence[Mapping[str, Any]] = (TIE, {"best": 0}, {"best": 1})


def judge_bench(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`pair_id`, `question`, `response_A`, `response_B`, `label` (`A>B`, `B>A`, `A=B`)."""
    for record in records:
        model = record.optional_text("response_model")
        pair = [Candidate(record.text(f"response_{name}"), generator=model) for name in "AB"]
        label = record.optional_text("label")
        if label is not None and label not in _JUDGED:
            record.refuse(f"must be one of {', '.join(_JUDGED)}, got {label!r}", "label")
        metadata = {**record.among("source", "original_id"), **(_JUDGED[label] if label else {})}
        yield located_task(record, record.text("question"), pair, record.text("pair_id"), metadata)


def llmbar(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`input`, `output_1`, `output_2`, `label` (1 or 2)."""
    for record in records:
        best = {} if record.data.get("label") is None else {"best": record.whole("label", 1, 2) - 1}
        pair = [record.text("output_1"), record.text("output_2")]
        yield located_task(record, record.text("input"), pair, record.optional_text("id"), best)


def pandalm(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`instruction`, `input`, `response1`, `response2`, and the votes of `annotator1`, ... (0 is a tie, 1, 2).

    Each annotator's vote stands in `metadata.votes`; what more than half of them chose, where that is a candidate, in
    `metadata.best`.
    """
    for record in records:
        pair = [Candidate(record.text(f"response{n}"), generator=model) for n, model in enumerate(_models(record), 1)]
        people = sorted(key for key in record.data if key.startswith("annotator"))
        votes = [{"by": who, **_VOTES[record.whole(who, 0, 1, 2)]} for who in people]
        x = with_input(record.text("instruction"), record.optional_text("input"))
        metadata = {**record.among("motivation_app", "cmp_key"), **_labels(votes)}
        yield located_task(record, x, pair, record.optional_text("idx"), metadata)


def _models(record: Record) -> list[str] | list[None]:
    """From a key such as `bloom-7b_llama-7b`; none where that could be read in two ways."""
    models = (record.optional_text("cmp_key") or "").split("_")
    return models if len(models) == 2 else [None, None]


def _labels(votes: list[dict[str, Any]]) -> dict[str, Any]:
    best = labels_of({"votes": votes}, [(None, None)] * 2).together.best
    return {**({"votes": votes} if votes else {}), **({"best": best[0]} if best else {})}


def chat_eval(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`question` and `response`, an object {model: text}, of FairEval and ChatEval; any number of responses."""
    for record in records:
        said = record.mapping("response")
        candidates = [Candidate(said.text(model), generator=record.as_text(model, "response")) for model in said.data]
        name = record.optional_text("question_id")
        yield located_task(record, record.text("question"), candidates, name, record.among("category"))


JUDGE_BENCH = Format(judge_bench, ("pair_id question response_A response_B",), in_tables=True)
LLMBAR = Format(llmbar, ("input output_1 output_2",), in_tables=True)
PANDALM = Format(pandalm, ("instruction response1 response2",), in_tables=True)
CHAT_EVAL = Format(chat_eval, ("question response",))
