"""Drives flows: sends what they yield to the backend, the memory and the journal, and sends the answers back.

Every flow goes as far as it can on its own; there is no barrier between them, so a continuously batching backend stays
full. A call's address is the path of child positions that leads to its flow plus its ordinal there. The journal goes
by address and attempt, never by the order of arrival: resuming a run sends the recorded answers to fresh flows.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable
from weakref import WeakValueDictionary

from debate.backends.base import Backend, provider_of, reply_settings
from debate.concurrency.daemon_thread import in_daemon_thread
from debate.concurrency.exits import EXITS, ends_more, is_carried
from debate.errors import CallError, ConfigError, DebateError
from debate.evaluation import Evaluation, failed
from debate.evaluators.base import Evaluator
from debate.evaluators.contract import check_evaluation, checked_flow
from debate.flow import Call, CallFunction, Completion, Flow, Gather, Generate, Recall, RoundEnd, RunContext
from debate.hashing import ById, derive, digest
from debate.journal import Address, CallKey, Journal, format_address, recall_hash
from debate.runtime.limits import Budget
from debate.runtime.loop_thread import cancel_all
from debate.runtime.tracing import ChatSpan, EvaluationSpan, Steps, Tracer
from debate.types import Failure, Memory, Task, Turn, Usage

_log = logging.getLogger("debate")
_MOST_THREADS = 16
T = TypeVar("T")
Observer = Callable[[Call, Completion], None]
"""Called with every completion of a backend, once it is recorded."""
TurnObserver = Callable[[Task, Turn | RoundEnd], object]
"""Called with every turn of a debate and every end of a round, and the task that is debated."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What one call of the engine wants of the evaluations that it began."""

    budget: Budget | None = None
    """What they may use together."""
    answered: Observer | None = None
    """Shown every completion."""
    replayed: Callable[[Call, Completion | Failure], object] | None = None
    """Shown every answer that the journal had, and the call that was made again for it."""


class Retriever(Protocol):
    """A memory that flows can ask."""

    async def recall(self, request: Recall) -> Sequence[Memory]:
        """The memories that fit best, best first."""
        ...


@runtime_checkable
class HasRetriever(Protocol):
    """A store of memories that makes a retriever, such as `debate.memory.MemoryStore`."""

    def retriever(self) -> Retriever:
        """A retriever to which memories are as old as they are now."""
        ...


def as_retriever(memory: Retriever | HasRetriever | None) -> Retriever | None:
    """The retriever of a memory: itself, or the one that a store makes; None stays None."""
    return memory.retriever() if isinstance(memory, HasRetriever) else memory


@dataclass(frozen=True, slots=True)
class _EvaluationContext:
    """What all flows of one evaluation share."""

    run: RunContext
    journal: Journal | None = None
    deadline: float | None = None
    """On the loop's clock."""
    task: Task | None = None
    session: str = ""
    """See `Call.session`."""
    replies: int = 0
    """Replies that it may wait for, one after the other."""
    watch: Watch | None = None
    trace: EvaluationSpan | None = None

    def steps(self) -> Steps | None:
        return None if self.trace is None else self.trace.steps()

    def key(self, address: Address, attempt: int = 0) -> CallKey:
        return CallKey(address, attempt, self.journal.retry_generation(address) if self.journal else 0)


