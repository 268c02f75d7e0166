"""Composes backend, memory, store and runtime into the engine that users call.

    with Engine("model") as engine:
        evaluation = engine.evaluate(Task(x, candidates))

Every call has an async twin, and the plain ones work inside a running event loop too.
"""

from __future__ import annotations

import asyncio
import datetime
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future
from contextlib import aclosing, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from debate import bundled_judge, files
from debate.backends.base import READOUT_HINT, ROLES_HINT, THINKING_HINT, Backend, Call, start_all
from debate.backends.cached import Cached, Replies
from debate.concurrency.daemon_thread import in_daemon_thread
from debate.config.names import GivenBackend, GivenEvaluator, NamedEvaluators, named_backends
from debate.errors import BackendUnavailableError, BudgetExceededError, ConfigError, EngineError, TaskError
from debate.evaluation import Evaluation, Evaluations
from debate.evaluators.base import Evaluator, RunContext
from debate.evaluators.debate.screening import ScreeningEvaluator
from debate.flow import Chat, Completion, Flow, Generate, Prompt, gather, generate
from debate.runtime.home import Home, others_gone
from debate.runtime.limits import Admission, Budget
from debate.runtime.live_line import LiveLine
from debate.runtime.loop_thread import LoopThread
from debate.runtime.pools import Pool
from debate.runtime.run_registry import InRun, Recorded, RunRegistry
from debate.runtime.runner import HasRetriever, Observer, Retriever, Runner, TurnObserver, Watch, as_retriever
from debate.runtime.scheduler import EvaluationRequest, alone, stream, unfinished_evaluation, with_unique_ids
from debate.runtime.tracing import Tracer
from debate.settings import check_value, names_what_was_meant
from debate.types import Candidate, Failure, Sampling, Task, Usage

if TYPE_CHECKING:  # it loads SQLAlchemy
    from debate.store import Store

T = TypeVar("T")


