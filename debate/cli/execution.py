"""What `debate run`, `resume` and `control` share: the run itself, its progress, its summary and its exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from debate.backends import Backend
from debate.cli import DONE, DONE_WITH_FAILURES, INTERRUPTED
from debate.cli.console import escape_controls, say
from debate.cli.doctor import can_find
from debate.cli.otel import exporting
from debate.config.settings import ModelSettings, RunSettings, asks_models
from debate.dataset.evalset import EvalSet
from debate.dataset.several import EvalSets
from debate.errors import ConfigError
from debate.evaluators.base import Evaluator
from debate.jobs.run_directory import ENGINE_LOG, PASSWORD, RunDirectory
from debate.registry import asking
from debate.sql.connect import without_password
from debate.store.queries import Totals

if TYPE_CHECKING:
    from debate.cli.progress import Progress
    from debate.jobs.run import Run


def execute(
    settings: RunSettings,
    folder: Path,
    *,
    evalset: EvalSet | EvalSets | None,
    retry_failed: bool,
    fork: bool,
    prepare: bool = False,
    control: bool = False,
    trust: Trust | None = None,
    otel: bool = False,
) -> int:
    """Start or continue a run, or only prepare it, and return the exit code.

    control: make its control afterwards, with the models that are loaded.
    trust: is asked about what the settings name, where they come from the run's folder.
    otel: send traces out.
    """
    from debate.cli.render_control import print_figures
    from debate.cli.summary import print_summary
    from debate.evaluators.debate.control import check_has_control
    from debate.jobs.run import Run
    from debate.meta_evaluation.judged import read_run
    from debate.runtime.kept import kept_loaded

    opened = Opened.of(settings, folder, trust)
    if control:
        check_has_control(opened.evaluator)
    job = Run(
        evalset=evalset,
        folder=folder,
        evaluator=opened.evaluator,
        settings=opened.settings,
        retry_failed=retry_failed,
        fork=fork,
        prepare=prepare,
        tracing=otel,
    )
    with exporting(otel), kept_loaded(opened.backends) if control else nullcontext(opened.backends) as backends:
        done = _work(job, backends, f"debate resume {folder}", opened.model)
        if done is None:
            return INTERRUPTED
        where, totals, progress = done
        if prepare:
            _say_how_to_work(where, totals)
            return DONE
        print_summary(where, totals, progress)
        if not control:
            return _exit_code(totals)
        code = make_control(where, replace(opened, backends=backends), otel=otel)
        print_figures(read_run(where.path))
        return max(code, _exit_code(totals))


def require_vllm(settings: RunSettings) -> None:
    """Refuse settings whose model would run on vLLM in this process where vLLM is not installed.

    Raises:
        ConfigError: with what to install, or what else to give.
    """
    if settings.backend in _IN_PROCESS and not can_find("vllm"):
        hint = (
            "pip install 'debate-eval[gpu]', or 'debate-eval[cpu]' where there is no GPU; a model behind a server "
            "needs neither: --backend openai --base-url URL --model M"
        )
        raise ConfigError(f"{settings.backend} needs vLLM, which is not installed", field="backend", hint=hint)


def make_control(
    run: RunDirectory, opened: Opened, model: str = "", *, retry_failed: bool = False, otel: bool = False
) -> int:
    """Make or continue the control of a run, and return the exit code.

    model: its name, where it is still to be loaded.
    otel: make traces, where the caller sends them out.
    """
    from debate.jobs.control import control_job

    run = replace(run, store=opened.settings.store or run.store)
    job, left = control_job(run, opened.evaluator, opened.backends, opened.settings, retry_failed=retry_failed)
    if left:
        say(f"{left:,} tasks have no debate yet: `debate control {run.path}` again covers them later", err=True)
    done = _work(replace(job, tracing=otel), opened.backends, f"debate control {run.path}", model)
    return INTERRUPTED if done is None else _exit_code(done[1])


@dataclass(frozen=True, slots=True)
class Opened:
    """What settings describe: the evaluator, and the models, of which none is loaded."""

    settings: RunSettings
    evaluator: Evaluator
    backends: Mapping[str, Backend]

    @classmethod
    def of(cls, settings: RunSettings, folder: Path, trust: Trust | None) -> Opened:
        """Those of the settings, with what the run in the folder has recorded; `trust` as in `execute`."""
        if (recorded := RunDirectory.read(folder)) is not None:
            settings = settings.with_methods_of(recorded.identity)
        with nullcontext() if trust is None else trust.of(settings):
            evaluator = settings.make_evaluator()
            backends = settings.open_backends(evaluator)
        if trust is not None:
            trust.check_servers(settings, backends)
        return cls(settings, evaluator, backends)

    @classmethod
    def to_ask(cls, settings: RunSettings) -> Opened:
        """Those of the settings, for an engine that is started at once and records nothing.

        Raises:
            ConfigError: as `require_vllm`, and for settings that cannot work.
        """
        evaluator = settings.make_evaluator()
        backends = settings.open_backends(evaluator)
        made = cls(settings, evaluator, backends)
        if made.loads:
            require_vllm(settings)
        return made

    @property
    def loads(self) -> bool:
        """Whether a model is loaded in this process, which takes its time."""
        return self.settings.backend in _IN_PROCESS and asks_models(self.evaluator)

    @property
    def model(self) -> str:
        """The model that is to be loaded; empty where none is."""
        return (self.settings.model or next(iter(self.backends))) if asks_models(self.evaluator) else ""


def _work(
    job: Run, backends: Mapping[str, Backend], again: str, model: str
) -> tuple[RunDirectory, Totals, Progress] | None:
    """Do the work of a run with its progress shown; None where it was interrupted, to go on by the command `again`."""
    from debate.cli.progress import Progress

    end_as_on_interrupt()
    prices, log = job.settings.prices(backends), job.folder / ENGINE_LOG
    with Progress(model=model, prices=prices, log=log) as progress:
        try:
            return *job.execute(backends, progress), progress
        except KeyboardInterrupt:
            progress.note(f"interrupted; run the same command again to continue, or: {again}")
            return None


def _exit_code(totals: Totals) -> int:
    return DONE if totals.statuses.get("ok", 0) == totals.tasks else DONE_WITH_FAILURES


def _say_how_to_work(folder: RunDirectory, totals: Totals) -> None:
    """Say where a prepared run stands, and what starts workers."""
    where = f"the run {folder.name!r} in {without_password(folder.store_url)}"
    say(f"prepared: {totals.tasks:,} tasks, {totals.n_evaluated:,} of them with a result, as {where}")
    say("start one worker or many, each with:", shlex.join(["debate", "resume", str(folder.path)]))


def end_as_on_interrupt() -> None:
    """Have a termination, and a terminal that is closed, end the run as Ctrl-C does; `nohup` keeps the latter away."""
    signal.signal(signal.SIGTERM, as_interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, as_interrupt)


def as_interrupt(*_: object) -> None:
    """Handle a signal as Ctrl-C."""
    raise KeyboardInterrupt


# ---- what a run's folder may do

_IN_PROCESS = ("vllm", "reward_model")
_PLAIN = (bool, int, float, type(None))


@dataclass(frozen=True, slots=True)
class Trust:
    """Asks before what a run's folder names is used: somebody else may have made it.

    Asked about are modules that would be imported, servers that would be sent a key or tasks, and settings that are not
    those that the run's store has. The user says so with `--trust`, or by typing yes.

    Attributes:
        folder: of the run.
        is_given: the user has said in the command that everything may be used.
        command: the command's name.
    """

    folder: Path
    is_given: bool
    command: str = "resume"

    def settings_of(self, run: RunDirectory, flags: Mapping[str, Any]) -> tuple[RunDirectory, RunSettings]:
        """The settings that a run was begun with, under the flags of now.

        Raises:
            ConfigError: when they are not recorded, do not name model and evaluator, or may not be used.
        """
        if (recorded := run.settings) is None:
            raise ConfigError("its settings are not recorded", file=run.path, hint="start it again with `debate run`")
        if not recorded.keys() & {"model", "backend", "evaluator"}:
            hint = "go on with it there: Run(evalset=None, folder=..., evaluator=...).execute(backends, listener)"
            problem = "was begun in Python: its settings name neither model nor evaluator"
            raise ConfigError(problem, file=run.path, hint=hint)
        if server := run.server_with_password():
            self.ask(f"names the store {server}, which would be sent the password in {PASSWORD}")
            run, flags = replace(run, is_store_given=True), {**flags, "store": server}
        if changes := run.changes():
            self.ask(f"says otherwise than the run's store: {'; '.join(changes)}")
        return run, RunSettings.read(None, {**recorded, **flags})

    def ask(self, what: str) -> None:
        """Go on when the user has said so, or says so now.

        Raises:
            ConfigError: otherwise.
        """
        if self.is_given:
            return
        what = escape_controls(f"{self.folder / 'run.json'} {what}")
        if sys.stdin.isatty() and sys.stderr.isatty():
            say(what, err=True)
            if typer.prompt("Type yes if that is right", default="no", err=True) == "yes":
                return
        raise ConfigError(what, hint=f"if that is right, say so: debate {self.command} {self.folder} --trust")

    @contextmanager
    def of(self, settings: RunSettings) -> Generator[None]:
        """Ask about the settings' engine arguments, and within the block about every module before it is imported."""
        for each in (settings, *settings.models.values()):
            for name, value in each.engine_args.items() if each.backend in _IN_PROCESS else ():
                if _can_name_code(name, value):
                    self.ask(f"sets the engine argument {name}={value}, which can load code")
        with asking(lambda target: self.ask(f"names {target}, which would be imported")):
            yield

    def check_servers(self, settings: RunSettings, backends: Mapping[str, Backend]) -> None:
        """Ask about every address that the settings name, before anything is sent there."""
        if "://" in (memory := settings.memory or "") and os.environ.get(PASSWORD):
            self.ask(f"names the memory {memory}, which would be sent the password in {PASSWORD}")
        for each, backend in zip((settings, *settings.models.values()), backends.values(), strict=False):
            address, variable = getattr(backend, "base_url", None), getattr(backend, "api_key_env", None)
            if address is None or not _is_named(each):
                continue
            if variable is not None and os.environ.get(variable):
                self.ask(f"names the server {address}, which would be sent the key in {variable}")
            elif not _is_loopback(str(urlsplit(str(address)).hostname)):
                self.ask(f"names the server {address}, which would be sent the tasks")


def _is_named(settings: ModelSettings) -> bool:
    return settings.base_url is not None or not {"base_url", "host", "api_key_env"}.isdisjoint(settings.engine_args)


def _can_name_code(name: str, value: Any) -> bool:
    if isinstance(value, str):
        return any(mark in value for mark in ".:/")
    return bool(value) and (name == "trust_remote_code" or not isinstance(value, _PLAIN))


def _is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
