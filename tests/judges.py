"""Replies to the evaluators other than the debate, by their reply formats and the built-in templates' delimiters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.evaluators.value import ValueEvaluator
from debate.flow import Call, Completion, Gather, Generate, Request
from debate.scoring.distributions import distribution_of
from debate.testing import drive
from debate.types import Failure, Task
from tests.driving import RUN, Answerer, user_text

_SHOWN = re.compile(r"\[response (?:([A-Z]+) )?(\w+)\]\n(.*?)\n\[/response (?:\1 )?\2\]", re.DOTALL)


def silent(call: Generate) -> str:
    """For flows that must not ask."""
    raise AssertionError(f"asked {call.info}")


def judged(evaluator: Evaluator, task: Task, answer: Answerer = silent, waves: list[int] | None = None) -> Evaluation:
    """The evaluation of one task in the run `RUN`, which survives being written down and read again.

    `waves` is told how many children each gather has.
    """

    def note(request: Request) -> None:
        if waves is not None and isinstance(request, Gather):
            waves.append(len(request.flows))

    found = drive(evaluator.flow(task, RUN), answer, observe=note)
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


def doubtful(
    raw: Callable[[Generate | Call], Mapping[str, float]], written: str = worth(5)
) -> Callable[[Generate | Call], str | Completion]:
    """A judge who holds each label for as likely as `raw` says of the call, whatever number it writes."""

    def answer(call: Generate | Call) -> str | Completion:
        if call.read_out is None:
            return json.dumps({"reasoning": 'quite "fine"'})
        text = "" if call.read_out.continuations else written
        return Completion(text, distributions=(distribution_of(raw(call)),))

    return answer


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
