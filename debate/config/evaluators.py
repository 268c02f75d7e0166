"""Evaluators from plain data: a kind and its parameters, as they stand in a YAML file.

    evaluator: panel
    options:
      by: ranks
      members:
        values: {evaluator: value, samples: 5, reader: {labels: {sure: 20, likely: 1, impossible: 0.001}}}
        debate: {evaluator: debate, profile: general, rounds: 2}

One name for one thing: an option is a parameter of the evaluator's class. What a YAML file cannot hold is spelt:

    reader      {json: [KEY, LOW, HIGH]}, {tag: [TAG, LOW, HIGH]}, {number: [LOW, HIGH]} or {labels: {LABEL: WORTH}}
    judge       of steps: prompt, x1, value_model or reward_model, or {kind: prompt, samples: 3, ...}; the options of a
                prompted judge may stand beside it
    function    of a callback: MODULE:NAME, or a scorer's name
    scale       [LOW, HIGH], or [LOW, HIGH, lower]; HIGH may be null
    on_error    the penalty, a number
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any, cast

from debate import scorers
from debate.errors import ConfigError
from debate.evaluators.base import Evaluator
from debate.evaluators.callback import CallbackEvaluator, Penalty
from debate.evaluators.cross import CrossEvaluator
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.evaluators.early_stop import EarlyStop
from debate.evaluators.panel import PanelEvaluator
from debate.evaluators.steps.evaluator import StepEvaluator
from debate.evaluators.steps.prompted import PromptedSteps
from debate.evaluators.steps.reward_models import RewardModelSteps, ValueModelSteps
from debate.evaluators.value import ValueEvaluator
from debate.evaluators.vote import VoteEvaluator
from debate.parsing.values import JsonField, LabelMap, NumberLine, TagNumber
from debate.types import Sampling, Scale

Options = Mapping[str, Any]
KINDS: dict[str, type[Any]] = {
    "debate": DebateEvaluator,
    "value": ValueEvaluator,
    "vote": VoteEvaluator,
    "panel": PanelEvaluator,
    "cross": CrossEvaluator,
    "callback": CallbackEvaluator,
    "step": StepEvaluator,
}
JUDGES: dict[str, Callable[..., Any]] = {
    "prompt": PromptedSteps,
    "x1": PromptedSteps.x1,
    "value_model": ValueModelSteps,
    "reward_model": RewardModelSteps,
}
_SCORERS = ("sorting_errors", "keyword_count_errors")
_SAMPLING = tuple(spec.name for spec in fields(Sampling))


def make_evaluator(kind: str, options: Options, where: str = "options") -> Evaluator:
    """The evaluator of a kind, with these parameters.

    Raises:
        ConfigError: naming the option that it does not have, or that cannot work.
    """
    if kind not in KINDS:
        raise ConfigError(f"there is no evaluator {kind!r}", field="evaluator", hint=", ".join(KINDS))
    if kind == "step":
        options = _to_judge(options, where)
    return _made(KINDS[kind], {name: _value(name, value, where) for name, value in options.items()}, kind, where)


def _to_judge(options: Options, where: str) -> dict[str, Any]:
    """The options of a step evaluator, with those that are its judge's given to the judge."""
    own = inspect.signature(StepEvaluator).parameters
    of_judge = {*inspect.signature(PromptedSteps).parameters, *_SAMPLING} - {*own}
    moved = {name: value for name, value in options.items() if name in of_judge}
    given = {name: value for name, value in options.items() if name not in of_judge}
    if moved:
        judge = given.get("judge", "prompt")
        spec = {"kind": judge} if isinstance(judge, str) else _mapping(judge, f"{where}.judge")
        given["judge"] = {**moved, **spec}
    return given


