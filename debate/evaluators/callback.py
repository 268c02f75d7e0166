"""Candidates scored by a function instead of a model (scoring functions of Besta et al. 2023), as a flow.

The function may be async and may take all candidates at once. An exception in it is a recorded failure; the candidate
is unscored or gets a penalty score. Some functions are in `debate.scorers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import BaseEvaluator, RunContext
from debate.evaluators.result import build_evaluation
from debate.flow import Flow, call_function, gather
from debate.scorers import scale_of
from debate.settings import REQUIRED, check_settings, describe_settings, documented, result_setting, setting
from debate.types import Failure, Judgment, Scale, ScoreStatus, Task


@dataclass(frozen=True, slots=True)
class Penalty:
    """The score of a candidate whose scoring failed."""

    score: float = setting(REQUIRED, "The score.")

    def __post_init__(self) -> None:
        check_settings(self, "on_error.")


@documented
@dataclass(frozen=True)
class CallbackEvaluator(BaseEvaluator):
    """Scores candidates by a function.

    >>> CallbackEvaluator(sorting_errors)
    >>> CallbackEvaluator(lambda x, answer: len(answer), scale=Scale(0, 1000), on_error=Penalty(0))

    A failed call is a `Failure`, and its candidate is unscored. With a `Penalty`, the candidate gets that score and the
    status `penalty`, and the failure is still recorded.

    Raises:
        ConfigError: where the function has no scale and none was given.
    """

    function: Callable[..., Any] = setting(
        REQUIRED,
        "`function(x, answer) -> number`, plain or async; with `combined`, `function(x, [answers]) -> [numbers]`; with "
        "`takes=task`, it gets the `Task` and the `Candidate` (or their list) instead of texts.",
        file_type=str,
        is_hashable=False,
    )
    scale: Scale = setting(  # pyright: ignore[reportIncompatibleMethodOverride] - a property in other evaluators
        None, "The scale of the scores; None is the one that the function was marked with."
    )
    combined: bool = result_setting(False, "Whether one call scores all candidates.")
    takes: Literal["text", "task"] = result_setting("text", "What the function is given.")
    on_error: Penalty | None = result_setting(
        None, "The score of a candidate whose scoring failed; None leaves it unscored."
    )
    seconds: float | None = result_setting(None, "Seconds that one call may take.", gt=0)
    name: str = field(default="callback", init=False)
    asks_models: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale is None:  # pyright: ignore[reportUnnecessaryComparison] - as given
            object.__setattr__(self, "scale", scale_of(self.function))
        if self.on_error is not None and not self.scale.low <= self.on_error.score <= self.scale.high:
            raise ConfigError(f"the penalty {self.on_error.score:g} is not on the scale", field="on_error")

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Call the function on every candidate, or once on all."""
        answers = yield from self._answers(task)
        found = [answer if isinstance(answer, Failure) else self._checked(answer) for answer in answers]
        results = [self._result(each) for each in found]
        return build_evaluation(
            self,
            task,
            run,
            scores=np.array([score for score, _ in results], dtype=np.float64),  # (J,)
            statuses=[status for _, status in results],
            judgments=[
                Judgment(candidates=(j,), failure=each)
                if isinstance(each, Failure)
                else Judgment(candidates=(j,), value=each)
                for j, each in enumerate(found)
            ],
        )

    def _answers(self, task: Task) -> Flow[Sequence[Any]]:
        given: list[Any] = [candidate if self.takes == "task" else candidate.text for candidate in task.candidates]
        x = task if self.takes == "task" else task.x
        if not self.combined:
            calls = [call_function(self.function, x, each, seconds=self.seconds) for each in given]
            return (yield from gather(calls))
        answer = yield from call_function(self.function, x, given, seconds=self.seconds)
        if isinstance(answer, Failure):
            return [answer] * len(given)
        try:
            numbers = list(answer)
        except Exception as error:
            problem = f"no list of scores: {type(error).__name__}: {error}"
        else:
            if len(numbers) == len(given):
                return numbers
            problem = f"{len(numbers)} scores for {len(given)} candidates"
        return [Failure("wrong_count", f"{self._function_name} returned {problem}")] * len(given)

    def _checked(self, answer: object) -> float | Failure:
        if isinstance(answer, bool) or not isinstance(answer, Real):
            return Failure("not_a_number", f"{self._function_name} returned {answer!r}, which is no number")
        try:
            score = float(answer)
        except OverflowError:
            score = math.inf
        if not math.isfinite(score):
            return Failure("not_a_number", f"{self._function_name} returned {score}")
        if not self.scale.low <= score <= self.scale.high:
            ends = f"{self.scale.low:g} to {self.scale.high:g}"
            return Failure("out_of_range", f"{self._function_name} returned {score:g}, which is not in {ends}")
        return score

    def _result(self, found: float | Failure) -> tuple[float, ScoreStatus]:
        """A candidate's score and status."""
        if not isinstance(found, Failure):
            return found, "ok"
        return (math.nan, "failed") if self.on_error is None else (self.on_error.score, "penalty")

    @property
    def _function_name(self) -> str:
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    def describe(self) -> dict[str, Any]:
        """The function's name and all settings."""
        scale, penalty = self.scale, self.on_error
        return describe_settings(
            self,
            evaluator=self.name,
            function=f"{getattr(self.function, '__module__', '')}:{self._function_name}",
            scale=[scale.low, None if math.isinf(scale.high) else scale.high, scale.higher_is_better],
            aggregation={"on_error": None if penalty is None else penalty.score},
        )
