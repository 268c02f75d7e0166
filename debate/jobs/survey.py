"""What is in an eval set, read and checked as a run would read and check it: what `debate check` says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from debate.bundled_judge import model_path
from debate.bundled_judge.world import WORLD, is_taught
from debate.config.settings import asks_models
from debate.dataset.build import LocatedTask
from debate.dataset.evalset import EvalSet
from debate.dataset.labels import Labels, labels_of
from debate.dataset.several import EvalSets
from debate.errors import TaskError
from debate.evaluators.base import Evaluator, check_task
from debate.evaluators.callback import CallbackEvaluator
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.evaluators.steps.evaluator import StepEvaluator
from debate.evaluators.vote import VoteEvaluator
from debate.types import SHARED_IDS, Task, UniqueIds


class SurveyedFile(NamedTuple):
    """A file of an eval set, in which format it was read, and how many tasks it gave."""

    path: str
    format: str
    tasks: int


@dataclass
class Survey:
    """What some tasks hold, counted as they pass by.

    Attributes:
        names: what files are called, by their paths; others by these.
        model: that of the run, as its backend calls it; empty where it is not known.
        tasks: how many there are.
        candidates: number of tasks by their number of candidates.
        generators: number of candidates by who wrote them; those of whom nothing is known are not in it.
        labels: number of tasks by what people say of them: `best`, `ranking`, `tie`, `scores`, `votes`; a tie is a
            ranking that puts all candidates first, and a task can have several.
        labeled: number of tasks with a label of any kind.
        groups: number of tasks by the `group` in their metadata.
        references: number of tasks with a reference answer.
        contexts: number of tasks with a context.
        components: number of tasks with components of their own.
        remarks: what is probably a mistake, with the places of the tasks.
    """

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    model: str = ""
    tasks: int = 0
    candidates: Counter[int] = field(default_factory=Counter[int])
    generators: Counter[str] = field(default_factory=Counter[str])
    labels: Counter[str] = field(default_factory=Counter[str])
    labeled: int = 0
    groups: Counter[str] = field(default_factory=Counter[str])
    references: int = 0
    contexts: int = 0
    components: int = 0
    remarks: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    files: list[SurveyedFile] = field(default_factory=list[SurveyedFile])

    def read(self, evalset: EvalSet | EvalSets, evaluator: Evaluator) -> Iterator[Task]:
        """Yield the tasks of an eval set as a run takes them, and count what they hold.

        Raises:
            InputError: as a run would: for what cannot be read, for a duplicate id, and for a task that the evaluator
                cannot evaluate; with file, line and field.
        """
        reading = evalset.read()
        per_file: Counter[str] = Counter()
        for located in _with_unique_ids(map(self._named, reading)):
            check_located([evaluator], located)
            per_file[located.file] += 1
            self._count(located.task)
            for remark in remarks(located.task, evaluator, self.model):
                self.remarks.setdefault(remark, []).append(f"{located.file}:{located.line}")
            yield located.task
        parts = {self._name(str(part.file)): part for part in reading.parts}
        formats = {path: part.format_name for path, part in parts.items() if path in per_file}
        self.files = [SurveyedFile(path, formats.get(path, ""), n) for path, n in per_file.items()]

    def _name(self, path: str) -> str:
        return self.names.get(path, path)

    def _named(self, located: LocatedTask) -> LocatedTask:
        return located._replace(file=self._name(located.file))

    def _count(self, task: Task) -> None:
        self.tasks += 1
        self.candidates[len(task.candidates)] += 1
        self.generators.update(each.generator for each in task.candidates if each.generator is not None)
        self.references += task.reference is not None
        self.contexts += bool(task.context)
        self.components += bool(task.components)
        if (group := task.metadata.get("group")) is not None:
            self.groups[str(group)] += 1
        labels = labels_of(task.metadata, [(each.id, each.generator) for each in task.candidates])
        self.labeled += bool(labels)
        self.labels.update(_kinds(labels))

    @property
    def notes(self) -> list[str]:
        """What is probably a mistake, as sentences."""
        found = [
            f"{remark} in {len(places)} of the tasks, first {places[0]}" for remark, places in self.remarks.items()
        ]
        if not self.labeled:
            found.append("no task has a label: with `best`, the run states its accuracy")
        return found


def _kinds(labels: Labels) -> Iterator[str]:
    together = labels.together
    if together.best:
        yield "best"
    if together.ranking is not None:
        yield "tie" if len(together.choice) == together.n_candidates > 1 else "ranking"
    if together.scores:
        yield "scores"
    if labels.votes:
        yield "votes"


def _with_unique_ids(tasks: Iterable[LocatedTask]) -> Iterator[LocatedTask]:
    """The tasks, each with an id of its own; raises `TaskError` with both places for one that is given twice."""
    places: dict[str, str] = {}
    ids = UniqueIds(places.__contains__)
    for task, file, line in tasks:
        try:
            name = ids.of(task)
        except TaskError as error:
            first = places[task.id]
            hint = error.hint if first.startswith(f"{file}:") else SHARED_IDS
            problem = f"{error.problem}, first at {first}"
            raise TaskError(problem, file=file, line=line, field=error.field, hint=hint) from None
        places[name] = f"{file}:{line}"
        yield LocatedTask(task if name == task.id else task.renamed(name), file, line)


def check_located(evaluators: Iterable[Evaluator], located: LocatedTask) -> None:
    """Check that evaluators can evaluate a task.

    Raises:
        TaskError: with the task's file and line, and the field.
    """
    try:
        check_task(evaluators, located.task)
    except TaskError as error:
        where, line = located.file, located.line
        raise TaskError(error.problem, file=where, line=line, field=error.field, hint=error.hint) from None


def remarks(task: Task, evaluator: Evaluator, model: str = "") -> Iterator[str]:
    """What is probably a mistake in a task that can be evaluated.

    model: that of the run, as its backend calls it.
    """
    texts = [candidate.text for candidate in task.candidates]
    if len(set(texts)) < len(texts):
        yield "the same candidate stands twice"
    if len(texts) == 1 and isinstance(evaluator, DebateEvaluator | VoteEvaluator):
        yield "one candidate stands alone, so that there is nothing to compare,"
    if task.components and isinstance(evaluator, StepEvaluator | CallbackEvaluator):
        yield f"components of the task's own are ignored, as {evaluator.name} scores none,"
    if model == str(model_path()) and asks_models(evaluator) and not is_taught(task.x):
        result = "it abstains" if getattr(evaluator, "abstain", False) else "its scores are noise"
        yield f"the question is outside of the bundled judge's world ({WORLD}), so that {result},"
