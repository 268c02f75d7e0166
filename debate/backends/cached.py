"""A backend with a cache of replies: equal calls are asked once, also while the first of them is under way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Protocol

from debate.backends.base import Backend, Call, Capacity, provider_of, reply_settings
from debate.concurrency.exits import is_being_cancelled
from debate.flow import Completion
from debate.hashing import digest


class Replies(Protocol):
    """Replies by key."""

    async def get(self, key: str) -> Completion | None:
        """The reply that is kept, or None."""
        ...

    async def put(self, key: str, model: str, completion: Completion) -> None:
        """Keep a reply; returns once it is safe."""
        ...


class Cached:
    """Another backend, asked once for what is equal: model, messages, schema, sampling, read-out and seed.

    The seed is made of the run's seed and the sample's key, so the samples of one prompt stay apart. Equal calls under
    way share one request (single flight). A failure is not kept.
    """

    def __init__(self, backend: Backend, replies: Replies) -> None:
        self.model = backend.model
        self.is_chat = getattr(backend, "is_chat", False)
        self.reads_labels = getattr(backend, "reads_labels", False)
        self.thinks = getattr(backend, "thinks", False)
        self.reply_settings = reply_settings(backend)
        self.provider = provider_of(backend)
        self.start, self.aclose = backend.start, backend.aclose
        self._backend = backend
        self._replies = replies
        self._under_way: dict[str, asyncio.Task[Completion]] = {}

    @property
    def capacity(self) -> Capacity:
        """That of the backend."""
        return self._backend.capacity

    async def generate(self, call: Call) -> Completion:
        """The kept reply, the one that is under way, or a new one."""
        key = digest(self.model, call.prompt_hash, call.seed)
        if (shared := self._under_way.get(key)) is None:
            return await self._first(key, call)
        try:
            return replace(await asyncio.shield(shared), cached=True)
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            return await self.generate(call)  # whoever asked first was cancelled; somebody else asks now

    async def _first(self, key: str, call: Call) -> Completion:
        work = asyncio.ensure_future(self._found_or_asked(key, call))
        self._under_way[key] = work
        try:
            return await work
        finally:
            del self._under_way[key]
            if not work.done():
                work.cancel()

    async def _found_or_asked(self, key: str, call: Call) -> Completion:
        if (kept := await self._replies.get(key)) is not None:
            return kept
        completion = await self._backend.generate(call)
        if not completion.is_cut_in_thinking:  # with more tokens for it there is a reply
            await self._replies.put(key, self.model, completion)
        return completion
