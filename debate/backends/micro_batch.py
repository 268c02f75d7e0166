"""Puts single requests together into batches, for servers and models that take many at once.

Knows nothing of what is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class MicroBatcher(Generic[Item, Answer]):
    """Collects what comes within `seconds`, at most `size`, and sends it as one; what one send raises, all meet."""

    def __init__(
        self, send: Callable[[list[Item]], Awaitable[Sequence[Answer]]], size: int, seconds: float = 0.005
    ) -> None:
        self._send = send
        self._size = size
        self._seconds = seconds
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def ask(self, item: Item) -> Answer:
        """The answer to one item."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((item, answer))
        if len(self._waiting) >= self._size:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(self._seconds, self._flush)
        return await answer

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch = [(item, answer) for item, answer in self._waiting if not answer.done()]  # some were given up
        self._waiting = []
        if batch:
            task = asyncio.ensure_future(self._send_all(batch))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _send_all(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._send([item for item, _ in batch])
            pairs = list(zip(batch, answers, strict=True))
        except BaseException as error:
            for _, waiting in batch:
                if not waiting.done():
                    waiting.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))
            return
        for (_, waiting), answer in pairs:
            if not waiting.done():
                waiting.set_result(answer)
