"""What a run came to: one row per task, totals, and the accuracy against known best candidates.

Reads the results back from the run's store, so that it says the same of a run that was resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import cast

from rich.table import Table

from debate.cli.console import escape_controls, line, open_console, table
from debate.cli.progress import Progress, cached_share
from debate.evaluation import Evaluation, top_of_scale
from debate.jobs.run_directory import RunDirectory
from debate.scoring.reducers import step_accuracy
from debate.store import StoredRun
from debate.store.queries import Totals

MAX_ROWS = 50


def print_summary(folder: RunDirectory, totals: Totals, progress: Progress) -> None:
    """Print it to stdout."""
    rows = table("task", "selected", "best", "scores", "CV", "rounds", "stopped")
    rows.padding, rows.pad_edge = (0, 0), False
    rows.columns[0].overflow = "fold"
    for column in rows.columns[1:]:
        column.no_wrap = True
    with folder.open_store() as store:
        record = store.read(folder.name)
        group: object = None
        for task, evaluation in islice(record.results(), MAX_ROWS):
            if (its_own := task.metadata.get("group")) != group:
                group = its_own
                rows.add_section()
                rows.add_row(line(f"- {group or 'no group'}"))
            rows.add_row(*map(line, _row(evaluation, task.metadata.get("best"))))
        groups, first_errors = record.accuracy_by_group(), _first_errors(record)
    console = open_console()
    console.print(rows)
    if (more := totals.n_evaluated - MAX_ROWS) > 0:
        console.print(f"... and {more} more: debate show {escape_controls(str(folder.path))} --list")
    console.print()
    console.print(_facts(totals, groups, first_errors, folder, progress))


_STOPPED = {"converged": "agreed", "max_rounds": "rounds", "token_budget": "budget", "time_budget": "time"}
"""Stop reasons, short enough for 80 columns."""


def _row(evaluation: Evaluation, best: object) -> tuple[str, ...]:
    selected = "-" if evaluation.selected is None else str(evaluation.selected + 1)
    known = str(best + 1) if isinstance(best, int) else ""
    scores = " ".join("-" if score != score else f"{score:.1f}" for score in evaluation.scores.tolist())
    scores += top_of_scale(evaluation)
    cv = f"{evaluation.cv[-1]:.2f}" if evaluation.cv and evaluation.cv[-1] == evaluation.cv[-1] else "-"
    stopped = evaluation.stop_reason or evaluation.status
    return evaluation.task_id, selected, known, scores, cv, str(evaluation.rounds_run), _STOPPED.get(stopped, stopped)


def _first_errors(record: StoredRun) -> str | None:
    """How well the first wrong steps were found (ProcessBench's measure), where they were looked for and are known."""
    pairs: list[tuple[int | None, int]] = []
    for task, evaluation in record.results():
        found, label = evaluation.details.get("first_error"), task.metadata.get("first_error")
        if not found or not isinstance(label, int):
            return None
        pairs.append((cast("list[int | None]", found)[0], label))
    measured = step_accuracy([found for found, _ in pairs], [label for _, label in pairs])
    return (
        f"named in {measured.error_accuracy:.0f} % of the wrong lines; {measured.correct_accuracy:.0f} % of the right "
        f"lines passed; F1 {measured.f1:.0f}"
    )


def _facts(
    totals: Totals,
    groups: Mapping[str, tuple[int, int]],
    first_errors: str | None,
    folder: RunDirectory,
    progress: Progress,
) -> Table:
    used = totals.usage
    facts = Table.grid(padding=(0, 2))
    missing = totals.tasks - totals.n_evaluated
    statuses = " + ".join(f"{totals.statuses.get(name, 0)} {name}" for name in ("ok", "partial", "failed"))
    facts.add_row("tasks", f"{totals.tasks} = {statuses}" + (f" + {missing} not evaluated" if missing else ""))
    stops = ", ".join(f"{count} {name}" for name, count in sorted(totals.stops.items(), key=lambda item: -item[1]))
    if totals.rounds:
        facts.add_row("stopped", f"{stops}; {totals.rounds / totals.n_evaluated:.2f} rounds on average")
    if (known := totals.known) > 0:
        facts.add_row("accuracy", f"{totals.right} of {known} with a known best ({totals.right / known:.0%})")
    for group, (right, known) in groups.items():
        facts.add_row("", f"{right} of {known} ({right / known:.0%}) {escape_controls(group)}")
    if first_errors is not None:
        facts.add_row("first errors", first_errors)
    prompt = f"{used.prompt_tokens:,} prompt ({cached_share(used):.0%} cached)"
    facts.add_row("tokens", f"{prompt}, {used.completion_tokens:,} completion")
    failed = totals.calls - totals.answered
    recorded = f"{totals.calls:,} recorded = {totals.answered:,} replies + {failed:,} failed"
    facts.add_row("calls", recorded + (f"; {totals.cached:,} from the cache" if totals.cached else ""))
    facts.add_row("turns", f"{used.calls:,} calls counted in results, {totals.failures:,} failed turns")
    if progress.usage.calls:
        facts.add_row("this time", f"{progress.seconds:.0f} s, {progress.status()}")
    facts.add_row("results", escape_controls(str(folder.results)))
    return facts
