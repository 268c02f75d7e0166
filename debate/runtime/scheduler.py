"""Evaluates many tasks at once, yields evaluations as they finish, and reads tasks no faster than that.

It holds one task more than there is room for, and a bounded number of finished evaluations that nobody has taken yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial

from debate.concurrency.daemon_thread import DaemonThread
from debate.concurrency.exits import ends_more, is_being_cancelled
from debate.errors import ENDS_A_RUN, BackendUnavailableError, BudgetExceededError, DebateError, TaskError
from debate.evaluation import Evaluation, failed
from debate.evaluators.base import Evaluator
from debate.evaluators.contract import checked_footprint
from debate.journal import RunJournal
from debate.runtime.limits import Admission
from debate.runtime.loop_thread import cancel_all
from debate.runtime.runner import Runner, Watch, failed_by
from debate.types import Failure, Task, UniqueIds

_UNTAKEN = 256
_HELD: ContextVar[frozenset[Admission]] = ContextVar("held", default=frozenset())
"""In which admissions the evaluation holds room that this code runs in."""


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """A task under its id in the run, its evaluator, its position in the input, and where it is recorded."""

    position: int
    task: Task
    evaluator: Evaluator
    record: RunJournal | None = None
    settings: str = ""
    """Digest of the evaluator's settings, for the record."""
    watch: Watch | None = None


def with_unique_ids(tasks: Iterable[Task]) -> Iterator[Task]:
    """The tasks, each with an id of its own: of equal tasks without a given id, later ones get `-2`, `-3`, ...

    Raises:
        TaskError: when an id was given twice, and for what is no task.
    """
    seen: set[str] = set()
    ids = UniqueIds(seen.__contains__)
    for n, task in enumerate(tasks):
        if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "make one: Task(x, candidates)"
            raise TaskError(f"must be a Task, got {type(task).__name__}", field=f"tasks.{n}", hint=hint)
        name = ids.of(task)
        seen.add(name)
        yield task if name == task.id else task.renamed(name)


async def stream(
    runner: Runner, admission: Admission, jobs: Iterable[EvaluationRequest]
) -> AsyncGenerator[tuple[int, Evaluation]]:
    """Yield (position, evaluation) as they finish. A fault of one task or its evaluator fails that task alone.

    Inside an evaluation that holds room of `admission`, this has an admission of its own: it could wait for itself.

    Raises one of `ENDS_A_RUN`, such as the loss of the backend, once the evaluations under way have come back as
    failed; an error of the iterable itself, and KeyboardInterrupt or SystemExit out of anything of the user's, once
    what was finished has been yielded and what is under way has been cancelled.
    """
    state = _Scheduler(runner, admission, jobs)
    feeder = asyncio.ensure_future(state.feed())
    try:
        while (item := await state.finished.get()) is not None:
            state.untaken.release()
            yield item
        if (error := state.error or state.death) is not None:
            raise error
    finally:
        state.close()
        await cancel_all([feeder, *state.under_way])


async def alone(runner: Runner, given: Admission, job: EvaluationRequest) -> Evaluation:
    """Evaluate one job as soon as there is room: what `stream` does with a single one, at a part of its cost.

    Raises one of `ENDS_A_RUN`, and KeyboardInterrupt or SystemExit out of anything of the user's.
    """
    admission = given.anew() if given in _HELD.get() else given
    try:
        footprint = checked_footprint(job.evaluator, job.task)
        cost = await admission.enter(footprint)
        held = _HELD.set(_HELD.get() | {given})
        try:
            return await _recorded(runner, job, footprint.replies + footprint.read_outs)
        finally:
            _HELD.reset(held)
            admission.leave(cost)
    except BaseException as error:
        if ends_more(error):
            raise
        return failed_by(error, job.evaluator, job.task)


def unfinished_evaluation(death: DebateError, job: EvaluationRequest) -> Evaluation:
    """The failed evaluation of a job that the end of its run, or of its call's budget, left undone.

    It is never recorded.
    """
    is_of_call = isinstance(death, BudgetExceededError) and job.watch is not None and death.budget is job.watch.budget
    reason = "backend_dead" if isinstance(death, BackendUnavailableError) else "budget" if is_of_call else "run_ended"
    failure = Failure(reason, death.message)
    return failed(job.task.id, job.evaluator.name, len(job.task.candidates), failure, job.evaluator.scale)


def _longest_first(jobs: Sequence[EvaluationRequest]) -> list[EvaluationRequest]:
    """Jobs by the tokens that they may generate one after the other, the most first; equal ones stay in their order.

    What begins last is then short, and few slots are idle while it ends.
    """

    def tokens(job: EvaluationRequest) -> int:
        try:
            footprint = checked_footprint(job.evaluator, job.task)
        except BaseException as error:
            if ends_more(error):
                raise
            return 0  # it fails when it begins
        return footprint.replies * footprint.max_tokens

    return sorted(jobs, key=tokens, reverse=True)


