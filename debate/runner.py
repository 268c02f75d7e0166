"""Drives flows: sends what they yield to the backend, the memory and the journal, and sends the answers back.

Every flow goes as far as it can on its own; there is no barrier between them, so a continuously batching backend stays
full. A call's address is the path of child positions that leads to its flow plus its ordinal there. The journal goes
by address and attempt, never by the order of arrival: a recorded answer is sent to a fresh flow in place of a call,
and that is all there is to resuming. Knows nothing of what any flow is about.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from debate.backends.base import Backend, Call
from debate.errors import BackendDead, CallError, ConfigError, DebateError
from debate.evaluation import Evaluation, failed
from debate.evaluators.base import Evaluator, RunContext
from debate.flow import Completion, Flow, Gather, Generate, Recall
from debate.seeds import derive
from debate.types import Failure, Memory, Task, Usage

_log = logging.getLogger("debate")
Address = tuple[int, ...]
Answer = Completion | Failure | tuple[Memory, ...]
Observer = Callable[[Call, Completion], None]
"""Is told of every completion that a backend gave."""


@dataclass(frozen=True, slots=True)
class CallKey:
    """Where a call stands in a run."""

    task_id: str
    address: Address
    attempt: int = 0


class Journal(Protocol):
    """Keeps answers by key. `put` returns once the answer is safe; only then does the flow go on."""

    def get(self, key: CallKey) -> Answer | None:
        """The recorded answer, or None."""
        ...

    async def put(self, key: CallKey, call: Call | Recall, answer: Answer) -> None:
        """Record an answer."""
        ...


class Recaller(Protocol):
    """A memory that flows can ask."""

    async def recall(self, request: Recall) -> Sequence[Memory]:
        """The memories that fit best, best first."""
        ...


class Runner:
    """Runs evaluations over one or several backends, under one run's seed and date."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        run: RunContext,
        *,
        observe: Observer | None = None,
        memory: Recaller | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.backends = backends
        self.run = run
        self._observe = observe
        self._default = next(iter(backends))
        self._memory = memory
        self._journal = journal

    async def evaluate(self, evaluator: Evaluator, task: Task) -> Evaluation:
        """Evaluate one task. Whatever goes wrong inside becomes a failed evaluation.

        Raises:
            BackendDead: when nothing more can be asked.
        """
        try:
            evaluation, _ = await self._drive(evaluator.flow(task, self.run), task.id, ())
            return evaluation
        except BackendDead:
            raise
        except Exception as error:
            return failed_by(error, evaluator, task)

    async def _drive(self, flow: Flow[Any], task_id: str, address: Address) -> tuple[Any, Usage]:
        """Drive one flow to its end: what it returns, and what it and its children used."""
        began = time.perf_counter()
        usage, ordinal, answer = Usage(), -1, None
        try:
            while True:
                request = flow.send(answer)
                # Asking again keeps the place of the call that could not be read.
                if not (isinstance(request, Generate) and request.attempt):
                    ordinal += 1
                here = (*address, ordinal)
                match request:
                    case Generate():
                        answer = await self._generate(request, CallKey(task_id, here, request.attempt))
                        if isinstance(answer, Completion):
                            usage += answer.usage
                    case Recall():
                        answer = await self._recall(request, CallKey(task_id, here))
                    case Gather(flows):
                        answer, used = await self._gather(flows, task_id, here)
                        usage += used
                    case _:
                        raise TypeError(f"a flow yields Generate, Recall or Gather, got {type(request).__name__}")
        except StopIteration as end:
            return _with_usage(end.value, usage, time.perf_counter() - began), usage
        finally:
            flow.close()

    async def _gather(self, flows: Sequence[Flow[Any]], task_id: str, here: Address) -> tuple[tuple[Any, ...], Usage]:
        """Drive child flows side by side; the first that raises ends the others."""
        tasks = [asyncio.ensure_future(self._drive(flow, task_id, (*here, n))) for n, flow in enumerate(flows)]
        try:
            results = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        return tuple(value for value, _ in results), sum((used for _, used in results), Usage())

    async def _generate(self, request: Generate, key: CallKey) -> Completion | Failure:
        recorded = None if self._journal is None else self._journal.get(key)
        if isinstance(recorded, Completion | Failure):
            return recorded
        call = self._call(request)
        answer = await self._ask(call)
        if self._journal is not None:
            await self._journal.put(key, call, answer)
        return answer

    async def _ask(self, call: Call) -> Completion | Failure:
        try:
            completion = await self.backends[call.model].generate(call)
        except CallError as error:
            return Failure(error.reason, error.message)
        if self._observe is not None:
            self._observe(call, completion)
        return completion

    async def _recall(self, request: Recall, key: CallKey) -> tuple[Memory, ...]:
        recorded = None if self._journal is None else self._journal.get(key)
        if isinstance(recorded, tuple):
            return recorded
        if self._memory is None:
            return ()
        memories = tuple(await self._memory.recall(request))
        if self._journal is not None:
            await self._journal.put(key, request, memories)
        return memories

    def _call(self, request: Generate) -> Call:
        """A request with its model and its seed: a hash of all that shapes the reply, and of the sample's key."""
        model = request.model or self._default
        if model not in self.backends:
            raise ConfigError(
                f"there is no backend for the model {model!r}",
                field="model",
                hint=f"the engine was given {', '.join(map(repr, self.backends))}",
            )
        shape = [model, request.prompt.messages(), request.schema, request.sampling.to_dict()]
        seed = derive(self.run.seed, shape, list(request.sample_key), request.attempt)
        return Call(
            model=model,
            prompt=request.prompt,
            sampling=request.sampling,
            seed=seed,
            schema=request.schema,
            info=request.info,
        )


def failed_by(error: Exception, evaluator: Evaluator, task: Task) -> Evaluation:
    """What an exception inside an evaluator comes to."""
    if not isinstance(error, DebateError):
        _log.error("evaluating task %r failed", task.id, exc_info=error)
    failure = Failure("evaluator_error", f"{type(error).__name__}: {error}")
    return failed(task.id, evaluator.name, len(task.candidates), failure, evaluator.scale)


def _with_usage(value: Any, usage: Usage, seconds: float) -> Any:
    """Whatever flow returns an evaluation gets the usage and the time of its own subtree."""
    return replace(value, usage=usage, seconds=round(seconds, 6)) if isinstance(value, Evaluation) else value
