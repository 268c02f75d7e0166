"""A batch run over an eval set: every task evaluated at once, every answer and every result kept as it comes.

    DIR/run.json        what runs here: settings, eval set, versions, and where the store is
    DIR/run.sqlite      the store: every answer of the model, the truth from which a run is resumed
    DIR/results.jsonl   one evaluation a line, made from the store

The same run started again replays what is recorded and asks for the rest. Knows nothing of terminals; who wants to
show progress passes a `RunListener`.

The memory of a run: opened for it, counting ages to the run's beginning and tokens as its model does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Protocol

from debate.backends import Backend, Call
from debate.dataset.build import LocatedTask
from debate.dataset.evalset import EvalSet
from debate.engine import Engine
from debate.errors import BackendUnavailableError, ConfigError, TaskError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator, check_task
from debate.flow import Completion
from debate.jobs.rescore import rescore
from debate.jobs.results import ResultsFile
from debate.jobs.run_directory import RunDirectory
from debate.runtime.limits import Budget
from debate.runtime.run_registry import settings_digest
from debate.runtime.runner import Retriever
from debate.sql.connect import without_password
from debate.store import Store, StoredRun
from debate.store.queries import Totals

_FIRST_WAIT = 1.0
_LEFT = {"backend_dead", "run_ended"}


class RunListener(Protocol):
    """Is told how a run goes on."""

    def started(self, total: int, done_before: int) -> None:
        """The run has `total` tasks, of which `done_before` have a result from before."""
        ...

    def loading(self) -> None:
        """The model is loaded now."""
        ...

    def loaded(self) -> None:
        """The model is ready."""
        ...

    def answered(self, call: Call, completion: Completion) -> None:
        """The model answered a call, and the answer is recorded. Called from the engine's thread."""
        ...

    def finished(self, evaluation: Evaluation) -> None:
        """A task has its result, and the result is recorded and written."""
        ...

    def note(self, text: str) -> None:
        """Something that people should know."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What to run and where.

    Attributes:
        evalset: None goes on with the tasks that the run has.
        store: address of the store; None is a SQLite file in the folder.
        memory: address of the memory store that agents recall from, or `built-in`; None recalls nothing.
        settings: the settings as they were given, for the record.
        max_tokens: prompt and completion tokens that the whole run may use, all its sessions together.
        max_seconds: how long this session may take.
        task_seconds: how long one evaluation may take.
        cache_seconds: for how long a cached reply is good; None uses no cache.
        engine_restarts: how often an engine that died is started again.
        retry_failed: ask again for what failed.
        fork: begin a new run beside the folder's, with those of its answers that still fit.
    """

    evalset: EvalSet | None
    folder: Path
    evaluator: Evaluator
    store: str | None = None
    memory: str | None = None
    settings: Mapping[str, Any] | None = None
    seed: int = 0
    max_concurrency: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    task_seconds: float | None = None
    cache_seconds: float | None = None
    engine_restarts: int = 3
    retry_failed: bool = False
    fork: bool = False

    def execute(self, backends: Mapping[str, Backend], watcher: RunListener) -> tuple[RunDirectory, Totals]:
        """Evaluate what has no result yet; returns where, and what the run came to.

        Raises:
            InputError: for a broken eval set, or a folder that holds another run; before the model is loaded.
            RunLockedError: when another process works on this run.
            BackendUnavailableError: when the backend died more often than it may; what was finished is kept.
            BudgetExceededError: when a budget is used up; what was finished is kept.
            StoreError: when something could not be recorded; what was recorded before is kept.
        """
        folder = self._folder(watcher)
        makes_store = folder.store is None and not Path(folder.store_url).exists()
        try:
            return self._execute(folder, backends, watcher)
        except TaskError:  # the run could not begin
            if makes_store:
                folder.remove_store()
            raise

    def _execute(
        self, folder: RunDirectory, backends: Mapping[str, Backend], watcher: RunListener
    ) -> tuple[RunDirectory, Totals]:
        with Store(folder.store_url) as store:
            models = {name: backend.model for name, backend in backends.items()}
            identity: dict[str, Any] = {"evaluator": self.evaluator.describe(), "models": models}
            if self.memory is not None:
                identity["memory"] = without_password(self.memory)
            record = store.run(folder.name, identity, seed=self.seed)
            try:
                self._read_evalset(record)
                if self.fork and folder.is_new:
                    self._inherit(store, record, watcher)
                folder.write(seed=self.seed, today=record.context.today, identity=identity)
                self._run(backends, store, record, folder, watcher)
                return folder, record.totals()
            finally:
                record.close()

    def _folder(self, watcher: RunListener) -> RunDirectory:
        found = RunDirectory.read(self.folder)
        if found is not None and self.store is not None and not found.is_stored_in(self.store):
            was = found.store or "in the folder"
            raise ConfigError(f"this run's store is {was}", field="store", hint="give another --out, or that --store")
        if self.fork:
            found = RunDirectory.existing(self.folder).fork()
            watcher.note(f"this run goes on as {found.path}")
        folder = found or RunDirectory.new(self.folder, self.store)
        about = folder.evalset if self.evalset is None else {"path": str(self.evalset.path)}
        store = self.store or folder.store  # the one that was given may hold a password
        return RunDirectory(folder.path, folder.name, store, self.settings or folder.settings, about)

    def _read_evalset(self, record: StoredRun) -> None:
        """Take the tasks into the run, unless it has read the very same eval set before."""
        if self.evalset is None:
            return
        before = record.about.get("evalset_digest")
        if before is not None and before == self.evalset.digest():
            return
        reading, path = self.evalset.read(), str(self.evalset.path)
        try:
            record.read_evalset(self._checked(reading), lambda: {"evalset": path, "evalset_digest": reading.digest()})
        except BaseException:
            record.discard_if_empty()
            raise

    def _checked(self, tasks: Iterable[LocatedTask]) -> Iterator[LocatedTask]:
        """The tasks; one that the evaluator cannot evaluate is an error with its place."""
        for located in tasks:
            try:
                check_task([self.evaluator], located.task)
            except TaskError as error:
                place = {"file": located.file, "line": located.line}
                raise TaskError(error.problem, **place, field=error.field, hint=error.hint) from None
            yield located

    def _inherit(self, store: Store, record: StoredRun, watcher: RunListener) -> None:
        parent = RunDirectory.existing(self.folder)
        if parent.store is not None:
            count = record.inherit(store.read(parent.name))
        else:
            with Store(parent.store_url) as other:
                count = record.inherit(other.read(parent.name))
        watcher.note(f"{count} recorded answers of {self.folder} are used where they fit")

    def _run(
        self,
        backends: Mapping[str, Backend],
        store: Store,
        record: StoredRun,
        folder: RunDirectory,
        watcher: RunListener,
    ) -> None:
        settings = settings_digest(self.evaluator)
        with ResultsFile(folder.results) as results:
            if self.retry_failed:
                watcher.note(f"{record.reopen_failed()} tasks that failed are evaluated again")
            models = {name: backend.model for name, backend in backends.items()}
            if count := rescore(record, self.evaluator, settings, models):
                watcher.note(f"{count} results are made anew from what is recorded")
            total, done = record.n_tasks(), record.n_evaluated(settings)
            if count or results.n_lines() != done or not results.is_current():
                results.rewrite(record.result_lines(settings))
            watcher.started(total, done)
            if done < total:
                self._restarting(_Session(self, backends, store, record, results, settings, watcher), watcher)

    def _restarting(self, session: _Session, watcher: RunListener) -> None:
        """Work until all is done; an engine that dies is started again a few times."""
        restarts = 0
        while True:
            try:
                session.work()
                return
            except BackendUnavailableError as death:
                if restarts >= self.engine_restarts or not death.restartable:
                    raise
                restarts += 1
                watcher.note(f"the engine died: {death.message}")
                watcher.note(f"it is started again ({restarts} of {self.engine_restarts} times)")
                time.sleep(_FIRST_WAIT * 2 ** (restarts - 1))


