"""JSON schemas that grammar engines take and that models can follow. Knows nothing of what a reply means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def object_of(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An object with exactly these members, in the order in which they are to be written."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def bounded_text(chars: int) -> dict[str, Any]:
    """A string of at most so many characters."""
    # Not maxLength: under it the grammar engine xgrammar forbids quotation marks and newlines in the string. Under this
    # pattern it permits their escapes.
    return {"type": "string", "pattern": rf"^[^\u0000-\u0009\u000b-\u001f]{{0,{chars}}}$"}


def number_in(low: float, high: float) -> dict[str, Any]:
    """A number, ends included."""
    return {"type": "number", "minimum": low, "maximum": high}
