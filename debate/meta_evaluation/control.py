"""What debating is worth beside its control: debate, silent panel and one judge on the same tasks.

The silent panel are the same agents in as many turns, none of whom hears the others; one judge is a first turn of the
silent panel, so it costs no call. Differences are paired, task by task.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from debate.errors import InputError
from debate.evaluation import share_right
from debate.jobs.run_directory import RunDirectory
from debate.meta_evaluation.aggregation import Aggregation, choice_of, debates_of
from debate.meta_evaluation.judged import Judged, JudgedRun, read_run
from debate.meta_evaluation.people import decided
from debate.statistics import Mean, paired_difference, share, smallest_difference
from debate.types import FloatArray

Choices = Sequence[Sequence[tuple[int, ...]]]
"""Per task one choice or several, each the indices of the chosen candidates; empty where nothing is scored."""
ARMS = ("debate", "silent panel", "one judge")
_NO_LABEL = "no label names the best of several candidates"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of judging the tasks.

    Attributes:
        name: one of `ARMS`.
        accuracy: against people. Of a tie each candidate has its share; what is unscored is not right.
        unscored: labeled tasks without any choice; for one judge, on average over the agents.
        turns: per task, as are the others.
        completion_tokens: decoded. For one judge, those of an average turn of the silent panel.
        prompt_tokens: in the same way.
    """

    name: str
    accuracy: Mean
    unscored: float
    turns: float
    completion_tokens: float
    prompt_tokens: float


@dataclass(frozen=True, slots=True)
class ControlFigures:
    """Debate, silent panel and one judge on the tasks that the control covers.

    Attributes:
        tasks: how many these are.
        not_covered: tasks with a debate and without a control.
        outdated: tasks whose debate has another number of turns than its control; they are left out.
        labeled: tasks of several candidates of which people name the best.
        arms: debate, silent panel, one judge.
        debate_minus_silent: of the accuracies, as the two that follow.
        debate_minus_judge: see there.
        silent_minus_judge: see there.
        other_choice: share of the tasks on which debate and silent panel choose differently; it takes no label.
        sentence: whether debating pays, and what it costs.
    """

    tasks: int
    not_covered: int
    outdated: int
    labeled: int
    arms: tuple[Arm, ...]
    debate_minus_silent: Mean
    debate_minus_judge: Mean
    silent_minus_judge: Mean
    other_choice: Mean
    sentence: str


