"""Makes JSON schemas that grammar engines accept and that models can follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHARACTER = r"[^\u0000-\u0009\u000b-\u001f]"


def object_of(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Schema of an object with exactly these members, in the order in which they are to be written."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def bounded_text(chars: int) -> dict[str, Any]:
    """Schema of a string of at most `chars` characters."""
    # Not maxLength: under it grammar engines forbid quotation marks and newlines in the string; under this pattern some
    # permit their escapes. xgrammar 0.2.8 makes no grammar of more than 128 repetitions, hence the sixty-fours.
    groups = (chars - 63) // 64 if chars > 128 else 0
    lead = f"({_CHARACTER}{{64}}){{0,{groups}}}" if groups else ""
    return {"type": "string", "pattern": f"^{lead}{_CHARACTER}{{0,{chars - 64 * groups}}}$"}


def number_in(low: float, high: float) -> dict[str, Any]:
    """Schema of a number from `low` to `high`, ends included."""
    return {"type": "number", "minimum": low, "maximum": high}


def whole_number_in(low: int, high: int) -> dict[str, Any]:
    """Schema of a whole number from `low` to `high`, ends included."""
    return {"type": "integer", "minimum": low, "maximum": high}


def list_of(item: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Schema of a list of exactly `count` items of one kind."""
    return {"type": "array", "items": dict(item), "minItems": count, "maxItems": count}


def or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Schema of what `schema` permits, and of null."""
    return {**schema, "type": [schema["type"], "null"]}
