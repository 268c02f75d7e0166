"""`debate resume`: continue a run with the settings that it was started with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.flags import settings_flags


@settings_flags("max_tokens", "max_seconds")
def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again for what failed.")] = False,
    **flags: Any,
) -> None:
    """Continue a run that was interrupted. Its eval set is not needed: the tasks are in its store.

    Recorded answers are replayed; the model is asked only for what is missing. Modules that the run's settings name are
    imported; one that is not part of debate is printed first.

    Example: debate resume runs/first
    """
    from debate.cli.execution import execute
    from debate.config.settings import RunSettings
    from debate.errors import ConfigError
    from debate.jobs.run_directory import RunDirectory

    found = RunDirectory.existing(folder)
    if found.settings is None:
        raise ConfigError("its settings are not recorded", file=folder, hint="start it again with `debate run`")
    settings = RunSettings.read(None, {**found.settings, **flags})
    raise typer.Exit(execute(settings, folder, evalset=None, retry_failed=retry_failed, fork=False))
