"""What `debate run` and `debate resume` share: the run itself, its progress, its summary and its exit code."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from pathlib import Path

from debate.cli.exit_codes import DONE, DONE_WITH_FAILURES, INTERRUPTED
from debate.cli.trust import Trust
from debate.config.settings import RunSettings, asks_models
from debate.dataset.evalset import EvalSet


def execute(
    settings: RunSettings,
    folder: Path,
    *,
    evalset: EvalSet | None,
    retry_failed: bool,
    fork: bool,
    trust: Trust | None = None,
) -> int:
    """Start or continue a run, and return the exit code.

    trust: is asked about what the settings name, where they come from the run's folder.
    """
    from debate.cli.progress import Progress
    from debate.cli.summary import print_summary
    from debate.jobs.run import Run
    from debate.jobs.run_directory import RunDirectory

    if (recorded := RunDirectory.read(folder)) is not None:
        settings = settings.with_methods_of(recorded.identity)
    with nullcontext() if trust is None else trust.of(settings):
        evaluator = settings.make_evaluator()
        backends = settings.open_backends(evaluator)
    if trust is not None:
        trust.check_servers(settings, backends)
    job = Run(
        evalset=evalset, folder=folder, evaluator=evaluator, settings=settings, retry_failed=retry_failed, fork=fork
    )
    _end_as_on_interrupt()
    with Progress(model=(settings.model or next(iter(backends))) if asks_models(evaluator) else "") as progress:
        try:
            where, totals = job.execute(backends, progress)
        except KeyboardInterrupt:
            progress.note(f"interrupted; run the same command again to continue, or: debate resume {folder}")
            return INTERRUPTED
    print_summary(where, totals, progress)
    return DONE if totals.statuses.get("ok", 0) == totals.tasks else DONE_WITH_FAILURES


def _end_as_on_interrupt() -> None:
    """Have a termination, and a terminal that is closed, end the run as Ctrl-C does; `nohup` keeps the latter away."""
    signal.signal(signal.SIGTERM, as_interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, as_interrupt)


def as_interrupt(*_: object) -> None:
    """Handle a signal as Ctrl-C."""
    raise KeyboardInterrupt
