"""x1's wire: `POST /forward` values conversations. Knows no HTTP.

    {"messages": [{"role": "user", "content": TASK}, {"role": "intermediate_step", "content": STEP}, ...]}
    -> 200 {"result": [VALUE]}

A list of such lists has one value each. Values lie in -1..1. What is wrong with a request is answered with 400 or 413;
503 says that a step has no value, and the log says why.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from debate.config.settings import ServerLimits
from debate.engine import Engine
from debate.errors import TaskError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.server.access import Answer
from debate.types import Candidate, Task

Said = Mapping[str, str]
Value = Callable[[Sequence[Sequence[Said]]], Awaitable[Sequence[float]]]
"""The values of some conversations, each a task and its steps; raises `Unvalued` where one has none."""

_NO_DICTIONARIES = "Invalid input, input messages is not a list of dictionaries with keys 'role' and 'content'."
_log = logging.getLogger("debate")


class Unvalued(Exception):
    """A conversation that could not be valued, and why, for the client. `status` is 400 or 413 for its own faults."""

    def __init__(self, problem: str, status: int = 503) -> None:
        super().__init__(problem)
        self.status = status


def valued_by(engine: Engine, evaluator: Evaluator) -> Value:
    """Values in -1..1 from the evaluator's scores of the last step, the steps before it as the task's context."""

    async def value(conversations: Sequence[Sequence[Said]]) -> list[float]:
        try:
            tasks = [_task(said, n) for n, said in enumerate(conversations)]
        except TaskError as error:
            raise Unvalued(f"Invalid input, {error.message}", 400) from None
        return [_value_of(each) for each in await engine.aevaluate_batch(tasks, evaluator)]

    return value


def _task(said: Sequence[Said], n: int) -> Task:
    step = Candidate(said[-1]["content"], metadata={"final": said[-1]["role"] == "last_step"})
    task = Task(said[0]["content"], [step], context=[each["content"] for each in said[1:-1]])
    return Task(task.x, task.candidates, f"{task.id}.{n}", task.context)


def _value_of(evaluation: Evaluation) -> float:
    score = float(evaluation.scores[0])
    if score == score:
        return 2.0 * evaluation.scale.to_unit(score) - 1.0
    if any(failure.reason == "context_length" for failure in evaluation.failures):
        raise Unvalued("A conversation is longer than the model reads", 413)
    _log.warning("no value: %s", evaluation.error or "the step could not be scored")
    raise Unvalued("A step could not be scored.")


async def forward(body: object, value: Value, limits: ServerLimits | None = None) -> Answer:
    """Answer one request, in the words of x1's own server where it is refused."""
    messages: object = cast("dict[str, Any]", body).get("messages") if isinstance(body, dict) else None
    if not messages:
        return 400, {"error": "Invalid input"}
    if not isinstance(messages, list):
        return 400, {"error": "Invalid input, input messages is not a list."}
    items = cast("list[object]", messages)
    conversations = items if all(isinstance(item, list) for item in items) else [items]
    if not all(_is_conversation(each) for each in conversations):
        return 400, {"error": _NO_DICTIONARIES}
    checked = cast("list[list[Said]]", conversations)
    if any(len(each) < 2 or each[0]["role"] != "user" for each in checked):
        return 400, {"error": "Invalid input, a task of the role 'user' and at least one step are needed."}
    if problem := _too_much(checked, limits or ServerLimits()):
        return 413, {"error": problem}
    try:
        return 200, {"result": list(await value(checked))}
    except Unvalued as error:
        return error.status, {"error": str(error)}


def _too_much(conversations: Sequence[Sequence[Said]], limits: ServerLimits) -> str | None:
    if len(conversations) > limits.max_conversations:
        return f"More than {limits.max_conversations} conversations"
    if any(sum(len(each["content"]) for each in said) > limits.max_characters for said in conversations):
        return f"A conversation of more than {limits.max_characters} characters"
    return None


def _is_conversation(item: object) -> bool:
    said = cast("list[Any]", item)
    return isinstance(item, list) and all(
        isinstance(each, dict)
        and all(isinstance(cast("dict[str, Any]", each).get(key), str) for key in ("role", "content"))
        for each in said
    )
