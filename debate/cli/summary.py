"""What a run came to: one row a task, totals, and the accuracy against known best candidates.

Reads the results back from the run's folder, so that it says the same of a run that was resumed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from debate.cli.console import line, open_console, table, visible
from debate.cli.progress import Progress
from debate.evaluation import Evaluation
from debate.jobs.evalset import read_evalset
from debate.jobs.results import ResultsFile
from debate.stream import named
from debate.types import Usage

MAX_ROWS = 50


def print_summary(folder: Path, evalset: Path, limit: int | None, progress: Progress) -> bool:
    """Print it to stdout; returns whether a task failed, in whole or in part."""
    file = ResultsFile(folder / "results.jsonl")
    best = {task.id: task.metadata.get("best") for task in named(read_evalset(evalset, limit))}
    totals = _Totals()
    rows = table("task", "selected", "best", "scores", "CV", "rounds", "stopped")
    rows.padding, rows.pad_edge = (0, 0), False
    rows.columns[0].overflow = "fold"
    for column in rows.columns[1:]:
        column.no_wrap = True
    for evaluation in file.read():
        totals.add(evaluation, best.get(evaluation.task_id))
        if totals.tasks <= MAX_ROWS:
            rows.add_row(*map(line, _row(evaluation, best.get(evaluation.task_id))))
    console = open_console()
    console.print(rows)
    if totals.tasks > MAX_ROWS:
        console.print(f"... and {totals.tasks - MAX_ROWS} more: debate show {visible(str(folder))} --list")
    _print_totals(console, totals, folder, progress)
    return totals.statuses["ok"] < totals.tasks


class _Totals:
    def __init__(self) -> None:
        self.tasks = 0
        self.statuses: Counter[str] = Counter()
        self.stops: Counter[str] = Counter()
        self.rounds = 0
        self.failed_turns = 0
        self.usage = Usage()
        self.known = self.right = 0

    def add(self, evaluation: Evaluation, best: object) -> None:
        self.tasks += 1
        self.statuses[evaluation.status] += 1
        self.stops[evaluation.stop_reason or "-"] += 1
        self.rounds += evaluation.rounds_run
        self.failed_turns += len(evaluation.failures)
        self.usage += evaluation.usage
        if isinstance(best, int):
            self.known += 1
            self.right += evaluation.selected == best


_STOPPED = {"converged": "agreed", "max_rounds": "rounds", "token_budget": "budget", "failed": "failed"}
"""Stop reasons, short enough for 80 columns."""


def _row(evaluation: Evaluation, best: object) -> tuple[str, ...]:
    selected = "-" if evaluation.selected is None else str(evaluation.selected + 1)
    known = str(best + 1) if isinstance(best, int) else ""
    scores = " ".join("-" if score != score else f"{score:.1f}" for score in evaluation.scores.tolist())
    cv = f"{evaluation.cv[-1]:.2f}" if evaluation.cv and evaluation.cv[-1] == evaluation.cv[-1] else "-"
    stopped = _STOPPED.get(evaluation.stop_reason or "", evaluation.status)
    return evaluation.task_id, selected, known, scores, cv, str(evaluation.rounds_run), stopped


def _print_totals(console: Console, totals: _Totals, folder: Path, progress: Progress) -> None:
    used = totals.usage
    facts = Table.grid(padding=(0, 2))
    statuses = ", ".join(f"{totals.statuses[name]} {name}" for name in ("ok", "partial", "failed"))
    facts.add_row("tasks", f"{totals.tasks} = {statuses}")
    stops = ", ".join(f"{count} {name}" for name, count in totals.stops.most_common())
    mean_rounds = totals.rounds / totals.tasks if totals.tasks else 0.0
    facts.add_row("stopped", f"{stops}; {mean_rounds:.2f} rounds on average")
    if totals.known:
        facts.add_row(
            "accuracy", f"{totals.right} of {totals.known} with a known best ({totals.right / totals.known:.0%})"
        )
    cached = used.cached_tokens / used.prompt_tokens if used.prompt_tokens else 0.0
    facts.add_row(
        "tokens", f"{used.prompt_tokens:,} prompt ({cached:.0%} cached), {used.completion_tokens:,} completion"
    )
    facts.add_row("turns", f"{used.calls:,} calls, {totals.failed_turns:,} failed turns")
    if progress.usage.calls:
        facts.add_row("this time", f"{progress.seconds:.0f} s, {progress.status()}")
    facts.add_row("results", visible(str(folder / "results.jsonl")))
    console.print()
    console.print(facts)
