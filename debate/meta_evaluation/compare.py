"""Two runs on the same tasks: what the second gets right and wrong beside the first, and what it changes at all.

Tasks are joined by id, and only where both runs were asked the same. Knows no command line.
"""

from __future__ import annotations

import json
import math
import shlex
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from debate.errors import InputError
from debate.evaluation import Evaluation, verdict
from debate.meta_evaluation.control import ControlFigures, read_control
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.meta_evaluation.people import decided
from debate.statistics import (
    Accuracy,
    Discordant,
    Estimate,
    Mean,
    clustered_mean,
    correlation,
    mcnemar,
    paired_difference,
    pairwise_accuracy,
    share,
    smallest_difference,
)
from debate.store.identity import differences
from debate.types import Displayed, FloatArray, FloatOrNaN, Scale, Usage, Verdict, shortened

GROUP = "group"
_REASON = 400
"""Characters of a reason."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one of the two runs came to on the tasks that are compared.

    Attributes:
        run: its folder.
        accuracy: over the tasks with a label.
        unscored: tasks of which nothing was selected.
        statuses: number of evaluations by status.
        usage: tokens and calls.
    """

    run: str
    accuracy: Accuracy
    unscored: int
    statuses: Mapping[str, int]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How often the second run is right beside the first, over the tasks with a label. A tie is not right.

    Attributes:
        labeled: number of these tasks.
        right_a: how many of them the first run has right.
        right_b: how many of them the second run has right.
        won: right in the second run alone.
        lost: right in the first run alone; the others are the same.
        difference: of the accuracies, second minus first.
        detectable: the smallest true difference that so many tasks find in 80 % of cases; NaN where no task tells the
            runs apart.
    """

    labeled: int
    right_a: int
    right_b: int
    won: int
    lost: int
    difference: Mean
    detectable: FloatOrNaN


@dataclass(frozen=True, slots=True)
class Change:
    """The score of one candidate in both runs."""

    task_id: str
    candidate: int
    a: FloatOrNaN
    b: FloatOrNaN


@dataclass(frozen=True, slots=True)
class Scores:
    """How the scores of all candidates changed, with or without labels. Those that a run lacks are left out.

    Attributes:
        scale: that of both runs; 0 to 1 where they have different ones, 1 the best.
        difference: second minus first.
        absolute: the same without its sign.
        correlation: Spearman's, over all candidates of all tasks.
        alike: share of pairs of candidates of one task that both order alike, or both tie.
        only_a: scores that the first run alone has.
        only_b: scores that the second run alone has.
        neither: scores that both lack.
        largest: the largest changes first.
    """

    scale: Scale
    difference: Mean
    absolute: Mean
    correlation: Estimate
    alike: Estimate
    only_a: int
    only_b: int
    neither: int
    largest: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Regression:
    """A task that the first run has right and the second has not.

    Attributes:
        task_id: the task's.
        group: in the task's metadata; empty where there is none.
        best: the right candidates.
        choice_a: what the first run chose.
        choice_b: what the second run chose; several where they tie, none where nothing was scored.
        margin: how far its choice is above the best right candidate, as a share of the scale; NaN where one is
            unscored.
        reasons: what the agents of the first run said of its choice, and those of the second of theirs, shortened.
        show: commands that show both debates.
    """

    task_id: str
    group: str
    best: tuple[int, ...]
    choice_a: tuple[int, ...]
    choice_b: tuple[int, ...]
    margin: FloatOrNaN
    reasons: tuple[str, str]
    show: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Comparison(Displayed):
    """Two runs on the tasks that both have evaluated.

    Attributes:
        a: the first run.
        b: the second run.
        settings: `KEY: A -> B` for each setting that differs.
        tasks: how many are compared.
        clusters: the key in the tasks' metadata by which intervals are clustered; empty where each task stands alone.
        only_a: ids of tasks that the first run alone has evaluated.
        only_b: ids of tasks that the second run alone has evaluated.
        other_content: ids under which the runs have different tasks; they are not compared.
        relabeled: tasks whose labels differ between the runs; those of the first count.
        unknown_labels: task ids of a labels file that neither run has.
        verdicts: by the labels.
        test: McNemar's exact test on the tasks that one run alone has right.
        by: the key in the tasks' metadata by which `groups` are made.
        groups: the verdicts of each group; empty where tasks name none.
        reselected: share of tasks of which the runs select different candidates, where both select one.
        scores: how they changed.
        regressions: the surest mistakes of the second run first; as many as were asked for.
        control: debate, silent panel and one judge, where the second run is the control of the first.
    """

    a: Side
    b: Side
    settings: tuple[str, ...]
    tasks: int
    clusters: str
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    other_content: tuple[str, ...]
    relabeled: int
    unknown_labels: tuple[str, ...]
    verdicts: Verdicts
    test: Discordant
    by: str
    groups: Mapping[str, Verdicts]
    reselected: Mean
    scores: Scores
    regressions: tuple[Regression, ...]
    control: ControlFigures | None = None

    def __repr__(self) -> str:
        """The runs, and how many of the tasks of both the second one has won and lost."""
        runs = ", ".join(shortened(side.run, 200) for side in (self.a, self.b))
        return f"Comparison({runs}, tasks={self.tasks}, won={self.verdicts.won}, lost={self.verdicts.lost})"


def compare(
    a: JudgedRun,
    b: JudgedRun,
    *,
    by: str | None = None,
    cluster: str | None = None,
    regressions: int = 20,
    largest: int = 5,
) -> Comparison:
    """Compare two runs on the tasks that both have evaluated.

    Args:
        a: the first run, from which differences are counted.
        b: the second run.
        by: the key in the tasks' metadata by which verdicts are shown apart; without it `group`, where tasks have one.
        cluster: the key in the tasks' metadata that names tasks that resemble each other, such as questions on one
            text; without it each task stands alone. A task that lacks it stands alone.
        regressions: how many tasks that got worse are described.
        largest: how many of the largest changes of a score are named.

    Raises:
        InputError: when no task is in both, or none has the key `by` or `cluster`.
        StoreError: as `RunDirectory.open_store`.
    """
    pairs, other, relabeled = _joined(a, b)
    control = read_control(a) if b.directory.control_of == a.directory.name else None
    codes = _clusters([one for one, _ in pairs], cluster)
    verdicts = _verdicts(pairs, codes)
    ids = [{task.task_id: None for task in run.tasks} for run in (a, b)]
    return Comparison(
        a=_side(a, [one for one, _ in pairs]),
        b=_side(b, [two for _, two in pairs]),
        settings=tuple(differences(_settings(a), _settings(b))),
        tasks=len(pairs),
        clusters=cluster or "",
        only_a=tuple(each for each in ids[0] if each not in ids[1]),
        only_b=tuple(each for each in ids[1] if each not in ids[0]),
        other_content=other,
        relabeled=relabeled,
        unknown_labels=tuple(each for each in a.unknown_labels if each in set(b.unknown_labels)),
        verdicts=verdicts,
        test=mcnemar(verdicts.won, verdicts.lost),
        by=by or GROUP,
        groups=_groups(pairs, codes, by),
        reselected=share([_is_reselected(*pair) for pair in pairs], codes),
        scores=_scores(pairs, codes, largest),
        regressions=tuple(_regression(a, b, *pair) for pair in _worse(pairs)[:regressions]),
        control=None if control is None else control.figures(),
    )


Pair = tuple[Judged, Judged]
"""One task in both runs, with the same labels."""
Codes = NDArray[np.intp]
"""The number of each task's cluster, (n,)."""


