"""Samples that lm-eval logged (`samples_TASK_DATE.jsonl`): one file per model, joined by document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from debate.dataset.build import Format, LocatedTask, located_task
from debate.dataset.join import Answers
from debate.dataset.readers import RecordFile
from debate.dataset.records import Record
from debate.types import Candidate

_Document = list[Record]
"""What a file holds of a document: a line for each filter, with the same responses."""


def lm_eval(first: Iterator[Record], files: Sequence[RecordFile]) -> Iterator[LocatedTask]:
    """`doc_id`, `arguments` and `resps`; every response is a candidate, as the model gave it.

    Where a task has several filters, lm-eval logs every document once for each, with the same responses: these lines
    are one task. `target` and the metrics go into the metadata; the judges see neither. A metric is a component of the
    label `scores`, by its name, and after a comma that of the filter where it has one. Where a model gave a document
    several responses, they have no scores of their own. All files are held in memory.
    """
    others = Answers(files, _documents)
    for name, document in _documents(first).items():
        record = document[0]
        found = [document, *others.take(name, record, f"sample of document {name!r},")]
        said = [(_candidates(each[0]), _metrics(each)) for each in found]
        candidates = [candidate for several, _ in said for candidate in several]
        yield located_task(record, _asked(record), candidates, name, {**record.among("target"), **_scores(said)})
    for document in others.left_over():
        document[0].refuse("is a sample of no document of the eval set", "doc_id")


def _documents(samples: Iterable[Record]) -> dict[str, _Document]:
    known: dict[str, _Document] = {}
    for sample in samples:
        name = sample.text("doc_id")
        before = known.setdefault(name, [])
        if before and sample.data.get("resps") != before[0].data.get("resps"):
            hint = "one file holds the samples of one task"
            sample.refuse(f"{name!r} is a duplicate, with other responses on line {before[0].line}", "doc_id", hint)
        before.append(sample)
    return known


def _metrics(document: _Document) -> dict[str, float]:
    """The numbers that the samples name as metrics."""
    found: dict[str, float] = {}
    for sample in document:
        names = sample.texts("metrics") if sample.data.get("metrics") else []
        filter_name = sample.optional_text("filter") or "none"
        for name in names:
            if isinstance(value := sample.data.get(name), int | float):
                found[name if filter_name == "none" else f"{name},{filter_name}"] = +value  # of a truth value, a number
    return found


def _scores(said: Sequence[tuple[list[Candidate], dict[str, float]]]) -> dict[str, Any]:
    """The label of the candidates of several models, with the metrics of each model."""
    components = dict.fromkeys(name for several, metrics in said if len(several) == 1 for name in metrics)
    scores = {
        name: [metrics.get(name) if len(several) == 1 else None for several, metrics in said for _ in several]
        for name in components
    }
    return {"scores": scores} if scores else {}


def _model(sample: Record) -> str:
    """lm-eval keeps the samples of a model in a folder of its name."""
    file = sample.file
    return file.parent.name if file.stem.startswith("samples_") and file.parent.name else file.stem


def _asked(sample: Record) -> str:
    """The prompt, which is the first text in the arguments of the first request."""
    arguments: Any = sample.data.get("arguments")
    while isinstance(arguments, dict | list) and arguments:
        several = cast("dict[str, Any] | list[Any]", arguments)
        arguments = next(iter(several.values())) if isinstance(several, dict) else several[0]
    return sample.as_text(arguments, "arguments")


def _candidates(sample: Record) -> list[Candidate]:
    candidates: list[Candidate] = []
    for n, several in enumerate(sample.items("resps")):
        for text in cast("list[Any]", several) if isinstance(several, list) else [several]:
            if isinstance(text, list):
                sample.refuse("holds log-likelihoods, which cannot be judged", f"resps.{n}")
            candidates.append(Candidate(sample.as_text(text, f"resps.{n}"), generator=_model(sample)))
    return candidates


LM_EVAL = Format(lm_eval, ("doc_id arguments resps",), "files")
