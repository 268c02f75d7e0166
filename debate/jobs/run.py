"""A batch run over an eval set: every task evaluated at once, every answer and every result kept as it comes.

    DIR/run.json        what runs here: settings, eval set, versions, and where the store is
    DIR/run.sqlite      the store: every answer of the model, the truth from which a run is resumed
    DIR/results.jsonl   one evaluation per line, made from the store
    DIR/control         its control, see `debate.jobs.control`

The same run started again replays what is recorded and asks for the rest. Started while it is under way, it shares the
work: each process claims shards of the tasks. Progress is told to a `RunListener`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Protocol

from debate.backends import Backend, Call
from debate.backends.base import models_identity
from debate.backends.scripted import Scripted
from debate.config.settings import RunSettings
from debate.dataset.build import LocatedTask
from debate.dataset.evalset import EvalSet
from debate.dataset.several import EvalSets
from debate.engine import Engine
from debate.errors import BackendUnavailableError, ConfigError, InputError, StoreError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.flow import Completion
from debate.jobs.claimed import ClaimedTasks
from debate.jobs.debated import Debated
from debate.jobs.results import ResultsFile, ResultsInUseError
from debate.jobs.run_directory import RunDirectory
from debate.jobs.survey import check_located, remarks
from debate.runtime.limits import Budget
from debate.runtime.run_registry import settings_digest
from debate.runtime.runner import Retriever, Runner
from debate.sql.connect import normalize_url, sqlite_file, without_password
from debate.statistics import Accuracy
from debate.store import Store, StoredRun
from debate.store.queries import Totals
from debate.store.workers import Others
from debate.types import Usage, Verdict, cost_of

_FIRST_WAIT = 1.0
_REPORT_SECONDS = 2.0
_LEFT = {"backend_dead", "run_ended"}


class RunListener(Protocol):
    """Is told how a run goes on."""

    def started(self, total: int, done_before: int) -> None:
        """The run has `total` tasks, of which `done_before` have a result from before."""

    def loading(self) -> None:
        """The model is loaded now."""

    def loaded(self) -> None:
        """The model is ready."""

    def answered(self, call: Call, completion: Completion) -> None:
        """The model answered a call, and the answer is recorded. Called from the engine's thread."""

    def finished(self, evaluation: Evaluation) -> None:
        """A task has its result, and the result is recorded and written."""

    def judged(self, right: int, labeled: int) -> None:
        """So many of the labeled tasks with a result came out right, of those from before and those of this process."""

    def shared(self, others: Others) -> None:
        """What the other processes that work on the run have done since this one began. Called from any thread."""

    def waiting(self) -> None:
        """Nothing is left to begin here: the others have the rest. Called again and again, from any thread."""

    def note(self, text: str) -> None:
        """Something that people should know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What to run and where.

    Attributes:
        evalset: None goes on with the tasks that the run has; `Debated` makes the control of another run.
        settings: seed, store, memory, budgets and the like; recorded as they were given.
        retry_failed: ask again for what failed.
        fork: begin a new run beside the folder's, with those of its answers that still fit.
        prepare: stop before anything is evaluated: the eval set is read, and the run written down.
        tracing: as the engine's.
    """

    evalset: EvalSet | EvalSets | Debated | None
    folder: Path
    evaluator: Evaluator
    settings: RunSettings = field(default_factory=RunSettings)
    retry_failed: bool = False
    fork: bool = False
    prepare: bool = False
    tracing: bool = False

    def execute(self, backends: Mapping[str, Backend], watcher: RunListener) -> tuple[RunDirectory, Totals]:
        """Evaluate what has no result yet; returns where, and what the run came to.

        Raises:
            InputError: for a broken eval set, or a folder that holds another run; before the model is loaded.
            RunLockedError: when other processes work on this run, and this one cannot join them.
            BackendUnavailableError: when the backend died more often than it may; what was finished is kept.
            BudgetExceededError: when a budget is used up; what was finished is kept.
            StoreError: when something could not be recorded; what was recorded before is kept.
        """
        seed, identity = self.settings.seed, run_identity(self.evaluator, backends, self.settings.memory)
        today = None if self.debated is None else self.debated.today
        folder = self._folder(watcher)
        self._check(backends, folder)
        folder.claim()
        is_new_store = folder.store is None and not Path(folder.store_url).exists()
        with self._open_store(folder) as store, ExitStack() as open_files:
            with store.join(folder.name, identity, seed=seed, today=today, note=watcher.note) as record:
                session = _Session(self, backends, watcher, folder, store, record)
                try:
                    session.take_tasks()
                except InputError:
                    if is_new_store and folder.is_new:  # the run could not begin
                        folder.remove_store()
                    raise
                if folder.is_new or record.is_alone:
                    # First of all, so that no process finds a file that says what the store does not know.
                    record.note(**folder.noted(record.about))
                    folder.write(seed=seed, today=record.context.today, identity=identity)
                session.prepare(open_files)
            session.run_to_the_end()
            return folder, record.totals()

    @property
    def debated(self) -> Debated | None:
        """The debates whose control this is, if it is one."""
        return self.evalset if isinstance(self.evalset, Debated) else None

    def _check(self, backends: Mapping[str, Backend], folder: RunDirectory) -> None:
        """Find the faults of the settings before anything is made."""
        Engine(backends).check(self.evaluator)
        Budget(cost=self.settings.max_cost, prices=self.settings.prices(backends)).check_prices(backends)
        settings_digest(self.evaluator)
        if sqlite_file(url := normalize_url(folder.store_url)) is None and url.get_backend_name() == "sqlite":
            raise ConfigError("a store in memory ends with the run", field="store", hint="give a file")
        if self.settings.memory not in (None, BUILT_IN):
            normalize_url(self.settings.memory, "memory")

    def _open_store(self, folder: RunDirectory) -> Store:
        """The store, which is made for a run that has recorded nothing yet."""
        if folder.server_with_password() is not None:
            return folder.open_store()
        is_lost = not folder.is_new and (self.evalset is None or folder.has_results)
        return folder.open_store() if is_lost else Store(folder.store_url)

    def _folder(self, watcher: RunListener) -> RunDirectory:
        found, store = RunDirectory.read(self.folder), self.settings.store
        if found is not None and not self.fork:
            found.check_name(self.settings.run)
        if found is not None and store is not None and not found.is_stored_in(store):
            if found.is_blank():
                return replace(found, store=store, is_store_given=True)
            was = found.store or "in the folder"
            raise ConfigError(f"this run's store is {was}", field="store", hint="give another --out, or that --store")
        if self.fork:
            found = RunDirectory.existing(self.folder).fork(self.settings.run)
            watcher.note(f"this run goes on as {found.path}")
        folder = found or RunDirectory.new(self.folder, store, self.settings.run)
        about = folder.evalset if self.evalset is None else self.evalset.recorded
        store, is_given = store or folder.store, folder.is_store_given or store is not None  # it may hold a password
        # What one session of a run is told besides, as by `debate resume`, is not what the run was begun with.
        recorded = folder.settings if self.evalset is None else None
        settings = recorded or self.settings.given() or folder.settings
        control_of = None if self.debated is None else self.debated.name
        return RunDirectory(folder.path, folder.name, store, settings, about, is_given, control_of=control_of)


