"""What agents learn from people's labels, measured on tasks whose labels they were not taught, and written to a memory.

The labeled tasks are divided into folds. For every number of labels, each fold is evaluated anew, by the evaluator and
the models of the run, while its agents recall what that many labels of the other folds teach. Tasks that ask the same
stand in one fold. Every evaluation is recorded in the run's store, in a run of its own, so that a killed alignment goes
on. Only then is what all labels teach written to the memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from debate.backends.base import Backend
from debate.engine import Engine
from debate.errors import ConfigError, InputError, RunMismatchError
from debate.evaluation import Evaluation, leaves
from debate.evaluators.base import Evaluator
from debate.flow import Recall
from debate.hashing import digest
from debate.jobs.run import BUILT_IN, RunListener
from debate.memory.store import MemoryStore, built_in, open_memory
from debate.meta_evaluation.judged import JudgedRun
from debate.meta_evaluation.teaching import (
    REFLECT,
    Case,
    Distill,
    Rule,
    forget,
    input_of,
    make_case,
    pupils,
    recalled_from,
    rules_in,
    teach,
    to_distill,
    usable,
)
from debate.runtime.run_registry import settings_digest
from debate.runtime.runner import Retriever
from debate.statistics import Estimate, Mean, paired_difference, share
from debate.store.identity import differences, prompt_identity
from debate.templates import Templates
from debate.types import Memory, Task, Usage

_PREFIX = "align "
"""How the names of collections begin in which a fold's agents learn."""
_EVERYTHING = -1
"""The fold in whose place everybody is taught."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teaching:
    """How labels are taught, and how that is measured.

    Attributes:
        cases: whether labeled cases are taught.
        rules: whether rules are, which the model distills from disagreements.
        folds: into which the labeled tasks are divided; as many as there are inputs, where these are fewer.
        sizes: numbers of labels that are tried; 0, which is the run as it is, always stands beside them.
        seed: of the folds, and of the order in which labels are taught.
    """

    cases: bool = True
    rules: bool = True
    folds: int = 5
    sizes: tuple[int, ...] = (0, 5, 10, 20, 50)
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.cases or self.rules):
            raise ConfigError("nothing would be taught", field="rules", hint="allow cases, rules, or both")
        if self.folds < 2:
            raise ConfigError(f"must be at least 2, got {self.folds}", field="folds")
        if not self.sizes or min(self.sizes) < 0:
            raise ConfigError(f"must be numbers of labels from 0, got {self.sizes}", field="sizes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What came of a number of labels, on held-out tasks.

    Attributes:
        labels: taught to each agent; 0 is the run as it is.
        agreement: share of the tasks on which the panel chose what people chose; a tie with another candidate, and no
            choice at all, count as not agreeing.
        unscored: tasks without any choice.
        difference: to the run as it is, task by task, with inputs as clusters; None for the run itself.
        won: tasks on which the panel agrees with people now and did not.
        lost: the reverse.
        recalled: share of the turns that recalled something of what was taught.
        rules: distilled, in all folds and collections.
        unread: reflections that gave no rules, by reason.
        usage: what the evaluations and reflections took.
    """

    labels: int
    agreement: Estimate
    unscored: int
    difference: Mean | None = None
    won: int = 0
    lost: int = 0
    recalled: float = 0.0
    rules: int = 0
    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """What was learned from the labels of a run.

    Attributes:
        run: its name.
        teaching: how.
        labels: tasks with labels that can be taught.
        disagreements: of these, tasks on which the panel chose otherwise than people.
        left_out: the others, by reason.
        folds: how many there were.
        chance: expected agreement by drawing a candidate.
        learned: by the number of labels, from 0.
        groups: by the `group` of the tasks' metadata: the run as it is, and with the most labels; empty where there are
            fewer than two groups, or nothing was measured.
        written: how many memories, by collection.
        unread: reflections over all labels that gave no rules, by reason.
        notes: what people should know.
    """

    run: str
    teaching: Teaching
    labels: int
    disagreements: int
    left_out: Mapping[str, int]
    folds: int
    chance: float
    learned: tuple[Learned, ...]
    groups: Mapping[str, tuple[Learned, Learned]]
    written: Mapping[str, int]
    unread: Mapping[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be taught and measured; made without asking a model.

    Attributes:
        run: the run.
        evaluator: as the run was made with.
        teaching: how.
        cases: the labeled tasks, in the run's order.
        folds: the fold of each.
        sizes: numbers of labels that are measured, rising; none above what the other folds of each fold hold.
        left_out: labels that cannot be taught, by reason.
        templates: by collection of the agents.
        notes: what people should know.
    """

    run: JudgedRun
    evaluator: Evaluator
    teaching: Teaching
    cases: tuple[Case, ...]
    folds: tuple[int, ...]
    sizes: tuple[int, ...]
    left_out: Mapping[str, int]
    templates: Mapping[str, Templates]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The run's."""
        return self.run.directory.name

    @property
    def disagreements(self) -> int:
        """Labeled tasks on which the panel chose otherwise than people."""
        return sum(case.is_disagreement for case in self.cases)

    def taught_to(self, fold: int, n: int) -> tuple[Case, ...]:
        """The n cases that a fold's agents are taught: drawn by the seed, of the other folds alone."""
        order = Random(self.teaching.seed).sample(range(len(self.cases)), len(self.cases))
        return tuple(self.cases[i] for i in order if self.folds[i] != fold)[:n]


def plan_alignment(run: JudgedRun, evaluator: Evaluator, teaching: Teaching) -> Plan:
    """Choose what is taught and divide the labeled tasks.

    Raises:
        ConfigError: when no agent recalls memories, or the model can be asked for none of what is wanted.
        InputError: for fewer than two labeled inputs.
        TemplateError: for a template of cases that cannot be rendered.
    """
    templates, notes = pupils(evaluator), list[str]()
    if teaching.rules and not any(each.suits(REFLECT) for each in templates.values()):
        notes.append("the model is trained on templates that ask for no rules: labeled cases alone are taught")
        teaching = replace(teaching, rules=False)  # refused where it was all
    reasons = {each.task_id: usable(each.labels, len(each.scores)) for each in run.tasks}
    left_out = Counter(each for each in reasons.values() if each is not None)
    left_out.update({"not a task of the run": len(run.unknown_labels)} if run.unknown_labels else {})
    cases = _cases(run, evaluator, [each for each, reason in reasons.items() if reason is None], templates)
    if (n_inputs := len({case.input for case in cases})) < 2:
        hint = "`debate label` makes some; give at least a dozen"
        raise InputError(f"takes labels on two different inputs, got {n_inputs}", file=run.directory.path, hint=hint)
    folds = fold_of_each([case.task for case in cases], min(teaching.folds, n_inputs), teaching.seed)
    most = len(cases) - max(Counter(folds).values())
    sizes = sorted({min(each, most) for each in teaching.sizes} - {0})
    if max(teaching.sizes) > most:
        notes.append(f"at most {most:,} labels can be tried, so many are in the other folds")
    return Plan(
        run=run,
        evaluator=evaluator,
        teaching=teaching,
        cases=cases,
        folds=folds,
        sizes=tuple(sizes),
        left_out=dict(left_out),
        templates=templates,
        notes=tuple(notes),
    )


def _cases(
    run: JudgedRun, evaluator: Evaluator, task_ids: Sequence[str], templates: Mapping[str, Templates]
) -> tuple[Case, ...]:
    labels, described = {each.task_id: each.labels for each in run.tasks}, evaluator.describe()
    with run.directory.open_store() as store:
        record = store.read(run.directory.name)
        found = (next(record.results(each)) for each in task_ids)
        return tuple(make_case(task, labels[task.id], said, described, templates) for task, said in found)


def fold_of_each(tasks: Sequence[Task], n: int, seed: int) -> tuple[int, ...]:
    """The fold of each task, from 0: inputs are shuffled by the seed, then dealt out group by group.

    Tasks with the same input stand in one fold.
    """
    groups = {input_of(task): str(task.metadata.get("group", "")) for task in tasks}
    inputs = Random(seed).sample(list(groups), len(groups))
    fold = {each: i % n for i, each in enumerate(sorted(inputs, key=groups.__getitem__))}
    return tuple(fold[input_of(task)] for task in tasks)


def align(
    plan: Plan,
    backends: Mapping[str, Backend],
    memory: MemoryStore,
    watcher: RunListener,
    recalls: str | None = None,
    **engine: Any,
) -> Alignment:
    """Measure what labels teach, then write what all of them teach to the memory, in place of what was there of them.

    Interrupted and called again, it goes on: what is recorded is not asked again.

    Args:
        plan: what to teach.
        backends: the models of the run.
        memory: where it is written.
        watcher: is told how it goes on.
        recalls: the memory that the run recalled from, as its settings name it; its agents go on recalling from it.
        engine: further settings of the engine, such as `max_concurrency`.

    Raises:
        RunMismatchError: when evaluator or models are not those of the run.
        RunLockedError: when another process aligns the run.
        BackendUnavailableError, StoreError: as a run.
    """
    with ExitStack() as until:
        school = _School(plan, backends, memory, watcher, until, recalls, engine)
        watcher.started(len(plan.sizes) * len(plan.cases), 0)
        before = {each.task.id: each.verdict for each in plan.cases}
        learned = [_learned(plan.cases, before, 0), *(school.measured(n) for n in plan.sizes)]
        rules, unread, _ = school.distilled(len(plan.cases), [_EVERYTHING])
        after = school.verdicts
    forget(memory, plan.name)
    written: dict[str, int] = {}
    for name in plan.templates:
        cases = plan.cases if plan.teaching.cases else ()
        written[name] = teach(memory, name, name, cases, rules.get((_EVERYTHING, name), ()), plan.name)
    return Alignment(
        run=plan.name,
        teaching=plan.teaching,
        labels=len(plan.cases),
        disagreements=plan.disagreements,
        left_out=plan.left_out,
        folds=len(set(plan.folds)),
        chance=sum(len(case.best) / len(case.task.candidates) for case in plan.cases) / len(plan.cases),
        learned=tuple(learned),
        groups=_by_group(plan.cases, before, after, plan.sizes[-1]) if plan.sizes else {},
        written=written,
        unread=unread,
        notes=plan.notes,
    )


class _School:
    """One engine, and one memory in which every fold has collections of its own for every number of labels."""

    def __init__(
        self,
        plan: Plan,
        backends: Mapping[str, Backend],
        memory: MemoryStore,
        watcher: RunListener,
        until: ExitStack,
        recalls: str | None,
        engine: Mapping[str, Any],
    ) -> None:
        self.plan, self.watcher = plan, watcher
        self.verdicts: dict[str, str] = {}
        """Of the tasks, as they were evaluated last."""
        self._backends, self._until, self._settings = backends, until, engine
        self._store = until.enter_context(plan.run.directory.open_store())
        self._record = self._store.read(plan.name)
        _check_same(self._record.identity, plan.evaluator, backends)
        now = self._record.started_at
        self._memory = until.enter_context(MemoryStore("sqlite://", memory.embedder, "exact", clock=lambda: now))
        if recalls is not None:
            _copy(recalls, self._memory, recalled_from(plan.evaluator))
            forget(self._memory, plan.name)
        ids = [each.id for name in self._memory.collections() for each in self._memory.newest(name, 1 << 31)]
        self._recalled_before = digest(memory.embedder.id, sorted(ids))
        own = next(iter(backends.values()))
        self._folds = _OfOtherFolds(self._memory.retriever(count_tokens=getattr(own, "count_tokens", None)))

    @cached_property
    def _engine(self) -> Engine:
        """Loaded when something is left to ask."""
        context, watcher = self._record.context, self.watcher
        today = date.fromisoformat(context.today)
        shared: dict[str, Any] = {
            **self._settings,
            "seed": context.seed,
            "today": today,
            "on_completion": watcher.answered,
        }
        engine = self._until.enter_context(Engine(self._backends, self._folds, self._store, **shared))
        watcher.loading()
        engine.start()
        watcher.loaded()
        return engine

    def measured(self, n: int) -> Learned:
        """Every labeled task, evaluated by agents who were taught n labels of the other folds."""
        plan, numbers = self.plan, sorted(set(self.plan.folds))
        rules, unread, usage = self.distilled(n, numbers)
        lessons = [[each.texts for each in plan.taught_to(fold, n)] for fold in numbers]
        said = [[fold, name, [each.text for each in found]] for (fold, name), found in sorted(rules.items())]
        about = digest(self._recalled_before, plan.teaching.cases, lessons, said, plan.folds)
        tasks = [case.task for case in plan.cases]
        found = self._evaluated(f"{n} {about[:10]}", tasks, plan.evaluator, lambda: self._teach(n, rules))
        self.verdicts = {case.task.id: str(found[case.task.id].verdict(case.best)) for case in plan.cases}
        return replace(
            _learned(plan.cases, self.verdicts, n),
            recalled=_recalled(found.values()),
            rules=sum(map(len, rules.values())),
            unread=unread,
            usage=sum((each.usage for each in found.values()), usage),
        )

    def distilled(
        self, n: int, folds: Iterable[int]
    ) -> tuple[dict[tuple[int, str], list[Rule]], dict[str, int], Usage]:
        """The rules of n labels, by fold and collection; why there are none, by reason; and what that took."""
        places = [(fold, name) for fold in folds for name, own in self.plan.templates.items() if own.suits(REFLECT)]
        rules: dict[tuple[int, str], list[Rule]] = {place: [] for place in places if self.plan.teaching.rules}
        reading: dict[str, tuple[tuple[int, str], tuple[Case, ...]]] = {}
        batches: defaultdict[Templates, list[Task]] = defaultdict(list)
        for fold, name in rules:
            tasks, read = to_distill(self.plan.taught_to(fold, n), name, f"{n} {fold} {name}")
            reading.update({task_id: ((fold, name), part) for task_id, part in read.items()})
            batches[self.plan.templates[name]] += tasks
        failed, usage = Counter[str](), Usage()
        for templates, tasks in batches.items():
            about = digest([[each.id, [one.text for one in each.candidates]] for each in tasks])
            for name, each in self._evaluated(f"rules {about[:10]}", tasks, Distill(templates=templates)).items():
                place, read = reading[name]
                rules[place] += rules_in(each, read)
                failed.update({failure.reason for failure in each.failures[-1:]})
                usage += each.usage
        return rules, dict(failed), usage

    def _teach(self, n: int, rules: Mapping[tuple[int, str], Sequence[Rule]]) -> None:
        """Teach the agents of every fold n labels of the others."""
        plan = self.plan
        for fold in set(plan.folds):
            cases = plan.taught_to(fold, n) if plan.teaching.cases else ()
            for name in plan.templates:
                teach(self._memory, _own(name, n, fold), name, cases, rules.get((fold, name), ()), plan.name)
        self._folds.taught = {
            case.task.id: {name: _own(name, n, fold) for name in plan.templates}
            for case, fold in zip(plan.cases, plan.folds, strict=True)
        }

    def _evaluated(
        self, part: str, tasks: Sequence[Task], evaluator: Evaluator, prepare: Callable[[], None] = lambda: None
    ) -> dict[str, Evaluation]:
        """The evaluations by task, in a run of their own; the engine is asked, once prepared, for what it lacks."""
        name = f"{self.plan.name} align {part}"
        if not tasks:
            return {}
        if name in self._store.runs():
            record = self._store.read(name)
            if record.n_evaluated(settings_digest(evaluator)) == len(tasks):
                return self._told(evaluation for _, evaluation in record.results())
        prepare()
        return self._told(self._engine.iter_evaluate(tasks, evaluator, run=name))

    def _told(self, evaluations: Iterable[Evaluation]) -> dict[str, Evaluation]:
        found: dict[str, Evaluation] = {}
        for each in evaluations:
            found[each.task_id] = each
            if each.evaluator != Distill.name:
                self.watcher.finished(each)
        return found


class _OfOtherFolds:
    """The memory as the engine asks it: every task recalls besides what the other folds' labels teach.

    Attributes:
        taught: per task id, the collection that is asked besides each of an agent's own.
    """

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner
        self.taught: Mapping[str, Mapping[str, str]] = {}

    async def recall(self, request: Recall) -> Sequence[Memory]:
        """The memories that fit best, best first."""
        besides = self.taught.get(request.task.id, {}) if request.task is not None else dict[str, str]()
        added = (besides[name] for name in request.collections if name in besides)
        return await self._inner.recall(replace(request, collections=(*request.collections, *added)))


def _own(collection: str, n: int, fold: int) -> str:
    """The name of the collection in which the agents of one fold learn in place of their own."""
    return f"{_PREFIX}{n} {fold} {digest(collection)[:16]}"


def _copy(url: str, memory: MemoryStore, collections: Sequence[str]) -> None:
    with built_in() if url == BUILT_IN else open_memory(url) as known, TemporaryDirectory() as folder:
        known.export(file := Path(folder) / "memories.jsonl", collections)
        memory.import_(file)


def _check_same(recorded: Mapping[str, Any], evaluator: Evaluator, backends: Mapping[str, Backend]) -> None:
    """Refuse an evaluator or models other than the run's: before and after would differ by more than the labels."""
    models = {name: backend.model for name, backend in backends.items()}
    now = prompt_identity({"evaluator": evaluator.describe(), "models": models})
    if found := differences({key: recorded.get(key) for key in now}, now):
        hint = "align it with the settings, templates and models that it was made with"
        raise RunMismatchError(f"the run was made with other settings: {'; '.join(found[:5])}", field="run", hint=hint)


# ---- figures


def _learned(cases: Sequence[Case], verdicts: Mapping[str, str], n: int) -> Learned:
    was = [float(case.verdict == "right") for case in cases]
    now = [float(verdicts[case.task.id] == "right") for case in cases]
    inputs, pairs = [case.input for case in cases], Counter(zip(was, now, strict=True))
    return Learned(
        labels=n,
        agreement=share(now, inputs),
        unscored=sum(verdicts[case.task.id] == "unscored" for case in cases),
        difference=paired_difference(now, was, inputs) if n else None,
        won=pairs[0.0, 1.0],
        lost=pairs[1.0, 0.0],
    )


def _by_group(
    cases: Sequence[Case], before: Mapping[str, str], after: Mapping[str, str], n: int
) -> dict[str, tuple[Learned, Learned]]:
    groups = {name: [case for case in cases if case.group == name] for name in sorted({case.group for case in cases})}
    pairs = {name: (_learned(own, before, 0), _learned(own, after, n)) for name, own in groups.items()}
    return pairs if len(pairs) > 1 else {}


def _recalled(evaluations: Iterable[Evaluation]) -> float:
    """The share of the turns that recalled something of what was taught."""
    turns = [turn for each in evaluations for debate in leaves(each) for turn in debate.transcript]
    return sum(any(map(_is_taught, turn.memories)) for turn in turns) / max(len(turns), 1)


def _is_taught(memory: Memory) -> bool:
    return memory.collection.startswith(_PREFIX)
