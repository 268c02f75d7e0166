"""Asking a model once more while its reply cannot be read. Knows nothing of what is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from debate.errors import ReplyError
from debate.flow import Completion, Flow, Generate, generate
from debate.types import Failure, InvalidReply

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """What came of it: a value or a failure, never both."""

    value: T | None
    text: str = ""
    """The reply that was read, raw."""
    failure: Failure | None = None
    rejected: tuple[InvalidReply, ...] = ()
    """Replies that could not be read."""
    tokens: int = 0
    """Prompt and completion tokens of all attempts."""
    neutralised: int = 0
    """See `Completion.neutralised`."""


def generate_parsed(
    call: Callable[[int, ReplyError | None], Generate], read: Callable[[Completion], T], retries: int
) -> Flow[Parsed[T]]:
    """Make the call of each attempt, with what was wrong with the last reply, until `read` takes one.

    Args:
        call: from the attempt, counted from 0, and the error of the one before.
        read: the value in a reply; raises `ReplyError` when there is none.
        retries: how often to ask again.
    """
    rejected: list[InvalidReply] = []
    error: ReplyError | None = None
    answer: Completion | Failure | None = None
    tokens = 0
    for attempt in range(retries + 1):
        answer = yield from generate(call(attempt, error))
        if isinstance(answer, Failure):
            return Parsed(None, failure=answer, rejected=tuple(rejected), tokens=tokens)
        tokens += answer.usage.total_tokens
        try:
            value = read(answer)
        except ReplyError as unreadable:
            error = unreadable
            rejected.append(InvalidReply(answer.text, unreadable.reason, unreadable.message))
            continue
        return Parsed(value, answer.text, None, tuple(rejected), tokens, answer.neutralised)
    assert error is not None and answer is not None
    message = f"no readable reply in {len(rejected)} tries: {error.message}"
    failure = Failure("unreadable_reply", message, call=answer.call)
    return Parsed(None, failure=failure, rejected=tuple(rejected), tokens=tokens)