@dataclass(slots=True)
class _Session:
    """One process at work on what is left of a run."""

    run: Run
    backends: Mapping[str, Backend]
    watcher: RunListener
    folder: RunDirectory
    store: Store
    record: StoredRun
    remarks: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """What is odd about tasks of the eval set, with their places."""
    settings: str = field(init=False)
    """Digest of the evaluator's."""
    results: ResultsFile | None = None
    total: int = 0
    done_before: int = 0
    done: int = 0
    """Tasks that were evaluated here."""
    right: int = 0
    labeled: int = 0
    budget: Budget = field(init=False)
    others_before: Others = Others(0, 0, 0)
    reported_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.settings = settings_digest(self.run.evaluator)

    def take_tasks(self) -> None:
        """Take the eval set into the run, and what a fork takes over."""
        self.refuse_unknown_results()
        self.read_evalset()
        if self.run.fork and self.folder.is_new:
            self.inherit()

    def refuse_unknown_results(self) -> None:
        """Check that the store knows what stands in the file of results, which is to be written anew from it."""
        results = ResultsFile(self.folder.results)
        if not results.path.exists() or (n_lines := results.n_lines()) <= self.record.n_evaluated():
            return
        if n_lines <= len(known := self.record.evaluated(every=True)):
            return
        if unknown := sorted(results.finished() - {*known}):
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            problem = f"{results.path}: the run's store does not know the result of {unknown[0]!r}{more}"
            raise StoreError(problem, hint="put the store back, or give another --out; nothing was changed")

    def read_evalset(self) -> None:
        """Take the tasks into the run, unless it has read the very same eval set before."""
        evalset = self.run.evalset
        if evalset is None:
            return
        before = self.record.about.get("evalset_digest")
        if before is not None and before == evalset.digest():
            return
        self.record.require_alone("another eval set")
        reading, path = evalset.read(), str(evalset.path)
        try:
            tasks = self._checked(reading)
            self.record.read_evalset(tasks, lambda: {"evalset": path, "evalset_digest": reading.digest()})
            for remark, places in self.remarks.items() if self.run.debated is None else ():
                self.watcher.note(f"{remark} in {len(places)} of the tasks, first {places[0]}")
        except BaseException:
            self.record.discard_if_empty()
            raise

    def _checked(self, tasks: Iterable[LocatedTask]) -> Iterator[LocatedTask]:
        """The tasks; one that the evaluator cannot evaluate is an error with its place."""
        for located in tasks:
            check_located([self.run.evaluator], located)
            for remark in remarks(located.task, self.run.evaluator, next(iter(self.backends.values())).model):
                self.remarks.setdefault(remark, []).append(f"{located.file}:{located.line}")
            yield located

    def inherit(self) -> None:
        """Take over the answers of the run that this one was forked from."""
        parent = RunDirectory.existing(self.run.folder)
        with nullcontext(self.store) if parent.store is not None else parent.open_store() as other:
            count = self.record.inherit(other.read(parent.name))
        self.watcher.note(f"{count} recorded answers of {parent.path} are used where they fit")

    def prepare(self, open_files: ExitStack) -> None:
        """Bring what is recorded up to date, and divide what is left."""
        record, watcher, evaluator, settings = self.record, self.watcher, self.run.evaluator, self.settings
        if self.run.retry_failed:
            record.require_alone("--retry-failed")
            watcher.note(f"{record.reopen_failed()} tasks that failed are evaluated again")
        rescored = record.is_alone and _rescore(record, evaluator, settings, self.backends)
        if rescored:
            watcher.note(f"{rescored} results are made anew from what is recorded")
        self.total, self.done_before = record.n_tasks(), record.n_evaluated(settings)
        self.results = self._open_results(open_files)
        if self.results is not None and (rescored or not self.results.is_current()):
            self.results.rewrite(record.result_lines(settings))
        if self.done_before < self.total and not self.run.prepare:
            self.budget = self._budget(record.plan(settings), record.others())
        record.note(**self.folder.noted(record.about), results_under=settings)

    def _budget(self, used: Mapping[str, Usage], others: Others) -> Budget:
        """What is left to this session, after what was used before, and by the others."""
        limits, prices = self.run.settings, self.run.settings.prices(self.backends)
        budget = Budget(
            limits.max_tokens,
            limits.max_seconds,
            limits.max_cost,
            prices=prices,
            spent=sum(usage.total_tokens for usage in used.values()),
            others=others.tokens,
            cost_before=cost_of(used, prices),
        )
        budget.cost_of_others = cost_of(others.used, prices)
        self.others_before = others
        return budget

    def _open_results(self, open_files: ExitStack) -> ResultsFile | None:
        """The file of results; None where another process that works on the run writes it."""
        try:
            return open_files.enter_context(ResultsFile(self.folder.results))
        except ResultsInUseError:
            if self.record.is_alone:
                raise
            return None

    def run_to_the_end(self) -> None:
        """Evaluate what is left, and complete the file of results."""
        self._complete_results(self.done_before)
        if self.run.prepare:
            return
        self._say_where()
        self.watcher.started(self.total, self.done_before)
        if self.done_before == self.total:
            return
        self._judge(self.record.accuracy(self.settings))
        if self.record.n_undone():  # others may be done by now
            self._restarting()
        done = self.record.n_evaluated(self.settings)
        if elsewhere := done - self.done_before - self.done:
            self.watcher.shared(replace(self.record.others(), tasks=elsewhere))
        with ExitStack() as open_files:
            self.results = self.results or self._open_results(open_files)
            self._complete_results(done)
        if self.results is None:
            self.watcher.note(f"another worker of this folder writes {self.folder.results}")

    def _say_where(self) -> None:
        """Name a run that is not the folder's own, so that processes that do not meet show; and say who is there."""
        store, n = self.folder.store, self.others_before.workers
        where = "" if store is None else f"the run {self.record.name!r} in {without_password(store)}"
        others = "" if not n else f"{n} other worker{'s' if n > 1 else ''} at work on it"
        if where or others:
            self.watcher.note(", ".join(filter(None, [where or "this run", others])))

    def _complete_results(self, done: int) -> None:
        """Write those of other processes, too; `done` is how many there are."""
        if self.results is not None and self.results.n_lines() != done:
            self.results.rewrite(self.record.result_lines(self.settings))

    def _restarting(self) -> None:
        """Work until all is done; an engine that dies is started again a few times."""
        most = self.run.settings.engine_restarts
        tasks = ClaimedTasks(self.record, self.settings, self._wait)
        for restarts in itertools.count(1):
            try:
                return self._work(tasks)
            except BackendUnavailableError as death:
                if restarts > most or not death.restartable:
                    raise
                self.watcher.note(f"the engine died: {death.message}")
                self.watcher.note(f"it is started again ({restarts} of {most} times)")
                time.sleep(_FIRST_WAIT * 2 ** (restarts - 1))
            finally:
                tasks.pause()
                self._report(is_last=True)

    def _work(self, tasks: ClaimedTasks) -> None:
        settings, record, evaluator = self.run.settings, self.record, self.run.evaluator
        began = record.started_at if self.run.debated is None else self.run.debated.started_at
        with recalling(settings.memory, began, self.backends, self.watcher.note) as memory:
            engine = Engine(
                self.backends,
                memory=memory,
                seed=record.context.seed,
                max_concurrency=settings.max_concurrency,
                today=date.fromisoformat(record.context.today),
                on_completion=self._answered,
                cache=None if settings.cache is None else self.store.cache(settings.cache),
                budget=self.budget,
                task_seconds=settings.task_seconds,
                tracing=self.run.tracing,
            )
            with engine:
                engine.check(evaluator)
                self.watcher.loading()
                engine.start()
                self.watcher.loaded()
                for evaluation in engine.iter_evaluate(tasks, evaluator, run=record):
                    # What the end of the engine left behind is no result: it is evaluated when the run goes on.
                    if all(failure.reason not in _LEFT for failure in evaluation.failures):
                        self._finished(evaluation, evaluation.verdict(tasks.best(evaluation.task_id)))
                        tasks.finished(evaluation.task_id)

    def _answered(self, call: Call, completion: Completion) -> None:
        self.watcher.answered(call, completion)
        self._report()

    def _judge(self, before: Accuracy | None = None, verdict: Verdict | None = None) -> None:
        """Count how tasks came out that have a label."""
        self.labeled += before.labeled if before else verdict is not None
        self.right += before.right if before else verdict == "right"
        if self.labeled:
            self.watcher.judged(self.right, self.labeled)

    def _finished(self, evaluation: Evaluation, verdict: Verdict | None) -> None:
        if self.results is not None:
            self.results.append(evaluation)
        self.done += 1
        self._judge(verdict=verdict)
        self.watcher.finished(evaluation)
        self._report()

    def _wait(self, n_under_way: int) -> None:
        if not n_under_way:
            self.watcher.waiting()
        self._report()

    def _report(self, *, is_last: bool = False) -> None:
        """Tell the others now and then what was done here, and hear from them."""
        if is_last or time.monotonic() - self.reported_at >= _REPORT_SECONDS:
            self.reported_at = time.monotonic()
            self.record.report(self.done, {**self.budget.used}).add_done_callback(self._heard)

    def _heard(self, future: Future[Others]) -> None:
        if future.exception() is None:  # whoever writes next meets the fault
            now, before = future.result(), self.others_before
            self.budget.others = now.tokens
            self.budget.cost_of_others = cost_of(now.used, self.budget.prices)
            self.watcher.shared(replace(now, tasks=now.tasks - before.tasks))


