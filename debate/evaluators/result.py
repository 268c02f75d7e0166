"""From scores to an evaluation: probabilities, the selected candidate, ties, status and error text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from debate.evaluation import Evaluation
from debate.evaluators.base import BaseEvaluator, RunContext
from debate.hashing import derive
from debate.scoring.tensor import softmax
from debate.selection import argmax, sample, tied_best
from debate.types import Failure, FloatArray, Judgment, ScoreStatus, StopReason, Task, Turn


def build_evaluation(
    evaluator: BaseEvaluator,
    task: Task,
    run: RunContext,
    *,
    scores: FloatArray,
    statuses: Sequence[ScoreStatus] | None = None,
    failures: Sequence[Failure] | None = None,
    members: Sequence[Evaluation] = (),
    judgments: Sequence[Judgment] = (),
    stop_reason: StopReason | None = None,
    turns: Sequence[Turn] | None = None,
    **parts: Any,
) -> Evaluation:
    """The evaluation of `task` that follows from its scores.

    scores: (J,), on the evaluator's scale; NaN is unscored. statuses: how each score was obtained; None is `failed`
    where it is NaN, else `ok`. failures: None is those of the judgments and of the members. turns: those of a debate;
    None for other evaluators. parts: further fields of `Evaluation`.

    A debate without a score in which nothing failed is `ok`: all agents abstained.
    """
    if failures is None:
        own = [judgment.failure for judgment in judgments if judgment.failure is not None]
        failures = [*own, *(failure for member in members for failure in member.failures)]
    scores, is_missing = evaluator.scale.hold(scores), np.isnan(scores)  # (J,) each
    if statuses is None:
        statuses = ["failed" if missing else "ok" for missing in is_missing]
    is_failed = bool(is_missing.all()) and (turns is None or bool(failures))
    if turns is None and is_failed:
        stop_reason = "failed"
    is_scored = turns is not None or "failed" not in statuses
    is_whole = not failures and is_scored and all(member.status == "ok" for member in members)
    return Evaluation(
        task_id=task.id,
        evaluator=evaluator.name,
        status="failed" if is_failed else "ok" if is_whole else "partial",
        error=_error(failures, members, statuses) if turns is None else _turns_failed(failures, turns),
        scale=evaluator.scale,
        scores=scores,
        statuses=tuple(statuses) if turns is None else (),
        **_select(evaluator, scores, task, run),
        stop_reason=stop_reason,
        failures=tuple(failures),
        members=tuple(members),
        judgments=tuple(judgments),
        **parts,
    )


def _select(evaluator: BaseEvaluator, scores: FloatArray, task: Task, run: RunContext) -> dict[str, Any]:
    """`probabilities`, `selected` and `tied` of an evaluation, from its scores (J,) alone."""
    seed = derive(run.seed, "select", task.id)
    rising = scores if evaluator.scale.higher_is_better else -scores  # (J,), best highest
    probabilities = softmax(rising, evaluator.softmax_temperature)  # (J,)
    if evaluator.selection == "sample":
        selected = sample(probabilities, seed) if probabilities.any() else None
    else:
        selected = argmax(rising, evaluator.ties, seed)
    return {"probabilities": probabilities, "selected": selected, "tied": tied_best(rising)}


def _error(failures: Sequence[Failure], members: Sequence[Evaluation], statuses: Sequence[ScoreStatus]) -> str | None:
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        return f"{failures[0].message}{more}"
    broken = next((member for member in members if member.error), None)
    if broken is not None:
        return f"{broken.evaluator}: {broken.error}"
    n_failed = sum(status == "failed" for status in statuses)
    return f"{n_failed} of {len(statuses)} candidates were not scored" if n_failed else None


def _turns_failed(failures: Sequence[Failure], turns: Sequence[Turn]) -> str | None:
    if not failures:
        return None
    n = sum(turn.failure is not None for turn in turns)
    first = next((turn.failure for turn in turns if turn.failure is not None), failures[0])
    place = ", ".join([first.agent or "", *([] if first.round is None else [f"round {first.round + 1}"])])
    if n:
        return f"{n} of {len(turns)} turns failed; the first ({place}): {first.message}"
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return f"not every score could be read; the first ({place}): {first.message}{more}"
