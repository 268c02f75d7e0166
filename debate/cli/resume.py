"""`debate resume`: continue a run with the settings that it was started with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.flags import settings_flags
from debate.cli.otel import OTEL

_TRUST = "Import the modules and use the servers that the folder names, without asking."


@settings_flags("engine_restarts", "max_tokens", "max_cost", "max_seconds", "rpm", "tpm", "price", "thinking_tokens")
def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again for what failed.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help=_TRUST)] = False,
    otel: Annotated[bool, typer.Option("--otel", help=OTEL)] = False,
    **flags: Any,
) -> None:
    """Continue a run that was interrupted. Its eval set is not needed: the tasks are in its store.

    Recorded answers are replayed; the model is asked only for what is missing. Somebody else's folder may name
    modules and servers: before a module is imported, or a server is sent a key, that is asked about.

    Example: debate resume runs/first
    """
    from debate.cli.execution import Trust, execute
    from debate.errors import ConfigError
    from debate.jobs.run_directory import RunDirectory

    found = RunDirectory.existing(folder)
    if found.control_of is not None:
        hint = f"debate control {folder.parent}"
        raise ConfigError(f"is the control of the run {found.control_of!r}", file=folder, hint=hint)
    asked = Trust(folder, trust)
    _, settings = asked.settings_of(found, flags)
    code = execute(settings, folder, evalset=None, retry_failed=retry_failed, fork=False, trust=asked, otel=otel)
    raise typer.Exit(code)
