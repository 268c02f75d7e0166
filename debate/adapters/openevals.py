"""The evaluator that openevals, LangSmith and most home-made harnesses take. No framework is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from debate.adapters.judge import Judge
from debate.adapters.texts import as_text, fields_as_text
from debate.types import Task


def as_evaluator(
    judge: Judge, key: str = "debate", *, max_characters: int | None = 4000
) -> Callable[..., dict[str, Any]]:
    """An evaluator `(inputs, outputs, reference_outputs=None) -> {"key", "score", "comment"}`.

    Args:
        judge: says on which scale the score is, and what a missing one is: under `on_unscored="raise"` an exception,
            which harnesses record as the example's error.
        key: the name of the score.
        max_characters: the most that the comment may have; None for all.

    `inputs`, `outputs` and `reference_outputs` are texts, or mappings: of several fields the judges see each with its
    name.
    """

    def evaluate(inputs: Any, outputs: Any, reference_outputs: Any = None) -> dict[str, Any]:
        known = None if reference_outputs is None else _text(reference_outputs)
        (judged,) = judge.many([Task(_text(inputs), [_text(outputs)], reference=known)])
        return {"key": key, "score": judged.score(), "comment": judged.feedback(0, max_characters)}

    return evaluate


def _text(value: Any) -> str:
    return fields_as_text(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else as_text(value)