# ---- tasks


def _joined(a: JudgedRun, b: JudgedRun) -> tuple[list[Pair], tuple[str, ...], int]:
    """The tasks of both runs, the ids under which they have different ones, and how many are labeled differently."""
    second = {task.task_id: task for task in b.tasks}
    both = [(task, second[task.task_id]) for task in a.tasks if task.task_id in second]
    same = [pair for pair in both if pair[0].content == pair[1].content]
    if not same:
        why = f"the {len(both):,} ids in both name different tasks" if both else "no task id is in both"
        hint = f"give the runs one eval set; {why}"
        raise InputError(f"has no task in common with {a.directory.path}", file=b.directory.path, hint=hint)
    relabeled = sum(bool(one.labels and two.labels) and decided(one) != decided(two) for one, two in same)
    pairs = [(replace(one, labels=one.labels or two.labels), two) for one, two in same]
    pairs = [(one, replace(two, labels=one.labels)) for one, two in pairs]
    return pairs, tuple(one.task_id for one, two in both if one.content != two.content), relabeled


def _clusters(tasks: Sequence[Judged], key: str | None) -> Codes | None:
    if key is None:
        return None
    _require(tasks, key, "--cluster")
    names = [json.dumps(task.metadata.get(key, [task.task_id]), sort_keys=True) for task in tasks]
    return np.unique(names, return_inverse=True)[1]


