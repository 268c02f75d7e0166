"""Evaluators from plain data: every kind with its options, how readers are spelled, what is refused and where."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

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
from debate.config.construct import make_evaluator
from debate.errors import ConfigError, InputError
from debate.evaluators.base import Evaluator
from debate.evaluators.callback import Penalty
from debate.evaluators.steps.prompted import PromptedSteps
from debate.evaluators.steps.reward_models import RewardModelSteps, ValueModelSteps
from debate.evaluators.value import EarlyStop
from debate.parsing.values import JsonField, LabelMap, NumberLine, TagNumber
from debate.registry import EVALUATORS
from debate.scorers import sorting_errors
from debate.types import Scale, Task
from tests.judges import judged

TWO: dict[str, Any] = {"a": {"evaluator": "value", "model": "a"}, "b": {"evaluator": "value", "model": "b"}}
TOLD: dict[str, tuple[dict[str, Any], Evaluator]] = {
    "debate": ({"profile": "general", "rounds": 2}, DebateEvaluator("general", rounds=2)),
    "value": ({"samples": 5, "reduce": "median"}, ValueEvaluator(samples=5, reduce="median")),
    "vote": ({"ballot": "pairwise", "ballots": 2}, VoteEvaluator(ballot="pairwise", ballots=2)),
    "panel": (
        {"members": TWO, "by": "ranks", "quorum": 1},
        PanelEvaluator(members={n: ValueEvaluator(model=n) for n in "ab"}, by="ranks", quorum=1),
    ),
    "cross": (
        {"judges": TWO, "rule": {"a": "b", "human": ["a", "b"]}},
        CrossEvaluator(judges={n: ValueEvaluator(model=n) for n in "ab"}, rule={"a": "b", "human": ["a", "b"]}),
    ),
    "callback": ({"function": "sorting_errors"}, CallbackEvaluator(sorting_errors)),
    "step": ({"split": r"\n", "reduce": "mean"}, StepEvaluator(split=r"\n", reduce="mean")),
}


@pytest.mark.parametrize("kind", [name for name, entry in EVALUATORS.entries.items() if entry.package is None])
def test_every_kind_is_made_as_its_class_makes_it(kind: str) -> None:
    options, expected = TOLD[kind]
    made = make_evaluator(kind, options)
    assert type(made) is type(expected)
    assert made.describe() == expected.describe()
    assert (made.name, made.scale, made.models) == (kind, expected.scale, expected.models)
    made.check()


@pytest.mark.parametrize("kind", ["debate", "value", "vote", "step"])
def test_no_options_are_the_defaults(kind: str) -> None:
    assert make_evaluator(kind, {}).describe() == EVALUATORS.load(kind)().describe()


@pytest.mark.parametrize(
    ("spelled", "reader"),
    [
        ("{json: [worth, 0, 20]}", JsonField("worth", 0, 20)),
        ("{json: worth}", JsonField("worth")),
        ("{tag: [score, -100, 100]}", TagNumber("score", -100, 100)),
        ("{number: [0, 5]}", NumberLine(0, 5)),
        (
            "{labels: {sure: 20, likely: 1, impossible: 0.001}}",
            LabelMap({"sure": 20, "likely": 1, "impossible": 0.001}),
        ),
    ],
)
def test_a_reader_is_spelled_by_its_form(spelled: str, reader: Any) -> None:
    made = make_evaluator("value", {"reader": yaml.safe_load(spelled)})
    assert isinstance(made, ValueEvaluator)
    assert made.reader == reader
    assert made.scale == reader.scale


@pytest.mark.parametrize("kind", ["value", "vote"])
def test_the_sampling_stands_among_the_options_or_by_itself(kind: str) -> None:
    made = make_evaluator(kind, {"temperature": 0.9, "sampling": {"temperature": 0.1, "top_p": 0.5}})
    assert isinstance(made, ValueEvaluator | VoteEvaluator)
    assert made.sampling == Sampling(temperature=0.9, top_p=0.5)


def test_early_stopping_is_a_mapping() -> None:
    made = make_evaluator("value", {"early_stop": {"threshold": 0.8, "over": "task", "wave": 4}})
    assert isinstance(made, ValueEvaluator)
    assert made.early_stop == EarlyStop(threshold=0.8, over="task", wave=4)


@pytest.mark.parametrize(
    ("given", "judge"),
    [
        ("prompt", PromptedSteps()),
        ("x1", PromptedSteps.x1()),
        ("value_model", ValueModelSteps()),
        ("reward_model", RewardModelSteps()),
        (
            {"kind": "prompt", "samples": 3, "temperature": 0.7},
            PromptedSteps(samples=3, sampling=Sampling(temperature=0.7)),
        ),
        ({"kind": "x1", "samples": 2, "model": "m"}, PromptedSteps.x1(samples=2, model="m")),
        ({"samples": 2, "reader": {"json": ["s", 0, 1]}}, PromptedSteps(samples=2, reader=JsonField("s", 0.0, 1.0))),
        ({"kind": "value_model", "model": "v", "scale": [0, 1]}, ValueModelSteps(model="v", scale=Scale(0, 1))),
    ],
)
def test_a_judge_of_steps_is_a_name_or_a_mapping(given: Any, judge: Any) -> None:
    made = make_evaluator("step", {"judge": given})
    assert isinstance(made, StepEvaluator)
    assert type(made.judge) is type(judge)
    assert made.scale == judge.scale
    assert made.models == judge.models
    if not isinstance(given, dict) or "reader" not in given:  # 0 and 0.0 are one scale, and two ways to write it
        assert made.judge.describe() == judge.describe()


def test_a_function_is_named_with_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scorers_of_mine.py").write_text("def length(x, answer):\n    return len(answer)\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    options = {"function": "scorers_of_mine:length", "scale": [0, 100], "on_error": 0}
    made = make_evaluator("callback", options)
    assert isinstance(made, CallbackEvaluator)
    assert made.on_error == Penalty(0)
    assert judged(made, Task("x", ["four", "seven77"])).scores.tolist() == [4, 7]


@pytest.mark.parametrize(
    ("given", "scale"),
    [
        ([0, 5], Scale(0, 5)),
        ([0, 5, "higher"], Scale(0, 5)),
        ([0, None, "lower"], Scale(0, math.inf, higher_is_better=False)),
        ([-1, 1, "lower"], Scale(-1, 1, higher_is_better=False)),
    ],
)
def test_a_scale_is_a_list(given: list[Any], scale: Scale) -> None:
    assert make_evaluator("callback", {"function": "sorting_errors", "scale": given}).scale == scale


def test_evaluators_nest_as_deep_as_one_likes() -> None:
    spelled = """
    by: ranks
    members:
      inner:
        evaluator: panel
        weights: {a: 2, b: 1}
        below: weighted
        members:
          a: {evaluator: value, samples: 1}
          b: {evaluator: vote, ballots: 2, temperature: 0.2}
      debate: {evaluator: debate, profile: general, rounds: 2}
    reserves:
      debate: {evaluator: step, judge: x1}
    """
    made = make_evaluator("panel", yaml.safe_load(spelled))
    inner = PanelEvaluator(
        members={"a": ValueEvaluator(samples=1), "b": VoteEvaluator(ballots=2, sampling=Sampling(temperature=0.2))},
        weights={"a": 2, "b": 1},
        below="weighted",
    )
    expected = PanelEvaluator(
        by="ranks",
        members={"inner": inner, "debate": DebateEvaluator("general", rounds=2)},
        reserves={"debate": StepEvaluator(judge=PromptedSteps.x1())},
    )
    assert made.describe() == expected.describe()
    made.check()


@pytest.mark.parametrize(
    ("kind", "options", "field", "words"),
    [
        ("values", {}, "evaluator", "value"),
        ("value", {"sample": 3}, "options.sample", "samples"),
        ("value", {"name": "mine"}, "options.name", "samples"),
        ("callback", {"function": "sorting_errors", "temperature": 1}, "options.temperature", "function"),
        ("value", {"samples": "3"}, "samples", ""),
        ("value", {"samples": 0}, "samples", ""),
        ("value", {"reader": {"xml": 1}}, "options.reader", ""),
        ("value", {"reader": {"json": "a", "tag": "b"}}, "options.reader", ""),
        ("value", {"reader": {"number": [0, 1, 2, 3]}}, "options.reader", ""),
        ("value", {"reader": {"labels": {"sure": "much", "no": 0}}}, "options.reader.labels", ""),
        ("value", {"reader": "json"}, "options.reader", ""),
        ("value", {"early_stop": {"treshold": 1}}, "options.early_stop.treshold", "threshold"),
        ("value", {"early_stop": True}, "options.early_stop", ""),
        ("value", {"sampling": {"heat": 1}}, "options.sampling.heat", "temperature"),
        ("value", {"temperature": -1}, "temperature", ""),
        ("panel", {}, "options", "members"),
        ("panel", {"members": ["value"]}, "options.members", ""),
        ("panel", {"members": {"a": "value"}}, "options.members.a", ""),
        ("panel", {"members": {"a": {"samples": 3}}}, "options.members.a", "value"),
        ("panel", {"members": {"a": {"evaluator": "valu"}}}, "evaluator", "value"),
        ("panel", {"members": {"a": {"evaluator": "value", "x": 1}}}, "options.members.a.x", "samples"),
        ("step", {"judge": "oracle"}, "options.judge", "prompt"),
        ("step", {"judge": {"kind": "reward_model", "samples": 3}}, "options.judge.samples", "model"),
        ("step", {"judge": {"kind": "x1", "template": "mine"}}, "options.judge", "template"),
        ("callback", {"function": "no_such"}, "options.function", "sorting_errors"),
        ("callback", {"function": "no_such_module:f"}, "options.function", ""),
        ("callback", {"function": "math:no_such"}, "options.function", ""),
        ("callback", {"function": "sorting_errors", "scale": [0]}, "options.scale", ""),
        ("callback", {"function": "sorting_errors", "scale": [0, 1, "down"]}, "options.scale", ""),
        ("callback", {"function": "sorting_errors", "scale": [0, "x"]}, "options.scale", ""),
        ("callback", {"function": "sorting_errors", "scale": [False, True]}, "options.scale", ""),
        ("callback", {"function": "sorting_errors", "on_error": "x"}, "options.on_error", ""),
    ],
)
def test_what_cannot_be_is_refused_by_name(kind: str, options: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        make_evaluator(kind, options)
    assert refused.value.field == field
    assert words in f"{refused.value}"


def test_the_place_is_told_as_it_was_given() -> None:
    with pytest.raises(InputError) as refused:
        make_evaluator("value", {"sample": 1}, "evaluator.options")
    assert refused.value.field == "evaluator.options.sample"


def test_what_is_the_judges_may_stand_beside_it() -> None:
    beside = make_evaluator("step", {"max_tokens": 50, "samples": 2, "reduce": "mean"})
    inside = make_evaluator("step", {"judge": {"kind": "prompt", "max_tokens": 50, "samples": 2}, "reduce": "mean"})
    assert beside.describe() == inside.describe() != make_evaluator("step", {"reduce": "mean"}).describe()
