"""Evaluators: one flow a file. `debate.evaluators.base` says what an evaluator is."""
