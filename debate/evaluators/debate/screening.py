"""Debates, beside tasks on which the same agents are only read out: how a pool is narrowed before it is debated."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator, RunContext
from debate.evaluators.debate.evaluator import DebateEvaluator, silent_flow
from debate.flow import Flow
from debate.types import Task


@dataclass(frozen=True)
class ScreeningEvaluator(DebateEvaluator):
    """A debate, and on some tasks its silent round alone.

    Args:
        screened: ids of the tasks on which nobody speaks.
    """

    screened: frozenset[str] = field(default_factory=frozenset[str])

    @classmethod
    def of(cls, debate: Evaluator, screened: frozenset[str]) -> Self:
        """The same debate, with these tasks only read out.

        Raises:
            ConfigError: for another evaluator than a debate.
        """
        if not isinstance(debate, DebateEvaluator):
            problem = f"candidates are read out by agents of a debate, and the evaluator is {debate.name}"
            raise ConfigError(problem, field="evaluator", hint="leave silent out, or give a debate")
        values: dict[str, Any] = {
            each.name: getattr(debate, each.name) for each in fields(DebateEvaluator) if each.init
        }
        read: dict[str, Any] = {"profile": debate.loaded_profile, "templates": debate.prompt_templates}
        return cls(**{**values, **read}, screened=screened)

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Read the agents out on a screened task, and debate on any other."""
        return silent_flow(self._silent, task, run) if task.id in self.screened else super().flow(task, run)

    @property
    def opening_models(self) -> frozenset[str | None]:
        """Models that read the silent rounds."""
        return super().opening_models or frozenset(persona.model for persona in self.personas)

    def describe(self) -> dict[str, Any]:
        """As a debate's, with the tasks that are only read out."""
        return {**super().describe(), "screened": sorted(self.screened)}

    @cached_property
    def _silent(self) -> DebateEvaluator:
        """Settings under which the silent round is asked for."""
        return self if self.opens_silently else replace(self, silent_readouts=True)
