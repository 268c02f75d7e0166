"""`debate show`: read the debates of a run, as its store has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

import typer

from debate.errors import InputError

if TYPE_CHECKING:
    from debate.cli.listing import Listing
    from debate.evaluation import Evaluation
    from debate.store.standings import Outcome, Standing
    from debate.types import Task

_PICTURE_COLUMNS = 100
RESULTS_NAME = "results.jsonl"


def show(
    results: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or a results.jsonl.")],
    task_id: Annotated[
        str | None, typer.Argument(metavar="TASK", help="Id of a task; left out, a run of several tasks is listed.")
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--list", help="List the tasks, by group and the wrong ones first, without the debates.")
    ] = False,
    wrong: Annotated[
        bool, typer.Option("--wrong", help="List where another candidate than people's was chosen.")
    ] = False,
    ties: Annotated[bool, typer.Option("--ties", help="List where candidates share the best score.")] = False,
    unscored: Annotated[bool, typer.Option("--unscored", help="List where nothing could be chosen.")] = False,
    group: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="List the tasks of this group. Repeatable.")
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="KEY", help="The key of the tasks' metadata that names their group.")
    ] = "group",
    sort: Annotated[
        Literal["cv", "margin"] | None,
        typer.Option(help="List by the highest CV, or by the smallest margin of the best score."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List all of them, not 20 at most.")] = False,
    evalset: Annotated[
        Path | None,
        typer.Option(help="The eval set, for results that are not in their run's folder any more."),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Also show the replies that could not be read.")] = False,
    thinking: Annotated[
        bool, typer.Option("--thinking", help="Also show what the model thought before its replies.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw one debate into this SVG file, to show it in a document.")
    ] = None,
) -> None:
    """Show a debate, who said what and what came of it; or list the tasks of a run.

    --wrong, --ties and --unscored together list what is any of these; --group narrows that down.

    Example:
        debate show runs/first --wrong --sort margin
        debate show runs/first moon-for-a-six-year-old --raw
        debate show runs/first moon-for-a-six-year-old --svg moon.svg
    """
    from debate.cli.listing import Listing

    kinds: tuple[tuple[Outcome, bool], ...] = (("wrong", wrong), ("tied", ties), ("unscored", unscored))
    listing = Listing(tuple(kind for kind, is_given in kinds if is_given), tuple(group or ()), by, sort)
    is_list = list_all or every or listing != Listing()
    if is_list and task_id is not None:
        raise InputError("a list shows all tasks: leave out the task id", field=f"the task {task_id!r}")
    with _opened(results / RESULTS_NAME if os.path.isdir(results) else results) as found:
        if is_list or (task_id is None and len(found.ids) > 1):
            if svg is not None:
                raise InputError("draws one debate: give a task's id after the run", field="--svg")
            _show_list(found if evalset is None else found.with_tasks_of(evalset), listing, every=every)
        else:
            _show_one(found, task_id, evalset, svg, raw=raw, thinking=thinking)


@dataclass(frozen=True, slots=True)
class _Results:
    """Where evaluations are read from: a run's store, or a results file that was taken out of its run's folder.

    Attributes:
        place: the results file, for messages.
        ids: of the evaluated tasks.
        read: all evaluations with their tasks, or that of one task; None for a task that is not at hand.
        standings: how all tasks came out, with their groups by a key of their metadata.
    """

    place: Path
    ids: list[str]
    read: Callable[[str | None], Iterator[tuple[Task | None, Evaluation]]]
    standings: Callable[[str], list[Standing]]

    @classmethod
    def of(
        cls, place: Path, ids: list[str], read: Callable[[str | None], Iterator[tuple[Task | None, Evaluation]]]
    ) -> Self:
        """Those of which nothing is known but the evaluations, and perhaps the tasks."""
        from debate.store.standings import Standing

        def standings(key: str) -> list[Standing]:
            return [Standing.of(found, {} if task is None else task.metadata, key) for task, found in read(None)]

        return cls(place, ids, read, standings)

    def with_tasks_of(self, evalset: Path) -> _Results:
        """The same, with the tasks of an eval set, and their labels and groups."""
        tasks = {task.id: task for task in _tasks_of(evalset)}

        def read(task_id: str | None) -> Iterator[tuple[Task | None, Evaluation]]:
            return ((tasks.get(found.task_id, task), found) for task, found in self.read(task_id))

        return _Results.of(self.place, self.ids, read)


@contextmanager
def _opened(path: Path) -> Generator[_Results]:
    from debate.jobs.results import ResultsFile
    from debate.jobs.run_directory import RunDirectory

    run = RunDirectory.read(path.parent)
    if run is not None and (run.store is not None or Path(run.store_url).is_file()):
        with run.open_store() as store:
            record = store.read(run.name)
            yield _Results(path, record.evaluated(), lambda task_id: record.results(task_id=task_id), record.standings)
        return
    if path.exists() and not path.is_file():
        raise InputError("is no regular file", file=path, hint=f"give the {RESULTS_NAME} of a run, or its folder")
    if not path.exists():
        raise InputError("there is no results file", file=path, hint=f"give the {RESULTS_NAME} of a run, or its folder")
    lines = list(ResultsFile(path).lines())
    yield _Results.of(
        path,
        [line.task_id for line in lines],
        lambda task_id: ((None, line.evaluation()) for line in lines if task_id in (None, line.task_id)),
    )


def _show_one(
    found: _Results, task_id: str | None, evalset: Path | None, svg: Path | None, *, raw: bool, thinking: bool
) -> None:
    from debate.cli.console import open_console, open_picture, picture_of, say
    from debate.cli.render_debate import View, render
    from debate.files import valid_unicode, write_text

    task, evaluation = next(found.read(task_id), (None, None))
    if evaluation is None:
        if task_id is None:
            raise InputError("holds no evaluation yet", file=found.place)
        raise InputError(f"there is no task {task_id!r}", file=found.place, hint=_close(task_id, found.ids))
    if evalset is not None:
        task = _find_task(evalset, evaluation)
    console = open_console() if svg is None else open_picture(_PICTURE_COLUMNS)
    for part in render(evaluation, View.of(console, raw=raw, thinking=thinking), task):
        console.print(part)
    if svg is not None:
        write_text(svg, valid_unicode(picture_of(console, evaluation.task_id)))
        say(f"{svg}: {svg.stat().st_size / 1024:.0f} KiB")


def _close(task_id: str, ids: list[str]) -> str:
    close = get_close_matches(task_id, ids, n=3) or [each for each in ids if task_id in each][:3]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else "--list shows the ids of all tasks"


def _tasks_of(evalset: Path) -> Iterator[Task]:
    from debate.dataset.evalset import EvalSet
    from debate.runtime.scheduler import with_unique_ids

    return iter(with_unique_ids(task for task, _, _ in EvalSet(evalset).tasks()))


def _find_task(evalset: Path, evaluation: Evaluation) -> Task:
    task = next((task for task in _tasks_of(evalset) if task.id == evaluation.task_id), None)
    if task is None:
        raise InputError(f"there is no task {evaluation.task_id!r}", file=evalset, hint="is it another run's?")
    if len(task.candidates) != len(evaluation.scores):
        raise InputError(
            f"the task {task.id!r} has {len(task.candidates)} candidates, and {len(evaluation.scores)} were evaluated",
            file=evalset,
            hint="was it changed since the run?",
        )
    return task


def _show_list(found: _Results, listing: Listing, *, every: bool) -> None:
    from debate.cli.console import line, open_console
    from debate.cli.listing import MOST_ROWS, listed_rows, tasks_as_rows

    if not (standings := found.standings(listing.key)):
        raise InputError("holds no evaluation yet", file=found.place)
    listed = listing.of(standings)
    shown = listing.arranged(listed if every else listed[:MOST_ROWS], (each.group for each in standings))
    console = open_console()
    console.print(line(listing.told(listed, standings)))
    if shown:
        console.print()
        for part in tasks_as_rows(listed_rows(shown, found.read), console.width, listing.sort):
            console.print(part)
    if (more := len(listed) - len(shown)) > 0:
        console.print(f"... and {more:,} more: --all lists them")
    console.print()
    console.print(line("A task's id after the path shows its debate; candidates count from 1.", "dim"))
