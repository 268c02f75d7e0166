"""An evaluator for GEPA's `optimize_anything`: the responses of all candidates to one example are one debate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from debate.adapters.judge import Judge, Judged
from debate.adapters.texts import as_text
from debate.errors import ConfigError, TaskError, UnscoredError
from debate.types import Task

Pair = tuple[Any, Any]
"""A candidate and an example, as GEPA hands them over."""
Respond = Callable[[Sequence[Pair]], Sequence[str | None]]
MakeTask = Callable[[Any, Sequence[str]], Task]
Result = tuple[float, dict[str, Any]]
_NO_RESPONSE = "There was no response to judge."


def batch_evaluator(
    judge: Judge,
    respond: Respond,
    *,
    task: MakeTask | None = None,
    against: Callable[[Any], str | None] | None = None,
    max_characters: int | None = 4000,
) -> Callable[[Sequence[Pair]], list[Result]]:
    """A `batch_evaluator` for `gepa.optimize_anything.optimize_anything`.

    All pairs of one call are answered by one call of `respond`, and judged side by side: the responses to one example
    are the candidates of one debate, so that they are compared with each other. Equal responses are one candidate.
    Each result is the score and `side_info`, with the components as `scores`, and `Input`, `Output`, `Expected`,
    `Feedback` and, of what has no score, `Error`. It may be called from several threads.

    Args:
        judge: with `on_unscored="fallback"` what has no score has the fallback, with the reason in `Feedback`; under
            "raise" one missing score costs GEPA the whole step.
        respond: what the candidates make of the examples: one text for each pair, or None where there is none, which
            counts as unscored.
        task: makes a task of an example and the responses to it. None takes an example that is a text, or a mapping
            with `x` and perhaps `reference`.
        against: gives a text for an example that stands beside the responses as the last candidate of each debate, such
            as the first prompt's response: an anchor that makes the scores of different steps more comparable.
        max_characters: the most that the feedback on a response may have; None for all.

    Raises:
        ConfigError: from the evaluator, when `respond` does not return a text or None for each pair.
        TaskError: from the evaluator, for an example that needs `task`.
        UnscoredError: from the evaluator, under "raise".
    """
    make = task or task_of

    def evaluate(pairs: Sequence[Pair]) -> list[Result]:
        given = [(candidate, example) for candidate, example in pairs]
        texts = _checked(respond(given), len(given))
        keys = [make(example, ["-"]) for _, example in given]
        examples = dict(zip(keys, (example for _, example in given), strict=True))
        debates = _grouped(keys, texts)
        tasks = {
            key: make(examples[key], _with_anchor(responses, against, examples[key]))
            for key, responses in debates.items()
        }
        judged = dict(zip(tasks, judge.many(tasks.values()), strict=True))
        return [
            _unanswered(judge, key) if text is None else _result(judged[key], key, text, debates[key], max_characters)
            for key, text in zip(keys, texts, strict=True)
        ]

    return evaluate


def task_of(example: Any, responses: Sequence[str]) -> Task:
    """A text, or a mapping with `x` and perhaps `reference`, as a task with some responses.

    Raises:
        TaskError: for any other example.
    """
    if isinstance(example, str):
        return Task(example, responses)
    if isinstance(example, Mapping) and "x" in example:
        known = cast("Mapping[str, Any]", example)
        reference = known.get("reference")
        return Task(as_text(known["x"]), responses, reference=None if reference is None else as_text(reference))
    problem = f"must be a text, or a mapping with `x` and perhaps `reference`, got {example!r:.80}"
    hint = "batch_evaluator(..., task=lambda example, responses: Task(...))"
    raise TaskError(problem, field="example", hint=hint)


def _checked(texts: Sequence[str | None], n: int) -> list[str | None]:
    found = list(texts)
    if len(found) != n or not all(text is None or isinstance(text, str) for text in found):  # pyright: ignore[reportUnnecessaryIsInstance]
        problem = f"must return {n} texts, one for each pair, or None where there is none"
        raise ConfigError(f"{problem}; it returned {len(found)} values", field="respond")
    return found


def _grouped(keys: Sequence[Task], texts: Sequence[str | None]) -> dict[Task, list[str]]:
    """The different responses to each example, by the example's task without any."""
    debates: dict[Task, list[str]] = {}
    for key, text in zip(keys, texts, strict=True):
        if text is not None and text not in debates.setdefault(key, []):
            debates[key].append(text)
    return debates


def _with_anchor(responses: Sequence[str], against: Callable[[Any], str | None] | None, example: Any) -> list[str]:
    anchor = None if against is None else against(example)
    return [*responses, *([] if anchor is None or anchor in responses else [anchor])]


def _result(judged: Judged, key: Task, text: str, responses: Sequence[str], max_characters: int | None) -> Result:
    j = responses.index(text)
    info: dict[str, Any] = {**_about(key), "Output": text, "Feedback": judged.feedback(j, max_characters)}
    if objectives := judged.objectives(j):
        info["scores"] = objectives
    if (why := judged.why_unscored(j)) is not None:
        info["Error"] = f"unscored: {why}"
    return judged.score(j), info


def _unanswered(judge: Judge, key: Task) -> Result:
    if judge.rule.on_unscored == "raise":
        raise UnscoredError(f"a candidate has no response to the example {key.x!r:.80}")
    return judge.rule.fallback, {**_about(key), "Feedback": _NO_RESPONSE, "Error": "unscored: no response"}


def _about(key: Task) -> dict[str, str]:
    return {"Input": key.x} if key.reference is None else {"Input": key.x, "Expected": key.reference}
