"""The multi-agent debate: its settings, its prompts and its flow."""

from debate.evaluators.debate.evaluator import DebateEvaluator

__all__ = ["DebateEvaluator"]