@dataclass(slots=True)
class _Session:
    """One engine at work on what is left of a run."""

    run: Run
    backends: Mapping[str, Backend]
    store: Store
    record: StoredRun
    results: ResultsFile
    settings: str
    watcher: RunListener

    def work(self) -> None:
        with recalling(self.run.memory, self.record.started_at, self.backends) as memory:
            self._work(memory)

    def _work(self, memory: Retriever | None) -> None:
        run, record = self.run, self.record
        engine = Engine(
            self.backends,
            memory=memory,
            seed=record.context.seed,
            max_concurrency=run.max_concurrency,
            today=date.fromisoformat(record.context.today),
            on_completion=self.watcher.answered,
            cache=None if run.cache_seconds is None else self.store.cache(run.cache_seconds),
            budget=Budget(run.max_tokens, run.max_seconds, spent=record.tokens_spent()),
            task_seconds=run.task_seconds,
        )
        with engine:
            engine.check(run.evaluator)
            self.watcher.loading()
            engine.start()
            self.watcher.loaded()
            for evaluation in engine.iter_evaluate(record.pending(self.settings), run.evaluator, run=record):
                # What the end of the engine left behind is no result: it is evaluated when the run goes on.
                if all(failure.reason not in _LEFT for failure in evaluation.failures):
                    self.results.append(evaluation)
                    self.watcher.finished(evaluation)


BUILT_IN = "built-in"
"""Stands for the seed memories alone, in a store of the run's own."""


@contextmanager
def recalling(url: str | None, now: float, backends: Mapping[str, Backend]) -> Generator[Retriever | None]:
    """What agents recall from; None where there is no memory.

    Raises:
        ConfigError: for an address or an embedder that cannot be used.
        StoreError: when the memory cannot be opened.
    """
    if url is None:
        yield None
        return
    from debate.memory.store import built_in, open_memory

    with built_in() if url == BUILT_IN else open_memory(url) as memory:
        yield memory.retriever(now=now, count_tokens=_counter(next(iter(backends.values()))))


def _counter(backend: Backend) -> Callable[[str], int] | None:
    """The tokenizer of the run's own model, where the backend has it."""
    return getattr(backend, "count_tokens", None)
