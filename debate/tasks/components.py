"""Score components: what every candidate is scored on, as a profile names it for all tasks or a task for itself."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, cast, get_type_hints

from debate.errors import InputError, ProfileError, TaskError
from debate.settings import check_value

LONGEST_NAME = 100
"""Characters of the name of a task's own component: it stands beside every score, in prompts, replies and tables."""


def without_controls(text: str) -> str:
    """The text, which is a name. Raises ValueError for a control character."""
    if found := next((c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp")), None):
        raise ValueError(f"a name must not contain the control character {found!a}")
    return text


class Text:
    """Schema of a text that is not empty, in a file."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.str_schema(min_length=1)


class Name:
    """Schema of a name in a file: a text that is not empty and holds no control characters."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(without_controls, core_schema.str_schema(min_length=1))


def check_types(value: Any) -> None:
    """Check every field of a persona, a component or a profile. Raises ProfileError."""
    types = get_type_hints(value.__class__)
    for each in fields(value):
        plain = check_value(each.name, getattr(value, each.name), types[each.name], ProfileError)
        object.__setattr__(value, each.name, plain)


# What the annotations ask for holds in files; what `__post_init__` asks for holds everywhere.
@dataclass(frozen=True, slots=True)
class Component:
    """One thing that every candidate is scored on, with the sentence that tells the agent what it means."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    name: Annotated[str, Name]
    description: Annotated[str, Text]
    weight: float = 1.0
    """What the component counts in a score beside the others, in [0, 1] (Yucha 2024); 0 adds nothing."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.name.strip():
            raise ProfileError("must not be empty", field="name")
        if not 0.0 <= self.weight <= 1.0:
            raise ProfileError(f"must lie in [0, 1], got {self.weight:g}", field="weight")


DEFAULT_COMPONENTS: tuple[Component, ...] = (
    Component(
        "confidence",
        "How firmly, and how rightly so, the response commits to what it says: "
        "0 is evasive or sure of what is wrong, 10 is as sure as the facts allow.",
    ),
    Component(
        "relevance",
        "How closely the response keeps to what was asked: 0 is beside the point, 10 is all of it to the point.",
    ),
    Component(
        "accuracy",
        "How correct the statements and the reasoning of the response are: 0 is wrong throughout, 10 is free of error.",
    ),
    Component(
        "completeness",
        "How much of what was asked the response covers: 0 is none of it, 10 is every part in the depth it needs.",
    ),
    Component(
        "timeliness",
        "How well the response holds as of today's date: 0 is out of date where that matters, "
        "10 is up to date, or does not depend on the date.",
    ),
)
"""The five score components of the article, for a profile that names none; each has weight 1."""


def check_together(components: Sequence[Component], error: type[InputError]) -> None:
    """Refuse components of which none counts, or two have one name, with an `error` that names the field."""
    if not any(component.weight for component in components):
        raise error("have weights that sum to 0: at least one must count", field="components")
    check_unique([component.name for component in components], "components", error)


def check_unique(names: Sequence[str], where: str, error: type[InputError]) -> None:
    """Refuse a name that two of the list `where` have, be it in another case, with an `error`."""
    seen: set[str] = set()
    for n, name in enumerate(names):
        if name.casefold() in seen:
            raise error(f"duplicate name {name!r}", field=f"{where}.{n}.name")
        seen.add(name.casefold())


def task_components(given: object) -> tuple[Component, ...]:
    """The components of one task, from `Component`s or mappings of `name`, `description` and perhaps `weight`.

    Raises:
        TaskError: for what is no list of components; names the field.
    """
    if given is None or given == ():
        return ()
    if isinstance(given, str | bytes | set | frozenset | Mapping) or not isinstance(given, Iterable):
        kind = type(cast("object", given)).__name__
        raise TaskError(f"must be a list of components, got {kind}", field="components", hint=_FORM)
    found = tuple(_component(each, f"components.{n}") for n, each in enumerate(cast("Iterable[object]", given)))
    if found:
        check_together(found, TaskError)
    return found


def criteria_text(components: Sequence[Component]) -> str:
    """Components as a list in words, with their weights where these differ."""
    differ = len({component.weight for component in components}) > 1
    lines = [f"- {each.name}: {each.description}" + f" (weight {each.weight:g})" * differ for each in components]
    return "\n".join(["Criteria to judge by:", *lines])


_KEYS = ("name", "description", "weight")
_FORM = 'a component is {"name": ..., "description": ...}, and may have a "weight" from 0 to 1'
_HINTS = {"weight": "divide the weights of the task's components by the largest of them"}


def _component(given: object, where: str) -> Component:
    component = given if isinstance(given, Component) else _from_mapping(given, where)
    component = replace(component, weight=float(component.weight))  # 1 and 1.0 are the same task
    if len(component.name) > LONGEST_NAME:
        hint = "what it asks for belongs in the description"
        problem = f"has {len(component.name)} characters, and may have {LONGEST_NAME}"
        raise TaskError(problem, field=f"{where}.name", hint=hint)
    try:
        without_controls(component.name)
    except ValueError as error:
        raise TaskError(str(error), field=f"{where}.name") from None
    if not component.description.strip():
        raise TaskError("is empty", field=f"{where}.description")
    return component


def _from_mapping(given: object, where: str) -> Component:
    if not isinstance(given, Mapping):
        raise TaskError(f"must be a component, got {type(given).__name__}", field=where, hint=_FORM)
    data = cast("Mapping[Any, Any]", given)
    for key in data:
        if key not in _KEYS:
            raise TaskError("unknown key", field=f"{where}.{key}", hint=f"known keys: {', '.join(_KEYS)}")
    for key in _KEYS[:2]:
        if data.get(key) is None:
            raise TaskError("is missing", field=f"{where}.{key}", hint=_FORM)
    try:
        return Component(**{key: value for key, value in data.items() if value is not None})
    except ProfileError as error:
        hint = _HINTS.get(error.field or "")
        raise TaskError(error.problem, field=f"{where}.{error.field}", hint=hint) from None