def run_identity(evaluator: Evaluator, backends: Mapping[str, Backend], memory: str | None) -> dict[str, Any]:
    """What makes a run the same run, besides its seed: see `debate.store.identity`."""
    memories = {} if memory is None else {"memory": without_password(memory, "memory")}
    return {"evaluator": evaluator.describe(), **models_identity(backends), **memories}


BUILT_IN = "built-in"
"""Stands for the seed memories alone, in a store of the run's own."""


@contextmanager
def recalling(
    url: str | None, now: float, backends: Mapping[str, Backend], note: Callable[[str], None]
) -> Generator[Retriever | None]:
    """What agents recall from; None where there is no memory. `note` is told of one that holds nothing.

    Raises:
        ConfigError: for an address or an embedder that cannot be used.
        StoreError: when the memory cannot be opened.
    """
    if url is None:
        yield None
        return
    from debate.memory.store import built_in, open_memory

    file = None if url == BUILT_IN else sqlite_file(normalize_url(url, "memory"))
    is_new = file is not None and not file.exists()
    with built_in() if url == BUILT_IN else open_memory(url) as memory:
        if not memory.collections():
            what = "is new and empty" if is_new else "holds no memories"
            note(f"{memory.place} {what}, so agents recall none: `debate memory add` and `import` add some")
        own = next(iter(backends.values()))
        yield memory.retriever(now=now, count_tokens=getattr(own, "count_tokens", None))


# ---- other settings, from the record alone


def _not_loaded(call: Call) -> str:
    """Stands for a model that is not loaded. Being asked ends the evaluation, which is left for later."""
    raise BackendUnavailableError("not loaded")


def _rescore(record: StoredRun, evaluator: Evaluator, settings: str, backends: Mapping[str, Backend]) -> int:
    """Evaluate anew, from the record alone, what was evaluated under other settings; returns how many that was.

    What the record is not enough for, because the debate would go on, stays as it is.

    Args:
        record: the run.
        evaluator: with the settings of now.
        settings: their digest.
        backends: their models are asked for nothing.

    Raises:
        RunMismatchError, StoreError: as the run itself would.
    """
    absent = {name: Scripted(_not_loaded, model=backend.model, slots=1) for name, backend in backends.items()}
    return asyncio.run(_rescore_all(record, Runner(absent, record.context), evaluator, settings))


async def _rescore_all(record: StoredRun, runner: Runner, evaluator: Evaluator, settings: str) -> int:
    done = 0
    for task in record.stale(settings):
        kept = await record.open(task, settings)
        with suppress(BackendUnavailableError):
            await kept.finish(await runner.evaluate(evaluator, task, kept, record.context))
            done += 1
    return done
