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

    asked = Trust(folder, trust, "control")
    run, settings = asked.settings_of(RunDirectory.existing(folder), flags)
    opened = Opened.of(settings, folder, asked)
    code = make_control(run, opened, opened.model, retry_failed=retry_failed)
    print_figures(folder, labels, as_json=json)
    raise typer.Exit(code)


def print_figures(folder: Path, labels: Path | None = None, *, as_json: bool = False) -> None:
    """Print what the debates of a run gained over its control, where the control covers any."""
    from debate.cli.console import open_console, say
    from debate.evaluation import plain
    from debate.files import json_text
    from debate.meta_evaluation.control import read_control
    from debate.meta_evaluation.judged import read_run

    if (found := read_control(read_run(folder, labels))) is None:
        return
    figures = found.figures()
    if as_json:
        say(json_text(plain(figures)))
        return
    console = open_console()
    console.print(arms_table(figures))
    console.print()
    say(*remarks(figures))


def arms_table(figures: ControlFigures) -> Table:
    """A row per way of judging; turns and tokens are per task."""
    from debate.cli.console import line, table

    made = table("per task", "right", "95 %", "unscored", "turns", "decoded", "prompt", right=(1, 2, 3, 4, 5, 6))
    for each in figures.arms:
        low, high = each.accuracy.interval
        right = (f"{each.accuracy.estimate:.1%}", f"{low:.0%} to {high:.0%}", f"{each.unscored:.3g}")
        spent = (f"{each.turns:.1f}", f"{each.completion_tokens:,.0f}", f"{each.prompt_tokens:,.0f}")
        made.add_row(*map(line, (each.name, *(right if each.accuracy.n else "---"), *spent)))
    return made


def remarks(figures: ControlFigures) -> Iterator[str]:
    """The differences, what is not covered, and whether debating pays."""
    yield f"tasks: {figures.tasks:,}, {figures.labeled:,} of them with a label that names the best candidate"
    if figures.not_covered:
        yield f"not covered yet: {figures.not_covered:,} tasks with a debate; `debate control` again asks for them"
    if figures.outdated:
        yield f"left out: {figures.outdated:,} tasks whose debate was held anew; `debate control` again asks for them"
    names = ("debate minus silent panel", "debate minus one judge", "silent panel minus one judge")
    found = (figures.debate_minus_silent, figures.debate_minus_judge, figures.silent_minus_judge)
    if figures.labeled:
        for name, each in zip(names, found, strict=True):
            low, high = each.interval
            ends = f"[{100 * low:+.1f}, {100 * high:+.1f}]" if each.reason is None else f"({each.reason})"
            yield f"{name}: {100 * each.estimate:+.1f} points {ends}"
    other, (low, high) = figures.other_choice.estimate, figures.other_choice.interval
    yield f"debate and silent panel choose differently: {other:.1%} of tasks [{low:.1%}, {high:.1%}]"
    yield figures.sentence
