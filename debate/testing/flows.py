"""Drives flows by hand, writes replies for them, and keeps what was asked."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from debate.backends.scripted import estimated_usage
from debate.evaluation import Evaluation
from debate.flow import Call, CallFunction, Completion, Flow, Gather, Generate, ReadOut, Recall, Request
from debate.hashing import derive
from debate.journal import Address, Answer, CallKey
from debate.parsing.places import value_spans
from debate.scoring.distributions import distribution_of
from debate.types import Failure, LabelDistribution, Memory

if TYPE_CHECKING:  # it loads SQLAlchemy
    from debate.store.workers import Others

T = TypeVar("T")
_SEPARATORS = (" > ", ">", ", ", " ")


def drive(
    flow: Flow[T],
    reply: Callable[[Generate], str | Completion | Failure],
    recall: Callable[[Recall], Sequence[Memory]] | None = None,
    *,
    observe: Callable[[Request], object] | None = None,
) -> T:
    """Drive a flow by hand: send it what it asks for until it returns, and return that.

    Child flows are driven one after the other, the last one first: their order must not matter. A function that raises
    is answered with a `Failure`, as the engine does it.

    Args:
        flow: such as `evaluator.flow(task, RunContext())`.
        reply: the answer to a call: a text, a `Completion` or a `Failure`; `reply_for` suits every call with a schema.
        recall: the memories that answer a request, best first; None remembers nothing.
        observe: is told of each request before it is answered.

    >>> drive(ValueEvaluator().flow(Task("2 + 2?", ["4", "5"]), RunContext()), reply_for).status
    'ok'
    """
    sent: Any = None
    while True:
        try:
            request = flow.send(sent)
        except StopIteration as end:
            return end.value
        if observe is not None:
            observe(request)
        match request:
            case Generate():
                said = reply(request)
                sent = Completion(said) if isinstance(said, str) else said
            case Recall():
                sent = tuple(recall(request)) if recall else ()
            case CallFunction():
                sent = _called(request)
            case Gather():
                backwards = [drive(child, reply, recall, observe=observe) for child in reversed(request.flows)]
                sent = tuple(reversed(backwards))


def _called(request: CallFunction) -> Any:
    try:
        answer = request.function(*request.arguments)
        return asyncio.run(answer) if inspect.iscoroutine(answer) else answer
    except Exception as error:
        return Failure("raised", f"{type(error).__name__}: {error}")


def reply_for(call: Generate | Call) -> Any:
    """A well-formed reply to a call: JSON under its schema, drawn by its seed; a digit where it has no schema.

    A call with a read-out is answered with a `Completion` that has a distribution for each place, drawn by its seed
    too; every other one with a text. The same call gets the same reply in every process. Serves `drive` and `Scripted`
    alike.

    Raises:
        ValueError: for a schema with a pattern that neither words nor the labels shown can match.

    >>> with Engine(Scripted(reply_for)) as engine:
    ...     engine.evaluate(Task("2 + 2?", ["4", "5"]), DebateEvaluator("general")).status
    'ok'
    """
    if isinstance(call, Call):
        seed = call.seed
    else:
        read_out = () if call.read_out is None else (call.read_out.encoded(),)
        seed = derive(call.prompt.messages(), list(call.sample_key), call.attempt, *read_out)
    text = _text_for(call, seed)
    return text if call.read_out is None else _read_out(call, call.read_out, text, seed)


def _text_for(call: Generate | Call, seed: int) -> str:
    if call.read_out is not None and call.read_out.continuations:
        return ""
    if call.schema is None:
        return str(random.Random(seed).randint(0, 9))
    return json.dumps(write_value(call.schema, seed, [*call.info.get("labels", ())]))


def _read_out(call: Generate | Call, read_out: ReadOut, text: str, seed: int) -> Completion:
    draw, places = random.Random(seed), read_out.continuations or value_spans(text)
    distributions = tuple(_distribution(read_out.labels, draw) for _ in places)
    return Completion(text, usage=estimated_usage(call, text), distributions=distributions)


def _distribution(labels: Sequence[str], draw: random.Random) -> LabelDistribution:
    """Some probability for each label, and at most a tenth of it for anything else."""
    drawn = {label: draw.random() for label in labels}
    share = draw.uniform(0.9, 1.0) / sum(drawn.values())
    return distribution_of({label: weight * share for label, weight in drawn.items()})


def write_value(schema: Mapping[str, Any], seed: int = 0, labels: Sequence[str] = ()) -> Any:
    """A value that a JSON schema allows, drawn by a seed.

    Args:
        schema: of objects, arrays, enums, booleans, numbers, strings and null, and of one of several types.
        seed: the same one draws the same value.
        labels: what a string may list that must match a pattern.

    Raises:
        ValueError: for a pattern that neither words nor the labels match.

    >>> write_value({"type": "number", "minimum": 0, "maximum": 10}, seed=1)
    2
    """
    return _value(schema, random.Random(seed), [*labels])


def _value(schema: Mapping[str, Any], draw: random.Random, labels: list[str]) -> Any:
    """A value that a JSON schema allows; of schemas, what the package and its users write."""
    if "enum" in schema:
        return draw.choice(schema["enum"])
    kind: Any = schema.get("type")
    if isinstance(kind, list):  # of a kind and null, which comes seldom
        return _value({**schema, "type": kind[0]}, draw, labels) if draw.random() > 0.1 else None
    match kind:
        case "object":
            return {name: _value(part, draw, labels) for name, part in schema["properties"].items()}
        case "array":
            n = draw.randint(schema.get("minItems", 0), schema.get("maxItems", schema.get("minItems", 0) + 2))
            return [_value(schema["items"], draw, labels) for _ in range(n)]
        case "boolean":
            return draw.random() < 0.5
        case "integer" | "number":
            return draw.randint(int(schema.get("minimum", 0)), int(schema.get("maximum", 10)))
        case _:
            return _text(schema, draw, labels)


def _text(schema: Mapping[str, Any], draw: random.Random, labels: list[str]) -> str:
    pattern, longest = schema.get("pattern", ""), schema.get("maxLength", 100)
    for text in _texts(draw, labels):
        if schema.get("minLength", 0) <= len(text) <= longest and re.search(pattern, text):
            return text
    raise ValueError(f"no reply is known for the pattern {pattern!r}; write one in a reply function of your own")


def _texts(draw: random.Random, labels: list[str]) -> Iterator[str]:
    words = f"Words number {draw.randint(0, 99)}."
    yield from (words[:n] for n in range(len(words), -1, -1))
    shuffled = draw.sample(labels, len(labels))
    yield from (separator.join(shuffled) for separator in _SEPARATORS)


class Recorder:
    """A reply function that keeps in `calls` what it was given, in order.

    Its items are `Generate` under `drive`, and `Call` in a `Scripted` backend.

    >>> judge = Recorder(reply_for)
    >>> drive(flow, judge)
    >>> judge.calls[0].prompt.messages()
    """

    def __init__(self, reply: Callable[[Any], Any] = reply_for) -> None:
        self.reply = reply
        self.calls: list[Any] = []

    def __call__(self, call: Any) -> Any:
        """Keep the call, and reply."""
        self.calls.append(call)
        return self.reply(call)


class DictJournal:
    """Keeps the answers of one task in `entries`, in the order in which they came; see `debate.journal.Journal`.

    >>> journal = DictJournal()
    >>> await runner.evaluate(evaluator, task, journal)
    >>> await runner.evaluate(evaluator, task, DictJournal(journal.entries))  # asks for nothing
    """

    def __init__(self, entries: Mapping[CallKey, Answer] | None = None) -> None:
        self.entries: dict[CallKey, Answer] = dict(entries or {})

    def retry_generation(self, address: Address) -> int:
        """Always the first."""
        return 0

    def get(
        self, key: CallKey, prompt_hash: str, seed: int | None = None, info: Mapping[str, Any] | None = None
    ) -> Answer | None:
        """The recorded answer, whatever the prompt."""
        return self.entries.get(key)

    async def put(self, key: CallKey, call: Call | Recall, answer: Answer) -> None:
        """Record an answer; the same call recorded again is an `AssertionError`."""
        assert key not in self.entries, f"{key} was asked twice"
        self.entries[key] = answer


class SilentListener:
    """A `debate.jobs.run.RunListener` that says nothing; derive from it to override what you need.

    >>> Run(...).execute({"scripted": Scripted(reply_for)}, SilentListener())
    """

    def started(self, total: int, done_before: int) -> None:
        """Say nothing."""

    def loading(self) -> None:
        """Say nothing."""

    def loaded(self) -> None:
        """Say nothing."""

    def answered(self, call: Call, completion: Completion) -> None:
        """Say nothing."""

    def finished(self, evaluation: Evaluation) -> None:
        """Say nothing."""

    def judged(self, right: int, labeled: int) -> None:
        """Say nothing."""

    def shared(self, others: Others) -> None:
        """Say nothing."""

    def waiting(self) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
