"""Lines of reasoning with their steps marked, and where they first go wrong: BIG-Bench Mistake, ProcessBench."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from debate.dataset.build import Format, LocatedTask, located_task
from debate.dataset.records import Record
from debate.scoring.reducers import ALL_RIGHT
from debate.types import Candidate


def bigbench_mistake(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`input`, `steps`, `mistake_index` (from 0, null for none), perhaps `answer` and `target`.

    The steps are one candidate's, in its metadata; `metadata.first_error` of the task is -1 where all are right.
    """
    for record in records:
        mistake = record.data.get("mistake_index")
        yield _line(record, record.text("input"), None, mistake, record.among("answer", "target"))


def process_bench(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`problem`, `steps`, `label` (first wrong step from 0, -1 for none), perhaps `id`, `generator` and more."""
    for record in records:
        more = record.among("final_answer_correct")
        yield _line(record, record.text("problem"), record.optional_text("id"), record.data.get("label"), more)


def _line(record: Record, x: str, name: str | None, mistake: Any, more: dict[str, Any]) -> LocatedTask:
    steps: Sequence[str] = record.texts("steps")
    if mistake is None:
        mistake = ALL_RIGHT
    if isinstance(mistake, bool) or not isinstance(mistake, int) or not ALL_RIGHT <= mistake < len(steps):
        key = "label" if "label" in record.data else "mistake_index"
        record.refuse(f"must be the index of one of {len(steps)} steps, got {mistake!r}", key)
    candidate = Candidate("\n".join(steps), generator=record.optional_text("generator"), metadata={"steps": [*steps]})
    return located_task(record, x, [candidate], name or str(record.line), {"first_error": mistake, **more})


BIGBENCH_MISTAKE = Format(bigbench_mistake, ("input steps mistake_index",))
PROCESS_BENCH = Format(process_bench, ("problem steps label",))