def _require(tasks: Sequence[Judged], key: str, field: str) -> None:
    """Refuse a key that no task has in its metadata."""
    found = sorted({key for task in tasks for key in task.metadata})
    if key not in found:
        hint = f"they have {', '.join(found)}" if found else "they have no metadata"
        raise InputError(f"no task has {key!r} in its metadata", field=field, hint=hint)


def _settings(run: JudgedRun) -> Mapping[str, object]:
    """What shapes a run's results, with the seed and the day that its prompts name."""
    with run.directory.open_store() as store:
        context = store.read(run.directory.name).context
    return {**run.identity, "seed": context.seed, "today": context.today}


def _side(run: JudgedRun, tasks: Sequence[Judged]) -> Side:
    found = Counter(map(_verdict, tasks))
    chances = [len(decided(task)) / len(task.scores) for task in tasks if decided(task)]
    chance = sum(chances) / len(chances) if chances else math.nan
    return Side(
        run=str(run.directory.path),
        accuracy=Accuracy(len(chances), found["right"], found["tied"], found["unscored"], chance),
        unscored=sum(not task.choice for task in tasks),
        statuses=dict(Counter(task.status for task in tasks)),
        usage=sum((task.usage for task in tasks), Usage()),
    )


# ---- verdicts


def _verdict(task: Judged) -> Verdict | None:
    return verdict(task.choice, decided(task))


def _verdicts(pairs: Sequence[Pair], codes: Codes | None) -> Verdicts:
    said = [[_verdict(task) for task in pair] for pair in pairs]
    a, b = np.array([[math.nan if each is None else each == "right" for each in pair] for pair in said]).T  # (n,) each
    difference = paired_difference(b, a, codes)
    error = difference.standard_error
    return Verdicts(
        labeled=difference.n,
        right_a=int(np.nansum(a)),
        right_b=int(np.nansum(b)),
        won=int((b > a).sum()),
        lost=int((b < a).sum()),
        difference=difference,
        detectable=smallest_difference(error) if error > 0 else math.nan,
    )


def _groups(pairs: Sequence[Pair], codes: Codes | None, by: str | None) -> dict[str, Verdicts]:
    if by is not None:
        _require([one for one, _ in pairs], by, "--by")
    places: dict[str, list[int]] = {}
    for n, (one, _) in enumerate(pairs):
        if decided(one):
            places.setdefault(str(one.metadata.get(by or GROUP, "")), []).append(n)
    if not any(places):
        return {}
    return {
        name: _verdicts([pairs[n] for n in here], None if codes is None else codes[here])
        for name, here in places.items()
    }


def _is_reselected(one: Judged, two: Judged) -> float:
    """Whether the runs select differently; NaN where one of them selects nothing."""
    return float(set(one.choice) != set(two.choice)) if one.choice and two.choice else math.nan


