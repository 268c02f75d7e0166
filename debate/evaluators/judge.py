"""What the evaluators that ask a judge short questions have in common: model, sampling, templates, retries, choice.

Knows nothing of what is asked.

The prompts of a judge that does not debate: the rules, the input, what is to be judged, why the last reply failed.

    NAME/system.j2     what to judge by, and how to reply                  the same for every task
    judge/task.j2      the input and its context                           the same for every question on a task
    NAME/ask.j2        the candidate, the candidates, or the step          last
    judge/retry.j2     why the last reply could not be used                only when asking again

Templates that are empty make no message. Knows nothing of what the reply is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from debate.errors import ConfigError, ReplyError
from debate.evaluators.base import Footprint
from debate.evaluators.result import SelectionPolicy
from debate.flow import Block, Generate, Prompt
from debate.templates import Templates, Trusted, delimiter_of
from debate.types import Sampling, Scale, Task

_RULES_CHARACTERS = 2000


@dataclass(frozen=True, kw_only=True)
class JudgeSettings:
    """A judge that is asked short questions, each by itself.

    Raises:
        TemplateError, ConfigError: for settings that cannot work.
    """

    model: str | None = None
    """None is the run's model."""
    sampling: Sampling = Sampling()
    """What is None is taken from the evaluator's own defaults."""
    reasoning_chars: int = 600
    """Longest reasoning that the reply's schema allows."""
    retries: int = 2
    """How often an unreadable reply is asked again."""
    templates: Templates | str | Path | None = None
    """A folder whose templates go before the built-in ones."""
    selection: Literal["argmax", "sample"] = "argmax"
    ties: Literal["first", "seeded"] = "first"
    softmax_temperature: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.templates, Templates):
            object.__setattr__(self, "templates", Templates(self.templates))
        self._at_least("retries", 0)
        self._at_least("reasoning_chars", 1)
        self.choosing  # noqa: B018 - checks itself

    @property
    def models(self) -> frozenset[str]:
        """The judge's model, where it is not the run's."""
        return frozenset() if self.model is None else frozenset({self.model})

    @property
    def choosing(self) -> SelectionPolicy:
        """How a candidate is chosen."""
        return SelectionPolicy(self.selection, self.ties, self.softmax_temperature)

    @property
    def prompt_templates(self) -> Templates:
        """The templates in force."""
        assert isinstance(self.templates, Templates)
        return self.templates

    @property
    def drawing(self) -> Sampling:
        """The sampling in force, with room for the longest reply the schema allows (two characters a token)."""
        return self.sampling.over(Sampling(temperature=self._temperature, max_tokens=self._longest_reply))

    @property
    def _temperature(self) -> float:
        return 0.3

    @property
    def _longest_reply(self) -> int:
        return self.reasoning_chars // 2 + 100

    def footprint(self, task: Task) -> Footprint:
        """One prompt with all of the task, and one reply."""
        texts = [task.x, *task.context, *(candidate.text for candidate in task.candidates)]
        return Footprint(_RULES_CHARACTERS + sum(map(len, texts)), 1, self.drawing.max_tokens or 0)

    def request(
        self,
        task: Task,
        prompt: Prompt,
        schema: Mapping[str, Any] | None,
        key: tuple[str | int, ...],
        attempt: int,
        **info: Any,
    ) -> Generate:
        """A call of this judge's."""
        return Generate(
            prompt=prompt,
            sampling=self.drawing,
            schema=schema,
            model=self.model,
            sample_key=key,
            attempt=attempt,
            info={"task_id": task.id, "attempt": attempt, **info},
        )

    def _describe(self, *templates: str, aggregation: Mapping[str, Any], **own: Any) -> dict[str, Any]:
        """The settings that all judges have, and the evaluator's own."""
        return {
            **own,
            "model": self.model,
            "sampling": self.drawing.to_dict(),
            "reasoning_chars": self.reasoning_chars,
            "templates": self.prompt_templates.fingerprint(*templates),
            "aggregation": {
                "retries": self.retries,
                "selection": self.selection,
                "ties": self.ties,
                "softmax_temperature": self.softmax_temperature,
                **aggregation,
            },
        }

    def _at_least(self, name: str, least: int) -> None:
        value = getattr(self, name)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        self._require(name, is_whole and value >= least, f"must be a whole number, at least {least}")

    def _require(self, name: str, is_fine: bool, rule: str) -> None:
        if not is_fine:
            raise ConfigError(f"{rule}, got {getattr(self, name)!r}", field=name)

    def _one_of(self, name: str, allowed: tuple[str, ...]) -> None:
        self._require(name, getattr(self, name) in allowed, f"must be one of {', '.join(allowed)}")


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
        about["delimiter"] = Trusted(delimiter_of(task.x, *task.context))
        self._task = templates.render(TASK, about) if shows != "nothing" else ()

    def question(self, about: Mapping[str, Any], *texts: str) -> Block:
        """The block that asks about some texts; the same whatever else the task holds."""
        return self._templates.render(self._ask, {**about, "delimiter": Trusted(delimiter_of(*texts))})

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
    templates.check(task, {"x": "x", "context": ["context"], "delimiter": Trusted("delimiter")})
    templates.check(question, {**about, "delimiter": Trusted("delimiter")})
    templates.check(retry, {"error": "error"})


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value
