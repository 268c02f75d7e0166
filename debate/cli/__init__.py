"""The command line, `debate run | resume | show | ...`. Thin: every command calls what the API offers."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, cast

import typer
import typer.main
from typer.core import TyperCommand

from debate.cli.help_pages import PlainCommand, PlainGroup, filled
from debate.cli.streams import lasting_output
from debate.errors import BackendError, BudgetExceededError, DebateError, InputError, RunLockedError, StoreError

COMMAND_GROUPS = {
    "Run": ("ask", "demo", "run", "resume", "control", "workers", "fleet"),
    "Look": ("check", "show", "report", "view", "export"),
    "Judge the judge": ("agree", "compare", "label", "align", "fit", "stopping"),
    "Serve and set up": ("serve", "mcp", "profiles", "doctor", "cache", "memory"),
}
"""The commands as `--help` lists them, each in the module of its name: a function, or a group of its own."""
COMMANDS = tuple(name for names in COMMAND_GROUPS.values() for name in names)
_LOOKS: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": "rich"}


@cache
def _found(name: str) -> Any:
    return getattr(import_module(f"debate.cli.{name}"), name)


@cache
def _built(name: str) -> Any:
    found = _found(name)
    if not isinstance(found, typer.Typer):
        app = typer.Typer(**_LOOKS)
        app.command(name)(found)
        found = app
    for each in found.registered_commands:
        each.cls = PlainCommand
    command = typer.main.get_command(found)
    command.name = name
    return command


class _Commands(Mapping[str, Any]):
    """Every command by its name, built when it is asked for: flags come from the settings, which load slowly."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        return _built(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(PlainGroup):
    """The commands as a group, whose list is made from their docstrings alone."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast("Any", _Commands())

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands by their docstrings; none is built for that."""
        listed = [
            TyperCommand(name, help=_help(_found(name)), rich_help_panel=group)
            for group, names in COMMAND_GROUPS.items()
            for name in names
        ]
        shown = PlainGroup(commands=listed, params=self.params, help=self.help, rich_markup_mode="rich")
        shown.format_help(ctx, formatter)


def _help(found: Any) -> str:
    return filled(str(found.info.help if isinstance(found, typer.Typer) else found.__doc__))


app = typer.Typer(
    name="debate",
    cls=_Group,
    help="Multi-agent debate evaluation of language-model outputs.",
    no_args_is_help=True,
    **_LOOKS,
)

DONE = 0
BAD_INPUT = 2
DONE_WITH_FAILURES = 3
"""Also when a budget ended the run before all tasks were evaluated."""
ENGINE_FAILED = 4
STORE_FAILED = 5
RUN_IN_USE = 6
INTERRUPTED = 130
"""The exit codes, beside 1: the output could not be written."""
_CODES: tuple[tuple[type[DebateError], int], ...] = (
    (InputError, BAD_INPUT),
    (BackendError, ENGINE_FAILED),
    (StoreError, STORE_FAILED),
    (RunLockedError, RUN_IN_USE),
    (BudgetExceededError, DONE_WITH_FAILURES),
)


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from debate import __version__
        from debate.cli.console import say

        say(__version__)
        raise typer.Exit
    from debate.cli.console import LogLines

    logging.getLogger("debate").handlers = [LogLines()]
    logging.getLogger("debate.registry").setLevel(logging.INFO)  # which modules are imported that are not ours


def main() -> None:
    """Run the command line; each kind of `DebateError` is one message on stderr and an exit code.

    0 done, 1 the output could not be written, 2 bad input, 3 done with failures or out of budget, 4 the engine failed,
    5 the store failed, 6 the run is in use, 130 interrupted. A reader of the output that leaves early is no fault.
    """
    if os.environ.get("COLUMNS", "").strip("0") == "":  # on 0 columns nothing can be shown
        os.environ.pop("COLUMNS", None)
    with lasting_output() as stdout:
        code = _exit_code()
        if stdout is not None and (fault := stdout.fault) is not None:
            _say(f"error: stdout cannot be written: {fault.strerror}")
            code = code or 1
    sys.exit(code)


def _exit_code() -> int | str | None:
    """Run the command; returns its exit code."""
    try:
        app()
    except DebateError as error:
        _say(*f"error: {error}".split("\n"))
        return next((code for kind, code in _CODES if isinstance(error, kind)), 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:
        return end.code


def _say(*lines: str) -> None:
    from debate.cli.console import say

    say(*lines, err=True)
