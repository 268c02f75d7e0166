"""Shows what debates gained over their control."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from debate.cli.console import open_console, say, say_json
from debate.cli.figures import figures, percent, unjoined
from debate.evaluation import plain
from debate.files import json_text
from debate.meta_evaluation.control import ControlFigures, read_control
from debate.meta_evaluation.judged import JudgedRun


def print_figures(run: JudgedRun, *, as_json: bool = False) -> None:
    """Print what the debates of a run gained over its control, where the control covers any."""
    if (control := read_control(run)) is None:
        return
    found = control.figures()
    if as_json:
        say_json(json_text(plain(found)))
        return
    console = open_console()
    console.print(arms_table(found))
    console.print()
    say(*unjoined(run.unknown_labels), *remarks(found))


def arms_table(found: ControlFigures) -> Table:
    """A row per way of judging; turns and tokens are per task."""
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
