"""One declaration per setting: a dataclass field holds its type, default, bounds and help, and everything else is made
from that: checks, the description by which runs are told apart, docstrings, command-line flags, the docs page.

    @documented
    @dataclass(frozen=True)
    class Example:
        rounds: int = result_setting(3, "Most rounds of a debate.", ge=1)

        def __post_init__(self) -> None:
            check_settings(self)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from functools import cache, cached_property, wraps
from inspect import cleandoc, signature
from operator import ge, gt, le, lt
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from debate.errors import ConfigError, InputError, UnknownArgumentError

P = ParamSpec("P")
T = TypeVar("T")
_NOUNS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
_KINDS: dict[Any, str] = {Mapping: "a mapping", Sequence: "a list", Collection: "a list", Callable: "a function"}
_BOUNDS = {"ge": ("at least", ge), "gt": ("above", gt), "le": ("at most", le), "lt": ("below", lt)}
REQUIRED: Any = MISSING
"""The default of a setting that has none."""


def setting(
    default: Any,
    help: str,  # noqa: A002 - as argparse and typer call it
    *,
    shapes_prompts: bool = True,
    came_later: bool = False,
    file_type: Any = None,
    is_hashable: bool = True,
    **bounds: float,
) -> Any:
    """A dataclass field that declares a setting.

    default: immutable; a class stands for an instance made without arguments; `REQUIRED` for no default.
    help: one or two sentences, shown by `help()`, `--help` and the docs page.
    shapes_prompts: whether a prompt may depend on it; other settings may change when a run is resumed.
    came_later: whether runs were recorded before there was this setting. A run's identity then leaves it out while it
        has its default, with which everything is as it was.
    file_type: the type in a YAML file or on the command line, where it is not the field's.
    is_hashable: False for mappings and the like, which the hash of an instance leaves out.
    bounds: `ge`, `gt`, `le` and `lt`, as pydantic's `Field` takes them.
    """
    hash_ = None if is_hashable else False
    metadata = {
        "help": help,
        "shapes_prompts": shapes_prompts,
        "came_later": came_later,
        "file_type": file_type,
        "bounds": bounds,
    }
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata, hash=hash_)
    return field(default=default, metadata=metadata, hash=hash_)


def result_setting(default: Any, help: str, **other: Any) -> Any:  # noqa: A002
    """A `setting` that shapes results and no prompt, so that it may change when a run is resumed."""
    return setting(default, help, shapes_prompts=False, **other)


@dataclass(frozen=True)
class Declaration:
    """A setting of a class, as its field declares it."""

    name: str
    type: Any
    """The field's type, without bounds."""
    default: Any
    """The default value, or `REQUIRED`."""
    help: str
    """What it does, in one or two sentences."""
    shapes_prompts: bool
    """Whether a prompt may depend on it."""
    file_type: Any
    """The type in a YAML file or on the command line, without bounds."""
    bounds: Mapping[str, float]
    """`ge`, `gt`, `le`, `lt` -> a number: what pydantic's `Field` takes."""
    came_later: bool = False
    """Whether a run's identity leaves it out while it has its default."""

    @cached_property
    def members(self) -> tuple[Any, ...]:
        """The members of the type, if it is a union, or else the type itself."""
        return get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)

    @cached_property
    def is_plain(self) -> bool:
        """Whether its values are numbers, texts, flags or None, and so can be checked and recorded as they are."""
        return all(each in _NOUNS or each is NoneType or get_origin(each) is Literal for each in self.members)

    @cached_property
    def _fits(self) -> Callable[[Any], bool]:
        return type_check(self.type)

    @property
    def expected(self) -> str:
        """What a value must be, in words: `a whole number, at least 1, or None`; empty for other than plain types."""
        if not self.is_plain:
            return ""
        text = " or ".join(_noun(each) for each in self.members if each is not NoneType)
        text += f", {self._bounds_in_words}" if self.bounds else ""
        return f"{text}, or None" if NoneType in self.members else text

    def problem(self, value: object) -> str | None:
        """What keeps a value from having the type and lying within the bounds, or None where nothing does."""
        is_finite = not isinstance(value, float) or math.isfinite(value)
        if not is_finite or not self._fits(value):
            return f"must be {self.expected or self._names}, got {value!r:.120}"
        if isinstance(value, int | float) and not all(
            _BOUNDS[side][1](value, bound) for side, bound in self.bounds.items()
        ):
            return f"must be {self._bounds_in_words}, got {value:g}"
        return None

    @property
    def _names(self) -> str:
        """The members of the type by their names: `a Profile, a text or a Path`."""
        *others, last = [_noun(each) for each in self.members if each is not NoneType]
        return f"{', '.join(others)} or {last}" if others else last

    @property
    def _bounds_in_words(self) -> str:
        return " and ".join(f"{_BOUNDS[side][0]} {bound:g}" for side, bound in self.bounds.items())


@cache
def declarations(cls: type[Any]) -> tuple[Declaration, ...]:
    """The settings of a dataclass, inherited ones too, in the order of its fields."""
    types = get_type_hints(cls)
    return tuple(_declaration(each, types[each.name]) for each in fields(cls) if "help" in each.metadata)


def check_settings(settings: Any, prefix: str = "") -> None:
    """Check the settings of a dataclass's instance against their declarations.

    A numpy scalar or array is replaced with the plain values that it holds, so that the setting can be recorded.

    prefix: stands before the field's name in the error.

    Raises:
        ConfigError: naming the first field whose value has the wrong type or lies out of bounds.
    """
    for each in declarations(cast("type[Any]", type(settings))):
        given = getattr(settings, each.name)
        if given is each.default:
            continue
        value = _without_numpy(given)
        if value is not given:
            object.__setattr__(settings, each.name, value)
        if problem := each.problem(value):
            raise ConfigError(problem, field=prefix + each.name)


