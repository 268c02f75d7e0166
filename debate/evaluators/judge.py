"""What the evaluators that ask a model short questions share: settings, calls, prompts, and how values are read.

A prompt states the rules, the input, what is to be judged, and why the last reply failed:

    NAME/system.j2     what to judge by, and how to reply                  the same for every task
    judge/task.j2      the input and its context                           the same for every question on a task
    NAME/ask.j2        the candidate, the candidates, or the step          last
    judge/retry.j2     why the last reply could not be used                only when asking again

Templates that are empty make no message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, TypeVar

from debate.errors import ConfigError, ReplyError
from debate.evaluators.base import Footprint, PromptingEvaluator, Readout
from debate.flow import (
    Block,
    Completion,
    Flow,
    Generate,
    Parsed,
    Prompt,
    ReadOut,
    Segment,
    generate,
    generate_parsed,
)
from debate.parsing.json_values import shown
from debate.parsing.places import value_spans
from debate.parsing.values import JsonField, ValueReader
from debate.scoring.distributions import LEAST_MASS, moments, why_unscored
from debate.settings import describe_settings, setting
from debate.templates import Templates, Trusted, delimiter_of, plain_number
from debate.types import Failure, Judgment, LabelDistribution, Sampling, Scale, Task

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

    @cached_property
    def effective_sampling(self) -> Sampling:
        """The sampling over the evaluator's defaults, with room for the longest reply at two characters per token."""
        return self._with_room(0)

    def _with_room(self, more_tokens: int) -> Sampling:
        room = self.reasoning_chars // 2 + 100 + more_tokens
        return self.sampling.over(Sampling(temperature=self._temperature, max_tokens=room))

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of one prompt that shows all of the task, and one reply."""
        texts = [task.x, *task.background, *task.criteria, *(candidate.text for candidate in task.candidates)]
        return Footprint(_RULES_CHARACTERS + sum(map(len, texts)), 1, self.effective_sampling.max_tokens or 0)

    def ask(
        self,
        prompts: JudgePrompts,
        question: Block,
        read: Callable[[Completion], T],
        *,
        schema: Mapping[str, Any] | None,
        key: tuple[str | int, ...],
        read_out: ReadOut | None = None,
        more_tokens: int = 0,
        **info: Any,
    ) -> Flow[Parsed[T]]:
        """Ask a question, at most `retries` times again with the error shown, until `read` accepts the reply.

        A reply that names many candidates has room for `more_tokens`, unless the sampling says how many it may have.
        """
        sampling = self._with_room(more_tokens) if more_tokens else self.effective_sampling

        def call(attempt: int, error: ReplyError | None) -> Generate:
            return Generate(
                prompt=prompts.prompt(question, error),
                sampling=sampling,
                schema=schema,
                read_out=read_out,
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


@dataclass(frozen=True, slots=True)
class _Found:
    """The distribution of a value, what the reply says in its place, and the address of the call that read it out."""

    distribution: LabelDistribution
    said: str
    call: str | None


@dataclass(frozen=True, kw_only=True)
class ValueJudge(JudgeSettings):
    """Base of a judge that is asked what one text is worth.

    Raises:
        TemplateError, ConfigError: as its base; and for a `readout` of values that have no labels to read.
    """

    reader: ValueReader = setting(JsonField("value"), "How the value is read from a reply.")
    readout: Readout = setting(
        "reply",
        "reply: a value is the number that was written. expected: it is the mean over the model's probabilities of the "
        "whole numbers at that place. cells: the reasoning is written, and the value read as such a mean after it. The "
        "last two need a reader of JSON and a scale of at most 201 whole numbers.",
        came_later=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.readout != "reply":
            _ = self._read_out

    @property
    def read_models(self) -> frozenset[str | None]:
        """The model, where it must give probabilities of labels; None is the run's own."""
        return frozenset() if self.readout == "reply" else frozenset({self.model})

    @property
    def continued_models(self) -> frozenset[str | None]:
        """Those of them that are to say the label after words of ours, and not in a reply of their own."""
        return self.read_models if self.readout == "cells" else frozenset()

    @property
    def prompt_rules(self) -> dict[str, Any]:
        """The variables of the system template."""
        asks = self.reader.instruction if self.readout == "reply" else self._field.label_instruction
        return rules(self.reader.scale, asks)

    @cached_property
    def _field(self) -> JsonField:
        """The reader, where it can be read out."""
        if not isinstance(self.reader, JsonField):
            problem = f"{self.readout} needs a reader of JSON, not {type(self.reader).__name__.lstrip('_')}"
            hint = "take one such as reader=JsonField(\"value\"), or readout='reply'"
            raise ConfigError(problem, field="readout", hint=hint)
        return self.reader

    @cached_property
    def _read_out(self) -> ReadOut:
        return ReadOut(self._field.labels)

    @cached_property
    def _schema(self) -> Mapping[str, Any] | None:
        """The schema of a reply; one object, so that what backends make of it is made once."""
        if self.readout == "reply":
            return self.reader.schema(self.reasoning_chars)
        make = self._field.label_schema if self.readout == "expected" else self._field.reasoning_schema
        return make(self.reasoning_chars)

    def value(
        self,
        prompts: JudgePrompts,
        question: Block,
        *,
        key: tuple[str | int, ...],
        candidate: int,
        sample: int,
        step: int | None = None,
    ) -> Flow[Judgment]:
        """Ask what a text is worth, as `ask` does; a value that cannot be read out is a failure and not asked again."""
        info = {"candidate": candidate, "sample": sample} | ({} if step is None else {"step": step})
        about: dict[str, Any] = {"candidates": (candidate,), "sample": sample, "step": step}
        asking: Any = {"schema": self._schema, "key": key, **info}
        if self.readout == "reply":
            asked = yield from self.ask(prompts, question, reading(self.reader), **asking)
            return judgment(asked, value=asked.value, **about)
        if self.readout == "expected":
            found = yield from self.ask(prompts, question, self._find, read_out=self._read_out, **asking)
            return judgment(found, **about, **self._worth(found.value))
        said = yield from self.ask(prompts, question, self._reasoning, **asking)
        cell = None if said.value is None else (yield from self._ask_cell(prompts, question, said.value, info))
        return judgment(said, **about, **self._worth(cell))

    def _find(self, said: Completion) -> _Found | Failure:
        """The distribution where the number stands in a reply."""
        place = self._field.place(said.text, finish_reason=said.finish_reason)
        start, end = value_spans(said.text)[place]
        return _found(said, place, said.text[start:end])

    def _reasoning(self, said: Completion) -> str:
        return self._field.reasoning(said.text, finish_reason=said.finish_reason)

    def _ask_cell(
        self, prompts: JudgePrompts, question: Block, reasoning: str, info: Mapping[str, Any]
    ) -> Flow[_Found | Failure]:
        """Read the value that follows a reasoning. Neither sampling nor a seed matters to it."""
        continuation = Block([Segment(self._field.continuation(reasoning), is_content=True)])
        call = Generate(
            prompt=prompts.prompt(question),
            read_out=replace(self._read_out, continuations=((continuation,),)),
            model=self.model,
            info={"task_id": prompts.task_id, "attempt": 0, **info},
        )
        said = yield from generate(call)
        return said if isinstance(said, Failure) else _found(said, 0)

    def _worth(self, found: _Found | Failure | None) -> dict[str, Any]:
        """The parts of a judgment that a read-out gives; none without one."""
        if found is None:
            return {}
        if isinstance(found, Failure):
            return {"failure": found}
        distribution, labels = found.distribution, self._read_out.labels
        if why_unscored(distribution) is None:
            mean, _ = moments(distribution)
            return {"distribution": distribution, "value": min(max(mean, self._field.low), self._field.high)}
        message = (
            f"the labels {labels[0]} to {labels[-1]} had {distribution.mass:.2g} of the model's probability, less than "
            f"{LEAST_MASS:g}{found.said and f'; the reply says {shown(found.said)}'}"
        )
        return {"distribution": distribution, "failure": Failure("label_mass", message, call=found.call)}