# ---- scores


def _scores(pairs: Sequence[Pair], codes: Codes | None, largest: int) -> Scores:
    scales = {task.scale for pair in pairs for task in pair}
    scale = next(iter(scales)) if len(scales) == 1 else Scale(0.0, 1.0)
    read = [[task.scores if len(scales) == 1 else unit_scores(task) for task in pair] for pair in pairs]
    a, b = (np.concatenate(side) for side in zip(*read, strict=True))  # (candidates,) each
    tasks = np.repeat(np.arange(len(pairs)), [len(one) for one, _ in read])  # (candidates,)
    clusters = tasks if codes is None else codes[tasks]
    places: list[tuple[str, int]] = [(one.task_id, j) for one, _ in pairs for j in range(len(one.scores))]
    moved = np.nan_to_num(np.abs(b - a)).round(9)  # (candidates,), so that rounding orders none
    order: list[int] = [n for n in np.argsort(-moved, kind="stable")[:largest].tolist() if moved[n] > 0]
    return Scores(
        scale=scale,
        difference=paired_difference(b, a, clusters),
        absolute=clustered_mean(np.abs(b - a), clusters),
        correlation=correlation(a, b, "spearman", clusters),
        alike=pairwise_accuracy(a, b, tasks, clusters),
        only_a=int((np.isnan(b) & ~np.isnan(a)).sum()),
        only_b=int((np.isnan(a) & ~np.isnan(b)).sum()),
        neither=int((np.isnan(a) & np.isnan(b)).sum()),
        largest=tuple(Change(places[n][0], places[n][1], float(a[n]), float(b[n])) for n in order),
    )


def unit_scores(task: Judged) -> FloatArray:
    """The scores of a task's candidates on 0..1, where 1 is best; (J,), NaN = unscored."""
    return np.array([task.scale.to_unit(score) for score in task.scores.tolist()])


# ---- regressions


def _worse(pairs: Sequence[Pair]) -> list[Pair]:
    """The tasks that the first run alone has right: the surest mistakes of the second first, the unscored last."""
    worse = [pair for pair in pairs if _verdict(pair[0]) == "right" != _verdict(pair[1])]
    return sorted(worse, key=lambda pair: -np.nan_to_num(_margin(pair[1]), nan=-math.inf))


def _margin(task: Judged) -> float:
    """How far the choice is above the best of the right candidates, on 0..1; NaN where one is unscored."""
    scores = unit_scores(task)
    best = scores[list(decided(task))].max()
    return float(scores[list(task.choice)].max() - best) if task.choice else math.nan


def _regression(a: JudgedRun, b: JudgedRun, one: Judged, two: Judged) -> Regression:
    reason_a, reason_b = (reason(run.evaluation(one.task_id)[1]) for run in (a, b))
    show_a, show_b = (shlex.join(["debate", "show", str(run.directory.path), one.task_id]) for run in (a, b))
    return Regression(
        task_id=one.task_id,
        group=one.group,
        best=decided(one),
        choice_a=one.choice,
        choice_b=two.choice,
        margin=_margin(two),
        reasons=(reason_a, reason_b),
        show=(show_a, show_b),
    )


def reason(evaluation: Evaluation, most: int = _REASON) -> str:
    """What the agents said of the selected candidate, in one line; why there is none where nothing was selected."""
    if evaluation.selected is None:
        said = evaluation.error or "no candidate was scored"
    else:
        feedback = evaluation.feedback(evaluation.selected)
        _, _, comments = feedback.partition("\n- ")
        last = evaluation.transcript.of_round(evaluation.rounds_run - 1)
        overall = " | ".join(f"{turn.agent}: {turn.overall}" for turn in last if turn.overall.strip())
        said = comments.replace("\n- ", " | ") or overall or feedback
    return textwrap.shorten(said, most, placeholder=" ...")
