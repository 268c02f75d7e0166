"""The command line, `debate run | resume | show | ...`. Thin: every command calls what the API offers."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from debate.cli import execution as exit_codes
from debate.cli.cache import cache
from debate.cli.doctor import doctor
from debate.cli.export import export
from debate.cli.memory import memory
from debate.cli.profiles import profiles
from debate.cli.resume import resume
from debate.cli.run import run
from debate.cli.serve import serve
from debate.cli.show import show
from debate.errors import BackendError, BudgetExceededError, DebateError, InputError, RunLockedError, StoreError

app = typer.Typer(
    name="debate",
    help="Multi-agent debate evaluation of language-model outputs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (run, resume, show, export, serve, profiles, doctor):
    app.command()(command)
app.add_typer(cache, name="cache")
app.add_typer(memory, name="memory")

_CODES: tuple[tuple[type[DebateError], int], ...] = (
    (InputError, exit_codes.BAD_INPUT),
    (BackendError, exit_codes.ENGINE_FAILED),
    (StoreError, exit_codes.STORE_FAILED),
    (RunLockedError, exit_codes.RUN_IN_USE),
    (BudgetExceededError, exit_codes.DONE_WITH_FAILURES),
)


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from debate import __version__

        typer.echo(__version__)
        raise typer.Exit
    _say_what_is_imported()


def _say_what_is_imported() -> None:
    """Show on stderr which modules are imported that are not ours."""
    log = logging.getLogger("debate.registry")
    log.setLevel(logging.INFO)
    log.handlers = [logging.StreamHandler()]  # on the stderr of now


def main() -> None:
    """Run the command line; each kind of `DebateError` is one message on stderr and an exit code.

    0 done, 2 bad input, 3 done with failures or out of budget, 4 the engine failed, 5 the store failed, 6 the run is in
    use, 130 interrupted.
    """
    try:
        app()
    except DebateError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(next((code for kind, code in _CODES if isinstance(error, kind)), 1))
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)
