"""What a run came to: one row per task, totals, and the accuracy against the labels of the tasks.

Reads the results back from the run's store, so that it says the same of a run that was resumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

from rich.table import Table

from debate.cli.console import escape_controls, line, name, open_console, table
from debate.cli.progress import Progress, cached_share
from debate.cli.render_debate import chosen, row_style
from debate.evaluation import Evaluation, top_of_scale
from debate.jobs.run_directory import RunDirectory
from debate.scoring.reducers import step_accuracy
from debate.statistics import Accuracy
from debate.store import StoredRun
from debate.store.queries import Totals
from debate.store.serialization import group_of
from debate.types import Task

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
        for group, found in _by_group(islice(record.results(), MAX_ROWS)):
            if group is not None:
                rows.add_section()
                rows.add_row(name(f"- {group}"))
            for task, evaluation in found:
                cells = map(line, _row(evaluation, task.best))
                rows.add_row(name(evaluation.task_id), *cells, style=row_style(evaluation, task.best))
        groups, first_errors = record.accuracy_by_group(), _first_errors(record)
    console = open_console()
    console.print(rows)
    if (more := totals.n_evaluated - MAX_ROWS) > 0:
        console.print(f"... and {more} more: debate show {escape_controls(str(folder.path))} --list")
    console.print()
    console.print(_facts(totals, groups, first_errors, folder, progress))


_STOPPED = {
    "converged": "agreed",
    "stop_rule": "rule",
    "max_rounds": "rounds",
    "token_budget": "budget",
    "time_budget": "time",
}
"""Stop reasons, short enough for 80 columns."""


def _by_group(results: Iterable[tuple[Task, Evaluation]]) -> Iterator[tuple[object, list[tuple[Task, Evaluation]]]]:
    """The results by group, in the order in which the groups come; all of them under None where no task names one."""
    found: dict[object, list[tuple[Task, Evaluation]]] = {}
    for task, evaluation in results:
        found.setdefault(group_of(task.metadata), []).append((task, evaluation))
    if found.keys() != {None}:
        found = {group or "no group": each for group, each in found.items()}
    yield from found.items()


def _row(evaluation: Evaluation, best: Sequence[int]) -> tuple[str, ...]:
    selected, known = chosen(evaluation), ",".join(str(j + 1) for j in best)
    scores = " ".join("-" if score != score else f"{score:.1f}" for score in evaluation.scores.tolist())
    scores += top_of_scale(evaluation)
    cv = f"{evaluation.cv[-1]:.2f}" if evaluation.cv and evaluation.cv[-1] == evaluation.cv[-1] else "-"
    stopped = evaluation.stop_reason or evaluation.status
    return selected, known, scores, cv, str(evaluation.rounds_run), _STOPPED.get(stopped, stopped)


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


def _facts(
    totals: Totals,
    groups: Mapping[str, Accuracy],
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
    if totals.rounds:
        average = f"{totals.rounds / totals.n_evaluated:.2f} rounds on average"
        facts.add_row("stopped", "; ".join(part for part in (", ".join(stops), average) if part))
    if totals.accuracy.labeled:
        facts.add_row("accuracy", f"{_told(totals.accuracy)} (95% intervals)")
    for group, accuracy in groups.items():
        facts.add_row("", f"{_told(accuracy)}: {escape_controls(group)}")
    if first_errors is not None:
        facts.add_row("first errors", first_errors)
    prompt = f"{used.prompt_tokens:,} prompt ({cached_share(used):.0%} cached)"
    thought = f" ({used.thinking_tokens:,} of thinking)" if used.thinking_tokens else ""
    facts.add_row("tokens", f"{prompt}, {used.completion_tokens:,} completion{thought}")
    failed = totals.calls - totals.answered
    recorded = f"{totals.calls:,} recorded = {totals.answered:,} replies + {failed:,} failed"
    facts.add_row("calls", recorded + (f"; {totals.cached:,} from the cache" if totals.cached else ""))
    facts.add_row("turns", f"{used.calls:,} calls counted in results, {totals.failures:,} failed turns")
    if totals.abstained:
        facts.add_row("abstained", f"{totals.abstained:,} of {totals.cells:,} cells")
    if progress.usage.calls:
        facts.add_row("this time", f"{progress.seconds:.0f} s, {progress.status()}")
    facts.add_row("results", escape_controls(str(folder.results)))
    return facts
