"""What the evaluators that ask a model short questions share: settings, calls and prompts.

A prompt states the rules, the input, what is to be judged, and why the last reply failed:

    NAME/system.j2     what to judge by, and how to reply                  the same for every task
    judge/task.j2      the input and its context                           the same for every question on a task
    NAME/ask.j2        the candidate, the candidates, or the step          last
    judge/retry.j2     why the last reply could not be used                only when asking again

Templates that are empty make no message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

from debate.errors import ReplyError
from debate.evaluators.base import Footprint, PromptingEvaluator
from debate.flow import Block, Completion, Flow, Generate, Parsed, Prompt, generate_parsed
from debate.parsing.values import ValueReader
from debate.settings import describe_settings, setting
from debate.templates import Templates, Trusted, delimiter_of, plain_number
from debate.types import Judgment, Sampling, Scale, Task

T = TypeVar("T")
_RULES_CHARACTERS = 2000
TEMPLATE_HELP = "The folder of the templates that ask, `FOLDER/system.j2` and `FOLDER/ask.j2`."


@dataclass(frozen=True, kw_only=True)
class JudgeSettings(PromptingEvaluator):
    """Base of a single-turn judge: a model that is asked short, independent questions.

    Raises:
        TemplateError, ConfigError: for settings of the wrong type, out of bounds, or without their files.
    """

    model: str | None = setting(None, "The model that is asked; None is the run's.")
    sampling: Sampling = setting(Sampling(), "Sampling parameters over the evaluator's own.")
    reasoning_chars: int = setting(600, "Longest reasoning in a reply, in characters.", ge=1)
    template: str = setting("", TEMPLATE_HELP)
    _temperature: ClassVar[float] = 0.3

    @property
    def models(self) -> frozenset[str]:
        """The model's name, where it is not the run's."""
        return frozenset() if self.model is None else frozenset({self.model})

    @property
    def effective_sampling(self) -> Sampling:
        """The sampling over the evaluator's defaults, with room for the longest reply at two characters per token."""
        return self.sampling.over(Sampling(temperature=self._temperature, max_tokens=self.reasoning_chars // 2 + 100))

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of one prompt that shows all of the task, and one reply."""
        texts = [task.x, *task.background, *(candidate.text for candidate in task.candidates)]
        return Footprint(_RULES_CHARACTERS + sum(map(len, texts)), 1, self.effective_sampling.max_tokens or 0)

    def ask(
        self,
        prompts: JudgePrompts,
        question: Block,
        read: Callable[[Completion], T],
        *,
        schema: Mapping[str, Any] | None,
        key: tuple[str | int, ...],
        **info: Any,
    ) -> Flow[Parsed[T]]:
        """Ask a question, at most `retries` times again with the error shown, until `read` accepts the reply."""

        def call(attempt: int, error: ReplyError | None) -> Generate:
            return Generate(
                prompt=prompts.prompt(question, error),
                sampling=self.effective_sampling,
                schema=schema,
                model=self.model,
                sample_key=key,
                attempt=attempt,
                info={"task_id": prompts.task_id, "attempt": attempt, **info},
            )

        return generate_parsed(call, read, self.retries)

    def describe(self) -> dict[str, Any]:
        """The settings as plain data; those that shape no prompt stand under `aggregation`."""
        return self._describe(evaluator=self.name)

    @property
    def _template_names(self) -> tuple[str, ...]:
        """The templates that it renders."""
        return names(self.template)

    def _describe(self, **own: Any) -> dict[str, Any]:
        fingerprint = self.prompt_templates.fingerprint(*self._template_names)
        return describe_settings(self, sampling=self.effective_sampling.to_dict(), templates=fingerprint, **own)


def reading(reader: ValueReader) -> Callable[[Completion], float]:
    """A function that reads a completion's value with `reader`."""
    return lambda said: reader(said.text, finish_reason=said.finish_reason)


def judgment(asked: Parsed[Any], **about: Any) -> Judgment:
    """The record of a reply; `about` holds what it is about and what was read from it."""
    return Judgment(text=asked.text, failure=asked.failure, invalid_replies=asked.invalid_replies, **about)


TASK, RETRY = "judge/task.j2", "judge/retry.j2"


def names(template: str) -> tuple[str, ...]:
    """The templates that a question is made of; `template` is the folder of two of them."""
    return f"{template}/system.j2", TASK, f"{template}/ask.j2", RETRY


class JudgePrompts:
    """Renders the prompts of one task, each block once."""

    def __init__(
        self,
        templates: Templates,
        template: str,
        task: Task,
        rules: Mapping[str, Any],
        *,
        shows: Literal["all", "input", "nothing"] = "all",
    ) -> None:
        self.task_id = task.id
        system, _, self._ask, _ = names(template)
        self._render = partial(templates.render, among=names(template))
        self._rules = (self._render(system, rules),)
        context = task.background if shows == "all" else task.background[len(task.context) :]
        about: dict[str, Any] = {"x": task.x, "context": list(context)}
        about["delimiter"] = Trusted(delimiter_of(task.x, *task.background))
        self._task = self._render(TASK, about) if shows != "nothing" else ()

    def question(self, about: Mapping[str, Any], *texts: str) -> Block:
        """The block that asks about `texts`; it does not depend on the task's other candidates."""
        return self._render(self._ask, {**about, "delimiter": Trusted(delimiter_of(*texts))})

    def prompt(self, question: Block, error: ReplyError | None = None) -> Prompt:
        """The whole prompt, with the last reply's `error` where there was one."""
        blocks = [block for block in (self._task, question) if block]
        if error is not None:
            blocks.append(self._render(RETRY, {"error": error.message}))
        return Prompt(system=tuple(block for block in self._rules if block), user=tuple(blocks))


def rules(scale: Scale, reply_format: str) -> dict[str, Any]:
    """The variables of `NAME/system.j2`: the scale's ends, and the reply format."""
    return {"low": plain_number(scale.low), "high": plain_number(scale.high), "reply_format": Trusted(reply_format)}


def check(templates: Templates, template: str, rules: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Render every template once, so that a faulty one is found before a model is loaded.

    Raises:
        TemplateError: with file and line.
    """
    system, task, question, retry = names(template)
    templates.check_files()
    templates.check(system, rules)
    templates.check(task, {"x": "x", "context": ["context"], "delimiter": Trusted("delimiter")})
    templates.check(question, {**about, "delimiter": Trusted("delimiter")})
    templates.check(retry, {"error": "error"})
