"""Where an engine's backends live: the thread of their event loop, from the first use of the engine to its end.

An engine that is closed leaves its home in order. One that is forgotten, because its last reference is gone, is put out
of it by the garbage collector, which may run in any thread and must not wait: the thread then closes the backends
itself, and engines that start meanwhile wait for that. One that is made again while another has the same models loaded
and does nothing moves in there, so that no model is loaded twice.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from debate.backends.base import Backend, Transferable, close_all
from debate.concurrency.daemon_thread import in_daemon_thread
from debate.errors import EngineError
from debate.runtime.loop_thread import LoopThread, wait_for_the_forgotten
from debate.runtime.run_registry import RunRegistry

P = TypeVar("P")


class Home(Generic[P]):
    """The thread and the loop of one engine, and `parts`, what it has made there of its started backends.

    Attributes:
        parts: None until the backends are started, and again when the engine has left.
        starting: held by whoever starts them.
        streams: how many streams are open, of which nothing may be under way just now.
    """

    def __init__(self, backends: Mapping[str, Backend], recording: RunRegistry) -> None:
        self.parts: P | None = None
        self.starting = asyncio.Lock()
        self.streams = 0
        self._backends = backends
        self._recording = recording
        self._thread: LoopThread | None = None

    def move_in(self) -> None:
        """Take over the thread of an idle engine that has the same models loaded, where there is one."""
        with _LOCK:
            if self._thread is None and (thread := self._taken_over()) is not None:
                self._thread = thread
                _HOMES.add(self)

    @property
    def thread(self) -> LoopThread:
        """The thread, which is begun, or taken over from another engine, where there is none."""
        if (thread := self._thread) is not None:
            return thread
        with _LOCK:
            self.move_in()
            if self._thread is None:
                self._thread = LoopThread("debate-engine")
                _HOMES.add(self)
            return self._thread

    @property
    def is_here(self) -> bool:
        """Whether the caller runs in the thread."""
        return self._thread is not None and self._thread.is_current

    def close(self) -> None:
        """End what is under way, and close the backends and the runs.

        Raises:
            EngineError: in the thread itself, which would wait for itself.
        """
        with _LOCK:
            if self._thread is not None and self._thread.is_foreign:
                return  # all of it belongs to the process that this one was forked from
            if self.is_here:
                raise EngineError("the engine cannot be closed from within: its own thread would wait for itself")
            thread = self._vacate()
        try:
            if thread is not None:
                thread.close(partial(close_all, self._backends.values()))
        finally:
            self._recording.close()

    def forget(self) -> None:
        """Let the thread close everything on its own and end, without waiting for it; safe in the garbage collector."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.forget(self._closed)

    async def _closed(self) -> None:
        try:
            await close_all(self._backends.values())
        finally:
            await in_daemon_thread(self._recording.close, "debate-records")

    def _vacate(self) -> LoopThread | None:
        thread, self._thread = self._thread, None
        self.parts, self.starting = None, asyncio.Lock()
        return thread

    def _taken_over(self) -> LoopThread | None:
        """The thread of another home in which what this one needs is loaded and idle; it moves here."""
        return next(filter(None, (other._given_to(self) for other in [*_HOMES] if other is not self)), None)

    def _given_to(self, other: Home[P]) -> LoopThread | None:
        if not self._is_idle or self._backends.keys() != other._backends.keys():
            return None
        pairs = [(theirs, self._backends[name]) for name, theirs in other._backends.items()]
        if not all(isinstance(theirs, Transferable) and theirs.is_equal(own) for theirs, own in pairs):
            return None
        for theirs, own in pairs:
            assert isinstance(theirs, Transferable)
            theirs.take_over(own)
        return self._vacate()

    @property
    def _is_idle(self) -> bool:
        """Whether nothing of the engine is under way in its thread."""
        return self._thread is not None and self._thread.is_idle and not self.streams


_LOCK = threading.RLock()
_HOMES: WeakSet[Home[Any]] = WeakSet()


async def others_gone() -> None:
    """Wait until the engines that were forgotten before this have let go of their memory and their runs."""
    if waiting := wait_for_the_forgotten():
        await in_daemon_thread(waiting, "debate-waiting")
