"""Flows: generators that yield requests and are sent replies. An evaluator makes one for each task.

    def flow(task, run):
        completion = yield from generate(Generate(prompt=Prompt.from_messages(task.x)))
        ...
        return evaluation

A flow does no I/O, reads no clock and draws no random number that its parameters do not determine. It is therefore
tested with `next()` and `.send()`, and replayed by sending it the replies that were recorded. The pattern is that of
httpx's `auth_flow`. This module knows nothing of backends, batching or storage: `debate.runtime.runner` drives flows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, cast, get_args

from debate.errors import ConfigError, ReplyError
from debate.hashing import Encoded, canonical
from debate.parsing.json_extract import refuse_quotation
from debate.settings import check_settings, check_value, setting
from debate.types import Failure, InvalidReply, LabelDistribution, Memory, Sampling, StopReason, Task, Turn, Usage

T = TypeVar("T")
Chat = str | Sequence[Mapping[str, str]]
"""A user's message, or chat messages `[{"role": ..., "content": ...}]`."""


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """The end of a debate's round, for displays."""

    round: int
    """Counted from 0."""
    cv: float
    """Coefficient of variation of the round; NaN when undefined."""
    stop_reason: StopReason | None
    """Why the debate ends here; None when it goes on."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """The seed and the date of a run, a parameter of every flow."""

    seed: int = 0
    today: str = ""
    """ISO date that the prompts state; the run records it, so that a resumed run states the same."""
    watch: Callable[[Turn | RoundEnd], object] | None = field(default=None, compare=False, repr=False)
    """Is told of a debate as it goes, for displays; changes nothing."""

    def tell(self, news: Turn | RoundEnd) -> None:
        """Tell who watches, if anybody does."""
        if self.watch is not None:
            self.watch(news)


class Segment(NamedTuple):
    """A piece of a prompt: the template's own text, or content that must never act as control tokens."""

    text: str
    is_content: bool


class Block(tuple[Segment, ...]):
    """A part of the prompt that is tokenized as a whole, and once. What is made of it is kept with it."""

    @cached_property
    def text(self) -> str:
        """The segments' texts, joined."""
        return "".join([text for text, _ in self])

    @cached_property
    def in_json(self) -> str:
        """The text as it stands between the quotation marks of canonical JSON."""
        return canonical(self.text)[1:-1]


@dataclass(frozen=True)
class Prompt:
    """One system message and one user message, each made of blocks.

    The user message of a debate grows at its end, so consecutive prompts share their first blocks: the backend's
    prefix cache and its memo of token ids both live from that.
    """

    system: tuple[Block, ...]
    user: tuple[Block, ...]

    @classmethod
    def from_messages(cls, messages: Chat) -> Prompt:
        """A prompt of content alone: nothing in it acts as a control token.

        messages: the user's message, or a system message and the user's as chat messages.

        Raises:
            ConfigError: for other roles, or several messages of a role.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        roles = [message.get("role") for message in messages]
        if roles not in (["user"], ["system", "user"]):
            raise ConfigError(f"must be a user message, or a system and a user message, got {roles}", field="messages")
        if not all(isinstance(message.get("content"), str) for message in messages):
            raise ConfigError("the content of a message must be a text", field="messages")
        *system, user = (Block([Segment(message["content"], is_content=True)]) for message in messages)
        return Prompt(tuple(system), (user,))

    @property
    def said(self) -> Sequence[tuple[str, tuple[Block, ...]]]:
        """The messages: each one's role and blocks."""
        return [(role, blocks) for role, blocks in (("system", self.system), ("user", self.user)) if blocks]

    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages, for servers that take text."""
        return [{"role": role, "content": join(blocks)} for role, blocks in self.said]

    @cached_property
    def encoded(self) -> Encoded:
        """The messages as canonical JSON, of which every block makes its own once."""
        messages: list[str] = []
        for role, blocks in self.said:
            text = "".join([block.in_json for block in blocks])
            messages.append(f'{{"content":"{text}","role":{canonical(role)}}}')
        return Encoded(f"[{','.join(messages)}]")

    @property
    def contents(self) -> Iterator[str]:
        """The texts in the user message that are not the templates' own."""
        return (text for block in self.user for text, is_content in block if is_content)

    @cached_property
    def texts(self) -> tuple[str, str]:
        """The system and the user message as text, joined once: seeds, servers and counters all ask for it."""
        return join(self.system), join(self.user)


