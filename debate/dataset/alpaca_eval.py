"""AlpacaEval's files: outputs, one file per model, and annotations of pairs of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from debate.dataset.build import TIE, Format, LocatedTask, located_task, with_input
from debate.dataset.join import Answers
from debate.dataset.readers import RecordFile
from debate.dataset.records import Record
from debate.errors import ConfigError
from debate.types import Candidate

Nth = tuple[str, int]
"""An instruction, and how many equal ones precede it."""


def alpaca_eval(records: Iterator[Record], files: Sequence[RecordFile]) -> Iterator[LocatedTask]:
    """Outputs (`instruction`, `output`, `generator`), or annotations (`instruction`, `output_1`, `output_2`).

    Outputs are joined by instruction, the n-th equal one with the n-th. An `input`, as Alpaca's data has it, goes with
    the instruction.
    """
    first = next(records, None)
    if first is None:
        return iter(())
    records = itertools.chain([first], records)
    if "output_1" not in first.data:
        return _outputs(records, files)
    if files:
        raise ConfigError("annotations of AlpacaEval hold both outputs, and take no further files", field="answers")
    return map(_annotation, records)


def _asked(record: Record) -> str:
    return with_input(record.text("instruction"), record.optional_text("input"))


def _outputs(first: Iterator[Record], files: Sequence[RecordFile]) -> Iterator[LocatedTask]:
    others = Answers(files, lambda found: dict(_by_occurrence(found)))
    for key, record in _by_occurrence(first):
        found = [record, *others.take(key, record, "output for the instruction of")]
        candidates = [Candidate(each.text("output"), generator=each.optional_text("generator")) for each in found]
        yield located_task(record, key[0], candidates, None, record.among("dataset"))
    for record in others.left_over():
        record.refuse("is an output for no instruction of the eval set", "instruction")


def _by_occurrence(found: Iterable[Record]) -> Iterator[tuple[Nth, Record]]:
    seen: Counter[str] = Counter()
    for record in found:
        asked = _asked(record)
        yield (asked, seen[asked]), record
        seen[asked] += 1


def _annotation(record: Record) -> LocatedTask:
    pair = [Candidate(record.text(f"output_{n}"), generator=record.optional_text(f"generator_{n}")) for n in (1, 2)]
    return located_task(record, _asked(record), pair, None, {**record.among("dataset", "annotator"), **_label(record)})


def _label(record: Record) -> Mapping[str, Any]:
    """Of `preference`: from 1 (the first is better) to 2 (the second); 1.5 is a tie, and in older files 0."""
    preference: Any = record.data.get("preference")
    if preference is None:
        return {}
    is_number = isinstance(preference, int | float) and not isinstance(preference, bool)
    if not is_number or not (preference == 0 or 1 <= preference <= 2):
        record.refuse(f"must be a number from 1 to 2, or 0, got {preference!r}", "preference")
    if preference in (0, 1.5):
        return TIE
    return {"best": int(preference > 1.5), "preference": preference}


ALPACA_EVAL = Format(alpaca_eval, ("instruction output", "instruction output_1 output_2"), "files")
