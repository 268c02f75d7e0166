"""`debate resume`: continue a run with the settings that it was started with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.flags import settings_flags

_TRUST = "Import the modules and use the servers that the folder names, without asking."


@settings_flags("engine_restarts", "max_tokens", "max_seconds")
def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again for what failed.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help=_TRUST)] = False,
    **flags: Any,
) -> None:
    """Continue a run that was interrupted. Its eval set is not needed: the tasks are in its store.

    Recorded answers are replayed; the model is asked only for what is missing. Somebody else's folder may name
    modules and servers: before a module is imported, or a server is sent a key, that is asked about.

    Example: debate resume runs/first
    """
    from debate.cli.execution import Trust, execute
    from debate.config.settings import RunSettings
    from debate.errors import ConfigError
    from debate.jobs.run_directory import PASSWORD, RunDirectory

    found = RunDirectory.existing(folder)
    if (recorded := found.settings) is None:
        raise ConfigError("its settings are not recorded", file=folder, hint="start it again with `debate run`")
    if not recorded.keys() & {"model", "backend", "evaluator"}:
        hint = "go on with it there: Run(evalset=None, folder=..., evaluator=...).execute(backends, listener)"
        raise ConfigError("was begun in Python: its settings name neither model nor evaluator", file=folder, hint=hint)
    asked = Trust(folder, trust)
    if server := found.server_with_password():
        asked.ask(f"names the store {server}, which would be sent the password in {PASSWORD}")
        found, flags = replace(found, is_store_given=True), {**flags, "store": server}
    if changes := found.changes():
        asked.ask(f"says otherwise than the run's store: {'; '.join(changes)}")
    settings = RunSettings.read(None, {**recorded, **flags})
    raise typer.Exit(execute(settings, folder, evalset=None, retry_failed=retry_failed, fork=False, trust=asked))