class Engine:
    """Evaluates tasks over one backend, or over several by model name.

    Args:
        backend: a backend, or {model name: backend}; the first is what agents without a model of their own use. A text
            is the name or folder of a model that vLLM runs in this process; "built-in" is the bundled judge.
        memory: what agents recall from: a `MemoryStore`, or its `recaller(...)`; None recalls nothing.
        store: where answers and evaluations are kept, a `Store` or its address: an interrupted run asks again only for
            what is missing.
        seed: of the run. The same seed and date give the same evaluations, as far as the backend is repeatable.
        max_concurrency: how many evaluations are open at once. None takes what the backend's KV cache holds at full
            length, or twice its slots where that is unknown.
        today: the date that prompts state, and that every call's seed is therefore made of; None is today.
        on_completion: called with every call and its completion, for progress displays. What it raises is logged.
        on_turn: called with the task and each turn of its debate as soon as it is taken, and with a `RoundEnd` after
            each round, to show debates as they go. What it raises is logged.
        cache: of raw replies, shared by all runs: `store.cache(ttl=...)`. None asks anew.
        budget: what all evaluations together may use.
        task_seconds: how long one evaluation may take; its calls fail with `time_budget` then.
        tracing: whether evaluations, turns, recalls and calls are OpenTelemetry spans, and scores its events; see
            `debate.runtime.tracing`. False imports nothing.

    What a backend, a function or an evaluator raises fails the task that it worked on, and no other. KeyboardInterrupt
    and SystemExit are not failures: they end what the caller waits for, and reach the caller. What was finished by then
    has been yielded by a stream, and is recorded in the store where there is one.

    An engine belongs to the process that used it first: one that was forked off needs an engine of its own. An engine
    whose last reference is gone is closed. One that is made again for the same vLLM model with the same arguments takes
    over what the first has loaded, once the first has nothing under way; the first would take it back when it is used.

    Raises:
        EngineError: from what waits while the engine is closed, from plain calls in the engine's own thread (a script
            or a display that calls the engine that called it), and in a forked process.
    """

    @names_what_was_meant
    def __init__(
        self,
        backend: GivenBackend | Mapping[str, GivenBackend],
        memory: Retriever | HasRetriever | None = None,
        store: Store | str | Path | None = None,
        seed: int = 0,
        max_concurrency: int | None = None,
        *,
        today: datetime.date | None = None,
        on_completion: Observer | None = None,
        on_turn: TurnObserver | None = None,
        cache: Replies | None = None,
        budget: Budget | None = None,
        task_seconds: float | None = None,
        tracing: bool = False,
    ) -> None:
        self.backends = given = named_backends(backend)
        self._evaluators = NamedEvaluators(next(iter(self.backends.values())))
        if cache is not None:
            self.backends = {name: Cached(each, cache) for name, each in self.backends.items()}
        check_value("today", today, datetime.date | None)
        seed = check_value("seed", seed, int)
        self.run_context = RunContext(seed, files.today() if today is None else today.isoformat())
        self._memory = as_retriever(check_value("memory", memory, Retriever | HasRetriever | None))
        self._recording = RunRegistry(store, self.backends, self.run_context)
        self._budget: Budget | None = check_value("budget", budget, Budget | None)
        if self._budget is not None:
            self._budget.check_prices(self.backends)
        self._task_seconds: float | None = check_value("task_seconds", task_seconds, float | None, gt=0)
        self._max_concurrency: int | None = check_value("max_concurrency", max_concurrency, int | None, ge=1)
        self._tracer = Tracer() if check_value("tracing", tracing, bool) else None
        self.on_completion = on_completion
        self.on_turn = on_turn
        self._home: Home[tuple[Runner, Admission]] = Home(given, self._recording)
        weakref.finalize(self, self._home.forget).atexit = False
        self._home.move_in()

    @classmethod
    def open(cls, model: str | Path, *, seed: int = 0, max_concurrency: int | None = None, **engine_args: Any) -> Self:
        """An engine over vLLM in process, with arguments of vLLM's: `Engine.open("model", max_model_len=8192)`."""
        return cls(bundled_judge.backend(model, **engine_args), seed=seed, max_concurrency=max_concurrency)

    def evaluate(
        self, task: Task, evaluator: GivenEvaluator = None, run: InRun = None, *, progress: bool = False
    ) -> Evaluation:
        """Evaluate one task and wait for it. `evaluator`, `run` and `progress` as in `evaluate_batch`."""
        return self._loop.run(self._evaluate(task, evaluator, run, progress))

    async def aevaluate(
        self, task: Task, evaluator: GivenEvaluator = None, run: InRun = None, *, progress: bool = False
    ) -> Evaluation:
        """Evaluate one task, see `evaluate`."""
        return await self._loop.arun(self._evaluate(task, evaluator, run, progress))

    def submit(self, task: Task, evaluator: GivenEvaluator = None, run: InRun = None) -> Future[Evaluation]:
        """Begin to evaluate one task, and return the future of its evaluation at once, from any thread.

        Evaluations of futures share the engine's batch with all others. Cancelling the future cancels its calls; in
        asyncio, `await asyncio.wrap_future(engine.submit(task))`. `evaluator` and `run` as in `evaluate_batch`; what
        that would raise, the future has. See `debate.Judge` for equal tasks and for scores that are missing.

        Raises:
            EngineError: in a forked process.
        """
        return self._loop.submit(self._evaluate(task, evaluator, run, False))

    def check_can_wait(self) -> None:
        """Raise EngineError in the engine's own thread, where waiting for one of its futures would never end."""
        self._loop.check_can_wait()

    def evaluate_batch(
        self,
        tasks: Collection[Task],
        evaluator: GivenEvaluator | Sequence[GivenEvaluator] = None,
        run: InRun = None,
        *,
        progress: bool = False,
        budget: Budget | None = None,
    ) -> Evaluations:
        """Evaluate all tasks side by side: one evaluation per task, in their order.

        A task that fails comes back as a failed evaluation, and affects no other.

        Args:
            tasks: any number; equal ones without an id get ids of their own.
            evaluator: one for all tasks, or one per task: an evaluator, or the name of one: `general` or another
                profile, a profile's file, or `value` or another of our evaluators. None debates, with the profile
                `general` unless the model's folder asks for another.
            run: name of the run in the engine's store that this is recorded in. Called again under the same name,
                it asks only for what is not recorded; what is finished comes back as it was. None records under a new
                name, one for each evaluator.
            progress: whether a line on stderr, or in the notebook's cell, says how it goes on.
            budget: what these tasks may use together, beside the engine's own budget. Calls under way when it is used
                up still count. What is unfinished then comes back as failed, with the reason `budget` among its
                `failures`, and is not recorded. One budget may be given to several calls.

        Raises:
            TaskError, ConfigError: for what is no list of tasks or no evaluator; for an id that was given twice.
            RunMismatchError: when the run has other prompts, or another task of the same id.
            RunLockedError, StoreError: when the run cannot be recorded, because others work on it, for example.
            BudgetExceededError: when the engine's budget is used up; what was finished is recorded.
            KeyboardInterrupt, SystemExit: raised in a backend or a function; what was finished is recorded.
        """
        return self._loop.run(self._batch(tasks, evaluator, run, progress, budget))

    async def aevaluate_batch(
        self,
        tasks: Collection[Task],
        evaluator: GivenEvaluator | Sequence[GivenEvaluator] = None,
        run: InRun = None,
        *,
        progress: bool = False,
        budget: Budget | None = None,
    ) -> Evaluations:
        """Evaluate all tasks side by side, see `evaluate_batch`."""
        return await self._loop.arun(self._batch(tasks, evaluator, run, progress, budget))

    def iter_evaluate(
        self, tasks: Iterable[Task], evaluator: GivenEvaluator = None, run: InRun = None, *, progress: bool = False
    ) -> Iterator[Evaluation]:
        """Evaluations as they finish. Tasks are read no faster than they are evaluated.

        `run` and `progress` as in `evaluate_batch`.

        Raises:
            BackendUnavailableError, StoreError, BudgetExceededError, RunMismatchError:
                after what was under way has come back as failed.
            EngineError: when the engine was closed meanwhile: there is more, and it is not evaluated.
            KeyboardInterrupt, SystemExit: raised in a backend, a function or `tasks`; what was finished has been
                yielded and is recorded. Other errors of `tasks` are raised in the same way.
        """
        finishing, loop = self._stream(tasks, evaluator, run, progress), self._loop
        try:
            while (item := loop.run(_next(finishing))) is not None:
                yield item[1]
        finally:
            loop.finish(finishing)

    async def astream(
        self, tasks: Iterable[Task], evaluator: GivenEvaluator = None, run: InRun = None, *, progress: bool = False
    ) -> AsyncIterator[Evaluation]:
        """Evaluations as they finish, see `iter_evaluate`."""
        finishing, loop = self._stream(tasks, evaluator, run, progress), self._loop
        try:
            while (item := await loop.arun(_next(finishing))) is not None:
                yield item[1]
        finally:
            await loop.afinish(finishing)

    def evaluate_pool(
        self,
        x: str | Task,
        candidates: Iterable[str | Candidate] = (),
        evaluator: GivenEvaluator = None,
        run: InRun = None,
        *,
        group: int = 8,
        anchors: int = 2,
        silent: bool = False,
        progress: bool = False,
        budget: Budget | None = None,
    ) -> Evaluation:
        """Evaluate more candidates than one debate can hold, in groups, and rank them all.

        The groups are drawn by the engine's seed and evaluated side by side; all of them hold the same `anchors`, by
        which the scores of strict and of mild groups become comparable: each candidate has its score less its group's
        offset, by least squares over all groups, see `debate.scoring.pools.align_groups`. Where these leave the scale,
        all are moved, or pressed together, by as little as brings them back, which keeps their order. A pool of at most
        `group` candidates is a single evaluation.

        Args:
            x: the input, or a task with its candidates.
            candidates: any number, where `x` is a text.
            evaluator: of every group, as in `evaluate_batch`.
            run: as in `evaluate_batch`; every group is a task of the run, `ID/group-1` and so on.
            group: most candidates in a group, its anchors among them. `n` candidates take
                `ceil((n - anchors) / (group - anchors))` evaluations.
            anchors: how many candidates all groups share; more make the offsets surer, and cost more.
            silent: rank all candidates by silent read-outs first, and debate only those that may be best, `group` at
                most, in one final. The others rank behind them. It takes an evaluator that debates, and a backend that
                gives the probabilities of labels.
            progress: as in `evaluate_batch`; it counts groups.
            budget: as in `evaluate_batch`; candidates of unfinished groups are unscored.

        Returns:
            An evaluation of all candidates called `pool`. `members` are the evaluations of the groups, `details` has
            the `groups` and their `offsets`, and after a silent screening the `finalists`, whose debate is the last
            member. A candidate without a score, and one of a group that shares no scored
            candidate with the others, has NaN.

        Raises:
            TaskError: for candidates beside a task, which has its own.
            ConfigError: for groups without room beside the anchors; and as `evaluate_batch`.
        """
        return self._loop.run(
            self._pool(_as_task(x, candidates), evaluator, run, group, anchors, silent, progress, budget)
        )

    async def aevaluate_pool(
        self,
        x: str | Task,
        candidates: Iterable[str | Candidate] = (),
        evaluator: GivenEvaluator = None,
        run: InRun = None,
        *,
        group: int = 8,
        anchors: int = 2,
        silent: bool = False,
        progress: bool = False,
        budget: Budget | None = None,
    ) -> Evaluation:
        """Evaluate more candidates than one debate can hold, see `evaluate_pool`."""
        task = _as_task(x, candidates)
        return await self._loop.arun(self._pool(task, evaluator, run, group, anchors, silent, progress, budget))

    def generate(
        self,
        prompts: Sequence[Chat],
        schema: Mapping[str, Any] | None = None,
        sampling: Sampling | None = None,
        *,
        model: str | None = None,
    ) -> list[Completion]:
        """Ask the model plain questions, side by side with whatever evaluations are under way; nothing is recorded.

        >>> [answer] = engine.generate(["Why is the sky blue?"], sampling=Sampling(temperature=0.7))

        Args:
            prompts: each the user's message, or `[{"role": "system", ...}, {"role": "user", ...}]`.
            schema: JSON schema that every reply must follow; None leaves them free.
            sampling: None leaves everything to the backend's defaults.
            model: which of several backends answers; None is the first.

        Returns:
            One completion per prompt, in their order. A call that failed has a `failure` and no text. Equal prompts of
            one call get seeds of their own; the same call again gives the same answers, as far as the backend is
            repeatable.

        Raises:
            ConfigError: for a prompt that is neither a text nor such messages, or a model without a backend.
            BackendUnavailableError, BudgetExceededError: when nothing can be asked.
        """
        return self.drive(_generated(prompts, schema, sampling or Sampling(), model))

    async def agenerate(
        self,
        prompts: Sequence[Chat],
        schema: Mapping[str, Any] | None = None,
        sampling: Sampling | None = None,
        *,
        model: str | None = None,
    ) -> list[Completion]:
        """Ask the model plain questions, see `generate`."""
        return await self.adrive(_generated(prompts, schema, sampling or Sampling(), model))

    def drive(self, flow: Flow[T]) -> T:
        """Drive a flow of your own to its end, unrecorded, and return what it returns. Raises whatever it raises."""
        return self._loop.run(self._drive(flow))

    async def adrive(self, flow: Flow[T]) -> T:
        """Drive a flow of your own, see `drive`."""
        return await self._loop.arun(self._drive(flow))

    def start(self) -> Self:
        """Load the backends now rather than at the first evaluation."""
        self._loop.run(self._started())
        return self

    def close(self) -> None:
        """End what is under way, and close the backends and the store.

        Whoever waits for an evaluation, or goes on with a stream, gets an `EngineError`. The engine can be used again;
        it then loads anew.
        """
        self._home.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    @property
    def _loop(self) -> LoopThread:
        return self._home.thread

    async def _started(self, line: LiveLine | None = None) -> tuple[Runner, Admission]:
        """The parts that need a started backend. Runs on the engine's loop, as everything below does."""
        if not self._home.is_here:
            raise EngineError("the engine was closed before this began")
        with nullcontext() if line is None or self._home.parts else line.loading(", ".join(self.backends)):
            return await self._loaded()

    async def _loaded(self) -> tuple[Runner, Admission]:
        async with self._home.starting:
            if self._home.parts is None:
                await others_gone()
                await start_all(self.backends.values())
                admission = Admission.to(next(iter(self.backends.values())).capacity, self._max_concurrency)
                runner = Runner(
                    self.backends,
                    self.run_context,
                    memory=self._memory,
                    observe=partial(_observe, weakref.ref(self), admission),
                    on_turn=self.on_turn,
                    budget=self._budget,
                    task_seconds=self._task_seconds,
                    tracer=self._tracer,
                )
                self._home.parts = (runner, admission)
            return self._home.parts

    async def _drive(self, flow: Flow[T]) -> T:
        runner, _ = await self._started()
        return await runner.drive(flow)

    async def _evaluate(self, task: Task, evaluator: GivenEvaluator, run: InRun, progress: bool) -> Evaluation:
        _check_task(task)
        async with LiveLine(1, is_shown=progress) as line:
            (job,) = await self._jobs([task], evaluator, run, Watch(answered=line.answered))
            runner, admission = await self._started(line)
            return line.finished(await alone(runner, admission, job))

    async def _batch(
        self,
        tasks: Collection[Task],
        evaluator: GivenEvaluator | Sequence[GivenEvaluator],
        run: InRun,
        progress: bool,
        budget: Budget | None,
    ) -> Evaluations:
        check_value("budget", budget, Budget | None)
        if budget is not None:
            budget.check_prices(self.backends)
        _check_tasks(tasks, Collection)
        async with LiveLine(len(tasks), is_shown=progress) as line:
            jobs = await self._jobs(tasks, evaluator, run, Watch(budget, line.answered))
            runner, admission = await self._started(line)
            done: dict[int, Evaluation] = {}
            try:
                async for position, evaluation in stream(runner, admission, jobs):
                    done[position] = line.finished(evaluation)
            except (BackendUnavailableError, BudgetExceededError) as end:
                if isinstance(end, BudgetExceededError) and (budget is None or end.budget is not budget):
                    raise  # the engine's own
                for job in jobs:
                    if job.position not in done:
                        done[job.position] = line.finished(unfinished_evaluation(end, job))
            return Evaluations(done[position] for position in range(len(jobs)))

    async def _pool(
        self,
        task: Task,
        evaluator: GivenEvaluator,
        run: InRun,
        group: int,
        anchors: int,
        silent: bool,
        progress: bool,
        budget: Budget | None,
    ) -> Evaluation:
        (found,) = self.check(evaluator)
        pool, context = Pool.plan(task, group, anchors, self.run_context.seed), self.run_context
        if not silent or len(pool.groups) == 1:
            return pool.joined(await self._batch(pool.tasks, found, run, progress, budget), found, context)
        (found,) = self.check(ScreeningEvaluator.of(found, pool.screened))
        screened = pool.joined(await self._batch(pool.tasks, found, run, progress, budget), found, context)
        finalists = pool.finalists(screened, group)
        if len(finalists) < 2:
            return screened
        (final,) = await self._batch([pool.final(finalists)], found, run, progress, budget)
        return pool.decided(screened, final, finalists, found, context)

    async def _jobs(
        self,
        tasks: Collection[Task],
        evaluator: GivenEvaluator | Sequence[GivenEvaluator],
        run: InRun,
        watch: Watch,
    ) -> list[EvaluationRequest]:
        evaluators = self._one_each(evaluator, len(tasks))
        if len(evaluators) != len(tasks):
            raise ConfigError(f"{len(tasks)} tasks and {len(evaluators)} evaluators do not pair up", field="evaluator")
        named = list(with_unique_ids(tasks))
        records = await self._records(run, evaluators)
        pairs = zip(named, evaluators, strict=True)
        return [
            EvaluationRequest(position, task, own, *records[id(own)], watch)
            for position, (task, own) in enumerate(pairs)
        ]

    def _one_each(self, evaluator: GivenEvaluator | Sequence[GivenEvaluator], n: int) -> list[Evaluator]:
        """The evaluators of n tasks, where one was given for all, or one for each."""
        if isinstance(evaluator, Sequence) and not isinstance(evaluator, str):
            return self.check(*evaluator)
        return self.check(evaluator) * n

    async def _stream(
        self, tasks: Iterable[Task], evaluator: GivenEvaluator, run: InRun, progress: bool
    ) -> AsyncGenerator[tuple[int, Evaluation]]:
        _check_tasks(tasks, Iterable)
        (found,) = self.check(evaluator)
        recorded = (await self._records(run, [found]))[id(found)]
        total = len(tasks) if isinstance(tasks, Sized) else None
        self._home.streams += 1
        try:
            async with LiveLine(total, is_shown=progress) as line:
                runner, admission = await self._started(line)
                # The tasks of a held run have unique ids already, and may be too many to hold all ids.
                named = with_unique_ids(tasks) if run is None or isinstance(run, str) else tasks
                watch = Watch(answered=line.answered)
                jobs = (EvaluationRequest(n, task, found, *recorded, watch) for n, task in enumerate(named))
                # Closed here and now when the caller stops early; otherwise the garbage collector would, some time.
                async with aclosing(stream(runner, admission, jobs)) as finishing:
                    async for position, evaluation in finishing:
                        yield position, line.finished(evaluation)
        finally:
            self._home.streams -= 1

    async def _records(self, run: InRun, evaluators: Sequence[Evaluator]) -> dict[int, Recorded]:
        await others_gone()  # they may hold the run
        if run is None and not self._recording.has_store:
            return self._recording.records(run, evaluators)
        return await in_daemon_thread(partial(self._recording.records, run, evaluators), "debate-records")

    def check(self, *evaluators: GivenEvaluator) -> list[Evaluator]:
        """Check evaluators before anything is loaded, and return them; names as in `evaluate_batch`.

        Raises:
            ConfigError: for what is no evaluator and names none, or one that asks for a model for which there is no
                backend, asks a chat model with messages of other roles than a chat's, or reads labels out of a backend
                that gives no probabilities, or that would first have to think.
        """
        found = [self._evaluators.find(each) for each in evaluators]
        for evaluator in {id(evaluator): evaluator for evaluator in found}.values():
            missing = sorted(evaluator.models - set(self.backends))
            if missing:
                raise ConfigError(
                    f"{evaluator.name} asks for the model {missing[0]!r}, and the engine has no backend for it",
                    field="model",
                    hint=f"it has {', '.join(map(repr, self.backends))}; pass {{model: backend}} to Engine",
                )
            for name in getattr(evaluator, "role_models", ()):
                if getattr(backend := self._backend(name), "is_chat", False):
                    problem = f"{evaluator.name} has a judge with roles of its own, and {backend.model} is a chat model"
                    raise ConfigError(problem, field="backend", hint=ROLES_HINT)
            self._check_read_outs(evaluator)
        return found

    def _check_read_outs(self, evaluator: Evaluator) -> None:
        for name in getattr(evaluator, "read_models", ()):
            if not getattr(backend := self._backend(name), "reads_labels", False):
                problem = f"the backend of {backend.model} gives no probabilities, which {evaluator.name} reads out"
                raise ConfigError(problem, field="readout", hint=READOUT_HINT)
        for name in getattr(evaluator, "continued_models", ()):
            if getattr(backend := self._backend(name), "thinks", False):
                problem = f"{backend.model} is to think, and {evaluator.name} would read labels out without a thought"
                raise ConfigError(problem, field="readout", hint=THINKING_HINT)

    def _backend(self, name: str | None) -> Backend:
        """The backend of a model; None is the run's own."""
        return self.backends[name or next(iter(self.backends))]


