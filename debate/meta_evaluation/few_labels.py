"""What a run's figures would be if people had labeled all of it, from a random sample that they did label."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from debate.dataset.labels import Drawn, Labels, Opinion
from debate.evaluation import verdict
from debate.meta_evaluation.aggregation import debates_of
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.meta_evaluation.labeling import draw, eligible, strata_of
from debate.statistics import Corrected, Estimate, ppi_mean_by_strata, rogan_gladen
from debate.statistics.intervals import NOWHERE
from debate.types import FloatArray, FloatOrNaN

FEW = 30
"""Below as many labels the interval of PPI++ is too short."""
_MOST_GENERATORS = 10
Pick = Callable[[Judged], int | None]
"""The one candidate of a task that a figure is about; None where the task has none."""
Said = Callable[[Judged, int], float]
"""What is said of a candidate of a task; NaN for nothing."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure for the whole run.

    Attributes:
        name: `accuracy`, `wins`, `passes`, or `mean` with the component's name.
        of: whose: a generator, `selected`, `all candidates`; "" for the run's.
        judge: what the judge alone says; NaN for scores that people gave on a component that it does not score.
        ppi: by PPI++ (`debate.statistics.ppi_mean_by_strata`).
        rogan_gladen: for `wins` and `passes`; NaN with a reason for a stratified sample.
    """

    name: str
    of: str
    judge: FloatOrNaN
    ppi: Corrected
    rogan_gladen: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Stratum:
    """A part of the run from which a sample was drawn."""

    name: str
    tasks: int
    labeled: int


@dataclass(frozen=True, slots=True)
class CorrectedRun:
    """The figures of a run, corrected by the labels of a random sample of its tasks.

    Attributes:
        tasks: those that could be drawn.
        labeled: those with a label that were drawn.
        not_drawn: tasks with a label of unknown origin, which is not used.
        skipped: tasks of the sample without a label that were drawn before one with a label.
        stratify: the key by which it was stratified; "" where it was not.
        strata: by their names.
        figures: none where there is a reason.
        reason: why there are none.
        warnings: what a reader has to know, in sentences.
    """

    tasks: int
    labeled: int
    not_drawn: int
    skipped: int
    stratify: str
    strata: tuple[Stratum, ...]
    figures: tuple[Figure, ...]
    reason: str | None = None
    warnings: tuple[str, ...] = ()


def corrected(run: JudgedRun, passing: float | None = None) -> CorrectedRun:
    """The figures that people's labels and the judge give together for all tasks of a run.

    They rest on a random sample: labels that do not say how their task was drawn are counted and left out, unless all
    tasks have a label. For a stratified sample strata are weighted by their share of the run.

    - accuracy: the share of tasks on which the judge's one choice is right. Ties and split votes of people count half,
      a tied or missing choice of the judge is not right. The judge's own expectation is its probability of the choice.
    - wins: the share of tasks on which a generator's candidate is best, alone or with some of the others.
    - mean of a component: of people's scores, of all candidates, of those that were selected, and of each generator.
    - passes: the share with a mean of people's scores of at least `passing`.
    """
    drawn = {task.task_id: found for task in run.tasks if (found := _drawn(task.labels)) is not None}
    tasks = eligible(run.tasks, is_scored=any(task.labels.together.scores for task in run.tasks))
    n_known = sum(bool(task.labels) for task in tasks)
    if n_known < len(tasks):
        tasks = [task if task.task_id in drawn else _unlabeled(task) for task in tasks]
    key = max((each.stratify for each in drawn.values()), default="")
    strata = strata_of(tasks, key)
    sizes, known = Counter(strata.values()), Counter(strata[task.task_id] for task in tasks if task.labels)
    result = CorrectedRun(
        tasks=len(tasks),
        labeled=known.total(),
        not_drawn=n_known - known.total(),
        skipped=_skipped(tasks, drawn),
        stratify=key,
        strata=tuple(Stratum(name, sizes[name], known[name]) for name in sorted(sizes)) if key else (),
        figures=(),
        reason=_reason(n_known, known.total(), {each.stratify for each in drawn.values()} - {""}),
    )
    if result.reason:
        return result
    figures, warnings = tuple(_figures(tasks, strata, passing)), tuple(_warnings(result, drawn, run))
    return replace(result, figures=figures, warnings=warnings)


def _drawn(labels: Labels) -> Drawn | None:
    return next((each.drawn for each in (labels.together, *labels.votes) if each.drawn is not None), None)


def _unlabeled(task: Judged) -> Judged:
    return replace(task, labels=Labels(Opinion(len(task.scores))))


def _reason(n_known: int, n_labeled: int, keys: Collection[str]) -> str | None:
    if not n_known:
        return "no task has a label"
    if not n_labeled:
        return "no label says how its task was drawn, and figures for the whole run take a random sample"
    if len(keys) > 1:
        return f"samples were stratified by different keys: {', '.join(sorted(keys))}"
    return None


def _skipped(tasks: Sequence[Judged], drawn: Mapping[str, Drawn]) -> int:
    """How many tasks came before the last labeled one in the order of their draw, and have no label."""
    skipped: set[str] = set()
    for seed, key in {(each.seed, each.stratify) for each in drawn.values() if each.of == len(tasks)}:
        order = draw(strata_of(tasks, key), seed)
        own = {name for name, each in drawn.items() if (each.seed, each.stratify) == (seed, key)}
        skipped.update(order[: max((n for n, name in enumerate(order) if name in own), default=0)])
    return len(skipped - drawn.keys())


def _warnings(found: CorrectedRun, drawn: Mapping[str, Drawn], run: JudgedRun) -> Iterator[str]:
    if found.labeled < FEW:
        yield f"{found.labeled} tasks have a label: below {FEW} the intervals are too short."
    if found.skipped:
        yield f"{found.skipped} drawn tasks were skipped: the figures hold if people would say the same of these."
    if others := sorted({each.of for each in drawn.values()} - {found.tasks}):
        yield f"The sample was drawn from {others[0]} tasks, and the run has {found.tasks} now: draw a new one."
    if found.not_drawn:
        yield f"{found.not_drawn} labeled tasks were left out: their labels do not say how the tasks were drawn."
    if run.unknown_labels:
        yield f"{len(run.unknown_labels)} labeled tasks are not in the run."


# ---- figures


def _figures(tasks: Sequence[Judged], strata: Mapping[str, str], passing: float | None) -> Iterator[Figure]:
    """Every figure that the labels allow."""
    picks = _generators(tasks)
    asked: list[tuple[str, str, Pick, Said, Said]] = [("accuracy", "", _if_several, _right, _sure)]
    asked += [("wins", of, pick, _wins, _won) for of, pick in picks.items()]
    subjects: dict[str, Pick] = {"selected": _selected, **picks}
    unscored: set[str] = set()  # the judge's whole score stands in for these, to narrow the intervals alone
    for name in sorted({name for task in tasks for name in task.labels.together.scores}):
        is_scored = any(_places(name, task) for task in tasks)
        unscored |= set() if is_scored else {f"mean {name}"}
        scores = partial(_people_score, name), partial(_judge_score, name) if is_scored else _whole_score
        asked.append(
            (f"mean {name}", "all candidates", _any, partial(_mean_of, scores[0]), partial(_mean_of, scores[1]))
        )
        asked += [(f"mean {name}", of, pick, *scores) for of, pick in subjects.items()]
    if passing is not None:
        passes = partial(_people_pass, passing), partial(_judge_passes, passing)
        asked += [("passes", of, pick, *passes) for of, pick in subjects.items()]
    for name, of, pick, people, judge in asked:
        rows = [(task, j) for task in tasks if (j := pick(task)) is not None]
        said, judged = (np.array([each(task, j) for task, j in rows], dtype=np.float64) for each in (people, judge))
        if not np.isnan(said).all():
            is_rate = name in ("wins", "passes")
            found = _figure(
                name, of, said, _filled(judged, is_rate), [strata[task.task_id] for task, _ in rows], is_rate
            )
            yield replace(found, judge=math.nan) if name in unscored else found


def _figure(name: str, of: str, people: FloatArray, judge: FloatArray, strata: Sequence[str], is_rate: bool) -> Figure:
    """One figure.

    people: (n,), NaN without a label. judge: (n,), without NaN. is_rate: whether both say yes or no.
    """
    rate = _corrected_rate(people, judge, len(set(strata)) > 1) if is_rate else None
    return Figure(name, of, float(judge.mean()), ppi_mean_by_strata(people, judge, strata), rate)


def _corrected_rate(people: FloatArray, judge: FloatArray, is_stratified: bool) -> Estimate:
    failed, passed = judge[people == 0], judge[people == 1]
    if is_stratified:
        return Estimate(math.nan, NOWHERE, judge.size, "Rogan-Gladen takes a sample that is not stratified")
    if not failed.size or not passed.size:
        return Estimate(math.nan, NOWHERE, judge.size, f"people say {'no' if failed.size else 'yes'} of every task")
    specificity, sensitivity = float(1 - failed.mean()), float(passed.mean())
    return rogan_gladen(float(judge.mean()), judge.size, specificity, failed.size, sensitivity, passed.size)


def _filled(judged: FloatArray, is_rate: bool) -> FloatArray:
    """What the judge says, with "no" or the mean where it says nothing: a failed judgment is no reason to drop a label.

    Any value that labels do not decide leaves the figures right.
    """
    missing = np.isnan(judged)
    mean = 0.0 if is_rate or missing.all() else float(judged[~missing].mean())
    return np.where(missing, mean, judged)


# ---- which candidate


def _any(task: Judged) -> int:
    return 0


def _if_several(task: Judged) -> int | None:
    return 0 if len(task.scores) > 1 else None


def _selected(task: Judged) -> int | None:
    return task.choice[0] if len(task.choice) == 1 else None


def _generators(tasks: Sequence[Judged]) -> dict[str, Pick]:
    """The most frequent generators that wrote one candidate of a task, each with its candidate."""
    counts = Counter(name for task in tasks for name in set(task.generators) - {""} if task.generators.count(name) == 1)
    frequent = sorted((name for name, n in counts.items() if n > 1), key=lambda name: (-counts[name], name))
    return {name: partial(_candidate_by, name) for name in frequent[:_MOST_GENERATORS]}


def _candidate_by(name: str, task: Judged) -> int | None:
    return task.generators.index(name) if task.generators.count(name) == 1 else None


# ---- what people and the judge say of it


def _best(labels: Labels) -> tuple[int, ...] | None:
    """The candidates that people call best; all of them where people do not agree, None where they call none."""
    everyone = tuple(range(labels.together.n_candidates))
    return labels.together.choice or (everyone if any(vote.choice for vote in labels.votes) else None)


def _right(task: Judged, _: int) -> float:
    if (best := _best(task.labels)) is None:
        return math.nan
    return 0.5 if len(best) == len(task.scores) else float(verdict(task.choice, best) == "right")


def _sure(task: Judged, _: int) -> float:
    return float(task.probabilities[task.choice[0]]) if len(task.choice) == 1 else 0.0


def _wins(task: Judged, j: int) -> float:
    best = _best(task.labels)
    return math.nan if best is None else float(j in best and len(best) < len(task.scores))


def _won(task: Judged, j: int) -> float:
    return float(task.choice == (j,))


def _people_score(component: str, task: Judged, j: int) -> float:
    scores = task.labels.together.scores.get(component)
    return math.nan if scores is None else float(scores[j])


def _places(component: str, task: Judged) -> list[tuple[Judged, int]]:
    """A task's debates with the judge's component of this name, whatever its case."""
    names = [(each, k, name) for each in debates_of(task) for k, name in enumerate(each.components)]
    return [(each, k) for each, k, name in names if name.casefold() == component.casefold()]


def _whole_score(task: Judged, j: int) -> float:
    return float(task.scores[j])


def _judge_score(component: str, task: Judged, j: int) -> float:
    """The mean of the agents in the last round, of both debates of a balanced one; NaN without such a component."""
    found = [each.tensor[-1, :, j, k] for each, k in _places(component, task) if each.tensor is not None]  # (I,) each
    cells = np.concatenate(found) if found else np.zeros(0)
    known = cells[~np.isnan(cells)]
    return float(known.mean()) if known.size else math.nan


def _mean_of(score: Said, task: Judged, _: int) -> float:
    return float(np.mean([score(task, j) for j in range(len(task.scores))]))


def _people_pass(passing: float, task: Judged, j: int) -> float:
    return _at_least(
        task, passing, float(np.mean([scores[j] for scores in task.labels.together.scores.values()] or [math.nan]))
    )


def _judge_passes(passing: float, task: Judged, j: int) -> float:
    return _at_least(task, passing, float(task.scores[j]))


def _at_least(task: Judged, passing: float, score: float) -> float:
    if math.isnan(score):
        return math.nan
    return float(score >= passing if task.scale.higher_is_better else score <= passing)
