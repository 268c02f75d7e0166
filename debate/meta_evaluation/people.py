"""The judge against people, and people against each other: what they choose, and how they score.

Each figure stands beside what answers without reading would reach. Knows labels and scores, not rounds and agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from debate.dataset.labels import Opinion
from debate.evaluation import share_right, verdict
from debate.meta_evaluation.aggregation import Aggregation
from debate.meta_evaluation.judged import Judged
from debate.scoring.tensor import highest_score
from debate.selection import level_ties
from debate.statistics import (
    Accuracy,
    Agreement,
    AnnotatorTest,
    Estimate,
    HeldOut,
    Mean,
    alternative_annotator_test,
    bias,
    clustered_mean,
    cohen_kappa,
    correlation,
    gwet_ac,
    held_out_accuracy,
    krippendorff_alpha,
    pair_accuracy,
    share,
)
from debate.statistics.correlation import Ties
from debate.types import FloatArray, FloatOrNaN

TIE = -1.0
"""Stands for a choice of several candidates."""
NAMED = 20
"""People that are named at most."""
WORST = 20
"""Disagreements that are listed at most."""


@dataclass(frozen=True, slots=True)
class BaseRates:
    """What people say of the tasks, and what can be reached without reading them.

    Attributes:
        labeled: tasks with a label.
        decided: tasks with two candidates or more of which people prefer some; the accuracies are of these.
        tied: tasks in which people prefer none.
        split: tasks whose votes have no majority.
        single: tasks with one candidate, which have no choice.
        chance: accuracy of drawing a candidate.
        constant: accuracy of always choosing the place in the eval set that people choose most often.
        place: that place, from 0.
        longest: accuracy of always choosing the longest candidate.
    """

    labeled: int
    decided: int
    tied: int
    split: int
    single: int
    chance: FloatOrNaN
    constant: FloatOrNaN
    place: int
    longest: FloatOrNaN


@dataclass(frozen=True, slots=True)
class PairFigure:
    """The accuracy over pairs of candidates with one way of counting ties.

    Attributes:
        ties: see `debate.statistics.pair_accuracy`.
        judge: of the judge.
        constant: of always preferring the earlier one, or the later one, or none: whichever is best.
    """

    ties: Ties
    judge: Mean
    constant: FloatOrNaN


@dataclass(frozen=True, slots=True)
class Choices:
    """The judge's choices against those of people.

    Attributes:
        right: over the decided tasks; what is tied or unscored is not right.
        ties_shared: likewise, but a tie is as right as a draw from it, as in `ControlFigures`.
        pairs: over the pairs of candidates of a task that people compare, in the three ways of counting ties.
        kappa: over the tasks; a choice is a place in the eval set, or a tie.
        ac1: likewise.
    """

    right: Accuracy
    ties_shared: Mean
    pairs: tuple[PairFigure, ...]
    kappa: Agreement
    ac1: Agreement


@dataclass(frozen=True, slots=True)
class ScoredApart:
    """A candidate's scores by people and judge.

    Attributes:
        task_id: the task's.
        candidate: from 0.
        people: their score.
        judge: the judge's.
        beyond: how much higher the judge scored, beyond the mean difference.
    """

    task_id: str
    candidate: int
    people: float
    judge: float
    beyond: float


@dataclass(frozen=True, slots=True)
class ComponentFigures:
    """The judge's scores against those of people, on one component.

    Attributes:
        name: as people call it.
        is_whole: whether the judge has no component of this name, so that its scores as a whole stand here.
        correlation: Spearman's, over all candidates.
        pairs: accuracy over pairs of one task, with calibrated ties.
        constant_pairs: the same of a judge that gives all the same score.
        people: mean of their scores.
        judge: mean of its scores of the same candidates.
        range: lowest and highest score of people.
        top: end of the judge's scale.
        difference: the judge minus people.
        absolute: size of the difference.
        constant_absolute: the same of a judge that always gives the people's median.
        among_people: Krippendorff's alpha, of single people where several scored; None elsewhere.
        apart: the candidates that judge and people score furthest apart beyond the mean difference, 20 at most.
    """

    name: str
    is_whole: bool
    correlation: Estimate
    pairs: HeldOut
    constant_pairs: FloatOrNaN
    people: FloatOrNaN
    judge: FloatOrNaN
    range: tuple[FloatOrNaN, FloatOrNaN]
    top: FloatOrNaN
    difference: Mean
    absolute: Mean
    constant_absolute: FloatOrNaN
    among_people: Agreement | None
    apart: tuple[ScoredApart, ...]


@dataclass(frozen=True, slots=True)
class Person:
    """One of the people.

    Attributes:
        name: as the labels have it.
        n: choices of theirs.
        p_value: that the judge may not replace them; NaN where the test has no answer.
        advantage: how often the judge is at least as near to the other people as they are; likewise.
    """

    name: str
    n: int
    p_value: FloatOrNaN
    advantage: FloatOrNaN


@dataclass(frozen=True, slots=True)
class AmongPeople:
    """The choices of single people.

    Attributes:
        people: those with most choices first; 20 at most.
        n_people: how many there are.
        two_people: how often two people choose alike.
        judge_and_one: how often the judge and one person do, over the same tasks: the same measure.
        alpha: Krippendorff's, nominal.
        test: whether the judge may replace a person; None with fewer than three people.
        eps: what a person costs more than the judge, in the test.
    """

    people: tuple[Person, ...]
    n_people: int
    two_people: Mean
    judge_and_one: Mean
    alpha: Agreement
    test: AnnotatorTest | None
    eps: float


def decided(task: Judged) -> tuple[int, ...]:
    """The candidates that people prefer to the others; empty where they prefer none."""
    choice = task.labels.together.choice
    return choice if len(choice) < len(task.scores) else ()


def hits(tasks: Sequence[Judged], choices: Sequence[Sequence[int]]) -> FloatArray:
    """Whether each choice is right, (n,): 1 or 0, 0 also where nothing was chosen; NaN where people prefer none."""
    found = [(verdict(choice, decided(task)), bool(decided(task))) for task, choice in zip(tasks, choices, strict=True)]
    return np.array([float(said == "right") if known else np.nan for said, known in found])


def rising(task: Judged, scores: FloatArray | None = None) -> FloatArray:
    """The judge's scores with the best highest, (J,); those given, or the task's own."""
    found = task.scores if scores is None else scores
    return found if task.scale.higher_is_better else -found


# ---- choices


def base_rates(tasks: Sequence[Judged]) -> BaseRates:
    """What people say of the tasks."""
    labeled = [task for task in tasks if task.labels]
    several = [task for task in labeled if len(task.scores) > 1]
    known = [(task, decided(task)) for task in several if decided(task)]
    places = np.zeros(max((len(task.scores) for task in several), default=1))
    for _, best in known:
        places[list(best)] += 1
    share_of = places / len(known) if known else np.full(1, np.nan)
    longest = [
        _mean([j in best for j in np.flatnonzero(task.lengths == task.lengths.max()).tolist()]) for task, best in known
    ]
    return BaseRates(
        labeled=len(labeled),
        decided=len(known),
        tied=sum(is_compared(task) and not decided(task) for task in several),
        split=sum(bool(task.labels.votes) and not task.labels.together.choice for task in several),
        single=len(labeled) - len(several),
        chance=_mean([len(best) / len(task.scores) for task, best in known]),
        constant=float(share_of.max()),
        place=int(share_of.argmax()),
        longest=_mean(longest),
    )


def choices(tasks: Sequence[Judged]) -> Choices | None:
    """The judge's choices against those of people; None where people compare no candidates."""
    compared = [task for task in tasks if is_compared(task)]
    if not compared:
        return None
    codes = np.array([[_code(task.labels.together.choice), _code(task.choice)] for task in compared])  # (n, 2)
    return Choices(
        right=right_choices(compared),
        ties_shared=share([share_right(task.choice, decided(task)) for task in compared]),
        pairs=pair_figures(compared),
        kappa=cohen_kappa(codes[:, 0], codes[:, 1]),
        ac1=gwet_ac(codes[~np.isnan(codes).any(axis=1)]),
    )