def _observe(engine: weakref.ref[Engine], admission: Admission, call: Call, completion: Completion) -> None:
    """Learn from a reply, and show it. Holds no engine: what its runner holds would never be forgotten."""
    usage, characters = completion.usage, sum(map(len, call.prompt.texts))
    if call.read_out is None or not call.read_out.continuations:  # what decodes no reply tells no reply's length
        admission.observe(characters, usage.prompt_tokens, usage.completion_tokens - usage.thinking_tokens)
    if (its := engine()) is not None and its.on_completion is not None:
        its.on_completion(call, completion)


def _check_task(task: object) -> None:
    """Refuse anything but one task."""
    if not isinstance(task, Task):
        is_list = isinstance(task, Iterable) and not isinstance(task, str | Mapping)
        hint = "`evaluate_batch` takes several tasks" if is_list else _TASK_HINT
        raise TaskError(f"must be a Task, got {type(cast('object', task)).__name__}", field="task", hint=hint)


def _as_task(x: str | Task, candidates: Iterable[str | Candidate]) -> Task:
    """The task itself, or one of an input and its candidates. Raises TaskError for a task with candidates beside it."""
    if not isinstance(x, Task):
        return Task(x, candidates)
    if isinstance(candidates, Sequence) and not len(candidates):
        return x
    hint = "give an evaluator by its name: evaluate_pool(task, evaluator=...)"
    raise TaskError("must be left out where a task is given, which has its own", field="candidates", hint=hint)


