"""The control of debates with an equal budget: the same agents take as many turns, and nobody hears anybody.

What a debate gains over one judge may come of talking, or of asking more often. The silent panel asks as often.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

from debate.errors import ConfigError, EvaluatorError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator, Footprint, RunContext
from debate.evaluators.debate.evaluator import DebateEvaluator, debate_flow
from debate.flow import Flow
from debate.hashing import digest
from debate.types import Task

_SILENT: dict[str, Any] = {
    "mode": "independent",
    "convergence": None,
    "stop_rule": None,
    "token_budget": None,  # nothing ends it before its last round
    "silent_readouts": False,
}


@dataclass(frozen=True)
class ControlEvaluator(DebateEvaluator):
    """The silent panel of debates that were held: on each task as many rounds as its debate took, aggregated alike.

    Args:
        rounds_of: by task id the rounds that its debate took, one number per candidate order of it.
        control_of: says which run the debates are of; it is a part of the identity.
    """

    rounds_of: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]], hash=False)
    control_of: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    @classmethod
    def of(cls, debate: Evaluator, rounds_of: Mapping[str, tuple[int, ...]], control_of: Mapping[str, str]) -> Self:
        """The silent panel of a debate's agents.

        Raises:
            ConfigError: for another evaluator than a debate, and for one whose agents are silent already.
        """
        debate = check_has_control(debate)
        values: dict[str, Any] = {
            each.name: getattr(debate, each.name) for each in fields(DebateEvaluator) if each.init
        }
        # As they were read, so that no file is read again for each number of rounds.
        read: dict[str, Any] = {"profile": debate.loaded_profile, "templates": debate.prompt_templates}
        return cls(**{**values, **read, **_SILENT}, rounds_of=rounds_of, control_of=control_of)

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Score the candidates in as many rounds as the debate on them took.

        A task that was settled without a debate is read out once more, in the same words: nobody heard anybody there.

        Raises:
            EvaluatorError: where the debate failed before its first turn.
        """
        rounds = self.rounds_of[task.id]
        if 0 in rounds and self.settle is None:
            raise EvaluatorError("the debate took no turn, so the silent panel takes none")
        return debate_flow([self._panel(each) for each in rounds], task, run)

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of the panel's prompts on this task."""
        return replace(super().footprint(task), replies=max(1, *self.rounds_of[task.id]) * len(self.personas))

    def describe(self) -> dict[str, Any]:
        """As a debate's, with the run that this is the control of; the rounds of its tasks shape no prompt."""
        found = super().describe()
        rounds = digest(sorted(self.rounds_of.items()))
        aggregation = {**found["aggregation"], "rounds_of": rounds}
        return {**found, "control_of": dict(self.control_of), "aggregation": aggregation}

    def _panel(self, rounds: int) -> Self:
        if rounds not in self._panels:
            self._panels[rounds] = replace(self, rounds=max(rounds, 1), settle=None if rounds else self.settle)
        return self._panels[rounds]

    @cached_property
    def _panels(self) -> dict[int, Self]:
        """Those that were made, by their rounds."""
        return {}


def check_has_control(evaluator: Evaluator) -> DebateEvaluator:
    """Check that a control can be made of what an evaluator does; returns the evaluator.

    Raises:
        ConfigError: for another evaluator than a debate, and for one whose agents are silent already.
    """
    if not isinstance(evaluator, DebateEvaluator):
        problem = f"a control is of a debate, and the evaluator is {evaluator.name}"
        raise ConfigError(problem, field="evaluator", hint="leave the control out")
    if evaluator.mode == "independent":
        problem = "is independent, so that the agents are a silent panel already"
        raise ConfigError(problem, field="mode", hint="leave the control out, or debate: --mode sequential")
    return evaluator