def is_compared(task: Judged) -> bool:
    """Whether people compare the candidates of a task, be it that they prefer none."""
    return len(task.scores) > 1 and bool(task.labels.together.choice)


def right_choices(tasks: Sequence[Judged]) -> Accuracy:
    """How often the judge chose rightly, over the decided tasks."""
    return _accuracy(tasks, decided)


def right_verdicts(tasks: Sequence[Judged]) -> Accuracy:
    """How often `Judged.verdict` is right, over the tasks that have one: what a run counts by its tasks' metadata."""
    return _accuracy(tasks, lambda task: tuple(task.labels.together.best))


def _accuracy(tasks: Sequence[Judged], best_of: Callable[[Judged], tuple[int, ...]]) -> Accuracy:
    known = [(task, best) for task in tasks if (best := best_of(task))]
    verdicts = [verdict(task.choice, best) for task, best in known]
    right, tied, unscored = (verdicts.count(each) for each in ("right", "tied", "unscored"))
    return Accuracy(len(known), right, tied, unscored, _mean([len(best) / len(task.scores) for task, best in known]))


def _code(choice: Sequence[int]) -> float:
    """A choice as a number: the candidate, or a tie; NaN where there is none."""
    return float(choice[0]) if len(choice) == 1 else TIE if choice else np.nan


