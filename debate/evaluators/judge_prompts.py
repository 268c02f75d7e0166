"""The prompts of a judge that does not debate: the rules, the input, what is to be judged, why the last reply failed.

    NAME/system.j2     what to judge by, and how to reply                  the same for every task
    judge/task.j2      the input and its context                           the same for every question on a task
    NAME/ask.j2        the candidate, the candidates, or the step          last
    judge/retry.j2     why the last reply could not be used                only when asking again

Templates that are empty make no message. Knows nothing of what the reply is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from debate.errors import ReplyError
from debate.evaluators.debate.prompts import fence_of
from debate.flow import Block, Prompt
from debate.prompts import Templates, Trusted
from debate.types import Scale, Task

TASK, RETRY = "judge/task.j2", "judge/retry.j2"


def names(template: str) -> tuple[str, ...]:
    """The files that a set of templates is made of."""
    return f"{template}/system.j2", TASK, f"{template}/ask.j2", RETRY


class JudgePrompts:
    """Renders the questions on one task; each block once."""

    def __init__(
        self,
        templates: Templates,
        template: str,
        task: Task,
        rules: Mapping[str, Any],
        *,
        shows: Literal["all", "input", "nothing"] = "all",
    ) -> None:
        self._templates = templates
        self._system, _, self._ask, _ = names(template)
        self._rules = (templates.render(self._system, rules),)
        about: dict[str, Any] = {"x": task.x, "context": list(task.context) if shows == "all" else []}
        about["fence"] = Trusted(fence_of(task.x, *task.context))
        self._task = templates.render(TASK, about) if shows != "nothing" else ()

    def question(self, about: Mapping[str, Any], *texts: str) -> Block:
        """The block that asks about some texts; the same whatever else the task holds."""
        return self._templates.render(self._ask, {**about, "fence": Trusted(fence_of(*texts))})

    def prompt(self, question: Block, error: ReplyError | None = None) -> Prompt:
        """The whole prompt, asked again if there was an `error`."""
        blocks = [block for block in (self._task, question) if block]
        if error is not None:
            blocks.append(self._templates.render(RETRY, {"error": error.message}))
        return Prompt(system=tuple(block for block in self._rules if block), user=tuple(blocks))


def rules(scale: Scale, reply_format: str) -> dict[str, Any]:
    """What `NAME/system.j2` may use: the scale's ends, and how to reply."""
    return {"low": _number(scale.low), "high": _number(scale.high), "reply_format": Trusted(reply_format)}


def check(templates: Templates, template: str, rules: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Render every template once, so that a faulty one is found before a model is loaded.

    Raises:
        TemplateError: with file and line.
    """
    system, task, question, retry = names(template)
    templates.check(system, rules)
    templates.check(task, {"x": "x", "context": ["context"], "fence": Trusted("fence")})
    templates.check(question, {**about, "fence": Trusted("fence")})
    templates.check(retry, {"error": "error"})


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value
