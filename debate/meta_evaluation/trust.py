"""What a run's judge is worth: one value for the page of `debate agree`, its JSON and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np

from debate.errors import ConfigError
from debate.evaluation import verdict
from debate.meta_evaluation.aggregation import Aggregation
from debate.meta_evaluation.control import ControlFigures, read_control
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.meta_evaluation.panel import DebateFigures, Habits, Missing, debate_figures, habits, missing
from debate.meta_evaluation.people import (
    WORST,
    AmongPeople,
    BaseRates,
    Choices,
    ComponentFigures,
    PairFigure,
    ScoredApart,
    among_people,
    base_rates,
    choices,
    component_figures,
    decided,
    is_compared,
    pair_figures,
    right_choices,
    rising,
)
from debate.meta_evaluation.settling import SettlingFigures, settling_figures
from debate.statistics import Accuracy
from debate.types import Displayed, FloatOrNaN, shortened


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A task in which people prefer other candidates than the judge chose.

    Attributes:
        task_id: the task's.
        judge: the candidates that it chose, from 0.
        people: those that people prefer.
        margin: how much higher it scored its own choice than theirs; NaN where theirs has no score.
        command: shows the task.
    """

    task_id: str
    judge: tuple[int, ...]
    people: tuple[int, ...]
    margin: FloatOrNaN
    command: str


