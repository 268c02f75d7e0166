"""Solutions judged step by step (x1; process reward models), as a flow.

    split each candidate into steps;  let the judge score each with the steps before it in view
    reduce a solution's step scores -> the candidate's score;  its first wrong step

The judges of steps are in `prompted` and `reward_models`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from debate.errors import ConfigError, TaskError
from debate.evaluation import Evaluation
from debate.evaluators.base import BaseEvaluator, Footprint, RunContext
from debate.evaluators.result import build_evaluation
from debate.evaluators.steps.prompted import PromptedSteps, Solution, StepJudge, mean_samples, with_place
from debate.flow import Flow
from debate.scoring.reducers import StepReduction, first_wrong_step, reduce_steps
from debate.settings import describe_settings, documented, result_setting, setting
from debate.types import Candidate, Judgment, Scale, Task


@documented
@dataclass(frozen=True, kw_only=True)
class StepEvaluator(BaseEvaluator):
    r"""Scores candidates as solutions, step by step; a single step is judged as the next one after the task's context.

    >>> StepEvaluator(split=r"\n\n+")
    >>> StepEvaluator(judge=RewardModelSteps(), reduce="product")

    A candidate's steps are `steps` of its metadata, or else its text split at `split`, or else the text as one step;
    `Task.context` holds the steps before it. Whether its last step ends the solution is `final` of its metadata, or
    else whether it has several steps.

    `details`: `steps` (a list of scores per candidate), `first_error` (index from 0, -1 for none, None where unknown)
    and, with `ask_solved`, `solved`.

    Raises:
        ConfigError: for settings that cannot work.
    """

    judge: StepJudge = setting(PromptedSteps, "Who scores the steps.")
    reduce: StepReduction = result_setting("min", "How step scores make the candidate's score.")
    threshold: float | None = result_setting(
        None, "A step that scores below it is wrong; None is the middle of the scale."
    )
    split: str | None = setting(None, "Regular expression between steps.")
    ask_solved: bool = setting(False, "Whether a prompted judge is also asked if a solution's last step completes it.")
    name: str = field(default="step", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            re.compile(self.split or "")
        except re.error as error:
            raise ConfigError(str(error), field="split") from None
        if self.reduce == "product" and (self.judge.scale.low, self.judge.scale.high) != (0.0, 1.0):
            raise ConfigError("a product takes scores in 0..1, and this judge's are not", field="reduce")
        if self.threshold is not None and not self.scale.low <= self.threshold <= self.scale.high:
            problem = f"must lie on the judge's scale, {self.scale.low:g}..{self.scale.high:g}, got {self.threshold:g}"
            raise ConfigError(problem, field="threshold")
        if self.ask_solved and not isinstance(self.judge, PromptedSteps):
            raise ConfigError("only a prompted judge can be asked", field="ask_solved")

    @property
    def scale(self) -> Scale:
        """The judge's scale."""
        return self.judge.scale

    @property
    def models(self) -> frozenset[str]:
        """Names of the models that the judge asks for."""
        return self.judge.models

    @property
    def role_models(self) -> frozenset[str | None]:
        """Models that the judge asks with messages of other roles than a chat's; None is the run's own."""
        return getattr(self.judge, "role_models", frozenset())

    @property
    def read_models(self) -> frozenset[str | None]:
        """Models whose probabilities the judge reads out; None is the run's own."""
        return getattr(self.judge, "read_models", frozenset())

    @property
    def continued_models(self) -> frozenset[str | None]:
        """Those of them that the judge does not ask for a reply of their own; None is the run's own."""
        return getattr(self.judge, "continued_models", frozenset())

    @property
    def limit(self) -> float:
        """The score below which a step is wrong."""
        return self.threshold if self.threshold is not None else (self.scale.low + self.scale.high) / 2

    def check_task(self, task: Task) -> None:
        """Refuse a candidate whose metadata's steps are not a list of texts.

        Raises:
            TaskError: naming the candidate.
        """
        for j, candidate in enumerate(task.candidates):
            given = candidate.metadata.get("steps")
            steps = cast("list[Any]", given) if isinstance(given, list | tuple) else []
            if given is not None and not (steps and all(isinstance(step, str) for step in steps)):
                raise TaskError("must be a list of at least one text", field=f"candidates.{j}.metadata.steps")

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Judge every step of every candidate."""
        self.check_task(task)
        solutions = [self._solution(task, j) for j in range(len(task.candidates))]
        samples = yield from self.judge.ask_all(task, solutions)
        of_solution: list[list[Judgment]] = [[] for _ in solutions]
        for sample in samples:
            of_solution[sample.candidates[0]].append(sample)
        steps = [mean_samples(each) for each in of_solution]
        scores = np.array([reduce_steps(each, self.reduce) for each in steps], dtype=np.float64)  # (J,)
        details: dict[str, Any] = {
            "steps": steps,
            "first_error": [first_wrong_step(each, self.limit) for each in steps],
        }
        failures = [with_place(each.failure, each) for each in samples if each.failure is not None]
        if self.ask_solved:
            assert isinstance(self.judge, PromptedSteps)
            answers = yield from self.judge.ask_solved(task, solutions)
            details["solved"] = [answer.value for answer in answers]
            failures += [answer.failure for answer in answers if answer.failure is not None]
        return build_evaluation(self, task, run, scores=scores, judgments=samples, failures=failures, details=details)

    def _solution(self, task: Task, j: int) -> Solution:
        steps = self._steps(task.candidates[j])
        final = task.candidates[j].metadata.get("final")
        return Solution(j, steps, task.context, final if isinstance(final, bool) else len(steps) > 1)

    def _steps(self, candidate: Candidate) -> tuple[str, ...]:
        given: Sequence[str] | None = candidate.metadata.get("steps")
        if given is not None:
            return tuple(given)
        return tuple(part.strip() for part in self._parts(candidate.text) if part.strip()) or (candidate.text,)

    def _parts(self, text: str) -> list[str]:
        if self.split is None:
            return [text]
        between = re.compile(self.split)
        return between.split(text)[:: between.groups + 1]  # what its groups hold stands in between

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of one question to the judge."""
        return self.judge.footprint(task)

    def check(self) -> None:
        """Check the judge."""
        self.judge.check()

    def describe(self) -> dict[str, Any]:
        """The settings as plain data; how scores are reduced stands under `aggregation`."""
        return describe_settings(self, evaluator=self.name, aggregation={"threshold": self.limit})
