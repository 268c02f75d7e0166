"""Evaluators of every kind in one engine at once, on real vLLM."""

from __future__ import annotations

from typing import Any

import pytest

from debate import (
    CallbackEvaluator,
    Candidate,
    CrossEvaluator,
    DebateEvaluator,
    Engine,
    PanelEvaluator,
    Scale,
    StepEvaluator,
    Task,
    ValueEvaluator,
    VoteEvaluator,
)
from debate.evaluators.base import Evaluator
from debate.evaluators.steps.prompted import PromptedSteps

pytestmark = pytest.mark.vllm
SHORT: dict[str, Any] = {"reasoning_chars": 30}
DEBATE = DebateEvaluator("general", rounds=1, comment_chars=20, overall_chars=20)


def length(x: str, answer: str) -> float:
    return float(len(answer))


EVALUATORS: list[Evaluator] = [
    DEBATE,
    ValueEvaluator(samples=2, **SHORT),
    VoteEvaluator(ballots=3, ballot="plurality", **SHORT),
    VoteEvaluator(ballots=1, ballot="pairwise", **SHORT),
    StepEvaluator(judge=PromptedSteps(**SHORT), split=r"\. ", ask_solved=True),
    CallbackEvaluator(length, scale=Scale(0, 100)),
    PanelEvaluator(members={"debate": DEBATE, "value": ValueEvaluator(samples=1, **SHORT)}),
    CrossEvaluator(judges={"a": ValueEvaluator(samples=1, **SHORT), "b": ValueEvaluator(samples=2, **SHORT)}),
]


def test_every_kind_of_evaluator_completes_in_one_batch(vllm_engine: Engine) -> None:
    candidates = [Candidate("Two and two. Four.", generator="a"), Candidate("Five.", generator="b")]
    tasks = [Task(f"What is 2 + 2? ({n})", candidates) for n in range(len(EVALUATORS))]
    evaluations = vllm_engine.evaluate_batch(tasks, EVALUATORS)
    for evaluation, evaluator in zip(evaluations, EVALUATORS, strict=True):
        assert (evaluation.evaluator, evaluation.status) == (evaluator.name, "ok"), evaluation.error
        assert evaluation.selected is not None
        assert all(evaluation.scale.low <= score <= evaluation.scale.high for score in evaluation.scores)


def test_texts_as_long_as_they_are_by_default_make_a_grammar(vllm_engine: Engine) -> None:
    evaluation = vllm_engine.evaluate(Task("What is 2 + 2?", ["4"]), ValueEvaluator(samples=1))
    assert evaluation.status == "ok", evaluation.error
