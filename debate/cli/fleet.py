"""`debate fleet`: start the workers of a run, and start those again that die."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from debate.jobs.run_directory import RunDirectory

PROGRESS_SECONDS = 20.0
"""Between two lines of progress."""
_TRUST = "Import the modules and use the servers that the folder names, without asking; goes to every worker."
_ADDRESS = "Ray cluster: HOST:PORT, or auto; by default RAY_ADDRESS, else a cluster is begun on this machine."


class Launchers(StrEnum):
    """What can start workers."""

    local = "local"
    ray = "ray"


def fleet(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    workers: Annotated[int, typer.Option(help="How many workers share the run.", min=1)],
    launcher: Annotated[Launchers, typer.Option(help="What starts them.")] = Launchers.local,
    gpus_per_worker: Annotated[int, typer.Option(help="GPUs of each worker; 0 assigns none.", min=0)] = 0,
    cpus_per_worker: Annotated[float, typer.Option(help="CPUs that Ray reserves for each worker.", min=0)] = 1,
    address: Annotated[str | None, typer.Option(help=_ADDRESS)] = None,
    restarts: Annotated[int, typer.Option(help="How often each worker that dies is started again.", min=0)] = 3,
    trust: Annotated[bool, typer.Option("--trust", help=_TRUST)] = False,
) -> None:
    """Start several workers on one run, on this machine or on a Ray cluster; start those again that die.

    A worker is `debate resume FOLDER` with an engine of its own. What is to be done stands in the run's store, so any
    number may come and go.

    Example: debate fleet runs/first --workers 4 --gpus-per-worker 1
    """
    from debate.cli import BAD_INPUT, DONE, DONE_WITH_FAILURES, ENGINE_FAILED, RUN_IN_USE, STORE_FAILED
    from debate.cli.execution import end_as_on_interrupt
    from debate.fleet.local import LocalLauncher
    from debate.fleet.ray import RayLauncher
    from debate.fleet.supervision import Launcher, Supervision
    from debate.jobs.run_directory import RunDirectory
    from debate.sql.connect import normalize_url, sqlite_file

    found = RunDirectory.existing(folder)
    found = replace(found, is_store_given=found.is_store_given or trust)
    _counts(found)  # a store that cannot be read is said here, before anything starts
    options = ["--engine-restarts", "0", *(["--trust"] if trust else [])]
    command = [sys.executable, "-m", "debate", "resume", str(folder), *options]
    end_as_on_interrupt()
    made: Launcher
    if launcher is Launchers.local:
        made = LocalLauncher(command, folder, workers, gpus_per_worker)
    else:
        is_file = sqlite_file(normalize_url(found.store_url)) is not None
        made = RayLauncher(
            options, folder, address=address, gpus=gpus_per_worker, cpus=cpus_per_worker, needs_one_machine=is_file
        )
    done, hopeless = (DONE, DONE_WITH_FAILURES), (BAD_INPUT, RUN_IN_USE)
    try:
        end = Supervision(made, workers, restarts, done, hopeless, _tell, _progress(found, workers)).run()
    except KeyboardInterrupt:
        _tell("interrupted; run the same command again to continue")
        raise
    n_tasks, n_evaluated = _counts(found)
    if end.code in done and n_evaluated == n_tasks:  # what is finished loads no model: it is summed up, and written
        raise typer.Exit(subprocess.run(command, check=False).returncode)
    _tell(f"error: the workers ended with {n_evaluated} of {n_tasks} tasks done; the last: {end}")
    known = (*done, *hopeless, STORE_FAILED)
    raise typer.Exit(end.code if end.code in known else ENGINE_FAILED)


def _tell(text: str) -> None:
    from debate.cli.console import say

    say(*text.split("\n"), err=True)


def _counts(folder: RunDirectory) -> tuple[int, int]:
    """How many tasks there are, and how many are evaluated."""
    with folder.open_store() as store:
        record = store.read(folder.name)
        return record.n_tasks(), record.n_done()


def _progress(folder: RunDirectory, workers: int) -> Callable[[int], None]:
    """What says now and then how far the run is, given the number of workers that run."""
    from debate.errors import StoreError

    last = time.monotonic()

    def show(running: int) -> None:
        nonlocal last
        if time.monotonic() - last < PROGRESS_SECONDS:
            return
        try:
            n_tasks, n_evaluated = _counts(folder)
            _tell(f"{n_evaluated} of {n_tasks} tasks, {running} of {workers} workers run")
        except StoreError as error:
            _tell(f"the progress is not known: {error.message}")
        last = time.monotonic()

    return show
