"""Evaluators and backends from plain data: a name and its parameters, as a YAML file or the command line has them.

    evaluator: panel
    options:
      by: ranks
      members:
        values: {evaluator: value, samples: 5, reader: {labels: {sure: 20, likely: 1, impossible: 0.001}}}
        debate: {evaluator: debate, profile: general, rounds: 2}

An option is a parameter of the class, of the same name. What it holds follows from the parameter's type:

    Evaluator       a mapping: `evaluator`, a name, and its options
    ValueReader     {json: [KEY, LOW, HIGH]}, {tag: [TAG, LOW, HIGH]}, {number: [LOW, HIGH]} or {labels: {LABEL: WORTH}}
    StepJudge       prompt, x1, value_model or reward_model, or {kind: prompt, samples: 3, ...}; the options of a
                    prompted judge may stand beside it
    Callable        MODULE:NAME, or one of our scorers
    Scale           [LOW, HIGH], or [LOW, HIGH, lower]; HIGH may be null
    Penalty         a number
    a dataclass     a mapping; the keys of `sampling` and `retry_policy` may stand among the options themselves
"""

from __future__ import annotations

import collections.abc
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from debate.errors import ConfigError
from debate.evaluators.base import Evaluator
from debate.evaluators.callback import Penalty
from debate.evaluators.steps.prompted import PromptedSteps, StepJudge
from debate.parsing.values import JsonField, LabelMap, NumberLine, TagNumber, ValueReader
from debate.registry import EVALUATORS, Registry
from debate.types import Scale

Options = Mapping[str, Any]
STEP_JUDGES = Registry(
    "judge of steps",
    None,
    """
    prompt       | debate.evaluators.steps.prompted:PromptedSteps | a chat model, asked about one step at a time
    x1           | debate.evaluators.steps.prompted:PromptedSteps.x1 | the same, with x1's own prompts
    value_model  | debate.evaluators.steps.reward_models:ValueModelSteps | a value model behind --backend value_server
    reward_model | debate.evaluators.steps.reward_models:RewardModelSteps | a model on --backend reward_model
    """,
)
FUNCTIONS = Registry(
    "function",
    None,
    """
    sorting_errors | debate.scorers:sorting_errors | how far a list of numbers is from sorted
    keyword_count_errors | debate.scorers:keyword_count_errors | how far the counts of keywords are off
    """,
)
_INLINE = ("sampling", "retry_policy")
"""Parameters whose own may stand among the options beside them."""


def make_evaluator(name: str, options: Options, where: str = "options") -> Evaluator:
    """The evaluator of a name, with these parameters.

    Raises:
        ConfigError: naming the option that it does not have, or that cannot work.
    """
    found = EVALUATORS.load(name)
    made = found if hasattr(found, "flow") and not inspect.isclass(found) else None
    if made is None:
        made = construct(found, options, name, where)
    elif options:
        raise ConfigError(f"{name} is made already and takes no options", field=where)
    if not callable(getattr(made, "flow", None)):
        raise ConfigError(f"{name} is no evaluator: it has no `flow`", field="evaluator")
    return made


def construct(make: Callable[..., Any], options: Options, name: str, where: str) -> Any:
    """Call a class, or a function that makes something, with plain options; each is converted by its parameter's type.

    Raises:
        ConfigError: naming the option that it does not have, or that cannot work.
    """
    types, is_open = _parameters(make)
    given = dict(options)
    judge = next((each for each, annotation in types.items() if annotation is StepJudge), None)
    if judge is not None:
        given = _with_judge(given, types, judge, where)
    for inline, inner in ((each, _dataclass_in(types[each])) for each in _INLINE if each in types):
        names = [each.name for each in fields(inner) if each.name not in types] if inner else []
        own = {each: given.pop(each) for each in names if each in given}
        if own:
            given[inline] = {**_mapping(given.get(inline, {}), f"{where}.{inline}"), **own}
    for option in given:
        if option not in types and not is_open:
            raise ConfigError(f"{name} has no option {option!r}", field=f"{where}.{option}", hint=_known(types))
    values = {each: _value(types.get(each), value, f"{where}.{each}") for each, value in given.items()}
    try:
        return make(**values)
    except TypeError as error:
        raise ConfigError(f"{name} cannot be made: {error}", field=where) from None


