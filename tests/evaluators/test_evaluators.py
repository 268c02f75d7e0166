"""The package of evaluators: the example of its docstring works, and what an author needs is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import debate.evaluators
from debate import (
    CallbackEvaluator,
    CrossEvaluator,
    DebateEvaluator,
    PanelEvaluator,
    Sampling,
    StepEvaluator,
    ValueEvaluator,
    VoteEvaluator,
)
from debate.backends import Scripted
from debate.engine import Engine
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.evaluators.early_stop import EarlyStop
from debate.evaluators.steps.prompted import PromptedSteps
from debate.settings import REQUIRED, declarations
from debate.types import Scale, Task


def docstring_example() -> type[Any]:
    """The class of the docstring's indented block."""
    text = debate.evaluators.__doc__ or ""
    lines = [line for line in text.splitlines() if line.startswith("    ") or not line]
    code = "from dataclasses import dataclass, field\n" + "\n".join(line.removeprefix("    ") for line in lines)
    names: dict[str, Any] = {name: getattr(debate.evaluators, name) for name in debate.evaluators.__all__}
    names |= {"np": np, "Scale": Scale, "Task": Task, "Evaluation": Evaluation, "__name__": __name__}
    exec(code, names)
    return names["Brevity"]


def test_the_evaluator_of_the_docstring_evaluates_checks_and_describes_itself() -> None:
    evaluator: Evaluator = docstring_example()(limit=10)
    with Engine(Scripted(lambda call: "")) as engine:
        evaluation = engine.evaluate(Task("x", ["", "12345", "1234567890+"]), evaluator)
    assert evaluation.scores.tolist() == [10.0, 5.0, 0.0]
    assert (evaluation.status, evaluation.selected) == ("ok", 0)
    assert evaluator.describe()["aggregation"]["limit"] == 10
    assert "limit" in {declared.name for declared in declarations(type(evaluator))}


def test_every_public_name_is_there() -> None:
    assert all(hasattr(debate.evaluators, name) for name in debate.evaluators.__all__)


SETTINGS = [
    CallbackEvaluator, CrossEvaluator, DebateEvaluator, EarlyStop, PanelEvaluator, PromptedSteps, Sampling,
    StepEvaluator, ValueEvaluator, VoteEvaluator,
]  # fmt: skip


@pytest.mark.parametrize("cls", SETTINGS)
def test_every_default_is_allowed_and_every_setting_is_in_the_docstring(cls: type[Any]) -> None:
    for declared in declarations(cls):
        assert declared.default is REQUIRED or declared.problem(declared.default) is None
        assert f"    {declared.name}: {declared.help}" in (cls.__doc__ or "")
