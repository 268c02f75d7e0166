"""What came of the demo's run: three debates in short, then the debate beside its control, then where to read on.

The control is what `debate run --control` makes: a silent panel (the same agents in as many turns, none of which hears
another) and one judge (the first turn of each of its agents, on average).
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table

from debate.cli.console import heading, line, open_console, say, table
from debate.cli.figures import percent
from debate.evaluation import Evaluation
from debate.jobs.run_directory import RunDirectory
from debate.meta_evaluation.control import ARMS, Control, read_control
from debate.meta_evaluation.judged import read_run
from debate.statistics import share
from debate.types import FloatArray, Task

SHOWN = {
    "sum-1": "Everybody can work this out alone: all agree after one round, and the debate ends.",
    "corrected-1": "The Critic remembers a number that has changed since, and the Supporter corrects it.",
    "hidden-1": "No agent knows enough alone: each tells what it remembers, and who comes after adds it up.",
}
"""What to look for in three tasks of the demo."""


def print_demo(path: Path) -> None:
    """Print what a demo's run in this folder shows; the comparison where the run has a control."""
    folder = RunDirectory.existing(path)
    with folder.open_store() as store:
        debates = list(store.read(folder.name).results())
    console = open_console()
    for task, evaluation in debates:
        if (looked_for := SHOWN.get(task.id)) is not None:
            _show_debate(console, task, evaluation, looked_for)
    if (control := read_control(read_run(path))) is not None:
        console.print()
        console.print(heading("Debate, silent panel and one judge"))
        console.print(_comparison(control))
        say("Right answers with intervals of 95 %; of a tie each candidate has its share. In the")
        say("silent panel nobody hears another, in as many turns; one judge is its first turn.")
    say("", f"All results are in {folder.path / 'results.jsonl'}. To read on:")
    say(f"  debate show {path} hidden-1    # a debate in full")
    say(f"  debate show {path} --list      # all tasks")
    say(f"  debate agree {path}            # what the judge is worth by the labels")


def _show_debate(console: Console, task: Task, evaluation: Evaluation, looked_for: str) -> None:
    """Print a debate in short: a row per turn."""
    for part in ("", heading(task.id), line(looked_for), "", line(task.x, "bold")):
        console.print(part)
    for j, candidate in enumerate(task.candidates):
        console.print(line(f"  {j + 1}  {candidate.text}" + ("  (right)" if j in task.best else "")))
    console.print()
    console.print(_turns(evaluation))
    chosen = ", ".join(str(j + 1) for j in evaluation.choice) or "none"
    console.print(line(f"{evaluation.verdict(task.best)}: candidate {chosen}; {evaluation.stop_reason}"))


def _turns(evaluation: Evaluation) -> Table:
    """What each agent said, and what it gave each candidate on average."""
    n = len(evaluation.scores)
    made = table("round", "agent", "says", *(str(j + 1) for j in range(n)), right=range(3, 3 + n))
    for turn in evaluation.transcript:
        made.add_row(str(turn.round + 1), line(turn.agent), line(turn.overall), *map(_mean, turn.scores))
    return made


def _mean(scores: FloatArray) -> str:
    """The mean of a candidate's scores (K,); `-` where one is missing."""
    mean = scores.mean()
    return "-" if mean != mean else f"{mean:.1f}"


def _comparison(control: Control) -> RenderableType:
    """A row per group of tasks, a column per way of judging."""
    of_task = [task.group for task in control.debates]
    made = table("tasks", "n", *ARMS, right=(1,))
    for group in dict.fromkeys(of_task):
        places = [n for n, each in enumerate(of_task) if each == group]
        made.add_row(
            line(group), str(len(places)), *(percent(share(right[places]), digits=0) for right in control.right)
        )
    return made
