"""`debate view`: the page of a report, served from a store. Flags; the server is in `debate.report`."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from debate.jobs.run_directory import RunDirectory
    from debate.store import Store

_PLACE = "A run's folder, or a store: a SQLite file, or postgresql://USER@HOST/NAME."
_HOST = "Address to listen on; by default only this machine is heard."


def view(
    place: Annotated[str, typer.Argument(metavar="RUN|STORE", help=_PLACE)],
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default only this machine is heard.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Look at a run of any size in a browser, also while it goes on: figures, tasks to filter, every debate.

    The page is that of `debate report`, served from the store, which is only read. The address that is printed holds a
    secret: who knows it may look. Ctrl-C ends it.

    Example:
        debate view runs/first
        debate view evals.sqlite --port 8080 --no-browser
    """
    from debate.cli.console import say
    from debate.cli.execution import as_interrupt
    from debate.cli.report import worth_of
    from debate.report.serving import ViewServer
    from debate.report.view import Viewer

    open_store, run = _opened(place)
    signal.signal(signal.SIGTERM, as_interrupt)
    with Viewer(open_store, run, worth_of) as viewer, ViewServer(viewer, host, port) as server:
        say(server.url)
        say("Ctrl-C ends it")
        if browser and _has_screen():
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _opened(place: str) -> tuple[Callable[[], Store], RunDirectory | None]:
    """What opens the store, and the run to show first."""
    from debate.jobs.run_directory import RunDirectory
    from debate.store import Store

    if "://" in place or Path(place).is_file():
        return partial(Store, place, read_only=True), None
    run = RunDirectory.existing(Path(place))
    return partial(run.open_store, read_only=True), run


def _has_screen() -> bool:
    """Whether a browser would have a window of its own; one in the terminal would take its place."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
