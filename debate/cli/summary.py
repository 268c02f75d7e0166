"""What a run came to: one row per task, totals, and the accuracy against the labels of the tasks.

Reads the results back from the run's store, so that it says the same of a run that was resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rich.table import Table

from debate.cli.console import escape_controls, open_console
from debate.cli.listing import MOST_ROWS, Listing, listed_rows, tasks_as_rows
from debate.cli.progress import Progress, cached_share, money
from debate.jobs.run_directory import RunDirectory
from debate.scoring.reducers import step_accuracy
from debate.statistics import Accuracy
from debate.store import StoredRun
from debate.store.queries import Part, Totals
from debate.types import Price, cost_of


def print_summary(folder: RunDirectory, totals: Totals, progress: Progress) -> None:
    """Print it to stdout: what it came to first, then the tasks, the wrong ones before the others."""
    with folder.open_store() as store:
        record = store.read(folder.name)
        worst = record.standings(worst=MOST_ROWS)
        groups, first_errors = record.accuracy_by_group(), _first_errors(record)
        parts = record.parts_by_settling()
        rows = listed_rows(Listing().arranged(worst, groups), record.results)
    console = open_console()
    console.print(_facts(totals, groups, parts, first_errors, folder, progress))
    if rows:
        console.print()
        for part in tasks_as_rows(rows, console.width):
            console.print(part)
    if (more := totals.n_evaluated - len(rows)) > 0:
        console.print(f"... and {more:,} more: debate show {escape_controls(str(folder.path))} --list")


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


def _told(accuracy: Accuracy) -> str:
    """An accuracy with its interval, what is tied or unscored, and what chance would come to."""
    share = accuracy.share
    low, high = (f"{end:.0%}".removesuffix("%") for end in share.interval)
    apart = "".join(f", {n} {name}" for name, n in (("tied", accuracy.tied), ("unscored", accuracy.unscored)) if n)
    right = f"{accuracy.right} of {accuracy.labeled} right{apart}"
    return f"{share.estimate:.0%} ({low} to {high}), {right}, chance {accuracy.chance:.0%}"


def _told_of(part: Part, n_evaluated: int) -> str:
    """How many of the tasks a part is, how right, and what a task of it took that no prefix cache held."""
    used = part.usage
    tokens = (used.prompt_tokens - used.cached_tokens + used.completion_tokens) / part.tasks
    right = f": {_told(part.accuracy)}" if part.accuracy.labeled else ""
    return f"{part.tasks:,} tasks ({part.tasks / n_evaluated:.0%}), {tokens:,.0f} uncached tokens per task{right}"


def _cost(totals: Totals, prices: Mapping[str, Price]) -> str:
    """What all sessions of the run cost, by model where there are several, and which of them has no price."""
    each = {name: money(cost_of({name: used}, prices)) for name, used in totals.used.items() if name in prices}
    apart = " = " + " + ".join(f"{cost} {escape_controls(name)}" for name, cost in each.items())
    unknown = [escape_controls(name) for name in totals.used if name not in prices]
    without = f", without {', '.join(unknown)}, which has no price" if unknown else ""
    return money(cost_of(totals.used, prices)) + (apart if len(each) > 1 else "") + without


def _facts(
    totals: Totals,
    groups: Mapping[str, Accuracy],
    parts: Mapping[bool, Part],
    first_errors: str | None,
    folder: RunDirectory,
    progress: Progress,
) -> Table:
    used = totals.usage
    facts = Table.grid(padding=(0, 2))
    missing = totals.tasks - totals.n_evaluated
    statuses = " + ".join(f"{totals.statuses.get(name, 0)} {name}" for name in ("ok", "partial", "failed"))
    facts.add_row("tasks", f"{totals.tasks} = {statuses}" + (f" + {missing} not evaluated" if missing else ""))
    stops = [f"{count} {name}" for name, count in sorted(totals.stops.items(), key=lambda item: -item[1]) if name]
    if totals.rounds or "settled" in totals.stops:
        average = f"{totals.rounds / totals.n_evaluated:.2f} rounds on average"
        facts.add_row("stopped", "; ".join(part for part in (", ".join(stops), average) if part))
    if totals.accuracy.labeled:
        facts.add_row("accuracy", f"{_told(totals.accuracy)} (95% intervals)")
    for group, accuracy in groups.items():
        facts.add_row("", f"{_told(accuracy)}: {escape_controls(group)}")
    for is_settled, part in sorted(parts.items(), reverse=True):
        facts.add_row("settled" if is_settled else "debated", _told_of(part, totals.n_evaluated))
    if first_errors is not None:
        facts.add_row("first errors", first_errors)
    if totals.calls or used.calls:
        _add_calls(facts, totals, progress)
    if totals.rounds:
        facts.add_row("turns", f"{used.calls:,} calls counted in results, {totals.failures:,} failed turns")
    elif totals.failures:
        facts.add_row("failures", f"{totals.failures:,} in the results")
    if totals.abstained:
        facts.add_row("abstained", f"{totals.abstained:,} of {totals.cells:,} cells")
    if progress.usage.calls:
        facts.add_row("this time", f"{progress.seconds:.0f} s, {progress.status()}")
    facts.add_row("results", escape_controls(str(folder.results)))
    return facts


def _add_calls(facts: Table, totals: Totals, progress: Progress) -> None:
    """What was asked, and what it cost, where the evaluator asks a model."""
    used = totals.usage
    prompt = f"{used.prompt_tokens:,} prompt ({cached_share(used):.0%} cached)"
    thought = f" ({used.thinking_tokens:,} of thinking)" if used.thinking_tokens else ""
    facts.add_row("tokens", f"{prompt}, {used.completion_tokens:,} completion{thought}")
    for name, asked in totals.used.items() if len(totals.used) > 1 else ():
        each = f"{asked.prompt_tokens:,} prompt, {asked.completion_tokens:,} completion in {asked.calls:,} calls"
        facts.add_row("", f"{each}: {escape_controls(name)}")
    if progress.prices:
        facts.add_row("cost", _cost(totals, progress.prices))
    failed = totals.calls - totals.answered
    recorded = f"{totals.calls:,} recorded = {totals.answered:,} replies + {failed:,} failed"
    facts.add_row("calls", recorded + (f"; {totals.cached:,} from the cache" if totals.cached else ""))
