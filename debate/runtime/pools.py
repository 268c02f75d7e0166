"""Evaluates a pool that is too large for one debate: in groups that share anchors, ending in one ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import BaseEvaluator, Evaluator, RunContext
from debate.evaluators.ensemble import scatter_candidates
from debate.evaluators.result import build_evaluation
from debate.hashing import derive
from debate.scoring.pools import align_groups, fit_on_scale, plan_groups
from debate.settings import check_value
from debate.types import Scale, Task, Usage


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
        return [self._part(n, members) for n, members in enumerate(self.groups)]

    def _part(self, n: int, members: Sequence[int]) -> Task:
        whole = self.task
        metadata = {key: value for key, value in whole.metadata.items() if key != "best"}
        candidates = [whole.candidates[j] for j in members]
        return Task(whole.x, candidates, f"{whole.id}/group-{n + 1}", whole.context, metadata, whole.reference)

    def joined(self, found: Sequence[Evaluation], evaluator: Evaluator, run: RunContext) -> Evaluation:
        """One evaluation of all candidates; its `members` are those of the groups."""
        if len(self.groups) == 1:
            return found[0]
        n, scale = len(self.task.candidates), evaluator.scale
        aligned = align_groups(self.groups, [each.scores for each in found], n)
        names = ("selection", "ties", "softmax_temperature")
        chosen = {name: getattr(evaluator, name) for name in names if hasattr(evaluator, name)}
        evaluation = build_evaluation(
            _Ranking(on=scale, **chosen),
            self.task,
            run,
            scores=fit_on_scale(aligned.scores, scale.low, scale.high),
            members=[scatter_candidates(each, group, n) for each, group in zip(found, self.groups, strict=True)],
            details={"groups": [list(each) for each in self.groups], "offsets": aligned.offsets.tolist()},
        )
        usage = sum((each.usage for each in found), Usage())
        return replace(evaluation, usage=usage, seconds=round(sum(each.seconds for each in found), 6))