def _value(name: str, value: Any, where: str) -> Any:
    """An option's value as the class wants it."""
    place = f"{where}.{name}"
    match name:
        case "reader":
            return _reader(value, place)
        case "early_stop":
            return _made(EarlyStop, _mapping(value, place), "early_stop", place)
        case "sampling":
            return _made(Sampling, _mapping(value, place), "sampling", place)
        case "members" | "reserves" | "judges":
            each = _mapping(value, place)
            return {str(member): _member(given, f"{place}.{member}") for member, given in each.items()}
        case "judge":
            return _judge(value, place)
        case "function":
            return _function(value, place)
        case "scale":
            return _scale(value, place)
        case "on_error":
            return None if value is None else Penalty(_number(value, place))
        case _:
            return value


def _made(make: Callable[..., Any], options: Options, kind: str, where: str) -> Any:
    """Called with the options; those of the sampling stand among them, where there is a sampling."""
    known = [name for name in inspect.signature(make).parameters if name != "settings"]
    if "settings" in inspect.signature(make).parameters:  # x1's prompts: a few fixed, the rest PromptedSteps'
        known = [name for name in inspect.signature(PromptedSteps).parameters if not name.endswith("template")]
    given = dict(options)
    if "sampling" in known:
        drawn = {name: given.pop(name) for name in _SAMPLING if name in given}
        if drawn:
            given["sampling"] = _made(Sampling, drawn, "sampling", where).over(given.get("sampling", Sampling()))
        known += _SAMPLING
    for name in given:
        if name not in known:
            raise ConfigError(f"{kind} has no option {name!r}", field=f"{where}.{name}", hint=", ".join(known))
    try:
        return make(**given)
    except TypeError as error:
        raise ConfigError(f"{kind} cannot be made: {error}", field=where) from None


def _member(given: Any, where: str) -> Evaluator:
    options = dict(_mapping(given, where))
    kind = options.pop("evaluator", None)
    if not isinstance(kind, str):
        raise ConfigError("must say which `evaluator` it is", field=where, hint=", ".join(KINDS))
    return make_evaluator(kind, options, where)


def _reader(given: Any, where: str) -> Any:
    makers: dict[str, Callable[..., Any]] = {"json": JsonField, "tag": TagNumber, "number": NumberLine}
    spec = _mapping(given, where)
    if len(spec) != 1 or not (spec.keys() & {*makers, "labels"}):
        raise ConfigError("must be one of json, tag, number and labels", field=where)
    ((form, value),) = spec.items()
    if form == "labels":
        worth = {str(label): _number(each, f"{where}.labels") for label, each in _mapping(value, where).items()}
        return LabelMap(worth)
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    for end in parts[0 if form == "number" else 1 :]:
        _number(end, where)
    try:
        reader = makers[form](*parts)
        _ = reader.scale
        return reader
    except TypeError as error:
        raise ConfigError(str(error), field=where) from None


def _judge(given: Any, where: str) -> Any:
    spec = {"kind": given} if isinstance(given, str) else dict(_mapping(given, where))
    kind = spec.pop("kind", "prompt")
    if kind not in JUDGES:
        raise ConfigError(f"there is no judge of steps {kind!r}", field=where, hint=", ".join(JUDGES))
    return _made(JUDGES[kind], {name: _value(name, value, where) for name, value in spec.items()}, kind, where)


def _function(given: Any, where: str) -> Any:
    if given in _SCORERS:
        return getattr(scorers, given)
    module, colon, name = str(given).partition(":")
    if not colon:
        raise ConfigError(f"must be MODULE:NAME, or one of {', '.join(_SCORERS)}, got {given!r}", field=where)
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(str(error), field=where, hint="is its folder on PYTHONPATH?") from None


def _scale(given: Any, where: str) -> Scale:
    parts = cast("list[Any]", given) if isinstance(given, list) else []
    if len(parts) not in (2, 3) or parts[2:] not in ([], ["lower"], ["higher"]):
        raise ConfigError("must be [LOW, HIGH], or [LOW, HIGH, lower]", field=where)
    high = math.inf if parts[1] is None else _number(parts[1], where)
    return Scale(_number(parts[0], where), high, parts[2:] != ["lower"])


def _mapping(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ConfigError(f"must be a mapping, got {given!r}", field=where)
    return cast("dict[str, Any]", given)


def _number(given: Any, where: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ConfigError(f"must be a number, got {given!r}", field=where)
    return float(given)