@dataclass(frozen=True, eq=False)
class Control:
    """A run of debates beside its control.

    Attributes:
        folder: of the control.
        debates: the debates of the tasks that the control covers.
        silent: the silent panels on the same tasks, in the same order.
        not_covered: ids of the tasks with a debate and without a control.
        outdated: ids of the tasks whose debate has another number of turns than its control.
        aggregation: what puts the scores together.
    """

    folder: Path
    debates: Sequence[Judged]
    silent: Sequence[Judged]
    not_covered: tuple[str, ...]
    outdated: tuple[str, ...]
    aggregation: Aggregation

    def figures(self, *, confidence: float = 0.95) -> ControlFigures:
        """The three ways of judging and their paired differences, with intervals clustered by task.

        confidence: of the intervals, in (0, 1).
        """
        ids = [task.task_id for task in self.debates]
        debate, silent, judge = self.right
        pairs = {"debate_minus_silent": (debate, silent), "debate_minus_judge": (debate, judge),
                 "silent_minus_judge": (silent, judge)}  # fmt: skip
        other = [set(a.choice) != set(b.choice) for a, b in zip(self.debates, self.silent, strict=True)]
        found = ControlFigures(
            tasks=len(ids),
            not_covered=len(self.not_covered),
            outdated=len(self.outdated),
            labeled=int((~np.isnan(debate)).sum()),
            arms=tuple(
                Arm(name, *_accuracy(right, choices, ids, confidence), *spent)
                for name, right, choices, spent in zip(ARMS, self.right, self.choices, self._spent, strict=True)
            ),
            **{name: _reasoned(paired_difference(a, b, ids, confidence)) for name, (a, b) in pairs.items()},
            other_choice=share(np.array(other, dtype=np.float64), ids, confidence),
            sentence="",
        )
        return replace(found, sentence=_sentence(found))

    @cached_property
    def choices(self) -> tuple[Choices, Choices, Choices]:
        """What debate, silent panel and one judge chose on each task; of the judges, each agent's choice."""
        n_agents = max((len(each.agents) for task in self.silent for each in debates_of(task)), default=1)
        firsts = [
            self.aggregation.scores_of(self.silent, partial(_first_turn, agent=i)) for i in range(max(n_agents, 1))
        ]
        judges = [[choice_of(scores) for scores in found] for found in zip(*firsts, strict=True)]
        debates, silent = ([[task.choice] for task in tasks] for tasks in (self.debates, self.silent))
        return debates, silent, judges

    @cached_property
    def right(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How right debate, silent panel and one judge are on each task, from 0 to 1, (n,); NaN without a label."""
        best = [decided(task) for task in self.debates]

        def right(choices: Choices) -> FloatArray:
            each = zip(choices, best, strict=True)
            shares = [np.mean([share_right(choice, named) for choice in own]) for own, named in each]
            return np.array(shares, dtype=np.float64)

        debate, silent, judge = map(right, self.choices)
        return debate, silent, judge

    @property
    def _spent(self) -> tuple[list[float], list[float], list[float]]:
        """Turns, decoded tokens and prompt tokens of each way of judging, on average over the tasks."""
        debates, silent = (
            np.array([_spent(task) for task in tasks], dtype=np.float64).reshape(-1, 3)  # (n, 3)
            for tasks in (self.debates, self.silent)
        )
        first = np.array([len(debates_of(task)) for task in self.silent])  # (n,), turns
        judge = silent * (first / np.maximum(silent[:, 0], 1))[:, None]  # (n, 3)
        n_tasks = max(len(first), 1)
        debate, panel, first_turn = ((each.sum(axis=0) / n_tasks).tolist() for each in (debates, silent, judge))
        return debate, panel, first_turn


def read_control(run: JudgedRun) -> Control | None:
    """The control of a run, with the labels that the run was read with; None where there is none yet.

    Raises:
        InputError: for a control that is not one of this run.
        StoreError: as `RunDirectory.open_store`.
    """
    aggregation = Aggregation.of_run(run)
    directory = None if aggregation is None else RunDirectory.read(run.directory.control)
    if directory is None or aggregation is None:
        return None
    if directory.control_of != run.directory.name:
        problem = f"is not the control of the run {run.directory.name!r}"
        raise InputError(problem, file=directory.path, hint=f"move it away; then `debate control {run.directory.path}`")
    with directory.open_store(read_only=True) as store:
        if not store.read(directory.name).n_evaluated():
            return None
    silent = {task.task_id: task for task in read_run(directory.path, read_only=True).tasks}
    pairs = [(task, silent[task.task_id]) for task in run.tasks if task.task_id in silent]
    outdated = {debate.task_id for debate, panel in pairs if not _is_equal_budget(debate, panel)}
    kept = [pair for pair in pairs if pair[0].task_id not in outdated]
    return Control(
        folder=directory.path,
        debates=[debate for debate, _ in kept],
        silent=[panel for _, panel in kept],
        not_covered=tuple(task.task_id for task in run.tasks if task.task_id not in silent),
        outdated=tuple(outdated),
        aggregation=aggregation,
    )


def _is_equal_budget(debate: Judged, silent: Judged) -> bool:
    """Whether both took as many turns; a silent panel whose model failed has taken fewer."""
    ends = {each.stop_reason for each in debates_of(silent)}
    return _n_turns(debate) == _n_turns(silent) or bool(ends & {"failed", "time_budget"})


def _n_turns(task: Judged) -> int:
    return sum(len(each.turns) for each in debates_of(task))


def _first_turn(tensor: FloatArray, agent: int) -> FloatArray:
    return tensor[:1, agent : agent + 1]  # (1, 1, J, K)


def _spent(task: Judged) -> tuple[int, int, int]:
    return _n_turns(task), task.usage.completion_tokens, task.usage.prompt_tokens


def _accuracy(right: FloatArray, choices: Choices, ids: Sequence[str], confidence: float) -> tuple[Mean, float]:
    """The share of right choices, and of how many labeled tasks there was none, on average over the agents."""
    is_labeled = ~np.isnan(right)  # (n,)
    without = np.array([np.mean([not choice for choice in own]) for own in choices])  # (n,)
    return _reasoned(share(right, ids, confidence)), float(without[is_labeled].sum())


def _reasoned(found: Mean) -> Mean:
    return replace(found, reason=_NO_LABEL) if found.n == 0 else found


def _sentence(found: ControlFigures) -> str:
    """Whether debating pays, and what it costs."""
    gain, (debate, silent, judge) = found.debate_minus_silent, found.arms
    cost = (
        f"It costs {debate.completion_tokens:,.0f} decoded tokens per task, the silent panel "
        f"{silent.completion_tokens:,.0f} and one judge {judge.completion_tokens:,.0f}."
    )
    if math.isnan(gain.interval[0]):
        return f"Whether debating pays here is not known: {gain.reason}. {cost}"
    low, high = gain.interval
    points = f"{100 * gain.estimate:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}] on {gain.n:,} labeled tasks"
    than = f"than the same agents in as many turns who do not hear each other ({points})"
    if low > 0:
        return f"Debating pays here: it is right more often {than}. {cost}"
    if high < 0:
        return f"Debating does not pay here: it is right less often {than}. {cost}"
    least = 100 * smallest_difference(gain.standard_error)
    seen = f"So many tasks would mostly show a gain of {least:.1f} points." if least else ""
    return " ".join(filter(None, [f"Debating does not pay here: it is not right more often {than}.", seen, cost]))
