"""What backends that talk to a server share: a slot, patience, neutral messages, and the fault of whatever went wrong.

A server's own adapter says how one attempt is made. Knows no particular server.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod

from debate.backends.addresses import check_base_url
from debate.backends.base import Call, Capacity
from debate.backends.neutral import neutral_messages
from debate.backends.persistence import Patience, Persistence
from debate.errors import ConfigError
from debate.flow import Completion

log = logging.getLogger("debate")


class ChatServer:
    """A chat server at `base_url` that is asked at most `slots` times at once."""

    def __init__(self, model: str, base_url: str, *, slots: int, patience: Patience | None) -> None:
        if not model.strip():
            raise ConfigError("must not be empty", field="model")
        if slots < 1:
            raise ConfigError(f"must be at least 1, got {slots}", field="slots")
        self.model = model
        self.base_url = check_base_url(base_url)
        self.capacity = Capacity(slots)
        self.persistence = Persistence(patience or Patience(), f"{model} at {self.base_url}")
        self._room = asyncio.Semaphore(slots)

    async def generate(self, call: Call) -> Completion:
        """Ask, again where that may help.

        Raises:
            CallError, BackendDead: see `Persistence.call`.
        """
        messages, neutralised = neutral_messages(call.prompt)
        async with self._room:
            completion = await self.persistence.call(lambda: self._ask(call, messages))
        return Completion(completion.text, completion.finish_reason, completion.usage, neutralised)

    @abstractmethod
    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        """Make one attempt; raises `ServerFault`."""
