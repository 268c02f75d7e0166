"""`debate control`: the silent panel beside a run of debates, and what the debates gained over it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.flags import settings_flags
from debate.cli.otel import OTEL, exporting

_TRUST = "Import the modules and use the servers that the folder names, without asking."
_LABELS = "File of labels by task_id, in the place of those in the tasks' metadata."


@settings_flags("engine_restarts", "max_tokens", "max_cost", "max_seconds", "rpm", "tpm", "price")
def control(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    labels: Annotated[Path | None, typer.Option(help=_LABELS)] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again for what failed.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help=_TRUST)] = False,
    otel: Annotated[bool, typer.Option("--otel", help=OTEL)] = False,
    **flags: Any,
) -> None:
    """Make the control of a run with an equal budget: the same agents take as many turns, and nobody hears anybody.

    What a debate gains over one judge may come of asking more often alone. The control asks as often as each debate
    did. It is kept in FOLDER/control; the run itself stays as it is. The same command again goes on where it stopped,
    and asks nothing when all is there.

    Example: debate control runs/first --labels people.jsonl
    """
    from debate.cli.execution import Opened, Trust, make_control
    from debate.cli.render_control import print_figures
    from debate.jobs.run_directory import RunDirectory
    from debate.meta_evaluation.judged import read_run

    asked = Trust(folder, trust, "control")
    run, settings = asked.settings_of(RunDirectory.existing(folder), flags)
    judged = read_run(folder, labels)  # labels with a fault are refused before a model is asked
    opened = Opened.of(settings, folder, asked)
    with exporting(otel):
        code = make_control(run, opened, opened.model, retry_failed=retry_failed, otel=otel)
    print_figures(judged, as_json=json)
    raise typer.Exit(code)
