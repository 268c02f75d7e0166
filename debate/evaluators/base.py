"""What the engine asks of an evaluator. Knows no particular one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from debate.evaluation import Evaluation
from debate.flow import Flow, RunContext
from debate.types import Scale, Task

__all__ = ["ChecksTasks", "Evaluator", "Footprint", "RunContext", "check_task"]


@dataclass(frozen=True, slots=True)
class Footprint:
    """How much one evaluation may put into the KV cache at its longest, for admission."""

    characters: int
    """Of the prompt before any reply."""
    replies: int
    """How many replies the last prompt can hold, itself included."""
    max_tokens: int
    """Upper bound of one reply."""
    prompts: int = 1
    """How many such prompts grow side by side without a common beginning."""


class Evaluator(Protocol):
    """Scores the candidates of a task by asking prompts: a factory of flows, the same for every task."""

    @property
    def name(self) -> str:
        """`debate`, `value`, ..."""
        ...

    @property
    def scale(self) -> Scale:
        """The scale of the scores."""
        ...

    @property
    def models(self) -> frozenset[str]:
        """Names of the models it asks for besides the run's own."""
        ...

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """A fresh flow that evaluates `task`. Deterministic in `task`, `run` and the replies it is sent."""
        ...

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of what the flow's longest prompt holds."""
        ...

    def check(self) -> None:
        """Raise an `InputError` for what can be known to be wrong before any model is loaded."""
        ...

    def describe(self) -> dict[str, Any]:
        """The settings as plain data: what a run records to know whether it is the same.

        Those under the key `aggregation`, at any depth, shape no prompt: they may change when a run goes on.
        """
        ...


@runtime_checkable
class ChecksTasks(Protocol):
    """An evaluator that cannot evaluate every task."""

    def check_task(self, task: Task) -> None:
        """Raise a `TaskError` for a task that cannot be evaluated."""
        ...


def check_task(evaluators: Iterable[Evaluator], task: Task) -> None:
    """Refuse a task that one of some evaluators cannot evaluate.

    Raises:
        TaskError: naming the field.
    """
    for evaluator in evaluators:
        if isinstance(evaluator, ChecksTasks):
            evaluator.check_task(task)
