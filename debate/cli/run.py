"""`debate run`: evaluate an eval set. Flags, progress and summary; the work is done by `debate.jobs.run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.evalsets import EVALSETS
from debate.cli.flags import settings_flags
from debate.cli.otel import OTEL

_FORK = "Begin a new run beside --out, which keeps those of its answers whose prompts are the same."

_CONTROL = (
    "Afterwards ask the same agents as often without letting them hear each other, on the models that are loaded; see "
    "`debate control`."
)

_PREPARE = "Only write the run down, without a model; `debate resume FOLDER`, once or many times, then does the work."


@settings_flags()
def run(
    evalsets: Annotated[list[Path], typer.Argument(help=EVALSETS, metavar="EVALSET...")],
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings; flags override it.", rich_help_panel="Run")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again for what failed, and only that.", rich_help_panel="Run")
    ] = False,
    fork: Annotated[bool, typer.Option("--fork", help=_FORK, rich_help_panel="Run")] = False,
    prepare: Annotated[bool, typer.Option("--prepare", help=_PREPARE, rich_help_panel="Run")] = False,
    control: Annotated[bool, typer.Option("--control", help=_CONTROL, rich_help_panel="Run")] = False,
    otel: Annotated[bool, typer.Option("--otel", help=OTEL, rich_help_panel="Run")] = False,
    **flags: Any,
) -> None:
    """Evaluate every task of one eval set or several, all at once, and record every answer as it comes.

    The same command again continues where it stopped, however it stopped: a recorded answer is never asked for again.
    With other weights, thresholds or rounds, results are computed anew from what is recorded, and only what is missing
    is asked for.

    Started again while it works, it shares the work: any number of processes may, on any machines that reach the store.

    Example: debate run tasks.jsonl --model meta-llama/Llama-3.1-8B-Instruct --rounds 2 --out runs/first
    """
    from debate.cli.evalsets import named_evalset
    from debate.cli.execution import execute
    from debate.config.settings import RunSettings
    from debate.errors import ConfigError

    if control and prepare:
        hint = "`debate control FOLDER` makes it when there are debates"
        raise ConfigError("--prepare holds no debates that there could be a control of", field="--control", hint=hint)
    settings = RunSettings.read(config, flags)
    tasks, folder = named_evalset(evalsets, settings)
    code = execute(
        settings,
        folder,
        evalset=tasks,
        retry_failed=retry_failed,
        fork=fork,
        prepare=prepare,
        control=control,
        otel=otel,
    )
    raise typer.Exit(code)
