"""`debate workers`: who works on a run, as its store has it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from debate.store.workers import WorkerState

_HEADERS = ("host", "process", "device", "state", "shards", "tasks", "tasks/s", "last commit")
_COLORS = {"alive": "green", "died": "red"}
_UNITS = (("s", 60), ("min", 60), ("h", 24))


def workers(folder: Annotated[Path, typer.Argument(help="Folder of the run.")]) -> None:
    """Show which processes work on a run, or did, and what is left of it.

    One that died left its tasks to the others. `debate resume FOLDER`, on any machine that reaches the store, is one
    more.

    Example: debate workers runs/first
    """
    from debate.cli.console import line, name, open_console, say, table
    from debate.jobs.run_directory import RunDirectory

    run = RunDirectory.existing(folder)
    made = table(
        "host", "process", "device", "state", "shards", "tasks", "tasks/s", "last commit", right=(1, 4, 5, 6, 7)
    )
    with run.open_store() as store:
        record = store.read(run.name)
        for each in record.workers():
            names = (str(each.about.get(key) or "-") for key in ("host", "process", "device"))
            made.add_row(*map(name, names), *map(line, _facts(each)), style=_COLORS.get(each.state, "dim"))
        shards, total = record.n_undone(), record.n_tasks()
        done = record.n_done()
    open_console().print(made if made.rows else "nobody has worked on it")
    claimed = f", in {shards:,} shards" if shards else ""
    say(f"left: {total - done:,} of {total:,} tasks{claimed}" if done < total else f"all {total:,} tasks are done")


def _facts(worker: WorkerState) -> tuple[str, ...]:
    seconds = worker.last_commit - worker.started_at
    rate = f"{worker.tasks / seconds:.2f}" if worker.tasks and seconds > 0 else "-"
    return worker.state, str(worker.shards), f"{worker.tasks:,}", rate, _ago(time.time() - worker.last_commit)


def _ago(seconds: float) -> str:
    """`40 s ago`, `3 min ago`, `2 h ago`, `5 days ago`."""
    for unit, many in _UNITS:
        if seconds < many:
            return f"{max(seconds, 0):.0f} {unit} ago"
        seconds /= many
    return f"{seconds:.0f} days ago"
