"""Our own format: one task per line.

{"id": "sky", "x": "Why is the sky blue?", "candidates": ["Rayleigh scattering.", {"text": "The sea."}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from debate.dataset.build import Format, LocatedTask, located_task
from debate.dataset.records import Record, is_unicode
from debate.types import Candidate
from debate.yaml_files import FileModel, dotted, first_finding


def _in_unicode(text: str) -> str:
    if not is_unicode(text):
        raise ValueError("is not valid Unicode: it holds a lone surrogate")
    return text


Text = Annotated[str, AfterValidator(_in_unicode)]


class _Candidate(FileModel):
    text: Text
    id: Text | None = None
    generator: Text | None = None
    metadata: dict[str, Any] | None = None


def _as_candidate(value: Any) -> Any:
    """A text stands for a candidate that has no more."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, dict | _Candidate):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise ValueError("must be text, or a mapping with a text")


class _Task(FileModel):
    id: Text | None = None
    x: Text
    candidates: list[Annotated[_Candidate, BeforeValidator(_as_candidate)]] = Field(min_length=1)
    context: list[Text] | None = None
    reference: Text | None = None
    components: Any = None
    best: Any = None
    metadata: dict[str, Any] | None = None


def native_jsonl(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`x` (text) and `candidates` (texts, or mappings of `text`, `id`, `generator`, `metadata`).

    A record may have an `id` (text, unique), `context` (texts), a `reference` (text), `components` (mappings of `name`,
    `description` and perhaps `weight`), a label `best` and `metadata`, too; null is as good as a key left out.
    """
    for record in records:
        given = _checked(record)
        candidates = [Candidate(each.text, each.id, each.generator, each.metadata or {}) for each in given.candidates]
        about = (given.id, given.metadata, given.context or (), given.reference)
        own = given.components or ()
        yield located_task(record, given.x, candidates, *about, components=own, best=given.best, under="metadata")


def _checked(record: Record) -> _Task:
    try:
        return _Task.model_validate(record.data)
    except ValidationError as found:
        first = first_finding(found, _Task)
        record.refuse(first.message, dotted(first.loc) or None, first.hint)


OWN = Format(native_jsonl, ("x candidates",))
