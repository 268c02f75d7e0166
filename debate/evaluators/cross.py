"""Each candidate judged by evaluators other than the model that wrote it, as a flow.

gather: each judge's own flow, on the candidates that it may judge
mean over its judges -> a candidate's score
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from debate.errors import ConfigError, TaskError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator, RunContext
from debate.evaluators.ensemble import (
    EnsembleEvaluator,
    isolate_failures,
    rescale,
    scatter_candidates,
    validate_members,
)
from debate.evaluators.result import build_evaluation
from debate.flow import Flow, gather
from debate.settings import REQUIRED, check_value, documented, setting
from debate.types import FloatArray, Task


@documented
@dataclass(frozen=True, kw_only=True)
class CrossEvaluator(EnsembleEvaluator):
    """A judge per model; no judge scores a candidate that its own model wrote.

    >>> CrossEvaluator(judges={"a": ValueEvaluator(model="a"), "b": ValueEvaluator(model="b")})

    `Candidate.generator` names the model that wrote a candidate. `details`: `judgements`, one per candidate and judge,
    with `candidate`, `generator`, `judge` and `score` on the evaluation's scale.

    Raises:
        ConfigError: for settings that cannot work.
        TaskError: from `check_task`, for a candidate whose generator is missing or unknown.
    """

    judges: Mapping[str, Evaluator] = setting(
        REQUIRED, "The judges, by the name of the model that each stands for.", is_hashable=False
    )
    rule: Literal["exclude_self"] | Mapping[str, str | Sequence[str]] = setting(
        "exclude_self",
        "exclude_self: all judges but the generator's own. Or {generator: judge, or list of judges}.",
        is_hashable=False,
    )
    name: str = field(default="cross", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "judges", validate_members(self.judges, "judges"))
        if self.rule == "exclude_self" and len(self.judges) < 2:
            problem = "needs two or more, so that each candidate has one that is not its author"
            raise ConfigError(problem, field="judges")
        given: Mapping[str, object] = {} if isinstance(self.rule, str) else self.rule
        for generator, judges in given.items():
            check_value(f"rule.{generator}", judges, str | Sequence)
        for generator, judges in self._mapping.items():
            for judge in judges:
                if judge not in self.judges:
                    raise ConfigError(f"{judge!r} is no judge; there are {', '.join(self.judges)}", field="rule")
                if judge == generator:
                    raise ConfigError(f"{judge!r} would judge its own text", field="rule")
            if not judges:
                raise ConfigError(f"nobody judges the texts of {generator!r}", field="rule")

    @property
    def evaluators(self) -> tuple[Evaluator, ...]:
        """The judges."""
        return tuple(self.judges.values())

    @property
    def _mapping(self) -> dict[str, tuple[str, ...]]:
        """The judges of each generator's texts."""
        if isinstance(self.rule, str):
            return {name: tuple(other for other in self.judges if other != name) for name in self.judges}
        return {
            generator: (judges,) if isinstance(judges, str) else tuple(sorted(judges))
            for generator, judges in self.rule.items()
        }

    def check_task(self, task: Task) -> None:
        """Refuse a task with a candidate whose generator is missing or unknown."""
        known = self._mapping
        for j, candidate in enumerate(task.candidates):
            if candidate.generator not in known:
                what = "is missing" if candidate.generator is None else f"{candidate.generator!r} is unknown"
                problem = f"{what}: a cross evaluation must know which model wrote a candidate"
                raise TaskError(problem, field=f"candidates.{j}.generator", hint=f"it knows {', '.join(known)}")
        super().check_task(task)

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Let each judge evaluate the candidates of other models, and take the mean."""
        self.check_task(task)
        judges_of = [self._mapping[candidate.generator or ""] for candidate in task.candidates]
        duties = {name: [j for j, judges in enumerate(judges_of) if name in judges] for name in self.judges}
        busy = {name: indices for name, indices in duties.items() if indices}
        flows = [isolate_failures(self.judges[name], _part(task, indices), run) for name, indices in busy.items()]
        answers = yield from gather(flows)
        n = len(task.candidates)
        members = [scatter_candidates(each, busy[name], n) for name, each in zip(busy, answers, strict=True)]
        matrix = np.stack([rescale(member, self.scale) for member in members])  # (M, J)
        judgements = [
            {"candidate": j, "generator": task.candidates[j].generator, "judge": name, "score": row[j]}
            for name, row in zip(busy, matrix.tolist(), strict=True)
            for j in busy[name]
        ]
        details = {"judgements": judgements}
        return build_evaluation(self, task, run, scores=_mean(matrix), members=members, details=details)

    def describe(self) -> dict[str, Any]:
        """The judges' settings, and the judges of each generator."""
        return {
            **super().describe(),
            "judges": {name: judge.describe() for name, judge in self.judges.items()},
            "rule": {name: list(judges) for name, judges in self._mapping.items()},
        }


def _part(task: Task, indices: Sequence[int]) -> Task:
    """The task with some of its candidates, without the label, whose indices are those of all."""
    metadata = {key: value for key, value in task.metadata.items() if key != "best"}
    return task.with_candidates([task.candidates[j] for j in indices], metadata)


def _mean(matrix: FloatArray) -> FloatArray:
    """Mean over the judges that scored, (J,); NaN where none did."""
    scored = ~np.isnan(matrix)  # (M, J)
    count: FloatArray = scored.sum(axis=0).astype(np.float64)  # (J,)
    total: FloatArray = np.where(scored, matrix, 0.0).sum(axis=0)  # (J,)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
