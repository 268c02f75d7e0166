"""A metric for DSPy: one callable for `Evaluate`, MIPROv2, GEPA and whatever else takes a metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from debate.adapters.frameworks import framework
from debate.adapters.judge import Judge
from debate.adapters.texts import as_text, fields_as_text
from debate.errors import TaskError
from debate.types import Task

MakeTask = Callable[[Any, Any], Task]
"""From an example and a prediction to a task, whose first candidate is the prediction."""
Metric = Callable[..., Any]


def as_metric(
    judge: Judge,
    *,
    task: MakeTask | None = None,
    against: Callable[[Any], Any] | None = None,
    max_characters: int | None = 4000,
) -> Metric:
    """A metric `metric(gold, pred, trace=None, pred_name=None, pred_trace=None, program_trace=None)`.

    It returns a `dspy.Prediction` of the `score`, the `feedback` and, where the evaluator has components, these as
    `objective_scores`; while demonstrations are bootstrapped (a trace is given, and no predictor's name) the score
    alone, because there every `Prediction` would count as a success. The same example and prediction are judged once,
    however often they are asked for: GEPA asks for the score and for the feedback, and an evaluation that takes long is
    submitted again.

    Args:
        judge: it keeps DSPy's scale, from 0 to 1. Under `on_unscored="raise"` a missing score is an exception, which
            DSPy logs and counts as its `failure_score`, and which ends an evaluation after `max_errors`; with
            "fallback" it goes on with that score, and the feedback says why.
        task: makes a task of an example and a prediction, which is its first candidate. None shows the judges the
            example's inputs, all fields of the prediction, and the example's labels as the reference answer.
        against: gives a second candidate for an example, with which the prediction is compared: a text, or a
            prediction such as `lambda gold: baseline(**gold.inputs())`; None judges the prediction alone. Where it
            changes during an optimization, scores before and after are of different comparisons.
        max_characters: the most that the feedback may have; None for all.

    Raises:
        ConfigError: from the metric, when DSPy is not installed.
        TaskError: from the metric, for an example whose inputs are not named (`example.with_inputs(...)`).
    """
    make = task or task_of

    def metric(
        gold: Any,
        pred: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
        program_trace: Any = None,
    ) -> Any:
        given = make(gold, pred)
        if against is not None and (other := against(gold)) is not None:
            given = given.with_candidates([*given.candidates, prediction_text(other)])
        (judged,) = judge.many([given])
        if trace is not None and pred_name is None:
            return judged.score()
        objectives = judged.objectives()
        more = {"objective_scores": objectives} if objectives else {}
        prediction = framework("dspy").Prediction
        return prediction(score=judged.score(), feedback=judged.feedback(0, max_characters), **more)

    return metric


def task_of(gold: Any, pred: Any) -> Task:
    """The inputs of an example with one candidate, the prediction; the example's labels are the reference answer.

    Raises:
        TaskError: for an example whose inputs are not named.
    """
    try:
        inputs, labels = gold.inputs().toDict(), gold.labels().toDict()
    except ValueError as error:
        hint = 'example.with_inputs("question"), or as_metric(..., task=...)'
        raise TaskError(f"the inputs of an example are not named: {error}", field="gold", hint=hint) from None
    return Task(fields_as_text(inputs), [prediction_text(pred)], reference=fields_as_text(labels) or None)


def prediction_text(pred: Any) -> str:
    """A prediction as judges see it: the only field's value, or all fields with their names."""
    found = pred.toDict() if hasattr(pred, "toDict") else pred
    return fields_as_text(cast("Mapping[str, Any]", found)) if isinstance(found, Mapping) else as_text(found)
