"""What the engine asks of an evaluator, and the settings and defaults that ours share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from debate.evaluation import Evaluation
from debate.flow import Flow, RunContext
from debate.settings import check_settings, describe_settings, result_setting, setting
from debate.templates import Templates
from debate.types import Scale, Task

Readout = Literal["reply", "expected", "cells"]
"""How scores are read: `reply` takes the numbers that were written, `expected` the mean over the model's probabilities
of the labels at their places, `cells` the same after a reply without numbers, all places at once."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Upper bound of what one evaluation holds in the KV cache, by which the scheduler admits evaluations."""

    characters: int
    """Characters of the prompt before any reply."""
    replies: int
    """Replies that the last prompt can hold, its own included."""
    max_tokens: int
    """Upper bound of one reply, in tokens."""
    prompts: int = 1
    """Number of such prompts that grow side by side without a common prefix."""
    read_outs: int = 0
    """Read-outs of labels that it waits for besides the replies, one after the other. Each holds what the reply before
    it held, and decodes next to nothing; the ends of their continuations count among the characters."""


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
        """A new flow that evaluates `task`; it depends on `task`, `run` and the replies that it is sent alone."""
        ...

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of the size of the flow's longest prompt."""
        ...

    def check(self) -> None:
        """Raise an `InputError` for settings that can be found wrong before a model is loaded."""
        ...

    def describe(self) -> dict[str, Any]:
        """The settings as plain data: the part of a run's identity that is the evaluator's.

        Those under the key `aggregation`, at any depth, shape no prompt and may change when a run is resumed.
        """
        ...


@runtime_checkable
class ChecksTasks(Protocol):
    """An evaluator that cannot evaluate every task."""

    def check_task(self, task: Task) -> None:
        """Raise a `TaskError` for a task that cannot be evaluated."""
        ...


def check_task(evaluators: Iterable[Evaluator], task: Task) -> None:
    """Check that every evaluator can evaluate a task.

    Raises:
        TaskError: naming the field.
    """
    for evaluator in evaluators:
        if isinstance(evaluator, ChecksTasks):
            evaluator.check_task(task)


@dataclass(frozen=True, kw_only=True)
class BaseEvaluator:
    """Base of an evaluator: settings of selection, and defaults for one that asks no model itself.

    A subclass adds `name`, `scale`, `flow` and further settings.

    Raises:
        ConfigError: for settings of the wrong type or out of bounds.
    """

    selection: Literal["argmax", "sample"] = result_setting(
        "argmax", "Select the best candidate, or draw one by its probability."
    )
    ties: Literal["first", "seeded"] = result_setting(
        "first", "Of equally good candidates, select the first, or draw one by the seed."
    )
    softmax_temperature: float = result_setting(
        1.0, "Temperature of the softmax that turns scores into probabilities.", gt=0
    )
    name: str = field(init=False)

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def scale(self) -> Scale:
        """The scale of the scores."""
        raise NotImplementedError

    @property
    def models(self) -> frozenset[str]:
        """Names of the models it asks for besides the run's own."""
        return frozenset()

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of the size of the flow's longest prompt."""
        return Footprint(0, 0, 0)

    def check(self) -> None:
        """Raise an `InputError` for settings that can be found wrong before a model is loaded."""

    def describe(self) -> dict[str, Any]:
        """The settings as plain data; those that shape no prompt stand under `aggregation`."""
        return describe_settings(self, evaluator=self.name)


@dataclass(frozen=True, kw_only=True)
class PromptingEvaluator(BaseEvaluator):
    """An evaluator that renders templates and parses replies."""

    retries: int = result_setting(2, "How often a model is asked again after an unreadable reply.", ge=0)
    templates: Templates | str | Path | None = setting(
        None, "A folder whose templates override the built-in ones, or `compact`.", file_type=Path | None
    )

    prompt_templates: Templates = field(init=False, repr=False, compare=False)
    """The folder's templates over the built-in ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        templates = self.templates if isinstance(self.templates, Templates) else Templates(self.templates)
        object.__setattr__(self, "prompt_templates", templates)
