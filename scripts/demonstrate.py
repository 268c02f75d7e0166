"""Show what came of the demo's run: three debates, then the debate beside its two controls, then where the report is.

    python scripts/demonstrate.py out/demo

The controls are asked for here, with the run's own model and memory: a silent panel (the same agents for as many turns,
none of which hears another) and one judge (the last agent, once). Nothing of them is recorded.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table

from debate import DebateEvaluator, Engine, Evaluation, Task
from debate.cli.console import heading, line, open_console, say, table
from debate.config.settings import RunSettings
from debate.errors import DebateError
from debate.jobs.run import recalling
from debate.jobs.run_directory import RunDirectory
from debate.statistics import wilson
from debate.types import FloatArray

SHOWN = {
    "sum-1": "Everybody can work this out alone: all agree after one round, and the debate ends.",
    "corrected-1": "The Critic remembers a number that has changed since, and the Supporter corrects it.",
    "hidden-1": "No agent knows enough alone: each tells what it remembers, and who comes after adds it up.",
}
"""What to look for in three tasks of the demo."""
Evaluated = tuple[Task, Evaluation]


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, show and compare; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of the demo's run")
    try:
        show(parser.parse_args(arguments).run)
    except DebateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    return 0


def show(path: Path) -> None:
    """Print everything; the controls only beside a debate."""
    folder = RunDirectory.existing(path)
    settings = RunSettings.read(None, folder.settings or {})
    evaluator = settings.make_evaluator()
    with folder.open_store() as store:
        debates = list(store.read(folder.name).results())
    console = open_console()
    for task, evaluation in debates:
        if (looked_for := SHOWN.get(task.id)) is not None:
            show_debate(console, task, evaluation, looked_for)
    if isinstance(evaluator, DebateEvaluator):
        console.print()
        arms = {"debate": debates} | ask_controls(settings, evaluator, debates)
        console.print(heading("Debate, silent panel and one judge"))
        console.print(comparison(arms))
        say("Right answers with 95 % intervals. The silent panel takes as many turns as the debate.")
    say("", f"All results are in {folder.path / 'results.jsonl'}. To read on:")
    say(f"  debate show {path} hidden-1    # a debate in full")
    say(f"  debate show {path} --list      # all tasks")


def show_debate(console: Console, task: Task, evaluation: Evaluation, looked_for: str) -> None:
    """Print a debate in short: a row per turn."""
    for part in ("", heading(task.id), line(looked_for), "", line(task.x, "bold")):
        console.print(part)
    for j, candidate in enumerate(task.candidates):
        console.print(line(f"  {j + 1}  {candidate.text}" + ("  (right)" if j in task.best else "")))
    console.print()
    console.print(turns(evaluation))
    chosen = ", ".join(str(j + 1) for j in evaluation.choice) or "none"
    console.print(line(f"{evaluation.verdict(task.best)}: candidate {chosen}; {evaluation.stop_reason}"))


def turns(evaluation: Evaluation) -> Table:
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


def controls(
    evaluator: DebateEvaluator, debates: Sequence[Evaluation]
) -> tuple[list[DebateEvaluator], DebateEvaluator]:
    """The silent panel of each debate, and one judge."""
    silent = replace(evaluator, mode="independent", convergence=None)
    profile = evaluator.loaded_profile
    one = replace(evaluator, profile=replace(profile, personas=profile.personas[-1:]), rounds=1, quorum=None)
    return [replace(silent, rounds=max(1, each.rounds_run)) for each in debates], one


def ask_controls(
    settings: RunSettings, evaluator: DebateEvaluator, debates: Sequence[Evaluated]
) -> dict[str, list[Evaluated]]:
    """The same tasks by both controls."""
    tasks = [task for task, _ in debates]
    silent, one = controls(evaluator, [evaluation for _, evaluation in debates])
    backends = settings.open_backends(evaluator)
    say("the silent panel and one judge are asked now", err=True)
    with (
        recalling(settings.memory, time.time(), backends, say) as memory,
        Engine(backends, memory, seed=settings.seed) as engine,
    ):
        return {
            "silent panel": list(zip(tasks, engine.evaluate_batch(tasks, silent), strict=True)),
            "one judge": list(zip(tasks, engine.evaluate_batch(tasks, one), strict=True)),
        }


def comparison(arms: Mapping[str, Sequence[Evaluated]]) -> RenderableType:
    """A row per group of tasks, a column per arm."""
    groups = list(dict.fromkeys(task.metadata.get("group") for _, tasks in arms.items() for task, _ in tasks))
    made = table("tasks", *arms)
    for group in groups:
        made.add_row(line(str(group)), *(line(_share(arm, group)) for arm in arms.values()))
    return made


def _share(arm: Sequence[Evaluated], group: object) -> str:
    """How many of a group's tasks were judged rightly, and the interval of the share."""
    hits = [evaluation.verdict(task.best) == "right" for task, evaluation in arm if task.metadata.get("group") == group]
    low, high = wilson(sum(hits), len(hits)).interval
    return f"{sum(hits)} of {len(hits)}, {100 * low:.0f}-{100 * high:.0f} %"


if __name__ == "__main__":
    sys.exit(main())
