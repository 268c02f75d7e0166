"""Drives the flows of the evaluators that are no debate, and writes replies for them.

Knows the built-in templates' fences and the reply formats; nothing of backends, runners or records.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.evaluators.value import ValueEvaluator
from debate.flow import Call, CallFunction, Completion, Flow, Gather, Generate
from debate.types import Failure, Task
from tests.driving import RUN, Answerer, user_text

T = TypeVar("T")
_SHOWN = re.compile(r"\[response (?:([A-Z]+) )?(\w+)\]\n(.*?)\n\[/response (?:\1 )?\2\]", re.DOTALL)


def silent(call: Generate) -> str:
    """For flows that must not ask."""
    raise AssertionError(f"asked {call.info}")


def play(flow: Flow[T], answer: Answerer = silent, waves: list[int] | None = None) -> T:
    """Send a flow what it asks for until it returns; children last first.

    `waves` is told how many children each gather has.
    """
    sent: Any = None
    while True:
        try:
            request = flow.send(sent)
        except StopIteration as end:
            return end.value
        match request:
            case Generate():
                said = answer(request)
                sent = Completion(said) if isinstance(said, str) else said
            case CallFunction():
                sent = _called(request)
            case Gather():
                if waves is not None:
                    waves.append(len(request.flows))
                backwards = [play(child, answer, waves) for child in reversed(request.flows)]
                sent = tuple(reversed(backwards))
            case _:
                raise AssertionError(f"asked for {request}")


def _called(request: CallFunction) -> Any:
    try:
        answer = request.function(*request.arguments)
        return asyncio.run(answer) if inspect.iscoroutine(answer) else answer
    except Exception as error:
        return Failure("raised", f"{type(error).__name__}: {error}")


def judged(evaluator: Evaluator, task: Task, answer: Answerer = silent, waves: list[int] | None = None) -> Evaluation:
    """The evaluation of one task in the run `RUN`, which survives being written down and read again."""
    found = play(evaluator.flow(task, RUN), answer, waves)
    text = found.to_json()
    assert Evaluation.from_dict(json.loads(text)).to_json() == text
    return found


def shown(call: Generate) -> dict[str, str]:
    """Label (empty where there is one text) -> text, as the prompt shows them, in that order."""
    return {label: text for label, _, text in _SHOWN.findall(user_text(call))}


def text_of(call: Generate) -> str:
    """The one text that a prompt shows."""
    (text,) = shown(call).values()
    return text


def worth(value: object) -> str:
    """The reply of a judge of values."""
    return json.dumps({"reasoning": f"because of {value}", "value": value})


def valued(values: Mapping[str, float]) -> Callable[[Generate], str]:
    """A judge to whom every text is worth the same each time."""
    return lambda call: worth(values[text_of(call)])


class Asked:
    """Answers by a function and keeps the calls."""

    def __init__(self, answer: Callable[[Generate], str | Completion | Failure]) -> None:
        self.answer = answer
        self.calls: list[Generate] = []

    def __call__(self, call: Generate) -> str | Completion | Failure:
        self.calls.append(call)
        return self.answer(call)


OPINIONS: dict[str | None, tuple[float, ...]] = {"m0": (9, 2, 5), "m1": (8, 3, 5), "m2": (9, 2, 6)}
"""What each of three models thinks of three candidates."""
MEMBERS: dict[str, Evaluator] = {f"j{i}": ValueEvaluator(model=f"m{i}", samples=1, retries=0) for i in range(3)}
"""A panel of judges j0, j1, j2 who ask the models m0, m1, m2."""


def by_model(call: Generate | Call) -> str:
    """Every model has its own opinion of every candidate."""
    return worth(OPINIONS[call.model][int(call.info["candidate"])])


def failing(*models: str) -> Callable[[Generate], str | Failure]:
    """The opinions, of all but some models whose calls fail."""
    return lambda call: Failure("busy", "no") if call.model in models else by_model(call)