def check_value(name: str, value: Any, kind: Any, error: type[InputError] = ConfigError, **bounds: float) -> Any:
    """The value of an argument or field, checked as a setting of the type `kind` is, with numpy values made plain.

    Raises:
        InputError: an `error` with `name` as its field, for the wrong type or a value out of bounds.
    """
    value = _without_numpy(value)
    if problem := Declaration(name, kind, REQUIRED, "", True, kind, bounds).problem(value):
        raise error(problem, field=name)
    return value


def _without_numpy(value: Any) -> Any:
    return cast("Any", value).tolist() if isinstance(value, np.generic | np.ndarray) else value


def plain_values(settings: Any, *, shapes_prompts: Iterable[bool] = (True, False)) -> dict[str, Any]:
    """The values of an instance's settings as plain data, by name.

    Values that are neither plain nor have a `describe()` are left out: their owner says how they are recorded. So are
    defaults of settings that came later.

    shapes_prompts: which settings, by this property of their declarations.
    """
    wanted = [each for each in declarations(cast("type[Any]", type(settings))) if each.shapes_prompts in shapes_prompts]
    values: dict[str, Any] = {
        each.name: getattr(settings, each.name)
        for each in wanted
        if not (each.came_later and getattr(settings, each.name) == each.default)
    }
    return {
        name: value if _is_plain(value) else value.describe()
        for name, value in values.items()
        if _is_plain(value) or hasattr(value, "describe")
    }


def describe_settings(settings: Any, *, aggregation: Mapping[str, Any] | None = None, **own: Any) -> dict[str, Any]:
    """The settings of an instance for a run's identity: those that shape no prompt stand under `aggregation`.

    aggregation, own: further entries, or other values for some settings.
    """
    free = plain_values(settings, shapes_prompts=[False])
    return {**plain_values(settings, shapes_prompts=[True]), **own, "aggregation": {**free, **(aggregation or {})}}


def names_what_was_meant(init: Callable[P, T]) -> Callable[P, T]:
    """An `__init__` that answers an argument of a wrong name with the name that was probably meant."""
    known = tuple(signature(init).parameters)[1:]
    names = frozenset(known)

    @wraps(init)
    def checked(*args: P.args, **given: P.kwargs) -> T:
        if given and not given.keys() <= names:
            raise _unknown_argument(type(args[0]).__name__, next(name for name in given if name not in names), known)
        return init(*args, **given)

    return checked


def _unknown_argument(owner: str, name: str, known: Sequence[str]) -> UnknownArgumentError:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"it has {', '.join(known)}"
    return UnknownArgumentError(f"{owner} has no such argument", field=name, hint=hint)


def documented(cls: type[T]) -> type[T]:
    """A dataclass whose docstring lists its settings: a decorator that stands above `@dataclass`.

    An argument of a wrong name is answered as by `names_what_was_meant`.
    """
    type.__setattr__(cls, "__init__", names_what_was_meant(cls.__init__))
    lines = [f"    {each.name}: {each.help}{_remark(each)}" for each in declarations(cls)]
    cls.__doc__ = "\n".join([cleandoc(cls.__doc__ or ""), "", "Args:", *lines])
    return cls


def _declaration(found: Any, annotation: Any) -> Declaration:
    default = found.default if found.default_factory is MISSING else found.default_factory()
    data = dict(found.metadata)
    file_type = data.pop("file_type") or annotation
    return Declaration(found.name, annotation, default, file_type=file_type, **data)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _noun(annotation: Any) -> str:
    if get_origin(annotation) is not Literal:
        kind = get_origin(annotation) or annotation
        if kind is tuple:
            return f"a list of {get_args(annotation)[0].__name__}s"
        return _NOUNS.get(kind) or _KINDS.get(kind) or f"a {kind.__name__}"
    options = [str(each) for each in get_args(annotation)]
    return f"one of {', '.join(options)}" if len(options) > 1 else options[0]


@cache
def type_check(annotation: Any) -> Callable[[Any], bool]:
    """A test of whether a value has a type, as an annotation has it: a class, a protocol, `Literal`, a union, `tuple`.

    True and False are no numbers, a whole number is a `float` too, and of mappings and lists the contents are not read.
    """
    kind, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if kind in (Union, UnionType):
        checks = [type_check(each) for each in arguments]
        return lambda value: any(check(value) for check in checks)
    if kind is Literal:
        return lambda value: isinstance(value, str) and value in arguments
    if kind is tuple and arguments[1:] == (...,):
        check = type_check(arguments[0])
        return lambda value: isinstance(value, tuple) and all(map(check, cast("tuple[Any, ...]", value)))
    if kind in (int, float):
        numbers: Any = (int, float) if kind is float else int
        return lambda value: isinstance(value, numbers) and not isinstance(value, bool)
    if getattr(kind, "_is_protocol", False):
        names = [name for name in vars(kind) if name == "__call__" or not name.startswith("_")]
        return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in names)
    return lambda value: kind is Any or isinstance(value, kind)


def _remark(declared: Declaration) -> str:
    """What a docstring adds to the help: what is expected, and the default where it can be shown."""
    default = declared.default
    shown = f"default {default!r}" if _is_plain(default) else ""
    remark = "; ".join(part for part in (declared.expected, shown) if part)
    return f" ({remark})" if remark else ""
