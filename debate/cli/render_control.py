"""Shows what debates gained over their control."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from debate.cli.console import line, open_console, say, table
from debate.evaluation import plain
from debate.files import json_text
from debate.meta_evaluation.control import ControlFigures, read_control
from debate.meta_evaluation.judged import read_run


def print_figures(folder: Path, labels: Path | None = None, *, as_json: bool = False) -> None:
    """Print what the debates of a run gained over its control, where the control covers any."""
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