def _found(completion: Completion, place: int, said: str = "") -> _Found | Failure:
    """What was read out at a place of a completion."""
    if place >= len(completion.distributions):
        return Failure("no_distributions", "the backend gave no probabilities of the value", call=completion.call)
    return _Found(completion.distributions[place], said, completion.call)


def reading(reader: ValueReader) -> Callable[[Completion], float]:
    """A function that reads a completion's value with `reader`."""
    return lambda said: reader(said.text, finish_reason=said.finish_reason)


def judgment(asked: Parsed[Any], **about: Any) -> Judgment:
    """The record of a reply; `about` holds what it is about and what was read from it."""
    said: dict[str, Any] = {
        "text": asked.text,
        "thinking": asked.thinking,
        "failure": asked.failure,
        "invalid_replies": asked.invalid_replies,
    }
    return Judgment(**{**said, **about})


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
        criteria: Sequence[str] = (),
    ) -> None:
        """Render what is the same in all questions.

        criteria: a further text that is shown after the context, as `Task.criteria`.
        """
        self.task_id = task.id
        system, _, self._ask, _ = names(template)
        self._render = partial(templates.render, among=names(template))
        self._rules = (self._render(system, rules),)
        context = task.background if shows == "all" else task.background[len(task.context) :]
        about: dict[str, Any] = {"x": task.x, "context": [*context, *criteria]}
        about["delimiter"] = Trusted(delimiter_of(task.x, *task.background, *criteria))
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