@dataclass(frozen=True)
class Messages(Prompt):
    """A prompt whose messages have roles of their own, for models that are no chat models.

    `Messages.of([("user", task), ("intermediate_step", first), ("last_step", second)])` is how x1's value model is
    asked.
    """

    roles: tuple[str, ...] = ()
    """One per block of the user message."""

    @classmethod
    def of(cls, said: Sequence[tuple[str, str]]) -> Messages:
        """Messages from pairs of role and text."""
        blocks = tuple(Block([Segment(text, is_content=True)]) for _, text in said)
        return cls((), blocks, tuple(role for role, _ in said))

    @property
    def said(self) -> Sequence[tuple[str, tuple[Block, ...]]]:
        """The messages as they were given."""
        return [(role, (block,)) for role, block in zip(self.roles, self.user, strict=True)]


def join(blocks: Sequence[Block]) -> str:
    """The text of some blocks."""
    return "".join([block.text for block in blocks])


@dataclass(frozen=True, slots=True)
class ReadOut:
    """Asks how likely the model holds each label, at one or several places of its reply.

    With `continuations`, nothing is decoded: each is what the reply has said when the next label is due, and all of
    them are read from the shared prompt at once. Without, the places are the values in the reply itself: the numbers
    and nulls of its JSON, outside strings, in the order of the text; see `debate.parsing.places`.

    It is one call with one record, answered with one distribution per place; a backend asks its model as often as it
    takes. `usage.calls` counts it once.
    """

    labels: tuple[str, ...]
    """Texts that may stand at each place, no two alike: `0` to `10`, or `null`."""
    continuations: tuple[tuple[Block, ...], ...] = ()

    def encoded(self) -> list[Any]:
        """What shapes the answer, for hashes."""
        texts = ["".join([text for block in blocks for text, _ in block]) for blocks in self.continuations]
        return [list(self.labels), texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """Ask the model. Answered with a `Completion`, or with a `Failure` when the call failed for good."""

    prompt: Prompt
    sampling: Sampling = Sampling()
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply must follow."""
    read_out: ReadOut | None = None
    """Which probabilities are read besides the reply, or in its stead."""
    model: str | None = None
    """None is the run's model."""
    sample_key: tuple[str | int, ...] = ()
    """What tells this sample from others of the same prompt: (agent, round) in a debate."""
    attempt: int = 0
    """Counts up when a reply could not be read and the flow asks again."""
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the call is about, for logs and scripted backends. Never part of a seed or a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to a model, complete: what a `Generate` becomes once its model and its seed are known."""

    model: str
    prompt: Prompt
    sampling: Sampling
    seed: int
    schema: Mapping[str, Any] | None = None
    """The reply's JSON schema."""
    read_out: ReadOut | None = None
    """See `Generate.read_out`."""
    prompt_hash: str = ""
    """Of all that shapes the reply but the seed: model, messages, schema and sampling."""
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`task_id`, `round` (from 0), `agent`, `attempt` (from 0), `labels` {label shown: candidate index} in the order
    shown; `sample` and `candidate` where they apply. A silent read-out has a `moment`, `before` or `after`, and the
    number of rounds taken as its round."""
    session: str = ""
    """Digest that all calls of a task share within a run, so that one replica of a model gets them all and has their
    prefix cached; empty for a call that belongs to no task. Never part of a seed or a record."""
    replies_ahead: int = 0
    """Replies that its evaluation may still wait for, one after the other, at most: where calls queue, those with more
    ahead of them go first, so that a run does not end in long evaluations that began late. Never part of a seed or a
    record."""
    trace_headers: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """By which a server puts its spans under the call's, where calls are traced. Never part of a seed or a record."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages: `[{"role": ..., "content": ...}]`."""
        return self.prompt.messages()


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model said."""

    text: str
    finish_reason: str = "stop"
    """`length` when the reply was cut off."""
    usage: Usage = Usage(calls=1)
    escaped_special_tokens: int = 0
    """Control strings in content that were broken for a server which applies a chat template itself."""
    distributions: tuple[LabelDistribution, ...] = ()
    """What was read out, one for each place; of places without continuations, those that the reply has."""
    call: str | None = None
    """Address of the call that this answers; set by the runner."""
    cached: bool = False
    """Whether it was read from a cache of replies; its usage is that of the call which made it."""
    failure: Failure | None = None
    """Why there is no text, in what `Engine.generate` returns; a flow gets the `Failure` itself."""
    thinking: str = ""
    """What the model thought before it replied, where it says so; no part of `text`."""

    @property
    def is_cut_in_thinking(self) -> bool:
        """Whether the length limit came before the end of the thinking, so that there is no reply."""
        return self.finish_reason == "length" and bool(self.thinking) and not self.text.strip()


MemoryKind = Literal["episodic", "semantic", "reflection"]


class Weights(NamedTuple):
    """Weights of the parts of a memory's score, each at least 0."""

    relevance: float = 1.0
    recency: float = 0.1
    importance: float = 0.1


WeightsLike = Weights | Mapping[str, float] | Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """Which memories are recalled.

    Raises:
        ConfigError: for a value out of range, an unknown kind, or metadata that JSON cannot hold.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    collections: tuple[str, ...] = ()
    """Collections to search; empty means the agent's own, `profile/persona`."""
    k: int = setting(5, "Memories that are recalled, at most.", ge=1)
    max_tokens: int | None = setting(None, "Tokens of all recalled texts together, at most.", ge=0)
    weights: Weights | None = None
    """Weights of relevance, recency and importance; None takes those of the memory."""
    min_score: float | None = setting(None, "Recall memories with at least this score only.")
    kinds: tuple[MemoryKind, ...] = ()
    """Recall memories of these kinds only; empty is all."""
    sources: tuple[str, ...] = ()
    """Only from these sources; empty is all."""
    exclude_sources: tuple[str, ...] = ()
    """Not from these."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Only memories whose metadata has all these values."""

    def __post_init__(self) -> None:
        for name in ("collections", "kinds", "sources", "exclude_sources"):
            if not isinstance(given := getattr(self, name), tuple):
                object.__setattr__(self, name, as_texts(check_value(name, given, str | Collection)))
        object.__setattr__(self, "weights", None if self.weights is None else _as_weights(self.weights))
        object.__setattr__(self, "metadata", as_json(self.metadata))
        check_settings(self)
        for kind in self.kinds:
            if kind not in get_args(MemoryKind):
                raise ConfigError(f"must be one of {', '.join(get_args(MemoryKind))}, got {kind!r}", field="kinds")

    def to_dict(self) -> dict[str, Any]:
        """What is set, as plain data."""
        return {
            name: list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
            for name, value in self.given().items()
        }

    def given(self) -> dict[str, Any]:
        """The fields that are neither None nor empty, by name."""
        values = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, (), {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(MemorySettings):
    """Ask the memory. Answered with a tuple of `Memory`, best first; empty when the engine has no memory."""

    queries: tuple[str, ...]
    """Several views of the question; the best match among them counts."""
    task: Task | None = None
    """The task that is evaluated: what came of it is not recalled, so that no task reminds of its own evaluation."""


def as_texts(given: str | Sequence[str]) -> tuple[str, ...]:
    """One text or several, as a tuple."""
    return (given,) if isinstance(given, str) else tuple(given)


def _as_weights(given: WeightsLike) -> Weights:
    try:
        weights = Weights(**given) if isinstance(given, Mapping) else Weights._make(given)
        is_finite = {name: 0 <= weight < math.inf for name, weight in weights._asdict().items()}
    except TypeError:
        hint = "relevance, recency and importance, as numbers"
        raise ConfigError(f"cannot be read: {given!r}", field="weights", hint=hint) from None
    for name, is_valid in is_finite.items():
        if not is_valid:
            raise ConfigError(f"must be at least 0 and finite, got {getattr(weights, name)}", field=f"weights.{name}")
    return weights


def as_json(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Metadata as plain JSON data, its keys in order.

    Raises:
        ConfigError: for what JSON cannot hold.
    """
    if not given:
        return {}
    try:
        text = json.dumps(given, ensure_ascii=False, sort_keys=True, allow_nan=False)
        text.encode("utf-8")
        return cast("dict[str, Any]", json.loads(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"must be plain JSON data: {error}", field="metadata") from None


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call a function, such as a scorer. Answered with what it returns, or with a `Failure` of the reason `raised` or
    `timeout`.

    Plain functions run in a thread, async ones on the event loop. Nothing is recorded: a resumed run calls it again.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    seconds: float | None = None
    """How long it may take. A plain function that takes longer is abandoned, because a thread cannot be ended."""


@dataclass(frozen=True, slots=True)
class Gather:
    """Drive child flows independently of one another. Answered with the tuple of what they return."""

    flows: tuple[Flow[Any], ...]


Request = Generate | Recall | CallFunction | Gather
Reply = Completion | Failure | tuple[Memory, ...] | tuple[Any, ...]
Flow = Generator[Request, Any, T]


def generate(call: Generate) -> Flow[Completion | Failure]:
    """Yield a call and get its typed answer: `completion = yield from generate(call)`."""
    answer: Completion | Failure = yield call
    return answer


def recall(request: Recall) -> Flow[tuple[Memory, ...]]:
    """Yield a recall and get its typed answer."""
    answer: tuple[Memory, ...] = yield request
    return answer


def call_function(function: Callable[..., Any], *arguments: Any, seconds: float | None = None) -> Flow[Any]:
    """Yield a function to call and get what it returns, or a `Failure`."""
    answer = yield CallFunction(function, arguments, seconds)
    return answer


def gather(flows: Sequence[Flow[T]]) -> Flow[tuple[T, ...]]:
    """Yield child flows and get what they return, in their order."""
    answer: tuple[T, ...] = yield Gather(tuple(flows))
    return answer


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """The value read from a reply, or the failure: never both."""

    value: T | None
    text: str = ""
    """The reply that was read, raw."""
    failure: Failure | None = None
    invalid_replies: tuple[InvalidReply, ...] = ()
    """Replies that could not be read."""
    tokens: int = 0
    """Prompt and completion tokens of all attempts."""
    escaped_special_tokens: int = 0
    """See `Completion.escaped_special_tokens`."""
    distributions: tuple[LabelDistribution, ...] = ()
    """See `Completion.distributions`."""
    thinking: str = ""
    """What the model thought before the reply that was read."""


def generate_parsed(
    call: Callable[[int, ReplyError | None], Generate], read: Callable[[Completion], T], retries: int
) -> Flow[Parsed[T]]:
    """Ask until a reply can be read, each time with what was wrong with the last one.

    A reply that only quotes a JSON object of its prompt cannot be read, where a schema asks for one.

    Args:
        call: makes the call of an attempt, counted from 0, given the error of the one before.
        read: returns the value in a reply; raises `ReplyError` when there is none.
        retries: how often to ask again.
    """
    invalid_replies: list[InvalidReply] = []
    error: ReplyError | None = None
    answer: Completion | Failure | None = None
    tokens = 0
    for attempt in range(retries + 1):
        request = call(attempt, error)
        answer = yield from generate(request)
        if isinstance(answer, Failure):
            return Parsed(None, failure=answer, invalid_replies=tuple(invalid_replies), tokens=tokens)
        tokens += answer.usage.total_tokens
        try:
            _refuse_cut_thinking(answer)
            value = read(answer)
            if request.schema is not None and "{" in request.prompt.texts[1]:
                refuse_quotation(answer.text, request.prompt.contents)
        except ReplyError as unreadable:
            error = unreadable
            invalid_replies.append(InvalidReply(answer.text, unreadable.reason, unreadable.message, answer.thinking))
            continue
        return Parsed(
            value,
            answer.text,
            invalid_replies=tuple(invalid_replies),
            tokens=tokens,
            escaped_special_tokens=answer.escaped_special_tokens,
            distributions=answer.distributions,
            thinking=answer.thinking,
        )
    assert error is not None and answer is not None
    failure = _unreadable(error, answer, len(invalid_replies))
    return Parsed(None, failure=failure, invalid_replies=tuple(invalid_replies), tokens=tokens)


THINKING_CUT = "thinking_cut_off"
"""Reason of a reply whose thinking came to the length limit, and of the failure when it did so in the last try."""


def _refuse_cut_thinking(answer: Completion) -> None:
    """Refuse a reply that has no more than the beginning of its thinking."""
    if answer.is_cut_in_thinking:
        problem = "Your thinking came to the length limit before your reply began; think less, and then reply."
        raise ReplyError(THINKING_CUT, problem)


def _unreadable(error: ReplyError, answer: Completion, tries: int) -> Failure:
    """The failure of a call whose last reply could not be read either."""
    if error.reason != THINKING_CUT:
        message = f"no readable reply in {tries} tries: {error.message}"
        return Failure("unreadable_reply", message, call=answer.call)
    message = (
        f"no reply in {tries} tries: the thinking did not end within {answer.usage.completion_tokens:,} tokens; give "
        "it more with thinking_tokens (--thinking-tokens)"
    )
    return Failure(THINKING_CUT, message, call=answer.call)
