"""`debate resume`: go on with a run, by the settings that it was begun with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again for what failed.")] = False,
    max_tokens: Annotated[int | None, typer.Option(help="Another budget of tokens for the whole run.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Seconds that this session may take.")] = None,
) -> None:
    """Go on with a run that was interrupted. It needs its eval set no more: the tasks are in its store.

    Recorded answers are replayed; the model is asked only for what is missing.

    Example: debate resume runs/first
    """
    from debate.cli.execution import execute
    from debate.config.settings import RunSettings
    from debate.errors import ConfigError
    from debate.jobs.run_directory import RunDirectory

    found = RunDirectory.existing(folder)
    if found.settings is None:
        raise ConfigError("its settings are not recorded", file=folder, hint="start it again by `debate run`")
    flags = {"max_tokens": max_tokens, "max_seconds": max_seconds}
    given = {name: value for name, value in flags.items() if value is not None}
    settings = RunSettings.read(None, {**found.settings, **given})
    raise typer.Exit(execute(settings, folder, evalset=None, retry_failed=retry_failed, fork=False))