def pair_figures(tasks: Sequence[Judged]) -> tuple[PairFigure, ...]:
    """The accuracy over pairs with each way of counting ties."""
    people, judge, _, where = pairs_of(tasks)
    found: list[PairFigure] = []
    for ties in ("dropped", "class", "half"):
        constant = [pair_accuracy(people, np.full(people.shape, sign), ties).estimate for sign in (1.0, 0.0, -1.0)]
        best = max((each for each in constant if not np.isnan(each)), default=np.nan)
        found.append(PairFigure(ties, pair_accuracy(people, judge, ties, where), best))
    return tuple(found)


def pairs_of(tasks: Sequence[Judged]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """All pairs of candidates of one task: how much people prefer the earlier one, the difference of the judge's
    scores, that of the lengths, and the task's place; (pairs,) each.

    People's is NaN where they say nothing of a pair, as of two that are both not the best.
    """
    parts: list[FloatArray] = []
    for n, task in enumerate(tasks):
        first, second = _pairs(len(task.scores))  # (pairs of the task,) each
        judged = level_ties(rising(task))
        sides = (_preferred(task.labels.together), judged, task.lengths)
        differences = [side[first] - side[second] for side in sides]
        if _names_best_alone(task.labels.together):
            differences[0] = np.where((sides[0][first] + sides[0][second]) == 0, np.nan, differences[0])
        parts.append(np.stack([*differences, np.full(first.shape, float(n))]))
    people, judge, lengths, where = np.concatenate(parts, axis=1) if parts else np.zeros((4, 0))
    return people, judge, lengths, where


@cache
def _pairs(n_candidates: int) -> tuple[NDArray[np.intp], ...]:
    """The earlier and the later candidate of each pair, (pairs,) each."""
    return np.triu_indices(n_candidates, 1)


def _preferred(opinion: Opinion) -> FloatArray:
    preference = opinion.preference
    return np.full(opinion.n_candidates, np.nan) if preference is None else preference


def _names_best_alone(opinion: Opinion) -> bool:
    return opinion.ranking is None and bool(opinion.best)


# ---- scores


def component_figures(tasks: Sequence[Judged], aggregation: Aggregation | None) -> tuple[ComponentFigures, ...]:
    """One for each component that people score, in the order in which they come first."""
    names = dict.fromkeys(name for task in tasks for name in task.labels.together.scores)
    return tuple(_of_component([t for t in tasks if name in t.labels.together.scores], name, aggregation)
                 for name in names)  # fmt: skip


def _of_component(tasks: Sequence[Judged], name: str, aggregation: Aggregation | None) -> ComponentFigures:
    top, scores = _judged_on(tasks, name, aggregation)
    people = np.concatenate([task.labels.together.scores[name] for task in tasks])  # (candidates,), like the others
    judge = np.concatenate(scores or [task.scores for task in tasks])
    order = np.concatenate([rising(task, each) for task, each in zip(tasks, scores or _own(tasks), strict=True)])
    where = np.repeat(np.arange(len(tasks)), [len(task.scores) for task in tasks])
    known = people[~np.isnan(people + judge)]
    pairs = held_out_accuracy(people, order, where)
    return ComponentFigures(
        name=name,
        is_whole=scores is None,
        correlation=correlation(people, order, "spearman", where),
        pairs=pairs,
        constant_pairs=held_out_accuracy(people, np.where(np.isnan(order), np.nan, 0.0), where).estimate,
        people=_mean(known),
        judge=_mean(judge[~np.isnan(people + judge)]),
        range=(float(known.min()), float(known.max())) if known.size else (np.nan, np.nan),
        top=top,
        difference=(difference := bias(people, judge, where)),
        absolute=clustered_mean(np.abs(judge - people), where),
        constant_absolute=_mean(np.abs(known - np.median(known))) if known.size else np.nan,
        among_people=_alpha_of(tasks, name),
        apart=tuple(_furthest(tasks, people, judge, difference.estimate)),
    )


def _furthest(
    tasks: Sequence[Judged], people: FloatArray, judge: FloatArray, difference: float
) -> Iterator[ScoredApart]:
    beyond = judge - people - difference  # (candidates,)
    cells = [(task.task_id, j) for task in tasks for j in range(len(task.scores))]
    order: list[int] = np.argsort(-np.abs(beyond), kind="stable")[:WORST].tolist()  # NaN comes last
    for n in order:
        if not np.isnan(beyond[n]):
            task_id, j = cells[n]
            yield ScoredApart(task_id, j, float(people[n]), float(judge[n]), float(beyond[n]))


def _own(tasks: Sequence[Judged]) -> list[FloatArray]:
    return [task.scores for task in tasks]


def _judged_on(
    tasks: Sequence[Judged], name: str, aggregation: Aggregation | None
) -> tuple[float, list[FloatArray] | None]:
    """The end of the judge's scale, and its scores on its component of this name; None where it has none."""
    places = [_place_of(name, task) for task in tasks]
    if aggregation is None or not any(map(np.any, places)):
        return tasks[0].scale.high, None
    weights = {id(task): each for task, each in zip(tasks, places, strict=True)}
    there = [task for task in tasks if weights[id(task)].any()]
    alone = replace(aggregation, method="weighted_mean")
    scored = iter(alone.scores_of(there, lambda tensor: tensor, lambda task: weights[id(task)]))
    scores = [next(scored) if each.any() else np.full(len(task.scores), np.nan)
              for task, each in zip(tasks, places, strict=True)]  # fmt: skip
    return highest_score(weights[id(there[0])], "weighted_mean"), scores


def _place_of(name: str, task: Judged) -> FloatArray:
    """1 at the judge's component of this name, whatever its case, (K,); all 0 where the task has no such component."""
    own = next((each.components for each in (task.members or (task,)) if each.components), ())
    return np.array([float(each.casefold() == name.casefold()) for each in own])


def _alpha_of(tasks: Sequence[Judged], name: str) -> Agreement | None:
    names = dict.fromkeys(vote.by for task in tasks for vote in task.labels.votes if name in vote.scores)
    if len(names) < 2:
        return None
    places, rows = {each: n for n, each in enumerate(names)}, [len(task.scores) for task in tasks]
    ratings = np.full((sum(rows), len(names)), np.nan)  # (candidates, H)
    for start, task in zip(np.cumsum([0, *rows]), tasks, strict=False):
        for vote in task.labels.votes:
            if name in vote.scores:
                ratings[start : start + len(task.scores), places[vote.by]] = vote.scores[name]
    return krippendorff_alpha(ratings, "interval", np.repeat(np.arange(len(tasks)), rows))


# ---- people against people


def among_people(tasks: Sequence[Judged], eps: float) -> AmongPeople | None:
    """The choices of single people; None where there are not two of them."""
    voted = [task for task in tasks if len(task.scores) > 1 and task.labels.votes]
    names = dict.fromkeys(vote.by for task in voted for vote in task.labels.votes if vote.choice)
    if len(names) < 2:
        return None
    places = {name: n for n, name in enumerate(names)}
    codes = np.full((len(voted), len(names)), np.nan)  # (n, H)
    for row, task in zip(codes, voted, strict=True):
        for vote in task.labels.votes:
            if vote.choice:
                row[places[vote.by]] = _code(vote.choice)
    judge = np.array([_code(task.choice) for task in voted])  # (n,)
    test = alternative_annotator_test(judge, codes, eps) if len(names) >= 3 else None
    return AmongPeople(
        people=_people(list(names), codes, test),
        n_people=len(names),
        two_people=_alike(codes),
        judge_and_one=_alike_with(judge, codes),
        alpha=krippendorff_alpha(codes),
        test=test,
        eps=eps,
    )


def _people(names: Sequence[str], codes: FloatArray, test: AnnotatorTest | None) -> tuple[Person, ...]:
    n = (~np.isnan(codes)).sum(axis=0)  # (H,)
    nothing = (np.nan,) * len(names)
    p_values, advantages = (test.p_values, test.advantages) if test else (nothing, nothing)
    order: list[int] = np.argsort(-n, kind="stable")[:NAMED].tolist()
    return tuple(Person(names[h], int(n[h]), p_values[h], advantages[h]) for h in order)


def _alike(codes: FloatArray) -> Mean:
    """How often two people choose alike, (n, H): the mean over the pairs of people of a task, then over tasks."""
    counts = np.stack([(codes == each).sum(axis=1) for each in np.unique(codes[~np.isnan(codes)])], axis=1)  # (n, q)
    n = counts.sum(axis=1)
    pairs, same = n * (n - 1), (counts * (counts - 1)).sum(axis=1)  # (n,) each
    return share(np.divide(same, pairs, out=np.full(len(codes), np.nan), where=pairs > 0))


def _alike_with(judge: FloatArray, codes: FloatArray) -> Mean:
    """How often the judge chooses as one person does, over the tasks that two people or more chose in."""
    known = ~np.isnan(codes)
    n = known.sum(axis=1)  # (n,)
    same = ((codes == judge[:, None]) & known).sum(axis=1)
    return share(np.where((n < 2) | np.isnan(judge), np.nan, same / np.maximum(n, 1)))


def _mean(values: Sequence[float] | FloatArray) -> float:
    return float(np.mean(values)) if len(values) else np.nan
