"""A backend whose replies come from a function: for tests, yours and ours. No model, no network, no clock."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from debate.backends.base import Call, Capacity
from debate.concurrency.exits import ends_more
from debate.errors import BackendError, CallError
from debate.flow import Completion
from debate.types import Usage

Script = Callable[[Call], str | Completion | Awaitable[str | Completion]]


class Scripted:
    """Answers every call with `fn(call)`, plain or async.

    `fn` returns the reply's text, or a `Completion` to set the finish reason and the usage; without one, usage counts
    four characters per token. An exception that it raises becomes a failed call, as a model's would; KeyboardInterrupt
    and SystemExit end the batch and reach the caller.

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
        if isinstance(answer, Completion):
            return answer
        if not isinstance(answer, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            name = getattr(self._fn, "__qualname__", type(self._fn).__name__)
            told = f"the script {name} returned {answer!r:.80}, which is neither a text nor a Completion"
            raise CallError("script_returned", told)
        characters = sum(len(message["content"]) for message in call.messages)
        return Completion(answer, usage=Usage(characters // 4, 0, len(answer) // 4, 1))

    async def aclose(self) -> None:
        """Nothing to let go of."""