async def _recorded(runner: Runner, job: EvaluationRequest, replies: int) -> Evaluation:
    """Evaluate a job and record it; one that is recorded already is not evaluated again."""
    if job.record is None:
        return await runner.evaluate(job.evaluator, job.task, replies=replies, watch=job.watch)
    # Who evaluates the same task of the same run meanwhile waits, and then finds it on record.
    async with runner.one_at_a_time(job.record, job.task.id):
        record = await job.record.open(job.task, job.settings)
        if record.finished is not None:
            return record.finished
        context, watch = job.record.context, job.watch
        evaluation = await runner.evaluate(job.evaluator, job.task, record, context, replies=replies, watch=watch)
        await record.finish(evaluation)
        return evaluation


class _Scheduler:
    """State of one stream. A job waits for admission in the feeder, so that jobs start in order.

    Those of a list are sorted first. Results go by position, and seeds by content: neither depends on the order.
    """

    def __init__(self, runner: Runner, admission: Admission, jobs: Iterable[EvaluationRequest]) -> None:
        self.runner = runner
        self.given = admission
        self.admission = admission.anew() if admission in _HELD.get() else admission
        self.jobs = iter(_longest_first(jobs) if isinstance(jobs, Sequence) else jobs)
        # Reading a list cannot block; reading a file or a user's generator can, for ever too.
        self.reader = None if isinstance(jobs, Sequence) else DaemonThread("debate-tasks")
        self.reading: asyncio.Future[EvaluationRequest | None] | None = None
        self.finished: asyncio.Queue[tuple[int, Evaluation] | None] = asyncio.Queue()
        self.untaken = asyncio.Semaphore(_UNTAKEN)
        self.under_way: set[asyncio.Task[None]] = set()
        self.death: DebateError | None = None
        """What let all that is under way fail, and lets nothing begin."""
        self.error: BaseException | None = None
        """What ends the stream at once."""

    def close(self) -> None:
        """Let go of the thread that reads the tasks."""
        if self.reader is not None:
            self.reader.close()

    async def feed(self) -> None:
        """Start the jobs, one after the other, as room appears. None in the queue says that all are done."""
        with self._ending():
            while self.death is None and (job := await self._next()) is not None:
                await self._start(job)
            while self.under_way:
                await asyncio.wait(self.under_way)
        self.finished.put_nowait(None)

    @contextmanager
    def _ending(self) -> Generator[None]:
        """End the stream by what is raised inside, unless that is because it ends already."""
        try:
            yield
        except BaseException as error:
            if is_being_cancelled():
                raise
            self.error = self.error or error
            self.finished.put_nowait(None)

    async def _next(self) -> EvaluationRequest | None:
        if self.reader is None:
            return next(self.jobs, None)
        self.reading = self.reader.do(partial(next, self.jobs, None))
        try:
            return await self.reading
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            return None  # nothing more is wanted, see `_die`

    async def _start(self, job: EvaluationRequest) -> None:
        try:
            footprint = checked_footprint(job.evaluator, job.task)
        except BaseException as error:
            if ends_more(error):
                raise
            self.finished.put_nowait((job.position, failed_by(error, job.evaluator, job.task)))
            await self.untaken.acquire()
            return
        cost = await self.admission.enter(footprint)
        task = asyncio.ensure_future(self._one(job, footprint.replies + footprint.read_outs))
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        # Not in a `finally` of the task: one that is cancelled before its first step never comes to it.
        task.add_done_callback(lambda _: self.admission.leave(cost))

    async def _one(self, job: EvaluationRequest, replies: int) -> None:
        _HELD.set(_HELD.get() | {self.given})
        with self._ending():
            self.finished.put_nowait((job.position, await self._evaluate(job, replies)))
            # Room is given back only when few results wait: nobody taking them holds up new debates.
            await self.untaken.acquire()

    async def _evaluate(self, job: EvaluationRequest, replies: int) -> Evaluation:
        if self.death is None:
            try:
                return await _recorded(self.runner, job, replies)
            except ENDS_A_RUN as death:
                self._die(death)
            except BaseException as error:
                if ends_more(error):
                    raise
                return failed_by(error, job.evaluator, job.task)
        assert self.death is not None
        return unfinished_evaluation(self.death, job)

    def _die(self, death: DebateError) -> None:
        self.death = self.death or death
        if self.reading is not None:
            self.reading.cancel()
