"""What an evaluator is: a generator that yields requests and is sent replies.

    def my_evaluator(task):
        completion = yield Generate(prompt, ...)
        ...
        return evaluation

A flow does no I/O, reads no clock and draws no random number that its parameters do not determine. It is therefore
tested with `next()` and `.send()`, and replayed by sending it the replies that were recorded. The pattern is that of
httpx's `auth_flow`. This module knows nothing of backends, batching or storage: `debate.runtime.runner` drives flows.

Asking a model once more while its reply cannot be read. Knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from debate.errors import ReplyError
from debate.types import Failure, InvalidReply, Memory, Sampling, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunContext:
    """What holds for a whole run and reaches every flow as a parameter."""

    seed: int = 0
    today: str = ""
    """ISO date that the prompts state; the run records it, so that a resumed run states the same."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a prompt: the template's own text, or content that must never act as control tokens."""

    text: str
    is_content: bool


Block = tuple[Segment, ...]
"""A part of the prompt that is tokenised as a whole, and once."""


@dataclass(frozen=True)
class Prompt:
    """One system message and one user message, each made of blocks.

    The user message of a debate grows at its end, so consecutive prompts share their first blocks: the backend's
    prefix cache and its memo of token ids both live from that.
    """

    system: tuple[Block, ...]
    user: tuple[Block, ...]

    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages, for servers that take text."""
        pairs = (("system", self.system), ("user", self.user))
        return [
            {"role": role, "content": text} for (role, blocks), text in zip(pairs, self.texts, strict=True) if blocks
        ]

    @cached_property
    def texts(self) -> tuple[str, str]:
        """The system and the user message as text, joined once: seeds, servers and counters all ask for it."""
        return join(self.system), join(self.user)


@dataclass(frozen=True)
class Messages(Prompt):
    """A prompt whose messages have roles of their own, for models that are no chat models.

    `Messages.of([("user", task), ("intermediate_step", first), ("last_step", second)])` is how x1's value model is
    asked (seed 002).
    """

    roles: tuple[str, ...] = ()
    """One a block of the user message."""

    @classmethod
    def of(cls, said: Sequence[tuple[str, str]]) -> Messages:
        """Messages from pairs of role and text."""
        blocks = tuple((Segment(text, is_content=True),) for _, text in said)
        return cls((), blocks, tuple(role for role, _ in said))

    def messages(self) -> list[dict[str, str]]:
        """The messages as they were given."""
        return [{"role": role, "content": join([block])} for role, block in zip(self.roles, self.user, strict=True)]


def join(blocks: Sequence[Block]) -> str:
    """The text of some blocks."""
    return "".join([segment.text for block in blocks for segment in block])


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """Ask the model. Answered with a `Completion`, or with a `Failure` when the call failed for good."""

    prompt: Prompt
    sampling: Sampling = Sampling()
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply must follow."""
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
    prompt_hash: str = ""
    """Of all that shapes the reply but the seed: model, messages, schema and sampling."""
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`task_id`, `round` (from 0), `agent`, `attempt` (from 0), `labels` {label shown: candidate index} in the order
    shown; `sample` and `candidate` where they apply."""

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
    call: str | None = None
    """Address of the call that this answers; set by the runner."""
    cached: bool = False
    """Whether it was read from a cache of replies; its usage is that of the call which made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Ask the memory. Answered with a tuple of `Memory`, best first; empty when the engine has no memory."""

    collections: tuple[str, ...]
    queries: tuple[str, ...]
    """Several views of the question; the best match among them counts."""
    k: int = 5
    max_tokens: int | None = None
    weights: tuple[float, float, float] | None = None
    """Of relevance, recency and importance."""
    min_score: float | None = None
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    exclude_sources: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call a function that is no model's: a scorer, a proposer of thoughts. Answered with what it returns, or with a
    `Failure` of the reason `raised` or `timeout`.

    Plain functions run in a thread, async ones in the loop. Nothing of it is recorded: a resumed run calls it again.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    seconds: float | None = None
    """How long it may take. A plain function that takes longer is left behind, for nothing can end it."""


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
    """What came of it: a value or a failure, never both."""

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


def generate_parsed(
    call: Callable[[int, ReplyError | None], Generate], read: Callable[[Completion], T], retries: int
) -> Flow[Parsed[T]]:
    """Make the call of each attempt, with what was wrong with the last reply, until `read` takes one.

    Args:
        call: from the attempt, counted from 0, and the error of the one before.
        read: the value in a reply; raises `ReplyError` when there is none.
        retries: how often to ask again.
    """
    invalid_replies: list[InvalidReply] = []
    error: ReplyError | None = None
    answer: Completion | Failure | None = None
    tokens = 0
    for attempt in range(retries + 1):
        answer = yield from generate(call(attempt, error))
        if isinstance(answer, Failure):
            return Parsed(None, failure=answer, invalid_replies=tuple(invalid_replies), tokens=tokens)
        tokens += answer.usage.total_tokens
        try:
            value = read(answer)
        except ReplyError as unreadable:
            error = unreadable
            invalid_replies.append(InvalidReply(answer.text, unreadable.reason, unreadable.message))
            continue
        return Parsed(value, answer.text, None, tuple(invalid_replies), tokens, answer.escaped_special_tokens)
    assert error is not None and answer is not None
    message = f"no readable reply in {len(invalid_replies)} tries: {error.message}"
    failure = Failure("unreadable_reply", message, call=answer.call)
    return Parsed(None, failure=failure, invalid_replies=tuple(invalid_replies), tokens=tokens)
