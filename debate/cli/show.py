"""`debate show`: read the debates of a run, as its store has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate.errors import InputError

if TYPE_CHECKING:
    from debate.evaluation import Evaluation
    from debate.types import Task

RESULTS_NAME = "results.jsonl"


def show(
    results: Annotated[Path, typer.Argument(help="A run's folder, or a results.jsonl.")],
    task_id: Annotated[str | None, typer.Argument(help="Which task; the first where it is left out.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="One row per task, without the debates.")] = False,
    evalset: Annotated[
        Path | None, typer.Option(help="The eval set, for results that are not in their run's folder any more.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Also show the replies that could not be read.")] = False,
    thinking: Annotated[
        bool, typer.Option("--thinking", help="Also show what the model thought before its replies.")
    ] = False,
) -> None:
    """Show a debate: who said what, and what came of it.

    Example:
        debate show out/ --list
        debate show out/ moon-for-a-six-year-old --raw
    """
    if list_all and task_id is not None:
        raise InputError("--list shows all tasks: leave out the task id", field="--list")
    with _opened(results / RESULTS_NAME if os.path.isdir(results) else results) as found:
        if list_all:
            _show_list(found)
        else:
            _show_one(found, task_id, evalset, raw=raw, thinking=thinking)


@dataclass(frozen=True, slots=True)
class _Results:
    """Where evaluations are read from: a run's store, or a results file that was taken out of its run's folder.

    Attributes:
        place: the results file, for messages.
        ids: of the evaluated tasks.
        read: all evaluations with their tasks, or that of one task; None for a task that is not at hand.
    """

    place: Path
    ids: list[str]
    read: Callable[[str | None], Iterator[tuple[Task | None, Evaluation]]]


@contextmanager
def _opened(path: Path) -> Generator[_Results]:
    from debate.jobs.results import ResultsFile
    from debate.jobs.run_directory import RunDirectory

    run = RunDirectory.read(path.parent)
    if run is not None and (run.store is not None or Path(run.store_url).is_file()):
        with run.open_store() as store:
            record = store.read(run.name)
            yield _Results(path, record.evaluated(), lambda task_id: record.results(task_id=task_id))
        return
    if path.exists() and not path.is_file():
        raise InputError("is no regular file", file=path, hint=f"give the {RESULTS_NAME} of a run, or its folder")
    if not path.exists():
        raise InputError("there is no results file", file=path, hint=f"give the {RESULTS_NAME} of a run, or its folder")
    lines = list(ResultsFile(path).lines())
    yield _Results(
        path,
        [line.task_id for line in lines],
        lambda task_id: ((None, line.evaluation()) for line in lines if task_id in (None, line.task_id)),
    )


def _show_one(found: _Results, task_id: str | None, evalset: Path | None, *, raw: bool, thinking: bool) -> None:
    from debate.cli.console import line, open_console
    from debate.cli.render_debate import View, render

    task, evaluation = next(found.read(task_id), (None, None))
    if evaluation is None:
        if task_id is None:
            raise InputError("holds no evaluation yet", file=found.place)
        raise InputError(f"there is no task {task_id!r}", file=found.place, hint=_close(task_id, found.ids))
    if evalset is not None:
        task = _find_task(evalset, evaluation)
    console = open_console()
    for part in render(evaluation, View(console.width, raw, thinking), task):
        console.print(part)
    if task_id is None and (n_others := len(found.ids) - 1):
        others = "1 other task" if n_others == 1 else f"{n_others} other tasks"
        console.print(line(f"{others} in {found.place}: --list lists them, a task id after the path shows one.", "dim"))


def _close(task_id: str, ids: list[str]) -> str:
    close = get_close_matches(task_id, ids, n=3) or [each for each in ids if task_id in each][:3]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else "--list shows the ids of all tasks"


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


def _show_list(found: _Results) -> None:
    from debate.cli.console import line, name, open_console, table
    from debate.cli.render_debate import chosen, row_style
    from debate.evaluation import top_of_scale

    made = table("task", "status", "stopped", "rounds", "selected", "best", "score", right=(3, 4, 5, 6))
    made.columns[0].overflow = "fold"
    for task, evaluation in found.read(None):
        selected, best = evaluation.selected, () if task is None else task.best
        cells = (
            evaluation.status,
            evaluation.stop_reason or "-",
            str(evaluation.rounds_run),
            chosen(evaluation),
            ",".join(str(j + 1) for j in best),
            "-" if selected is None else f"{evaluation.scores[selected]:.2f}{top_of_scale(evaluation)}",
        )
        made.add_row(name(evaluation.task_id), *(line(cell) for cell in cells), style=row_style(evaluation, best))
    if not made.rows:
        raise InputError("holds no evaluation yet", file=found.place)
    open_console().print(made)
