"""What makes a run the same run: the settings that shape its prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

AGGREGATION = "aggregation"
"""Key of the settings, at any depth, that shape no prompt and may change when a run goes on."""


def prompt_identity(data: Any) -> Any:
    """The data without what may change, in the plain types that JSON gives back."""
    if isinstance(data, dict):
        items = cast("dict[str, Any]", data).items()
        return {key: prompt_identity(value) for key, value in items if key != AGGREGATION}
    if isinstance(data, list | tuple):
        return [prompt_identity(item) for item in cast("list[Any]", data)]
    return data


def differences(before: Any, now: Any) -> list[str]:
    """`KEY: A -> B` for every dotted key that differs, in order of the keys.

    What follows from a name that differs is left out: another profile has other personas.
    """
    return list(_differing(before, now, ""))


_MISSING = object()
_FOLLOWS: dict[str, set[str]] = {"profile": {"personas", "components"}}
"""Keys beside a name that say what is named; beside `evaluator` that is every key."""
_LONGEST = 60
"""Characters of a value that are shown."""


def _differing(before: Any, now: Any, key: str) -> Iterator[str]:
    was, is_now = _keyed(before), _keyed(now)
    if key.split(".")[0] == "model_settings" and key.count(".") < 2:  # those of a model are there where it has any
        was, is_now = was or {}, is_now or {}
    if before == now:
        return
    if was is None or is_now is None:
        yield f"{key.removeprefix('evaluator.')}: {_shown(before)} -> {_shown(now)}"
        return
    if key == "models" and len(was) == len(is_now) == 1:
        was, is_now, key = {"model": next(iter(was.values()))}, {"model": next(iter(is_now.values()))}, ""
    names = {*was, *is_now}
    if isinstance(was.get("evaluator"), str) and was["evaluator"] != is_now.get("evaluator"):
        names = {"evaluator"}
    for name, follows in _FOLLOWS.items():
        if was.get(name) != is_now.get(name):
            names -= follows
    for name in sorted(names):
        inner = f"{key}.{name}" if key else name
        yield from _differing(was.get(name, _MISSING), is_now.get(name, _MISSING), inner)


def _keyed(data: Any) -> dict[str, Any] | None:
    """A mapping as it is and a list by its positions; None for anything else."""
    if isinstance(data, list | tuple):
        return {str(n): item for n, item in enumerate(cast("list[Any]", data))}
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "not there"
    if (inner := _keyed(value)) is not None:
        return f"{len(inner)} entries"
    text = value if isinstance(value, str) and value.isprintable() and value else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
