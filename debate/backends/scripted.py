"""A backend whose replies come from a function: for tests, yours and ours. No model, no network, no clock."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from debate.backends.base import Call, Capacity
from debate.concurrency.exits import ends_more
from debate.errors import BackendError, CallError
from debate.flow import Completion, Generate, join
from debate.types import Usage

Script = Callable[[Call], str | Completion | Awaitable[str | Completion]]


class Scripted:
    """Answers every call with `fn(call)`, plain or async.

    `fn` returns the reply's text, or a `Completion` to set the finish reason, the usage and what is read out; without
    one, usage counts four characters per token. A call whose `read_out` has continuations needs a `Completion` with a
    distribution for each of them. An exception that `fn` raises becomes a failed call, as a model's would;
    KeyboardInterrupt and SystemExit end the batch and reach the caller.

    >>> engine = Engine(Scripted(lambda call: '{"overall": ...}'))
    """

    reads_labels = True

    def __init__(self, fn: Script, *, model: str = "scripted", slots: int = 64) -> None:
        self._fn = fn
        self.model = model
        self.capacity = Capacity(slots)

    async def start(self) -> None:
        """Nothing to load."""

    async def generate(self, call: Call) -> Completion:
        """Call the function."""
        try:
            answer = self._fn(call)
            if inspect.isawaitable(answer):
                answer = await answer
        except BaseException as error:
            if ends_more(error) or isinstance(error, BackendError):
                raise
            raise CallError("script_raised", f"the script raised {type(error).__name__}: {error}") from error
        self._check(answer, call)
        return answer if isinstance(answer, Completion) else Completion(answer, usage=estimated_usage(call, answer))

    def _check(self, answer: object, call: Call) -> None:
        places = len(call.read_out.continuations) if call.read_out else 0
        if not isinstance(answer, Completion | str):
            problem = "which is neither a text nor a Completion"
        elif places and (isinstance(answer, str) or len(answer.distributions) != places):
            problem = f"not a Completion with {places} distributions, one for each continuation of the call"
        else:
            return
        name = getattr(self._fn, "__qualname__", type(self._fn).__name__)
        raise CallError("script_returned", f"the script {name} returned {answer!r:.80}, {problem}")

    async def aclose(self) -> None:
        """Nothing to let go of."""


def estimated_usage(call: Call | Generate, text: str) -> Usage:
    """What a call and its reply come to at four characters per token; each continuation has a reply of one token."""
    continuations = call.read_out.continuations if call.read_out else ()
    characters = sum(map(len, call.prompt.texts)) + sum(len(join(each)) for each in continuations)
    return Usage(characters // 4, 0, len(continuations) or len(text) // 4, 1)
