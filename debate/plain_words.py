"""What pydantic found wrong with a user's data, in words for someone who knows neither pydantic nor Python.

It knows the pydantic models that the data should have met; not where the data came from, nor the lines they stand on:
`debate.yaml_files` adds those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

Loc = tuple[str | int, ...]
"""Path of keys and list positions that leads to a value: `("personas", 0, "role")`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: where in the data, what, and what to do about it where that can be said."""

    loc: Loc
    message: str
    hint: str | None


def first_finding(found: ValidationError, model: type[BaseModel]) -> Finding:
    """The first thing that keeps some data from being a `model`, and how many more there are.

    Unknown keys come first, for a misspelt key also makes the right one missing.
    """
    findings: list[Any] = sorted(found.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    first = findings[0]
    message, hint = _worded(first, _fields_around(model, first["loc"]))
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return Finding(first["loc"], message + more, hint)


def _fields_around(model: type[BaseModel], loc: Loc) -> dict[str, FieldInfo]:
    """The fields that stand beside the last key of `loc`."""
    fields = model.model_fields
    for part in loc[:-1]:
        if part in fields:  # else a list's position or a mapping's own key
            inner = _model_in(fields[str(part)].annotation)
            fields = inner.model_fields if inner else {}
    return fields


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside `list[Model]`, `Model | None` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for arg in get_args(annotation) if (model := _model_in(arg))), None)


def _worded(finding: Any, fields: Mapping[str, FieldInfo]) -> tuple[str, str | None]:
    """Message and hint for one of pydantic's findings."""
    kind, given = str(finding["type"]), finding["input"]
    key = finding["loc"][-1] if finding["loc"] else ""
    if kind == "extra_forbidden":
        close = get_close_matches(str(key), list(fields), n=1)
        known = f"known keys: {', '.join(fields)}" if fields else None
        return "unknown key", f"did you mean {close[0]!r}?" if close else known
    if kind in _WORDS:
        quote = kind == "string_type" and isinstance(given, bool | int | float)
        return _WORDS[kind].format(given=_shown(given)), "put it in quotes" if quote else None
    if kind in _BOUNDS:
        return f"must lie in {_interval(finding['ctx'], fields.get(key))}, got {_shown(given)}", None
    message = str(finding["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:], None


_BOUNDS = ("greater_than_equal", "greater_than", "less_than_equal", "less_than")
_WORDS = {
    "missing": "is missing",
    "string_type": "must be text, got {given}",
    "float_type": "must be a number, got {given}",
    "int_type": "must be a whole number, got {given}",
    "int_from_float": "must be a whole number, got {given}",
    "bool_type": "must be true or false, got {given}",
    "list_type": "must be a list, got {given}",
    "model_type": "must be a mapping of keys to values, got {given}",
    "dict_type": "must be a mapping of keys to values, got {given}",
    "finite_number": "must be a finite number, got {given}",
    "too_short": "is empty",
    "string_too_short": "is empty",
}


def _interval(ctx: Mapping[str, Any], info: FieldInfo | None) -> str:
    """Both bounds of a field, where pydantic names only the one that was crossed."""
    bounds = dict(ctx)
    for constraint in info.metadata if info else ():
        bounds |= {side: getattr(constraint, side) for side in ("ge", "gt", "le", "lt") if hasattr(constraint, side)}
    low = f"[{bounds['ge']:g}" if "ge" in bounds else f"({bounds.get('gt', -inf):g}"
    return low + ", " + (f"{bounds['le']:g}]" if "le" in bounds else f"{bounds.get('lt', inf):g})")


def _shown(given: Any) -> str:
    """A value as the file has it: containers by kind alone, the rest short."""
    if isinstance(given, dict | list):
        return "a mapping" if isinstance(given, dict) else "a list"
    if given is None or isinstance(given, bool):
        return "nothing" if given is None else str(given).lower()
    return shown if len(shown := repr(given)) <= 60 else shown[:57] + "..."