def _check_tasks(tasks: object, kind: type[Any]) -> None:
    """Refuse anything but several tasks, in a list or whatever else is of this kind."""
    if isinstance(tasks, Task):
        raise TaskError("must be a list, got one Task", field="tasks", hint="put it in [ ], or call `evaluate`")
    if isinstance(tasks, str | Mapping) or not isinstance(tasks, kind):
        is_stream = isinstance(tasks, Iterable) and not isinstance(tasks, str | Mapping)
        hint = "`iter_evaluate` takes any iterable of tasks, and reads them one by one" if is_stream else _TASK_HINT
        problem = f"must be a list of tasks, got {type(cast('object', tasks)).__name__}"
        raise TaskError(problem, field="tasks", hint=hint)


_TASK_HINT = 'a task is made of an input and its candidates: Task("What is 2 + 2?", ["4", "5"])'


def _generated(
    prompts: Sequence[Chat], schema: Mapping[str, Any] | None, sampling: Sampling, model: str | None
) -> Flow[list[Completion]]:
    if isinstance(prompts, str):
        raise ConfigError("must be a list of prompts, not one string", field="prompts")
    seen: Counter[Prompt] = Counter()
    requests: list[Generate] = []
    for prompt in map(Prompt.from_messages, prompts):
        info = {"task_id": "generate", "sample": seen[prompt], "attempt": 0}
        key = ("generate", seen[prompt])
        requests.append(
            Generate(prompt=prompt, sampling=sampling, schema=schema, model=model, sample_key=key, info=info)
        )
        seen[prompt] += 1
    answers = yield from gather([generate(request) for request in requests])
    return [Completion("", "failed", Usage(), failure=each) if isinstance(each, Failure) else each for each in answers]


async def _next(items: AsyncIterator[T]) -> T | None:
    return await anext(items, None)
