"""What backends that talk to a server share: slots, retries, escaped special tokens, and one error for every fault.

A server's own adapter says how one attempt is made. Knows no particular server.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from dataclasses import replace

from debate.backends.base import Call, Capacity
from debate.backends.http.special_tokens import escape_special_tokens
from debate.errors import ConfigError
from debate.flow import Completion
from debate.net.retry import Retrier, RetryPolicy
from debate.net.urls import check_base_url

log = logging.getLogger("debate")


class HTTPBackend(ABC):
    """A chat server at `base_url` that is asked at most `slots` times at once."""

    def __init__(self, model: str, base_url: str, *, slots: int, retry_policy: RetryPolicy | None) -> None:
        if not model.strip():
            raise ConfigError("must not be empty", field="model")
        if slots < 1:
            raise ConfigError(f"must be at least 1, got {slots}", field="slots")
        self.model = model
        self.base_url = check_base_url(base_url)
        self.capacity = Capacity(slots)
        self.retry_policy = retry_policy or RetryPolicy()
        self._begin()

    def _begin(self) -> None:
        """Forget the troubles of an earlier start. What waits here belongs to the event loop it first waits on."""
        self.persistence = Retrier(self.retry_policy, f"{self.model} at {self.base_url}")
        self._room = asyncio.Semaphore(self.capacity.slots)

    async def generate(self, call: Call) -> Completion:
        """Ask, again where that may help.

        Raises:
            CallError, BackendUnavailableError: see `Retrier.call`.
        """
        messages, escaped_special_tokens = escape_special_tokens(call.prompt)
        async with self._room:
            completion = await self.persistence.call(lambda: self._ask(call, messages))
        return replace(completion, escaped_special_tokens=escaped_special_tokens)

    @abstractmethod
    async def start(self) -> None:
        """Make the client; nothing is sent."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections."""

    @abstractmethod
    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        """Make one attempt; raises `TransportError`."""


def count(value: object) -> int:
    """A number of tokens as a server states it; 0 where it states none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
