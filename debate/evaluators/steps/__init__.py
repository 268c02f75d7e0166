"""Evaluation of reasoning step by step, and the judges that score a step."""

from debate.evaluators.steps.evaluator import StepEvaluator

__all__ = ["StepEvaluator"]
