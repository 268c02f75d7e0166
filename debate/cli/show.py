"""`debate show`: read the debates of a run. Knows where results are; how they look is in `rendering`."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate.errors import InputError

if TYPE_CHECKING:
    from debate.evaluation import Evaluation
    from debate.jobs.results import ResultLine, ResultsFile
    from debate.types import Task

RESULTS_NAME = "results.jsonl"


def show(
    results: Annotated[Path, typer.Argument(help="A results.jsonl, or the folder that holds one.")],
    task_id: Annotated[str | None, typer.Argument(help="Which task; the first where it is left out.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="One row a task, and no debate.")] = False,
    evalset: Annotated[
        Path | None, typer.Option(help="The eval set, for results that are not in their run's folder any more.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Also show the replies that could not be read.")] = False,
) -> None:
    """Show a debate: who said what, and what came of it.

    Example:
        debate show out/ --list
        debate show out/ moon-for-a-six-year-old --raw
    """
    from debate.jobs.results import ResultsFile

    file = ResultsFile(results / RESULTS_NAME if results.is_dir() else results)
    if not file.path.is_file():
        raise InputError(
            "there is no results file", file=file.path, hint=f"give the {RESULTS_NAME} of a run, or its folder"
        )
    if not list_all:
        _show_one(file, task_id, evalset, raw=raw)
    elif task_id is not None:
        raise InputError("--list shows all tasks: leave out the task id", field="--list")
    else:
        _show_list(file)


def _show_one(file: ResultsFile, task_id: str | None, evalset: Path | None, *, raw: bool) -> None:
    from debate.cli.console import line, open_console
    from debate.cli.render_debate import View, render

    evaluation, n_others = _find(file, task_id)
    task = _kept_task(file.path.parent, evaluation) if evalset is None else _find_task(evalset, evaluation)
    console = open_console()
    for part in render(evaluation, View(console.width, raw), task):
        console.print(part)
    if n_others:
        others = "1 other task" if n_others == 1 else f"{n_others} other tasks"
        console.print(line(f"{others} in {file.path}: --list lists them, a task id after the path shows one.", "dim"))


def _find(file: ResultsFile, task_id: str | None) -> tuple[Evaluation, int]:
    """The evaluation of `task_id`, or else the first, and how many others there are (0 when one was asked for)."""
    first: ResultLine | None = None
    ids: list[str] = []
    for found in file.lines():
        if found.task_id == task_id:
            return found.evaluation(), 0
        first = first or found
        ids.append(found.task_id)
    if first is None:
        raise InputError("holds no evaluation yet", file=file.path)
    if task_id is not None:
        raise InputError(f"there is no task {task_id!r}", file=file.path, hint=_close(task_id, ids))
    return first.evaluation(), len(ids) - 1


def _close(task_id: str, ids: list[str]) -> str:
    close = get_close_matches(task_id, ids, n=3) or [each for each in ids if task_id in each][:3]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else "--list shows the ids of all tasks"


def _kept_task(folder: Path, evaluation: Evaluation) -> Task | None:
    """The task as the run's store has it; None where there is no run, or no such task in it."""
    from debate.jobs.run_directory import RunDirectory
    from debate.store import Store

    run = RunDirectory.read(folder)
    if run is None or (run.store is None and not Path(run.store_url).is_file()):
        return None
    with Store(run.store_url) as store:
        task = store.read(run.name).task(evaluation.task_id)
    return task if task is not None and len(task.candidates) == len(evaluation.scores) else None


def _find_task(evalset: Path, evaluation: Evaluation) -> Task:
    from debate.dataset.evalset import EvalSet
    from debate.runtime.scheduler import with_unique_ids

    tasks = with_unique_ids(task for task, _, _ in EvalSet(evalset).tasks())
    task = next((task for task in tasks if task.id == evaluation.task_id), None)
    if task is None:
        raise InputError(f"there is no task {evaluation.task_id!r}", file=evalset, hint="is it another run's?")
    if len(task.candidates) != len(evaluation.scores):
        raise InputError(
            f"the task {task.id!r} has {len(task.candidates)} candidates, and {len(evaluation.scores)} were evaluated",
            file=evalset,
            hint="was it changed since the run?",
        )
    return task


def _show_list(file: ResultsFile) -> None:
    from debate.cli.console import line, open_console, table
    from debate.cli.render_debate import candidate

    made = table("task", "status", "stopped", "rounds", "selected", "score")
    for column in made.columns[3:]:
        column.justify = "right"
    made.columns[0].overflow = "fold"
    for found in file.lines():
        evaluation = found.evaluation()
        selected = evaluation.selected
        cells = (
            evaluation.task_id,
            evaluation.status,
            evaluation.stop_reason or "-",
            str(evaluation.rounds_run),
            candidate(selected),
            "-" if selected is None else f"{evaluation.scores[selected]:.2f}",
        )
        made.add_row(*(line(cell) for cell in cells))
    if not made.rows:
        raise InputError("holds no evaluation yet", file=file.path)
    open_console().print(made)
