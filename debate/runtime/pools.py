"""Evaluates a pool that is too large for one debate: in groups that share anchors, ending in one ranking.

With a silent screening the groups are only read out, and the candidates that may be best meet in one debate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from debate.errors import ConfigError
from debate.evaluation import Evaluation, leaves
from debate.evaluators.base import BaseEvaluator, Evaluator, RunContext
from debate.evaluators.ensemble import scatter_candidates
from debate.evaluators.result import build_evaluation
from debate.hashing import derive
from debate.scoring.distributions import spread_of
from debate.scoring.pools import align_groups, fit_on_scale, plan_groups
from debate.settings import check_value
from debate.types import FloatArray, Scale, Task, Usage


@dataclass(frozen=True, kw_only=True)
class _Ranking(BaseEvaluator):
    """How the pool's scores become probabilities and a selection: as the groups' evaluator has it."""

    on: Scale
    name: str = field(default="pool", init=False)

    @property
    def scale(self) -> Scale:
        return self.on


@dataclass(frozen=True)
class Pool:
    """A task with many candidates, and the groups in which they are evaluated.

    Raises:
        ConfigError: for a group without room beside its anchors.
    """

    task: Task
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def plan(cls, task: Task, group: int, anchors: int, seed: int) -> Pool:
        """Groups of at most `group` candidates that share `anchors`, the same for the same seed and task."""
        group = check_value("group", group, int, ge=2)
        anchors = check_value("anchors", anchors, int, ge=1)
        if anchors >= group:
            problem = f"must be fewer than the {group} candidates of a group, got {anchors}"
            raise ConfigError(problem, field="anchors", hint="two are enough; more make groups more comparable")
        planned = plan_groups(len(task.candidates), group, anchors, derive(seed, "pool", task.id))
        return cls(task, tuple(map(tuple, planned)))

    @property
    def tasks(self) -> list[Task]:
        """The groups as tasks of their own, in whose ids the pool's is; the task itself where one group holds all."""
        if len(self.groups) == 1:
            return [self.task]
        return [self._part(f"group-{n + 1}", members) for n, members in enumerate(self.groups)]

    def _part(self, name: str, members: Sequence[int]) -> Task:
        whole = self.task
        metadata = {key: value for key, value in whole.metadata.items() if key != "best"}
        return whole.with_candidates([whole.candidates[j] for j in members], metadata, id=f"{whole.id}/{name}")

    @property
    def screened(self) -> frozenset[str]:
        """The ids of the groups."""
        return frozenset(each.id for each in self.tasks)

    def finalists(self, screened: Evaluation, most: int) -> tuple[int, ...]:
        """The candidates that may be best by a silent screening, at most so many, in their order.

        They are those whose score is behind the best by less than two standard deviations of the difference, and where
        these are more than `most`, the best of them. A candidate has the standard deviation of its groups' read-outs.
        Without a score there is no place among them.
        """
        scores, spread = screened.scores, self._spread(screened)  # (n,) each
        if np.isnan(scores).all():
            return ()
        best = int(np.nanargmax(scores))
        near = scores[best] - scores < 2 * np.hypot(spread, spread[best])  # (n,)
        near[best] = True
        ranked = sorted(np.flatnonzero(near).tolist(), key=lambda j: -scores[j])
        return tuple(sorted(ranked[:most]))

    def _spread(self, screened: Evaluation) -> FloatArray:
        """The standard deviation of each candidate's read-outs over agents and components, mean of its groups, (n,)."""
        found = np.full((len(self.groups), len(self.task.candidates)), np.nan)  # (G, n)
        for g, member in enumerate(screened.members):
            silent = [each for debate in leaves(member) for each in debate.before if each.distributions]
            if silent:
                found[g] = np.sqrt(np.mean([spread_of(each.distributions) ** 2 for each in silent], axis=(0, 2)))
        return np.nan_to_num(_nanmean(found), nan=0.0)

    def final(self, finalists: Sequence[int]) -> Task:
        """The task on which the finalists are debated."""
        return self._part("final", finalists)

    def decided(
        self, screened: Evaluation, final: Evaluation, finalists: Sequence[int], evaluator: Evaluator, run: RunContext
    ) -> Evaluation:
        """The screening with the scores of the final in place of the finalists' own.

        The others have their scores on the final's footing: moved by what the finalists moved on average, and never
        above the lowest finalist.
        """
        scores = screened.scores.copy()  # (n,)
        chosen = list(finalists)
        rest = np.setdiff1d(np.arange(len(scores)), chosen)
        moved = _nanmean((final.scores - scores[chosen])[:, None])  # (1,)
        lowest = np.nanmin(final.scores) if not np.isnan(final.scores).all() else np.nan
        scores[rest] = np.clip(np.minimum(scores[rest] + moved, lowest), evaluator.scale.low, evaluator.scale.high)
        scores[chosen] = final.scores
        n = len(scores)
        evaluation = build_evaluation(
            self._ranking(evaluator),
            self.task,
            run,
            scores=scores,
            members=[*screened.members, scatter_candidates(final, finalists, n)],
            details={**screened.details, "finalists": chosen},
        )
        seconds = round(screened.seconds + final.seconds, 6)
        return replace(evaluation, usage=screened.usage + final.usage, seconds=seconds)

    def _ranking(self, evaluator: Evaluator) -> _Ranking:
        names = ("selection", "ties", "softmax_temperature")
        chosen = {name: getattr(evaluator, name) for name in names if hasattr(evaluator, name)}
        return _Ranking(on=evaluator.scale, **chosen)

    def joined(self, found: Sequence[Evaluation], evaluator: Evaluator, run: RunContext) -> Evaluation:
        """One evaluation of all candidates; its `members` are those of the groups."""
        if len(self.groups) == 1:
            return found[0]
        n, scale = len(self.task.candidates), evaluator.scale
        aligned = align_groups(self.groups, [each.scores for each in found], n)
        evaluation = build_evaluation(
            self._ranking(evaluator),
            self.task,
            run,
            scores=fit_on_scale(aligned.scores, scale.low, scale.high),
            members=[scatter_candidates(each, group, n) for each, group in zip(found, self.groups, strict=True)],
            details={"groups": [list(each) for each in self.groups], "offsets": aligned.offsets.tolist()},
        )
        usage = sum((each.usage for each in found), Usage())
        return replace(evaluation, usage=usage, seconds=round(sum(each.seconds for each in found), 6))


def _nanmean(values: FloatArray) -> FloatArray:
    """The mean of each column, NaN where it holds nothing; quiet about it."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)
