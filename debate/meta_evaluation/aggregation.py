"""How a run's debates put their scores together and when they stop, read from the run; and scores of parts of them.

The settings are those of the run's identity, in this one place. A part of a debate is some rounds or some agents of its
tensor, which is aggregated as the run aggregates all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from debate.convergence import Over
from debate.evaluators.debate.settings import TaskComponents
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.scoring.tensor import Method, normalize_tensor
from debate.selection import all_best
from debate.stop_rules import StopRule
from debate.types import FloatArray

Part = Callable[[FloatArray], FloatArray]
"""From a tensor (R, I, J, K) to a part of it, such as `lambda tensor: tensor[:1]`, the first round."""
WeightsOf = Callable[[Judged], FloatArray]
"""The weights of a task's components, (K,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregation:
    """What turns the tensor of a debate into scores, and what ends the debate.

    Attributes:
        weights: of the profile's components, (K,).
        method: see `debate.scoring.normalize_tensor`.
        quorum: agents that must have scored for a round to count; None is more than half of those there are.
        rounds: the most there may be.
        convergence: the CV at which a debate stops; None never stops early.
        over: which CV; see `debate.convergence`.
        min_rounds: the first round after which a debate may stop.
        stop_rule: the rule that stands in place of `convergence`; see `debate.stop_rules`.
        task_components: whether a task's own components stand beside the profile's or in their place.
    """

    weights: FloatArray
    method: Method
    quorum: int | None
    rounds: int
    convergence: float | None
    over: Over
    min_rounds: int
    stop_rule: str | None = None
    task_components: TaskComponents = "beside"

    @classmethod
    def of_run(cls, run: JudgedRun) -> Self | None:
        """Those of a run of debates; None for other evaluators, which have no tensor."""
        return cls.of_described(run.identity.get("evaluator", {}))

    @classmethod
    def of_described(cls, evaluator: Mapping[str, Any]) -> Self | None:
        """Those of an evaluator's `describe()`."""
        if evaluator.get("evaluator") != "debate":
            return None
        given: dict[str, Any] = evaluator["aggregation"]
        names = ("method", "quorum", "rounds", "convergence", "over", "min_rounds")
        own = {name: given[name] for name in names}
        own |= {"stop_rule": given.get("stop_rule"), "task_components": evaluator.get("task_components", "beside")}
        return cls(weights=np.array(given["weights"], dtype=np.float64), **own)

    @property
    def stops_by(self) -> StopRule:
        """The rule by which a debate ends before its last round."""
        return StopRule.of_settings(self.stop_rule, self.convergence, self.over)

    def quorum_of(self, n_agents: int) -> int:
        """Agents that must have scored for a round of `n_agents` to count."""
        return n_agents // 2 + 1 if self.quorum is None else min(self.quorum, n_agents)

    def weights_of(self, task: Judged) -> FloatArray:
        """The weights of the components that a task was scored on, (K,)."""
        if not task.own_weights:
            return self.weights
        own = np.array(task.own_weights)
        return own if self.task_components == "instead" else np.concatenate([self.weights, own])

    def of_task(self, task: Judged) -> Self:
        """The same with the weights of the components that a task was scored on."""
        return replace(self, weights=self.weights_of(task)) if task.own_weights else self

    def scores(self, tensor: FloatArray) -> FloatArray:
        """One score for each candidate, (J,), of a tensor (R, I, J, K) or a part of it; NaN = unscored."""
        return normalize_tensor(tensor, self.weights, self.method, self.quorum_of(tensor.shape[1]))

    def scores_of(self, tasks: Sequence[Judged], part: Part, weights: WeightsOf | None = None) -> list[FloatArray]:
        """The scores of each task by a part of its debates, (J,); the mean of both for a balanced debate.

        It is all NaN for a task that has no tensor, or none of that part of it.

        weights: of each task's components; None is those of the run and of the task.
        """
        all_weights = map(weights or self.weights_of, tasks)
        debates = ((n, each, own) for n, own in enumerate(all_weights) for each in debates_of(tasks[n]))
        parts = [(n, part(each.tensor), own) for n, each, own in debates if each.tensor is not None]
        found: list[list[FloatArray]] = [[] for _ in tasks]
        for n, scores in self._aggregated(parts):
            found[n].append(scores)
        return [_mean_of(each, len(task.scores)) for each, task in zip(found, tasks, strict=True)]

    def _aggregated(self, tensors: Sequence[tuple[int, FloatArray, FloatArray]]) -> list[tuple[int, FloatArray]]:
        """The scores of tensors under their weights.

        Those with the same weights and as many rounds and agents are aggregated at once: candidates stand side by side.
        """
        alike: dict[tuple[Any, ...], list[tuple[int, FloatArray]]] = {}
        for n, tensor, weights in tensors:
            if tensor.size:
                alike.setdefault((*tensor.shape[:2], weights.tobytes()), []).append((n, tensor))
        found: list[tuple[int, FloatArray]] = []
        for (*_, weights), each in alike.items():
            tensor = np.concatenate([tensor for _, tensor in each], axis=2)
            scores = replace(self, weights=np.frombuffer(weights)).scores(tensor)  # (all candidates,)
            ends = np.cumsum([tensor.shape[2] for _, tensor in each])[:-1]
            found += zip([n for n, _ in each], np.split(scores, ends), strict=True)
        return found


def debates_of(task: Judged) -> tuple[Judged, ...]:
    """The debates that a task's evaluation was made from: both of a balanced one, else itself."""
    return task.members or (task,)


def _mean_of(debates: Sequence[FloatArray], n_candidates: int) -> FloatArray:
    """The mean of the scores of a task's debates, (J,); NaN without any."""
    if not debates:
        return np.full(n_candidates, np.nan)
    return debates[0] if len(debates) == 1 else np.mean(debates, axis=0)


def choice_of(scores: FloatArray) -> tuple[int, ...]:
    """The candidates with the highest score, (J,) -> their indices; empty where nothing is scored."""
    return all_best(scores)
