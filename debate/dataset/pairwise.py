"""Small sets of responses in one record, with a label: JudgeBench, LLMBar, PandaLM, FairEval and ChatEval.

Positions are as in the file: in these sets the better response stands now here, now there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from debate.dataset.build import TIE, Format, LocatedTask, located_task, with_input
from debate.dataset.records import Record
from debate.types import Candidate

_JUDGED: Mapping[str, Mapping[str, Any]] = {"A>B": {"best": 0}, "B>A": {"best": 1}, "A=B": TIE}


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

    `metadata.label` holds the votes as they are and the `winner`, which has most of them: 0, 1, "tie", or null where
    no choice has more than half. `metadata.best` is the winner where that is a candidate.
    """
    for record in records:
        pair = [Candidate(record.text(f"response{n}"), generator=model) for n, model in enumerate(_models(record), 1)]
        votes = [record.whole(key, 0, 1, 2) for key in sorted(record.data) if key.startswith("annotator")]
        x = with_input(record.text("instruction"), record.optional_text("input"))
        metadata = {**record.among("motivation_app", "cmp_key"), **_majority(votes)}
        yield located_task(record, x, pair, record.optional_text("idx"), metadata)


def _models(record: Record) -> list[str] | list[None]:
    """From a key such as `bloom-7b_llama-7b`; none where that could be read in two ways."""
    models = (record.optional_text("cmp_key") or "").split("_")
    return models if len(models) == 2 else [None, None]


def _majority(votes: list[int]) -> dict[str, Any]:
    if not votes:
        return {}
    choice, count = Counter(votes).most_common(1)[0]
    winner = None if 2 * count <= len(votes) else choice - 1 if choice else "tie"
    label = {"label": {"kind": "votes", "votes": votes, "winner": winner}}
    return {**label, "best": winner} if isinstance(winner, int) else label


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
