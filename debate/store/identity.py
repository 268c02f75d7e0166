"""What makes a run the same run: the settings that shape its prompts."""

from __future__ import annotations

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
    """`KEY was A, is B` for every dotted key that differs, in order of the keys."""
    was, is_now = _flat(before), _flat(now)
    changed = [key for key in sorted({*was, *is_now}) if was.get(key, _MISSING) != is_now.get(key, _MISSING)]
    return [f"{key} was {_shown(was.get(key, _MISSING))}, is {_shown(is_now.get(key, _MISSING))}" for key in changed]


_MISSING = object()


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "not there"
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:80]}... ({len(text)} characters)"


def _flat(data: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings and lists as one mapping of dotted keys."""
    if isinstance(data, list | tuple):
        data = {str(n): item for n, item in enumerate(cast("list[Any]", data))}
    if not isinstance(data, dict):
        return {prefix: data}
    flat: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", data).items():
        flat |= _flat(value, f"{prefix}.{key}" if prefix else key)
    return flat
