"""The memory as the runner asks it: recalls of many debates, answered together beside the event loop.

What is asked while a batch is being answered makes the next batch; nobody waits for a clock. `now` is fixed, so that a
run's recalls do not depend on how long it takes. Knows nothing of how recalls are answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from debate.errors import CallError, InputError
from debate.flow import Recall
from debate.memory.recall.request import RecallRequest
from debate.types import Memory

Answer = Callable[[Sequence[RecallRequest]], Sequence[Sequence[Memory]]]


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    request: RecallRequest
    memories: asyncio.Future[Sequence[Memory]]


class BatchingRetriever:
    """Implements `debate.runtime.runner.Recaller`.

    Args:
        answer: answers many requests at once; it may take its time.
        request_of: a flow's recall as a request, with what holds for the whole run.
        executor: the thread that `answer` is called on.
    """

    def __init__(self, answer: Answer, request_of: Callable[[Recall], RecallRequest], executor: Executor) -> None:
        self._answer = answer
        self._request_of = request_of
        self._executor = executor
        self._waiting: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}

    async def recall(self, request: Recall) -> Sequence[Memory]:
        """The memories that fit best, best first.

        Raises:
            ConfigError: for a request that cannot be answered.
            StoreError, BackendError: when the store or the embedder cannot be asked.
        """
        loop = asyncio.get_running_loop()
        asked = _Waiting(self._request_of(request), loop.create_future())
        if loop in self._waiting:
            self._waiting[loop].append(asked)
        else:
            self._waiting[loop] = [asked]
            loop.create_task(self._answer_all(loop)).add_done_callback(_noticed)
        return await asked.memories

    async def _answer_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer what waits, and what has come meanwhile, until nothing waits any more."""
        try:
            await asyncio.sleep(0)  # what is ready in this turn of the loop comes along
            while self._waiting[loop]:
                batch, self._waiting[loop] = self._waiting[loop], []
                await self._answered(loop, [each for each in batch if not each.memories.done()])
        finally:
            for each in self._waiting.pop(loop):
                each.memories.cancel()

    async def _answered(self, loop: asyncio.AbstractEventLoop, batch: Sequence[_Waiting]) -> None:
        try:
            answers = await loop.run_in_executor(self._executor, self._answer, [each.request for each in batch])
        except Exception as error:
            if len(batch) > 1 and isinstance(error, InputError | CallError):
                for each in batch:  # the fault is one request's; the others have theirs answered
                    await self._answered(loop, [each])
                return
            for each in batch:
                if not each.memories.done():
                    each.memories.set_exception(error)
            return
        for each, memories in zip(batch, answers, strict=True):
            if not each.memories.done():
                each.memories.set_result(memories)


def _noticed(task: asyncio.Task[None]) -> None:
    """A cancelled or failed task has told those who wait; asyncio need not complain about it as well."""
    if not task.cancelled():
        task.exception()
