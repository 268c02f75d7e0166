"""Evaluators from outside: the docstring's example works; every built-in one is a value that checks its settings."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import debate.evaluators
from debate import (
    CallbackEvaluator,
    Candidate,
    Component,
    CrossEvaluator,
    DebateEvaluator,
    PanelEvaluator,
    Persona,
    Profile,
    Sampling,
    StepEvaluator,
    ValueEvaluator,
    VoteEvaluator,
)
from debate.backends import Scripted
from debate.engine import Engine
from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.evaluators.callback import Penalty
from debate.evaluators.steps.prompted import PromptedSteps
from debate.evaluators.value import EarlyStop
from debate.parsing.values import LabelMap
from debate.profiles import MemorySettings
from debate.registry import EVALUATORS
from debate.runtime.run_registry import settings_digest
from debate.settings import REQUIRED, declarations
from debate.testing import reply_for
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
        is_required = declared.default is REQUIRED or (cls, declared.name) == (CallbackEvaluator, "scale")
        assert is_required or declared.problem(declared.default) is None
        assert f"    {declared.name}: {declared.help}" in (cls.__doc__ or "")


# ---- evaluators as values


def make(name: str) -> Any:
    """An evaluator of every kind that is built in, with settings that are lists and mappings; equal each time."""
    match name:
        case "debate":
            memory = MemorySettings(metadata={"kind": "rule"})
            personas = (Persona("Critic", "You look for faults.", memory=memory),)
            profile = Profile("alone", personas, (Component("truth", "Is it true?"), Component("tone", "Is it kind?")))
            return DebateEvaluator(profile, rounds=1, weights=[1.0, 0.5])
        case "value":
            return ValueEvaluator(reader=LabelMap({"sure": 2.0, "no": 0.0}), early_stop=EarlyStop())
        case "vote":
            return VoteEvaluator(ballots=2)
        case "panel":
            members = {"a": make("vote"), "b": make("debate")}
            return PanelEvaluator(
                members=members, weights={"a": 1, "b": 2}, above="weighted", reserves={"a": make("step")}
            )
        case "cross":
            judges = {"a": ValueEvaluator(model="a"), "b": ValueEvaluator(model="b")}
            return CrossEvaluator(judges=judges, rule={"a": ["b"], "b": "a"})
        case "callback":
            return CallbackEvaluator(len_of_answer, scale=Scale(0, 100), on_error=Penalty(0.0))
        case "step":
            return StepEvaluator(judge=PromptedSteps.x1(), split="\n")
        case _:
            raise AssertionError(f"give this test an example of the evaluator {name!r}")


def len_of_answer(x: str, answer: str) -> int:
    return len(answer)


BUILT_IN = [entry.name for entry in EVALUATORS.entries.values() if entry.package is None]
TWO = Task("x", [Candidate("one", generator="a"), Candidate("two", generator="b")], "t", metadata={"k": [1]})


def used(evaluator: Any) -> Any:
    """The evaluator, after it has evaluated a task and whatever it caches is there."""
    with Engine({name: Scripted(reply_for, model=name) for name in ("own", "a", "b")}) as engine:
        assert [each.task_id for each in engine.evaluate_batch([TWO], evaluator)] == ["t"]
    evaluator.check()
    evaluator.describe()
    return evaluator


@pytest.mark.parametrize("is_used", [False, True], ids=["new", "used"])
@pytest.mark.parametrize("name", BUILT_IN)
def test_an_evaluator_can_be_hashed_compared_copied_and_pickled(name: str, is_used: bool) -> None:
    evaluator = used(make(name)) if is_used else make(name)
    copies = [make(name), copy.copy(evaluator), copy.deepcopy(evaluator), pickle.loads(pickle.dumps(evaluator))]
    assert copies == [evaluator] * 4
    assert {*copies, evaluator} == {evaluator}
    assert [settings_digest(each) for each in copies] == [settings_digest(evaluator)] * 4
    assert all(used(each).describe() == evaluator.describe() for each in copies)
    other = replace(evaluator, softmax_temperature=2.0)
    assert other != evaluator and len({other, evaluator}) == 2


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_setting_of_the_wrong_type_is_refused_by_every_evaluator(name: str) -> None:
    evaluator = make(name)
    settings = declarations(evaluator.__class__)
    for declared in settings:
        wrong = "3" if int in declared.members or float in declared.members else object()
        with pytest.raises(ConfigError) as caught:
            replace(evaluator, **{declared.name: wrong})
        assert caught.value.field == declared.name
    assert len(settings) >= 5


@pytest.mark.parametrize("wrong", ["3", 2.5, True, np.float64(3)])
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_count_is_a_whole_number(name: str, wrong: Any) -> None:
    evaluator = make(name)
    counts = [each.name for each in declarations(evaluator.__class__) if int in each.members]
    for count in counts:
        with pytest.raises(ConfigError, match=f"{count}: must be a whole number"):
            replace(evaluator, **{count: wrong})


def test_numpy_settings_are_recorded_as_the_numbers_that_they_hold(tmp_path: Path) -> None:
    given: Any = {"rounds": np.int64(1), "convergence": np.float32(0.5), "weights": np.array([1.0, 0.5])}
    evaluator = replace(make("debate"), **given)
    assert evaluator == replace(make("debate"), rounds=1, convergence=0.5)
    with Engine(Scripted(reply_for), store=tmp_path / "s.sqlite") as engine:
        assert engine.evaluate(TWO, evaluator).status == "ok"


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (3, "members.b: int is no evaluator: it has no `name`"),
        ("general", "members.b: must be an evaluator, got the text 'general'"),
        (ValueEvaluator, "members.b: ValueEvaluator is a class, not an evaluator"),
    ],
)
def test_a_member_that_is_no_evaluator_is_named(member: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PanelEvaluator(members={"a": ValueEvaluator(), "b": member})
    assert caught.value.message == message
