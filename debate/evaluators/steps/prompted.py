"""Judges of steps: what a step evaluator needs of one, and a chat model that is prompted about each step.

A judge is given the steps of every candidate and asks about all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from debate.evaluators.base import Footprint
from debate.evaluators.judge import TEMPLATE_HELP, JudgePrompts, ValueJudge, check, names, rules
from debate.flow import Block, Completion, Flow, Parsed, gather
from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import unreadable
from debate.parsing.schema import bounded_text, object_of
from debate.parsing.values import JsonField, TagNumber, ValueReader, read_is_solved
from debate.scoring.reducers import STEP_SCALE, summarize
from debate.settings import documented, result_setting, setting
from debate.types import Failure, Judgment, Scale, Task


@dataclass(frozen=True, slots=True)
class Solution:
    """One candidate as a sequence of steps."""

    candidate: int
    steps: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Steps before the candidate's own, the same for every candidate."""
    is_final: bool = True
    """Whether its last step ends the solution."""

    def previous(self, step: int) -> list[str]:
        """The steps before a step."""
        return [*self.before, *self.steps[:step]]


class StepJudge(Protocol):
    """Scores steps."""

    @property
    def scale(self) -> Scale:
        """The scale of a step's score."""
        ...

    @property
    def models(self) -> frozenset[str]:
        """Names of the models it asks for besides the run's own."""
        ...

    def ask_all(self, task: Task, solutions: Sequence[Solution]) -> Flow[tuple[Judgment, ...]]:
        """A judgment per step of each solution, or several where the judge is asked several times."""
        ...

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of one question."""
        ...

    def check(self) -> None:
        """Raise an `InputError` for settings that can be found wrong before a model is loaded."""
        ...

    def describe(self) -> dict[str, Any]:
        """The settings as plain data."""
        ...


class _X1Score(TagNumber):
    """The reply format of x1's prompt, which asks for it itself."""

    @property
    def instruction(self) -> str:
        """Nothing."""
        return ""

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": "x1"}


@documented
@dataclass(frozen=True, kw_only=True)
class PromptedSteps(ValueJudge):
    """A chat model that is shown the steps so far and scores one at a time, from -100 to 100.

    `PromptedSteps.x1()` uses x1's own prompts and reply format, without a schema.
    """

    samples: int = result_setting(1, "How often each step is scored.", ge=1)
    reader: ValueReader = setting(
        JsonField("score", STEP_SCALE.low, STEP_SCALE.high), "How the score is read from a reply."
    )
    template: str = setting("step", TEMPLATE_HELP)
    solved_template: str = "solved"
    """The set of templates that asks whether a solution is complete."""
    name: str = field(default="prompt", init=False)

    @classmethod
    def x1(cls, **settings: Any) -> PromptedSteps:
        """A judge with x1's own prompts and reply format."""
        reader = _X1Score("score", STEP_SCALE.low, STEP_SCALE.high)
        return cls(reader=reader, template="step_x1", solved_template="solved_x1", **settings)

    @property
    def scale(self) -> Scale:
        """The reader's scale."""
        return self.reader.scale

    def ask_all(self, task: Task, solutions: Sequence[Solution]) -> Flow[tuple[Judgment, ...]]:
        """Ask about every step of every solution at once."""
        prompts = self._prompts(task, self.template, self.prompt_rules)
        steps = [(solution, n) for solution in solutions for n in range(len(solution.steps))]
        # By sample, so that more of them stand behind those that are recorded when a run is resumed.
        places = [(*step, s) for s in range(self.samples) for step in steps]
        answers = yield from gather([self._ask(task, prompts, *place) for place in places])
        return tuple(answer for k in range(len(steps)) for answer in answers[k :: len(steps)])

    def ask_solved(self, task: Task, solutions: Sequence[Solution]) -> Flow[tuple[Parsed[bool], ...]]:
        """Ask whether the last step of each solution completes it."""
        prompts = self._prompts(task, self.solved_template, self._solved_rules)
        return (yield from gather([self._ask_one_solved(task, prompts, solution) for solution in solutions]))

    def check(self) -> None:
        """Render every template once; raises `TemplateError` with file and line."""
        about = {"x": "x", "previous": ["first"], "step": "second"}
        check(self.prompt_templates, self.template, self.prompt_rules, about)
        check(self.prompt_templates, self.solved_template, self._solved_rules, about)

    def describe(self) -> dict[str, Any]:
        """The settings as plain data; those that shape no prompt stand under `aggregation`."""
        return self._describe(judge=self.name)

    @property
    def _template_names(self) -> tuple[str, ...]:
        return *names(self.template), *names(self.solved_template)

    @property
    def _is_x1(self) -> bool:
        return isinstance(self.reader, _X1Score)

    @property
    def _solved_rules(self) -> dict[str, Any]:
        form = 'Reply with one JSON object and nothing else:\n{"reasoning": "<why>", "solved": <true or false>}'
        return rules(self.scale, "" if self._is_x1 else form)

    def _prompts(self, task: Task, template: str, rules: Mapping[str, Any]) -> JudgePrompts:
        # The context is shown as the steps before; x1's prompt holds the task too.
        shows = "nothing" if self._is_x1 else "input"
        return JudgePrompts(self.prompt_templates, template, task, rules, shows=shows)

    def _question(self, task: Task, prompts: JudgePrompts, solution: Solution, n: int) -> Block:
        previous, step = solution.previous(n), solution.steps[n]
        return prompts.question({"x": task.x, "previous": previous, "step": step}, *previous, step)

    def _ask(self, task: Task, prompts: JudgePrompts, solution: Solution, n: int, s: int) -> Flow[Judgment]:
        question = self._question(task, prompts, solution, n)
        return self.value(prompts, question, key=("step", s), candidate=solution.candidate, sample=s, step=n)

    def _ask_one_solved(self, task: Task, prompts: JudgePrompts, solution: Solution) -> Flow[Parsed[bool]]:
        last = len(solution.steps) - 1
        form = object_of({"reasoning": bounded_text(self.reasoning_chars), "solved": {"type": "boolean"}})
        question, schema = self._question(task, prompts, solution, last), None if self._is_x1 else form
        info: dict[str, Any] = {"candidate": solution.candidate, "step": last, "solved": True}
        return self.ask(prompts, question, self._read_solved, schema=schema, key=("solved",), **info)

    def _read_solved(self, said: Completion) -> bool:
        if self._is_x1:
            return read_is_solved(said.text, finish_reason=said.finish_reason)
        value = extract_json(said.text, finish_reason=said.finish_reason)
        solved = cast("dict[str, object]", value).get("solved") if isinstance(value, dict) else None
        if not isinstance(solved, bool):
            raise unreadable("missing_key", "The reply must be an object with a boolean 'solved'.")
        return solved


def mean_samples(samples: Sequence[Judgment]) -> list[float | None]:
    """The scores of one solution's steps, each the mean of its samples; None where every sample failed."""
    by_step: dict[int, list[float | None]] = {}
    for sample in samples:
        by_step.setdefault(sample.step or 0, []).append(sample.value)
    summaries = [summarize(by_step[n]) for n in sorted(by_step)]
    return [summary.mean if summary.n_ok else None for summary in summaries]


def with_place(failure: Failure, sample: Judgment) -> Failure:
    """The failure with the candidate and step in its message."""
    place = f"candidate {sample.candidates[0] + 1}, step {(sample.step or 0) + 1}"
    return replace(failure, message=f"{place}: {failure.message}")