class Runner:
    """Runs evaluations over one or several backends, under one run's seed and date.

    `task_seconds` is the time that one evaluation has: calls that would begin later, or are under way then, fail with
    `time_budget`. `observe` and `on_turn` are displays: what they raise is logged, once, and changes no result.
    `tracer` makes the spans of what is done.
    """

    def __init__(
        self,
        backends: Mapping[str, Backend],
        run: RunContext,
        *,
        observe: Observer | None = None,
        on_turn: TurnObserver | None = None,
        memory: Retriever | None = None,
        budget: Budget | None = None,
        task_seconds: float | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self.backends = backends
        self.run = run
        self._observe = observe
        self._on_turn = on_turn
        self._observe_has_raised = False
        self._default = next(iter(backends))
        self._memory = memory
        self._budget = budget or Budget()
        self._task_seconds = task_seconds
        self._tracer = tracer
        self._computer = FunctionExecutor()
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    def one_at_a_time(self, run: object, task_id: str) -> asyncio.Lock:
        """The lock of a task in a run: who holds it may record that task's answers."""
        return self._locks.setdefault((id(run), task_id), asyncio.Lock())

    async def evaluate(
        self,
        evaluator: Evaluator,
        task: Task,
        journal: Journal | None = None,
        run: RunContext | None = None,
        *,
        replies: int = 0,
        watch: Watch | None = None,
    ) -> Evaluation:
        """Evaluate one task. Whatever goes wrong in the evaluator becomes a failed evaluation.

        `replies` is the evaluator's own bound of those that it may wait for, one after the other; `watch` is of the
        call that wants the evaluation.

        Raises:
            BackendUnavailableError, StoreError, BudgetExceededError, RunMismatchError: when no evaluation can go on.
        """
        deadline = None if self._task_seconds is None else asyncio.get_running_loop().time() + self._task_seconds
        run = run or self.run
        if self._on_turn is not None:
            run = replace(run, watch=partial(self._show, self._on_turn, task))
        session = digest(run.seed, task.id)
        with nullcontext() if self._tracer is None else self._tracer.evaluation(evaluator, task, session) as trace:
            context = _EvaluationContext(run, journal, deadline, task, session, replies, watch, trace)
            try:
                evaluation, _ = await self._drive(checked_flow(evaluator, task, run), context, ())
                evaluation = check_evaluation(evaluation, task)
            except BaseException as error:
                if ends_more(error):
                    raise
                evaluation = failed_by(error, evaluator, task)
            if trace is not None:
                self._show(trace.finished, evaluation)
            return evaluation

    async def drive(self, flow: Flow[T]) -> T:
        """Drive a flow that is no evaluation to its end, unrecorded. Raises whatever it raises."""
        trace = None if self._tracer is None else self._tracer.loose()
        value, _ = await self._drive(flow, _EvaluationContext(self.run, trace=trace), ())
        return value

    async def _drive(self, flow: Flow[Any], context: _EvaluationContext, address: Address) -> tuple[Any, Usage]:
        """Drive one flow to its end: what it returns, and what it and its children used."""
        began = time.perf_counter()
        usage, ordinal, answer = Usage(), -1, None
        steps = context.steps()
        try:
            while True:
                request = flow.send(answer)
                # Asking again keeps the place of the call that could not be read.
                if not (isinstance(request, Generate) and request.attempt):
                    ordinal += 1
                here = (*address, ordinal)
                match request:
                    case Generate():
                        answer = await self._generate(request, context, here, steps)
                        if isinstance(answer, Completion):
                            usage += answer.usage
                    case Recall():
                        answer = await self._recall(request, context, here, steps)
                    case CallFunction():
                        answer = await self._computer.compute(request)
                    case Gather(flows):
                        answer, used = await self._gather(flows, context, here)
                        usage += used
                    case _:
                        kind = type(request).__name__
                        raise TypeError(f"a flow yields Generate, Recall, CallFunction or Gather, got {kind}")
        except StopIteration as end:
            value = end.value
            if isinstance(value, Evaluation):
                value = replace(value, usage=usage, seconds=round(time.perf_counter() - began, 6))
            return value, usage
        except BaseException as error:
            if is_carried(error):
                raise
            raise RuntimeError(repr(error)) from error
        finally:
            _close(flow, steps)

    async def _gather(
        self, flows: Sequence[Flow[Any]], context: _EvaluationContext, here: Address
    ) -> tuple[tuple[Any, ...], Usage]:
        """Drive child flows side by side; the first that raises ends the others."""
        tasks = [asyncio.ensure_future(self._drive(flow, context, (*here, n))) for n, flow in enumerate(flows)]
        try:
            results = await asyncio.gather(*tasks)
        except BaseException:
            await cancel_all(tasks)
            raise
        return tuple(value for value, _ in results), sum((used for _, used in results), Usage())

    async def _generate(
        self, request: Generate, context: _EvaluationContext, here: Address, steps: Steps | None
    ) -> Completion | Failure:
        key = context.key(here, request.attempt)
        call = self._call(request, context, here, key.retry_generation)
        if steps is None:
            return await self._answer(call, key, context, here)
        with steps.chat(call, provider_of(self.backends[call.model])) as chat:
            traced = replace(call, trace_headers=chat.headers)
            return chat.answered(await self._answer(traced, key, context, here, chat))

    async def _answer(
        self, call: Call, key: CallKey, context: _EvaluationContext, here: Address, chat: ChatSpan | None = None
    ) -> Completion | Failure:
        if context.journal is not None:
            recorded = context.journal.get(key, call.prompt_hash, call.seed, call.info)
            if isinstance(recorded, Completion | Failure):
                recorded = replace(recorded, call=format_address(here))
                if chat is not None:
                    chat.replayed()
                if context.watch and context.watch.replayed:
                    self._show(context.watch.replayed, call, recorded)
                return recorded
        budgets = [self._budget, *([context.watch.budget] if context.watch and context.watch.budget else [])]
        for budget in budgets:
            budget.check()
        answer = replace(await self._ask(call, context.deadline), call=format_address(here))
        if isinstance(answer, Completion):
            for budget in budgets:
                budget.spend(answer, call.model)
        # A call that time ran out on is made again when the task is evaluated again.
        is_out_of_time = isinstance(answer, Failure) and answer.reason == "time_budget"
        if context.journal is not None and not is_out_of_time:
            await context.journal.put(key, call, answer)
        if isinstance(answer, Completion):
            for observe in (self._observe, context.watch and context.watch.answered):
                if observe is not None:
                    self._show(observe, call, answer)
        return answer

    def _show(self, observe: Callable[..., object], *shown: object) -> None:
        try:
            observe(*shown)
        except BaseException as error:
            if isinstance(error, EXITS):
                raise
            if not self._observe_has_raised:
                _log.error("a display raised; no result is changed", exc_info=error)
            self._observe_has_raised = True

    async def _ask(self, call: Call, deadline: float | None) -> Completion | Failure:
        try:
            if deadline is None:
                return await self.backends[call.model].generate(call)
            return await self._ask_until(deadline, call)
        except CallError as error:
            return Failure(error.reason, error.message)

    async def _ask_until(self, deadline: float, call: Call) -> Completion | Failure:
        out_of_time = Failure("time_budget", f"no reply within the {self._task_seconds} s that an evaluation has")
        # A timeout ends what waits, and a backend that answers without waiting would never meet it.
        if asyncio.get_running_loop().time() >= deadline:
            return out_of_time
        limit = asyncio.timeout_at(deadline)
        try:
            async with limit:
                return await self.backends[call.model].generate(call)
        except TimeoutError:
            if not limit.expired():
                raise
            return out_of_time

    async def _recall(
        self, request: Recall, context: _EvaluationContext, here: Address, steps: Steps | None
    ) -> tuple[Memory, ...]:
        began = time.time_ns()
        memories = await self._recalled(request, context, here)
        if steps is not None and (memories or self._memory is not None):
            steps.recalled(request, memories, began)
        return memories

    async def _recalled(self, request: Recall, context: _EvaluationContext, here: Address) -> tuple[Memory, ...]:
        if context.journal is None and self._memory is None:
            return ()
        key = context.key(here)
        if context.journal is not None:
            recorded = context.journal.get(key, recall_hash(request))
            if isinstance(recorded, tuple):
                return recorded
        if self._memory is None:
            return ()
        # A flow may evaluate a part of the task, or say nothing of it.
        memories = tuple(await self._memory.recall(replace(request, task=context.task or request.task)))
        if context.journal is not None:
            await context.journal.put(key, request, memories)
        return memories

    def _call(self, request: Generate, context: _EvaluationContext, here: Address, generation: int) -> Call:
        """The call of a request, with a seed hashed from all that shapes the reply and from its sample key."""
        model = request.model or self._default
        if model not in self.backends:
            hint = f"the engine was given {', '.join(map(repr, self.backends))}"
            raise ConfigError(f"there is no backend for the model {model!r}", field="model", hint=hint)
        more: list[Any] = [] if request.read_out is None else [request.read_out.encoded()]
        more += [dict(settings)] if (settings := reply_settings(self.backends[model])) else []
        shape = digest(model, request.prompt.encoded, ById(request.schema), request.sampling.to_dict(), *more)
        sample = [context.run.seed, shape, list(request.sample_key), request.attempt]
        return Call(
            model=model,
            prompt=request.prompt,
            sampling=request.sampling,
            seed=derive(*sample, generation) if generation else derive(*sample),
            schema=request.schema,
            read_out=request.read_out,
            prompt_hash=shape,
            info=request.info,
            session=context.session,
            # The ordinals in an address count the requests that came before on the way to it.
            replies_ahead=max(0, context.replies - sum(here[::2])),
        )


def _close(flow: Flow[Any], steps: Steps | None) -> None:
    """End a flow, and what is open of its spans."""
    flow.close()
    if steps is not None:
        steps.close()


def failed_by(error: BaseException, evaluator: Evaluator, task: Task) -> Evaluation:
    """The failed evaluation that an exception inside an evaluator makes."""
    if not isinstance(error, DebateError):
        _log.error("evaluating task %r failed", task.id, exc_info=error)
    failure = Failure("evaluator_error", f"{type(error).__name__}: {error}")
    return failed(task.id, evaluator.name, len(task.candidates), failure, evaluator.scale)


class FunctionExecutor:
    """Runs users' functions for flows: coroutines on the event loop, plain functions in threads of their own.

    A plain function that takes too long cannot be ended; its thread is abandoned, and delays neither other calls nor
    the end of the process. An instance belongs to the event loop that it is first used on.
    """

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(_MOST_THREADS)

    async def compute(self, request: CallFunction) -> Any:
        """What the function returns, or a failure where it raises or takes too long."""
        name = getattr(request.function, "__name__", type(request.function).__name__)
        work = partial(request.function, *request.arguments)
        limit = asyncio.timeout(request.seconds)
        try:
            if inspect.iscoroutinefunction(request.function):
                answer = work()
            else:
                async with self._room, limit:  # its time begins when it does
                    answer = await in_daemon_thread(work, "debate-function")
            if inspect.isawaitable(answer):
                async with (limit := asyncio.timeout(request.seconds)):
                    return await answer
            return answer
        except BaseException as error:
            if ends_more(error):
                raise
            if isinstance(error, TimeoutError) and limit.expired():  # else it is the function's own
                return Failure("timeout", f"{name} took longer than {request.seconds:g} s")
            _log.debug("%s raised", name, exc_info=error)
            return Failure("raised", f"{name} raised {type(error).__name__}: {error}")
