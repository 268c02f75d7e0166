"""`debate control`: the silent panel beside a run of debates, and what the debates gained over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from debate.cli.flags import settings_flags

if TYPE_CHECKING:
    from rich.table import Table

    from debate.meta_evaluation.control import ControlFigures
    from debate.meta_evaluation.judged import JudgedRun

_TRUST = "Import the modules and use the servers that the folder names, without asking."
_LABELS = "File of labels by task_id, in the place of those in the tasks' metadata."


@settings_flags("engine_restarts", "max_tokens", "max_seconds")
def control(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    labels: Annotated[Path | None, typer.Option(help=_LABELS)] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again for what failed.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help=_TRUST)] = False,
    **flags: Any,
) -> None:
    """Make the control of a run with an equal budget: the same agents take as many turns, and nobody hears anybody.

    What a debate gains over one judge may come of asking more often alone. The control asks as often as each debate
    did. It is kept in FOLDER/control; the run itself stays as it is. The same command again goes on where it stopped,
    and asks nothing when all is there.

    Example: debate control runs/first --labels people.jsonl
    """
    from debate.cli.execution import Opened, Trust, make_control
    from debate.jobs.run_directory import RunDirectory
    from debate.meta_evaluation.judged import read_run

    asked = Trust(folder, trust, "control")
    run, settings = asked.settings_of(RunDirectory.existing(folder), flags)
    judged = read_run(folder, labels)  # labels with a fault are refused before a model is asked
    opened = Opened.of(settings, folder, asked)
    code = make_control(run, opened, opened.model, retry_failed=retry_failed)
    print_figures(judged, as_json=json)
    raise typer.Exit(code)


def print_figures(run: JudgedRun, *, as_json: bool = False) -> None:
    """Print what the debates of a run gained over its control, where the control covers any."""
    from debate.cli.console import open_console, say
    from debate.cli.figures import unjoined
    from debate.evaluation import plain
    from debate.files import json_text
    from debate.meta_evaluation.control import read_control

    if (control := read_control(run)) is None:
        return
    found = control.figures()
    if as_json:
        say(json_text(plain(found)))
        return
    console = open_console()
    console.print(arms_table(found))
    console.print()
    say(*unjoined(run.unknown_labels), *remarks(found))


def arms_table(found: ControlFigures) -> Table:
    """A row per way of judging; turns and tokens are per task."""
    from debate.cli.figures import figures, percent

    rows = (
        (
            each.name,
            *((percent(each.accuracy), f"{each.unscored:.3g}") if found.labeled else "--"),
            f"{each.turns:.1f}",
            f"{each.completion_tokens:,.0f}",
            f"{each.prompt_tokens:,.0f}",
        )
        for each in found.arms
    )
    headers = ("per task", "right", "unscored", "turns", "decoded", "prompt")
    return figures(*rows, headers=headers, right=(2, 3, 4, 5))


def remarks(found: ControlFigures) -> Iterator[str]:
    """The differences in points, what is not covered, and whether debating pays."""
    from debate.cli.figures import percent

    yield f"tasks: {found.tasks:,}, {found.labeled:,} of them with a label that names the best candidate"
    if found.not_covered:
        yield f"not covered yet: {found.not_covered:,} tasks with a debate; `debate control` again asks for them"
    if found.outdated:
        yield f"left out: {found.outdated:,} tasks whose debate was held anew; `debate control` again asks for them"
    if found.labeled:
        yield f"debate minus silent panel: {percent(found.debate_minus_silent, sign=True)} points"
        yield f"debate minus one judge: {percent(found.debate_minus_judge, sign=True)} points"
        yield f"silent panel minus one judge: {percent(found.silent_minus_judge, sign=True)} points"
    yield f"debate and silent panel choose differently: {percent(found.other_choice)} of the tasks"
    yield found.sentence
