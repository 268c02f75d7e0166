"""What backends behind a server share: slots, retries, escaped special tokens.

An adapter says the path, the body and how the answer is read.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from debate.backends.base import Call, Capacity, check_is_chat
from debate.backends.http.special_tokens import escape_special_tokens
from debate.backends.thinking import ThinkingSettings
from debate.errors import ConfigError
from debate.flow import Completion, Prompt
from debate.net.http import AsyncJsonClient, encoded
from debate.net.rate import Queue, RateLimits
from debate.net.retry import Retrier, RetryPolicy, held_back

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
log = logging.getLogger("debate")
_CHARACTERS_PER_TOKEN = 4
"""Of a request's JSON, about, until the server states how many tokens it was."""


class HTTPBackend(ABC):
    """A model behind the server at `base_url`, which is asked at most `slots` times at once.

    Args:
        path: what is appended to the base URL.
        api_key_env: environment variable with the server's key; None sends none.
        thinking: whether the model thinks before it replies; None leaves it to the server.
        transport: of the HTTP client, for tests and proxies.
        limits: how many requests and tokens per minute the server is sent at most; None is without limit.
    """

    is_chat = True

    def __init__(
        self,
        model: str,
        base_url: str,
        path: str,
        *,
        slots: int,
        retry_policy: RetryPolicy | None,
        api_key_env: str | None = None,
        thinking: ThinkingSettings | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        limits: RateLimits | None = None,
    ) -> None:
        if not model.strip():
            raise ConfigError("must not be empty", field="model")
        if slots < 1:
            raise ConfigError(f"must be at least 1, got {slots}", field="slots")
        self.model = model
        thinking = thinking or ThinkingSettings()
        self.thinks = thinking.is_asked_for
        self.reply_settings = thinking.shaping()
        self.capacity = Capacity(slots, thinking_tokens=thinking.tokens(thinks=self.thinks))
        self.retry_policy = retry_policy or RetryPolicy()
        self._path = path
        self._client = AsyncJsonClient(base_url, api_key_env)
        self._transport = transport
        self.limits = limits or RateLimits()

    @property
    def base_url(self) -> str:
        """Of the server, without a slash at its end."""
        return self._client.base_url

    @property
    def api_key_env(self) -> str | None:
        """The environment variable whose key every request carries, where it is set."""
        return self._client.api_key_env

    async def start(self) -> None:
        """Make the client, and forget the troubles of an earlier start; nothing is sent."""
        if not self._client.is_open:
            self._retrier = Retrier(self.retry_policy, f"{self.model} at {self.base_url}")
            self._room = asyncio.Semaphore(self.capacity.slots)
            self._queue = Queue(self.limits) if self.limits.are_set else None
            self._client.open(self._transport)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def generate(self, call: Call) -> Completion:
        """Ask, again where that may help.

        Raises:
            CallError, BackendUnavailableError: see `Retrier.call`.
        """
        messages, escaped = self._messages(call.prompt)
        completion = await self._answered(lambda: self._ask(call, messages))
        return replace(completion, escaped_special_tokens=escaped) if escaped else completion

    async def _answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer to one request, which holds a slot and is made again where that may help."""
        async with self._room:
            return await self._retrier.call(ask)

    def _messages(self, prompt: Prompt) -> tuple[list[dict[str, str]], int]:
        """The messages to send, and how many special tokens in them were escaped."""
        check_is_chat(prompt, self.model)
        return escape_special_tokens(prompt)

    def _sampling(self, call: Call) -> dict[str, Any]:
        """The sampling of a call, with room for thinking besides the reply."""
        sampling = call.sampling.to_dict()
        if "max_tokens" in sampling:
            sampling["max_tokens"] += self.capacity.thinking_tokens
        return sampling

    @abstractmethod
    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        """Make one attempt; raises `TransportError`."""

    async def _post(self, call: Call, body: Mapping[str, Any]) -> Any:
        """What the server answers to the body of a call, as JSON; raises `TransportError`.

        Every request goes through here, and waits for its turn where the server's rate is limited.
        """
        text = encoded(body)
        if (queue := self._queue) is None:
            return await self._client.post(self._path, text, call.session, call.trace_headers)
        longest = len(text) // _CHARACTERS_PER_TOKEN + self._sampling(call).get("max_tokens", 0)
        start = await held_back(queue.start(longest))
        answer = await self._client.post(self._path, text, call.session, call.trace_headers)
        if used := self._tokens_used(mapping(answer)):
            queue.correct(start, used)
        return answer

    def _tokens_used(self, answer: Mapping[str, Any]) -> int:
        """Prompt and completion tokens of an answer; 0 where it states none."""
        return 0


def count(value: object) -> int:
    """A number of tokens as a server states it; 0 where it states none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def first_text(message: Mapping[str, Any], *names: str) -> str:
    """The first of some members of a message that is a text with anything in it; empty without one."""
    texts = (message.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "").strip()


def mapping(value: object) -> dict[str, Any]:
    """A JSON object as it is; an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