@dataclass(frozen=True, slots=True)
class ScoreGap(ScoredApart):
    """A candidate that judge and people score far apart.

    Attributes:
        component: as people call it.
        command: shows the task.
    """

    component: str
    command: str


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The main figures of the tasks with one value in their metadata.

    Attributes:
        value: as text; "" where a task has none.
        tasks: how many there are.
        rates: of these tasks.
        right: None where people compare no candidates.
        pairs: likewise, a tie half right.
    """

    value: str
    tasks: int
    rates: BaseRates
    right: Accuracy | None
    pairs: PairFigure | None


@dataclass(frozen=True, slots=True)
class TrustFigures(Displayed):
    """What the judge of a run is worth, in the order in which it is read.

    Attributes:
        run: the run's folder.
        tasks: evaluated ones.
        unknown_labels: task ids of the labels file that the run does not have.
        rates: what people say, and what can be reached without reading.
        choices: the judge against people; None where people compare no candidates.
        components: the judge's scores against people's; empty where people score nothing.
        control: debate, silent panel and one judge; None without a control.
        settling: the tasks that silent rounds settled, beside the others; None without a rule that settles.
        among_people: people against people; None without two people.
        habits: what order and length do.
        debate: by round and agent; None for evaluators without rounds.
        missing: what has no score.
        disagreements: the worst first, 20 at most.
        n_disagreements: how many there are.
        score_gaps: the candidates scored furthest apart beyond the mean difference of their component, 20 at most.
        by: the key in the metadata by which `groups` are made.
        groups: the main figures for each value, most tasks first; empty without a key.
    """

    run: str
    tasks: int
    unknown_labels: tuple[str, ...]
    rates: BaseRates
    choices: Choices | None
    components: tuple[ComponentFigures, ...]
    control: ControlFigures | None
    settling: SettlingFigures | None
    among_people: AmongPeople | None
    habits: Habits
    debate: DebateFigures | None
    missing: Missing
    disagreements: tuple[Disagreement, ...]
    n_disagreements: int
    score_gaps: tuple[ScoreGap, ...]
    by: str | None = None
    groups: tuple[GroupFigures, ...] = ()

    def __repr__(self) -> str:
        """The run, and the share of right choices where people compare candidates."""
        right = self.choices and self.choices.right.share.estimate
        told = "" if right is None else f", right={right:.3f}"
        return (
            f"TrustFigures({shortened(self.run, 200)}, tasks={self.tasks}{told}, disagreements={self.n_disagreements})"
        )


def agree(run: JudgedRun, by: str | None = None, eps: float = 0.15) -> TrustFigures:
    """What the judge of a run is worth by what people say of its tasks.

    Args:
        run: from `read_run`, which joins a file of labels.
        by: a key of the tasks' metadata; without it `group`, where a task has one.
        eps: what a person costs more than the judge, for the alternative annotator test: 0.2 for experts, 0.15 for
            trained people, 0.1 for a crowd.

    Raises:
        ConfigError: when no task has the key.
        InputError, StoreError: as `read_control`.
    """
    tasks, aggregation = run.tasks, Aggregation.of_run(run)
    worst, control = _disagreements(run), read_control(run)
    components, key = component_figures(tasks, aggregation), _key(tasks, by)
    return TrustFigures(
        run=str(run.directory.path),
        tasks=len(tasks),
        unknown_labels=run.unknown_labels,
        rates=base_rates(tasks),
        choices=choices(tasks),
        components=components,
        control=None if control is None else control.figures(),
        settling=settling_figures(run),
        among_people=among_people(tasks, eps),
        habits=habits(tasks, aggregation),
        debate=None if aggregation is None else debate_figures(tasks, aggregation),
        missing=missing(tasks),
        disagreements=tuple(worst[:WORST]),
        n_disagreements=len(worst),
        score_gaps=_score_gaps(run, components),
        by=key,
        groups=() if key is None else _groups(tasks, key),
    )


def _key(tasks: Sequence[Judged], by: str | None) -> str | None:
    keys = dict.fromkeys(key for task in tasks for key in task.metadata)
    if by is not None and by not in keys:
        hint = f"there are {', '.join(keys)}" if keys else "the tasks have no metadata"
        raise ConfigError(f"no task has {by!r} in its metadata", field="by", hint=hint)
    return by or ("group" if any(task.group for task in tasks) else None)


def _groups(tasks: Sequence[Judged], key: str) -> tuple[GroupFigures, ...]:
    found: dict[str, list[Judged]] = {}
    for task in tasks:
        found.setdefault(_text(task.metadata, key), []).append(task)
    return tuple(_group(value, each) for value, each in sorted(found.items(), key=lambda item: -len(item[1])))


def _text(metadata: Mapping[str, object], key: str) -> str:
    value = metadata.get(key)
    return "" if value is None else str(value)


def _group(value: str, tasks: Sequence[Judged]) -> GroupFigures:
    compared = [task for task in tasks if is_compared(task)]
    right = right_choices(compared) if compared else None
    return GroupFigures(value, len(tasks), base_rates(tasks), right, pair_figures(compared)[-1] if compared else None)


def _disagreements(run: JudgedRun) -> list[Disagreement]:
    """The most confident first; those whose margin is not known last."""
    found = [_disagreement(run, task) for task in run.tasks if verdict(task.choice, decided(task)) in ("wrong", "tied")]
    return sorted(found, key=lambda each: -np.nan_to_num(each.margin, nan=-np.inf))


def _disagreement(run: JudgedRun, task: Judged) -> Disagreement:
    scores, people = rising(task), decided(task)
    known = [float(scores[j]) for j in people if not np.isnan(scores[j])]
    margin = float(scores[list(task.choice)].max()) - max(known) if known else float("nan")
    return Disagreement(task.task_id, task.choice, people, margin, _command(run, task.task_id))


def _score_gaps(run: JudgedRun, components: Sequence[ComponentFigures]) -> tuple[ScoreGap, ...]:
    found = [(gap, each.name) for each in components for gap in each.apart]
    found = sorted(found, key=lambda gap: -abs(gap[0].beyond))[:WORST]
    return tuple(
        ScoreGap(gap.task_id, gap.candidate, gap.people, gap.judge, gap.beyond, name, _command(run, gap.task_id))
        for gap, name in found
    )


def _command(run: JudgedRun, task_id: str) -> str:
    return f"debate show {quote(str(run.directory.path))} {quote(task_id)}"