def _parameters(make: Callable[..., Any]) -> tuple[dict[str, Any], bool]:
    """The parameters of a callable with their types, and whether it takes any other besides."""
    owner = getattr(make, "__self__", make)
    if make is not owner and inspect.isclass(owner):  # a class method hands the rest on to its class
        return _parameters(owner)
    parameters = inspect.signature(make).parameters.values()
    typed = make if is_dataclass(make) or not inspect.isclass(make) else make.__init__
    try:
        hints = get_type_hints(typed, include_extras=True)
    except NameError:  # a type that is imported for type checkers alone: nothing is converted
        hints = {}
    known = [each.name for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    return {each: _bare(hints.get(each)) for each in known}, any(each.kind is each.VAR_KEYWORD for each in parameters)


def _known(types: Mapping[str, Any]) -> str:
    inner = [_dataclass_in(types[each]) for each in _INLINE if each in types]
    return ", ".join([*types, *(each.name for found in inner if found for each in fields(found))])


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def types_in(annotation: Any) -> list[Any]:
    """The types that a value may have, None and bounds apart."""
    several = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return [_bare(each) for each in several if each is not NoneType]


def _dataclass_in(annotation: Any) -> Any:
    return next((each for each in types_in(annotation) if inspect.isclass(each) and is_dataclass(each)), None)


def _value(annotation: Any, value: Any, where: str) -> Any:
    """An option's value as its parameter wants it; what needs no conversion is checked by the class."""
    members = types_in(annotation)
    for each in members if value is not None else ():
        if convert := _CONVERSIONS.get(get_origin(each) or each):
            return convert(value, where)
        if get_origin(each) is collections.abc.Mapping and get_args(each)[1] is Evaluator:
            return {str(name): _evaluator(given, f"{where}.{name}") for name, given in _mapping(value, where).items()}
    if (inner := _dataclass_in(annotation)) and (isinstance(value, dict) or members == [inner]) and value is not None:
        return construct(inner, _mapping(value, where), where.rpartition(".")[2], where)
    return value


def _with_judge(options: Options, types: Mapping[str, Any], judge: str, where: str) -> dict[str, Any]:
    """The options with those of a prompted judge of steps moved to it."""
    inner, _ = _parameters(PromptedSteps)
    of_judge = {*inner, *(each.name for each in fields(_dataclass_in(inner["sampling"])))} - types.keys()
    moved = {name: value for name, value in options.items() if name in of_judge}
    given = {name: value for name, value in options.items() if name not in of_judge}
    if moved:
        spec = given.get(judge, "prompt")
        given[judge] = {**moved, **({"kind": spec} if isinstance(spec, str) else _mapping(spec, f"{where}.{judge}"))}
    return given


def _evaluator(given: Any, where: str) -> Evaluator:
    options = dict(_mapping(given, where))
    name = options.pop("evaluator", None)
    if not isinstance(name, str):
        raise ConfigError("must say which `evaluator` it is", field=where, hint=EVALUATORS.names())
    return make_evaluator(name, options, where)


_READERS: dict[str, Any] = {"json": JsonField, "tag": TagNumber, "number": NumberLine, "labels": LabelMap}


def _reader(given: Any, where: str) -> Any:
    spec = _mapping(given, where)
    if len(spec) != 1 or not spec.keys() <= _READERS.keys():
        raise ConfigError(f"must be one of {', '.join(_READERS)}", field=where)
    ((form, value),) = spec.items()
    if form == "labels":
        value = {str(label): _number(each, f"{where}.labels") for label, each in _mapping(value, where).items()}
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    for end in [] if form == "labels" else parts[form != "number" :]:
        _number(end, where)
    try:
        return _READERS[form](*parts)
    except TypeError as error:
        raise ConfigError(str(error), field=where) from None


def _judge(given: Any, where: str) -> Any:
    spec = {"kind": given} if isinstance(given, str) else dict(_mapping(given, where))
    kind = str(spec.pop("kind", "prompt"))
    return construct(STEP_JUDGES.load(kind, where), spec, kind, where)


def _function(given: Any, where: str) -> Any:
    return given if callable(given) else FUNCTIONS.load(str(given), where)


def _scale(given: Any, where: str) -> Scale:
    parts = cast("list[Any]", given) if isinstance(given, list) else []
    if len(parts) not in (2, 3) or parts[2:] not in ([], ["lower"], ["higher"]):
        raise ConfigError("must be [LOW, HIGH], or [LOW, HIGH, lower]", field=where)
    high = math.inf if parts[1] is None else _number(parts[1], where)
    return Scale(_number(parts[0], where), high, parts[2:] != ["lower"])


def _penalty(given: Any, where: str) -> Penalty:
    return Penalty(_number(given, where))


def _mapping(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ConfigError(f"must be a mapping, got {given!r}", field=where)
    return cast("dict[str, Any]", given)


def _number(given: Any, where: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ConfigError(f"must be a number, got {given!r}", field=where)
    return float(given)


_CONVERSIONS: dict[Any, Callable[[Any, str], Any]] = {
    Evaluator: _evaluator,
    ValueReader: _reader,
    StepJudge: _judge,
    Scale: _scale,
    Penalty: _penalty,
    collections.abc.Callable: _function,  # pyright: ignore[reportUnknownMemberType]
}
