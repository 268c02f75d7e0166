"""From scores to an evaluation: probabilities, the selected candidate, ties, status. Knows no particular evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import RunContext
from debate.hashing import derive
from debate.scoring.tensor import softmax
from debate.selection import argmax, sample, tied_best
from debate.types import Failure, FloatArray, Judgment, Scale, ScoreStatus, Status, Task


@dataclass(frozen=True, slots=True)
class SelectionPolicy:
    """How a candidate is chosen by the scores. Shapes no prompt.

    Raises:
        ConfigError: for settings that it does not have.
    """

    selection: Literal["argmax", "sample"] = "argmax"
    ties: Literal["first", "seeded"] = "first"
    softmax_temperature: float = 1.0

    def __post_init__(self) -> None:
        for name, allowed in (("selection", ("argmax", "sample")), ("ties", ("first", "seeded"))):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"must be one of {', '.join(allowed)}, got {getattr(self, name)!r}", field=name)
        if not 0 < self.softmax_temperature < math.inf:
            problem = f"must be above 0 and finite, got {self.softmax_temperature!r}"
            raise ConfigError(problem, field="softmax_temperature")

    def choose(self, scores: FloatArray, higher_is_better: bool, run: RunContext, task: Task) -> dict[str, Any]:
        """`probabilities`, `selected` and `tied` of an evaluation, from its scores (J,) alone."""
        seed = derive(run.seed, "select", task.id)
        rising = scores if higher_is_better else -scores  # (J,), best highest
        probabilities = softmax(rising, self.softmax_temperature)  # (J,)
        if self.selection == "sample":
            selected = sample(probabilities, seed)
        else:
            selected = argmax(rising, self.ties, seed)
        return {"probabilities": probabilities, "selected": selected, "tied": tied_best(rising)}


def build_evaluation(
    name: str,
    scale: Scale,
    task: Task,
    run: RunContext,
    choosing: SelectionPolicy,
    *,
    scores: FloatArray,
    statuses: Sequence[ScoreStatus] = (),
    judgments: Sequence[Judgment] = (),
    failures: Sequence[Failure] = (),
    members: Sequence[Evaluation] = (),
    details: Mapping[str, Any] | None = None,
    has_converged: bool = False,
) -> Evaluation:
    """The evaluation that some scores (J,) on a scale make; NaN is unscored."""
    statuses = tuple(statuses) or tuple[ScoreStatus, ...]("failed" if bad else "ok" for bad in np.isnan(scores))
    return Evaluation(
        task_id=task.id,
        evaluator=name,
        status=_status(scores, statuses, failures, members),
        error=_error(failures, members, statuses),
        scale=scale,
        scores=scores,
        statuses=statuses,
        **choosing.choose(scores, scale.higher_is_better, run, task),
        stop_reason="failed" if np.isnan(scores).all() else "converged" if has_converged else None,
        failures=tuple(failures),
        members=tuple(members),
        judgments=tuple(judgments),
        details=dict(details or {}),
    )


def _status(
    scores: FloatArray, statuses: Sequence[ScoreStatus], failures: Sequence[Failure], members: Sequence[Evaluation]
) -> Status:
    if np.isnan(scores).all():
        return "failed"
    is_whole = not failures and "failed" not in statuses and all(member.status == "ok" for member in members)
    return "ok" if is_whole else "partial"


def _error(failures: Sequence[Failure], members: Sequence[Evaluation], statuses: Sequence[ScoreStatus]) -> str | None:
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        return f"{failures[0].message}{more}"
    broken = next((member for member in members if member.error), None)
    if broken is not None:
        return f"{broken.evaluator}: {broken.error}"
    n_failed = sum(status == "failed" for status in statuses)
    return f"{n_failed} of {len(statuses)} candidates were not scored" if n_failed else None
