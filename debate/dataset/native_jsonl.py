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


_Messages = list[dict[str, Any]]


class NativeCandidate(FileModel):
    """A response. A text, or a list of messages, stands for one that has no more."""

    text: Text | None = Field(None, description="The response; or give `messages`.")
    messages: Any = Field(None, description="The response as messages of OpenAI's chat API, in place of `text`.")
    id: Text | None = Field(None, description="A name for it, by which a label may name it.")
    generator: Text | None = Field(None, description="The model that wrote it.")
    metadata: dict[str, Any] | None = Field(None, description="Anything else; no judge sees it.")


def _as_candidate(value: Any) -> Any:
    """A text, or a list of messages, stands for a candidate that has no more."""
    if isinstance(value, str):
        return {"text": value}
    if is_conversation(value):
        return {"messages": value}
    if isinstance(value, dict | NativeCandidate):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise ValueError("must be text, a list of messages, or a mapping with a text")


def _text_or_messages(value: Any, as_text: Callable[[Any], str]) -> Any:
    """A list is of messages, which the task checks."""
    return value if is_conversation(value) else as_text(value)


_EITHER = WrapValidator(_text_or_messages, json_schema_input_type=str | _Messages)
_CANDIDATE = BeforeValidator(_as_candidate, json_schema_input_type=str | _Messages | NativeCandidate)


class NativeTask(FileModel):
    """A task: what was asked, and the candidate responses to it."""

    id: Text | None = Field(None, description="Its name, unique in a batch; without one it is named by its content.")
    x: Annotated[Text, _EITHER] = Field(
        description="What was asked: a text, or messages as OpenAI's chat API has them."
    )
    candidates: list[Annotated[NativeCandidate, _CANDIDATE]] = Field(
        min_length=1, description="The responses to compare: texts, lists of messages, or objects."
    )
    context: list[Text] | None = Field(None, description="Further texts about what was asked, which judges see.")
    reference: Text | None = Field(None, description="An answer that is known to be right, which judges see.")
    components: Any = Field(
        None, description="What candidates are scored on besides: objects of `name`, `description`, perhaps `weight`."
    )
    best: Any = Field(None, description="The label: index, letter, id or generator of the best, or a list of these.")
    metadata: dict[str, Any] | None = Field(None, description="Anything else; no judge sees it.")


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


def _candidate(given: NativeCandidate, n: int, record: Record) -> Candidate:
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


def _checked(record: Record) -> NativeTask:
    try:
        return NativeTask.model_validate(record.data)
    except ValidationError as found:
        first = first_finding(found, NativeTask)
        record.refuse(first.message, dotted(first.loc) or None, first.hint)


OWN = Format(native_jsonl, ("x candidates",))
