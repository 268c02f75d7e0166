"""Micro-batching: single requests are grouped into batches, for whatever takes many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(slots=True, eq=False)
class _Queue(Generic[Item, Answer]):
    """The items of one event loop, and the tasks that answer them."""

    room: asyncio.Semaphore
    waiting: list[tuple[Item, asyncio.Future[Answer]]] = field(
        default_factory=list[tuple[Item, "asyncio.Future[Answer]"]]
    )
    tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    due: int = 0
    """Tasks that have not taken their batch yet."""


class MicroBatcher(Generic[Item, Answer]):
    """Answers items in batches, in any number of event loops: what comes while a batch waits goes with it.

    Args:
        send: answers one batch, in its order. What it raises, every item of the batch meets.
        size: most items per batch.
        seconds: how long a batch waits for further items; 0 takes what is ready in this turn of the event loop.
        at_once: most batches under way per event loop; 1 lets items gather while a batch is being answered.
        one_by_one: errors of `send` that may be the fault of one item: the items of that batch are then sent singly.
    """

    def __init__(
        self,
        send: Callable[[list[Item]], Awaitable[Sequence[Answer]]],
        *,
        size: int = 1_000_000,
        seconds: float = 0.0,
        at_once: int = 1,
        one_by_one: tuple[type[Exception], ...] = (),
    ) -> None:
        self._send = send
        self._size = size
        self._seconds = seconds
        self._at_once = at_once
        self._one_by_one = one_by_one
        self._queues: dict[asyncio.AbstractEventLoop, _Queue[Item, Answer]] = {}

    async def ask(self, item: Item) -> Answer:
        """The answer to one item. Raises what `send` raises."""
        loop = asyncio.get_running_loop()
        queue = self._queues.setdefault(loop, _Queue(asyncio.Semaphore(self._at_once)))
        answer: asyncio.Future[Answer] = loop.create_future()
        queue.waiting.append((item, answer))
        if queue.due * self._size < len(queue.waiting):
            queue.due += 1
            task = loop.create_task(self._answer_next(queue))
            queue.tasks.add(task)
            task.add_done_callback(lambda task: self._forget(loop, queue, task))
        return await answer

    def _forget(self, loop: asyncio.AbstractEventLoop, queue: _Queue[Item, Answer], task: asyncio.Task[None]) -> None:
        queue.tasks.discard(task)
        if not queue.tasks:
            del self._queues[loop]

    async def _answer_next(self, queue: _Queue[Item, Answer]) -> None:
        await asyncio.sleep(self._seconds)
        async with queue.room:
            queue.due -= 1
            wanted = [(item, answer) for item, answer in queue.waiting if not answer.done()]  # some were given up
            batch, queue.waiting = wanted[: self._size], wanted[self._size :]
            if batch:
                await self._answer(batch)

    async def _answer(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._send([item for item, _ in batch])
            pairs = list(zip(batch, answers, strict=True))
        except asyncio.CancelledError:
            for _, waiting in batch:
                waiting.cancel()
            raise
        except BaseException as error:
            if len(batch) > 1 and isinstance(error, self._one_by_one):
                for each in batch:
                    await self._answer([each])
                return
            for _, waiting in batch:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        for (_, waiting), answer in pairs:
            if not waiting.done():
                waiting.set_result(answer)
