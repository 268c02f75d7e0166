"""Our own format: one task per line.

{"id": "sky", "x": "Why is the sky blue?", "candidates": ["Rayleigh scattering.", {"text": "The sea."}]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WrapValidator

from debate.dataset.build import Format, LocatedTask, located_task
from debate.dataset.records import Record, is_unicode
from debate.errors import TaskError
from debate.tasks.conversations import checked_messages, is_conversation, transcript
from debate.types import Candidate
from debate.yaml_files import FileModel, dotted, first_finding


def _in_unicode(text: str) -> str:
    if not is_unicode(text):
        raise ValueError("is not valid Unicode: it holds a lone surrogate")
    return text


Text = Annotated[str, AfterValidator(_in_unicode)]


class _Candidate(FileModel):
    text: Text | None = None
    messages: Any = None
    id: Text | None = None
    generator: Text | None = None
    metadata: dict[str, Any] | None = None


def _as_candidate(value: Any) -> Any:
    """A text, or a list of messages, stands for a candidate that has no more."""
    if isinstance(value, str):
        return {"text": value}
    if is_conversation(value):
        return {"messages": value}
    if isinstance(value, dict | _Candidate):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise ValueError("must be text, a list of messages, or a mapping with a text")


def _text_or_messages(value: Any, as_text: Callable[[Any], str]) -> Any:
    """A list is of messages, which the task checks."""
    return value if is_conversation(value) else as_text(value)


class _Task(FileModel):
    id: Text | None = None
    x: Annotated[Text, WrapValidator(_text_or_messages)]
    candidates: list[Annotated[_Candidate, BeforeValidator(_as_candidate)]] = Field(min_length=1)
    context: list[Text] | None = None
    reference: Text | None = None
    components: Any = None
    best: Any = None
    metadata: dict[str, Any] | None = None


def native_jsonl(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`x` (text) and `candidates` (texts, or mappings of `text`, `id`, `generator`, `metadata`).

    A list of messages, as OpenAI's chat API has them, may stand for `x`, for a candidate, or for its `text`, as
    `messages`.

    A record may have an `id` (text, unique), `context` (texts), a `reference` (text), `components` (mappings of `name`,
    `description` and perhaps `weight`), a label `best` and `metadata`, too; null is as good as a key left out.
    """
    for record in records:
        given = _checked(record)
        candidates = [_candidate(each, n, record) for n, each in enumerate(given.candidates)]
        about = (given.id, given.metadata, given.context or (), given.reference)
        own = given.components or ()
        yield located_task(record, given.x, candidates, *about, components=own, best=given.best, under="metadata")


def _candidate(given: _Candidate, n: int, record: Record) -> Candidate:
    if (given.text is None) == (given.messages is None):
        problem = "is missing" if given.text is None else "stands beside messages: give one of the two"
        record.refuse(problem, f"candidates.{n}.text")
    about = (given.id, given.generator, given.metadata or {})
    if given.text is not None:
        return Candidate(given.text, *about)
    is_alone = isinstance(record.items("candidates")[n], list)
    try:
        said = checked_messages(given.messages, f"candidates.{n}" if is_alone else f"candidates.{n}.messages")
    except TaskError as error:
        record.refuse(error.problem, error.field, error.hint)
    return Candidate(transcript(said, "assistant"), *about, said)


def _checked(record: Record) -> _Task:
    try:
        return _Task.model_validate(record.data)
    except ValidationError as found:
        first = first_finding(found, _Task)
        record.refuse(first.message, dotted(first.loc) or None, first.hint)


OWN = Format(native_jsonl, ("x candidates",))
