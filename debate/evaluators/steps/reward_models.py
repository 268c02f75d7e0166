"""Models that score steps without being prompted: a value model (x1), a process reward model.

They are asked with `Messages` and reply with JSON numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from debate.evaluators.base import Footprint
from debate.evaluators.steps.prompted import Solution
from debate.flow import Completion, Flow, Generate, Messages, Parsed, gather, generate_parsed
from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import Number, unreadable
from debate.parsing.text import in_range
from debate.settings import check_settings, documented, setting
from debate.types import Failure, Judgment, Scale, Task

T = TypeVar("T")
UNIT = Scale(0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class ScoringModelSteps:
    """Base of a judge whose model replies with numbers."""

    model: str | None = setting(None, "The model that is asked; None is the run's.")
    scale: Scale = setting(UNIT, "The scale of its scores.")

    def __post_init__(self) -> None:
        check_settings(self, "judge.")

    @property
    def models(self) -> frozenset[str]:
        """The model's name, where it is not the run's."""
        return frozenset() if self.model is None else frozenset({self.model})

    @property
    def role_models(self) -> frozenset[str | None]:
        """Its model, which is asked with messages of other roles than a chat's; None is the run's own."""
        return frozenset({self.model})

    def _ask_once(self, prompt: Messages, read: Callable[[Completion], T], **info: Any) -> Flow[Parsed[T]]:
        def call(attempt: int, error: object) -> Generate:
            return Generate(prompt=prompt, model=self.model, attempt=attempt, info=info)

        return generate_parsed(call, read, 0)

    def footprint(self, task: Task) -> Footprint:
        """Zero: the model has no KV cache that we manage."""
        return Footprint(0, 0, 0)

    def check(self) -> None:
        """Do nothing: there are no templates to check."""


@documented
@dataclass(frozen=True, kw_only=True)
class ValueModelSteps(ScoringModelSteps):
    """A value model behind `debate.backends.ValueServer`, asked with x1's messages; -1 to 1."""

    scale: Scale = setting(Scale(-1.0, 1.0), "The scale of its scores.")

    def ask_all(self, task: Task, solutions: Sequence[Solution]) -> Flow[tuple[Judgment, ...]]:
        """Ask about every step of every solution at once."""
        places = [(solution, n) for solution in solutions for n in range(len(solution.steps))]
        answers = yield from gather([self._ask(task, *place) for place in places])
        return tuple(
            Judgment(
                candidates=(solution.candidate,), step=n, value=asked.value, text=asked.text, failure=asked.failure
            )
            for (solution, n), asked in zip(places, answers, strict=True)
        )

    def _ask(self, task: Task, solution: Solution, n: int) -> Flow[Parsed[float]]:
        is_last = solution.is_final and n == len(solution.steps) - 1
        said = [("user", task.x), *(("intermediate_step", text) for text in solution.previous(n))]
        prompt = Messages.of([*said, ("last_step" if is_last else "intermediate_step", solution.steps[n])])
        read = partial(_read_number, scale=self.scale)
        return self._ask_once(prompt, read, task_id=task.id, candidate=solution.candidate, step=n)

    def describe(self) -> dict[str, Any]:
        """The settings as plain data."""
        return {"judge": "value_model", "model": self.model, "scale": [self.scale.low, self.scale.high]}


@documented
@dataclass(frozen=True, kw_only=True)
class RewardModelSteps(ScoringModelSteps):
    """A process reward model behind `debate.backends.RewardModel`: all steps of a solution in one call; 0 to 1."""

    def ask_all(self, task: Task, solutions: Sequence[Solution]) -> Flow[tuple[Judgment, ...]]:
        """Ask about every solution at once."""
        answers = yield from gather([self._ask(task, solution) for solution in solutions])
        return tuple(
            sample
            for solution, asked in zip(solutions, answers, strict=True)
            for sample in self._samples(solution, asked)
        )

    def _ask(self, task: Task, solution: Solution) -> Flow[Parsed[list[float]]]:
        prompt = Messages.of([("user", task.x), *(("step", text) for text in (*solution.before, *solution.steps))])
        read = partial(_read_numbers, n=len(solution.before) + len(solution.steps), scale=self.scale)
        return self._ask_once(prompt, read, task_id=task.id, candidate=solution.candidate)

    def _samples(self, solution: Solution, asked: Parsed[list[float]]) -> list[Judgment]:
        values = [None] * len(solution.steps) if asked.value is None else asked.value[len(solution.before) :]
        failures: list[Failure | None] = [asked.failure, *[None] * len(solution.steps)]  # one call, one failure
        return [
            Judgment(candidates=(solution.candidate,), step=n, value=value, text=asked.text, failure=failures[n])
            for n, value in enumerate(values)
        ]

    def describe(self) -> dict[str, Any]:
        """The settings as plain data."""
        return {"judge": "reward_model", "model": self.model}


def _read_number(said: Completion, scale: Scale) -> float:
    value = extract_json(said.text)
    if not isinstance(value, Number):
        raise unreadable("not_a_number", "The reply is no number.")
    return in_range(value.literal, scale.low, scale.high)


def _read_numbers(said: Completion, n: int, scale: Scale) -> list[float]:
    value = extract_json(said.text)
    numbers = cast("list[object]", value) if isinstance(value, list) else []
    if len(numbers) != n or not all(isinstance(number, Number) for number in numbers):
        raise unreadable("wrong_shape", f"The reply is no list of {n} numbers.")
    return [in_range(cast("Number", number).literal, scale.low, scale.high) for number in numbers]
