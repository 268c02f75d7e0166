"""Models that stay loaded from one engine to the next, for runs that follow each other in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from debate.backends.base import Backend, Call, Capacity
from debate.errors import BackendUnavailableError
from debate.flow import Completion
from debate.runtime.loop_thread import LoopThread


@contextmanager
def kept_loaded(backends: Mapping[str, Backend]) -> Generator[dict[str, Backend]]:
    """The same backends, which engines start once and do not close before the end of the block."""
    kept = {name: _Kept(backend) for name, backend in backends.items()}
    with ExitStack() as until:
        for each in kept.values():
            until.callback(each.release)
        yield dict(kept)


class _Kept:
    """A backend on an event loop of its own, to which one belongs that is started. One that died is started anew."""

    def __init__(self, backend: Backend) -> None:
        self.model = backend.model
        self._backend = backend
        self._thread: LoopThread | None = None
        self._is_usable = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    @property
    def capacity(self) -> Capacity:
        return self._backend.capacity

    async def start(self) -> None:
        if self._thread is None:
            self._thread = LoopThread("debate-backend")
            await self._thread.arun(self._backend.start())
            self._is_usable = True

    async def generate(self, call: Call) -> Completion:
        assert self._thread is not None, "an engine starts its backends before it asks them"
        try:
            return await self._thread.arun(self._backend.generate(call))
        except BackendUnavailableError:
            self._is_usable = False
            raise

    async def aclose(self) -> None:
        if not self._is_usable:
            await asyncio.to_thread(self.release)

    def release(self) -> None:
        thread, self._thread, self._is_usable = self._thread, None, False
        if thread is not None:
            thread.close(self._backend.aclose)
