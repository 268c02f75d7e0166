"""A run that was evaluated, as an object: its rows, its figures, and the tables that pandas makes of them.

Thin: every method calls what the command of its name calls.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from debate.errors import ConfigError
from debate.evaluation import Evaluation, Evaluations, FrameLibrary
from debate.types import Displayed, Price, Usage, cost_of, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from matplotlib.figure import Figure

    from debate.evaluators.base import Evaluator
    from debate.export.writer import Results, Row
    from debate.jobs.run_directory import RunDirectory
    from debate.jobs.sent import Sent
    from debate.meta_evaluation.compare import Comparison
    from debate.meta_evaluation.judged import JudgedRun
    from debate.meta_evaluation.models import ModelRanking
    from debate.meta_evaluation.trust import TrustFigures
    from debate.types import Task

Which = Literal["tasks", "scores", "turns", "cells"]


def load(run: str | PathLike[str], labels: str | PathLike[str] | None = None) -> LoadedRun:
    """Open a run to look at it; no model is needed.

    >>> debate.load("runs/first").compare("runs/second").verdicts.lost

    Args:
        run: its folder.
        labels: a file of labels that take the place of those in the eval set.

    Raises:
        ConfigError: when the folder holds no run.
    """
    from debate.jobs.run_directory import RunDirectory

    return LoadedRun(RunDirectory.existing(Path(run)), None if labels is None else Path(labels))


class LoadedRun(Displayed):
    """A run in its folder. Made by `debate.load`.

    Attributes:
        directory: its folder.
        labels: the file of labels that take the place of those in the eval set; None without one.
    """

    def __init__(self, directory: RunDirectory, labels: Path | None) -> None:
        self.directory = directory
        self.labels = labels

    @cached_property
    def judged(self) -> JudgedRun:
        """The evaluated tasks as arrays, with what people say of them.

        Raises:
            InputError: when nothing is evaluated yet.
            TaskError: for labels of another form; names file, line and field.
        """
        from debate.meta_evaluation.judged import read_run

        return read_run(self.directory.path, self.labels)

    def table(self, which: Which = "tasks") -> list[Row]:
        """The rows that `debate export --to tasks` writes, or `--to scores` or `--to turns`, or the cells.

        `scores` has a row per score that an agent gave, with its comment; `cells` a row per cell of S, with the columns
        of `Evaluation.to_dataframe`.
        """
        rows, _ = _rows(which)
        with self.directory.open_store() as store:
            results = self.labeled(store.read(self.directory.name).results())
            return list(rows(results, self.directory.path.resolve().name))

    def to_dataframe(self, which: Which = "tasks", library: FrameLibrary | None = None) -> Any:
        """The same rows as a data frame.

        Args:
            which: of which table.
            library: what makes it; None takes pandas where it is installed, else polars.

        Raises:
            ConfigError: when that library is not installed.
        """
        frames = import_module("debate.notebook.frames")
        return frames.data_frame(self.table(which), _rows(which)[1], library)

    def plot(self) -> Figure:
        """How the scores are spread and, of debates, CV by round: a thin line for each, and the median.

        A notebook shows the figure; `.savefig(PATH)` writes it.

        Raises:
            ConfigError: when matplotlib is not installed: `pip install 'debate-eval[plots]'`.
            InputError: when nothing is evaluated yet.
        """
        return import_module("debate.notebook.plots").plot_run(self.judged)

    def evaluation(self, task_id: str) -> Evaluation:
        """The evaluation of one task, whole.

        Raises:
            InputError: when the run has none of it.
        """
        return self._found(task_id)[1]

    def task(self, task_id: str) -> Task:
        """One evaluated task, with the label that counts for it.

        Raises:
            InputError: when the run has no evaluation of it.
        """
        return next(self.labeled([self._found(task_id)]))[0]

    def prompts(self, task_id: str, evaluator: Evaluator | None = None) -> list[Sent]:
        """What the models were sent about one task, in the order of the calls; see `debate.jobs.sent`.

        evaluator: the run's own; None makes it from what the run has recorded.

        Raises:
            ConfigError: when the evaluator cannot be made again; the message says why.
        """
        from debate.jobs.sent import Prompts

        with self.directory.open_store() as store:
            record = store.read(self.directory.name)
            return Prompts(record, self.directory.identity, evaluator).of_task(task_id)

    def evaluations(self) -> Evaluations:
        """All evaluations, in the order of the tasks. They are read at once: a large run needs as much memory."""
        with self.directory.open_store() as store:
            return Evaluations(each for _, each in store.read(self.directory.name).results())

    def labeled(self, results: Results) -> Iterator[tuple[Task, Evaluation]]:
        """The same, where labels of a file are given with these in place of those in the tasks' metadata."""
        for task, evaluation in results:
            yield task if self.labels is None else _with_best(task, self._best.get(task.id, ())), evaluation

    @cached_property
    def _best(self) -> Mapping[str, tuple[int, ...]]:
        """The right candidates of each evaluated task, by its id."""
        return {each.task_id: each.labels.together.best for each in self.judged.tasks}

    def _found(self, task_id: str) -> tuple[Task, Evaluation]:
        from debate.meta_evaluation.judged import evaluation_of

        return evaluation_of(self.directory, task_id)

    def __repr__(self) -> str:
        """The folder."""
        labels = "" if self.labels is None else f", labels={shortened(str(self.labels))}"
        return f"LoadedRun({shortened(str(self.directory.path), 200)}{labels})"

    def agreement(self, **settings: Any) -> TrustFigures:
        """How far the run agrees with people, as `debate agree` shows it; settings as for `meta_evaluation.agree`."""
        from debate.meta_evaluation.trust import agree

        return agree(self.judged, **settings)

    def compare(self, other: LoadedRun | str | PathLike[str], **settings: Any) -> Comparison:
        """Compare another run with this one; settings as for `debate.meta_evaluation.compare`.

        Without labels of its own, the other one gets those of this run.
        """
        from debate.meta_evaluation.compare import compare

        second = other if isinstance(other, LoadedRun) else load(other, self.labels)
        return compare(self.judged, second.judged, **settings)

    def used(self) -> dict[str, Usage]:
        """What the run asked of each model in all its sessions, without the replies that came from the cache."""
        with self.directory.open_store() as store:
            return store.read(self.directory.name).used()

    def cost(self, price: Price | Mapping[str, Price] | None = None) -> float:
        """What the run cost.

        >>> debate.load("runs/first").cost(debate.Price(0.15, 0.60))

        Args:
            price: per million tokens, of all models or of each by its name; None takes those that the run was given.

        Raises:
            ConfigError: for a model that was asked and has no price.
        """
        used = self.used()
        prices = self._prices() if price is None else dict.fromkeys(used, price) if isinstance(price, Price) else price
        for name in used.keys() - prices.keys():
            raise ConfigError(f"needs the price of {name!r}", field="price", hint="Price(INPUT, OUTPUT) per million")
        return cost_of(used, prices)

    def _prices(self) -> dict[str, Price]:
        """The prices that the run was begun with."""
        from debate.config.settings import RunSettings

        names = (self.directory.identity or {}).get("models", {})
        return RunSettings.model_validate(self.directory.settings or {}).prices(names) if names else {}

    def models(self) -> ModelRanking:
        """The models that wrote the candidates, ranked by the run's scores, as `debate compare RUN --models`."""
        from debate.meta_evaluation.models import rank_models

        return rank_models(self.judged)


def _with_best(task: Task, best: tuple[int, ...]) -> Task:
    """The task with no other label than this."""
    from debate.dataset.labels import LABELS

    metadata = {key: value for key, value in task.metadata.items() if key not in LABELS}
    return task.with_candidates(task.candidates, metadata | ({"best": list(best)} if best else {}))


def _rows(which: Which) -> tuple[Callable[[Results, str], Iterator[Row]], Sequence[str]]:
    """What makes the rows of a table, and its columns."""
    from debate.export import tables
    from debate.types import check_choice

    check_choice("table", which, Which)
    return {
        "tasks": (tables.task_rows, tables.TASK_COLUMNS),
        "scores": (tables.score_rows, tables.SCORE_COLUMNS),
        "turns": (tables.turn_rows, tables.TURN_COLUMNS),
        "cells": (tables.all_cells, tables.CELL_COLUMNS),
    }[which]
