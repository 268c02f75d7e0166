"""Decodes one JSON text, and keeps every number as it was written.

Python's own decoder does the reading; what it would accept silently is kept or refused: a number keeps its literal, NaN
and Infinity are tokens of their own, a duplicate key is an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from debate.errors import ReplyError


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A number as a JSON literal of any length writes it. Equal to another of the same value."""

    literal: str

    @property
    def value(self) -> float:
        """The number; infinite where a float cannot hold it."""
        return float(self.literal)  # not int(): it refuses long literals

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class NonJsonToken:
    """Neither text nor number: a bracket, or NaN and Infinity, which Python's decoder knows and JSON does not."""

    literal: str


def decode(text: str) -> object:
    """The value of a JSON text: dict, list, str, bool, None, `Number` and `NonJsonToken`.

    Raises:
        json.JSONDecodeError: when it is not JSON; the one fault that another reading of the text may mend.
        ReplyError: `too_deep` or `duplicate_key`.
    """
    try:
        return cast("object", _DECODER.decode(text))
    except RecursionError:
        raise unreadable("too_deep", "The reply is nested too deeply.") from None


def shown(value: object) -> str:
    """A value in a few words, for an error message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:39] + "…")
    literal = value.literal if isinstance(value, Number | NonJsonToken) else json.dumps(value)
    return literal if len(literal) <= 40 else literal[:39] + "…"


def unreadable(reason: str, message: str) -> ReplyError:
    """The error that says why a reply cannot be read; its message is cut to 300 characters."""
    # Names of candidates and components are the caller's and may be long, or hold half a surrogate pair.
    return ReplyError(reason, message.encode(errors="replace").decode()[:300])


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise unreadable("duplicate_key", f"The key {shown(twice)} stands twice in one object.")
    return members


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_float=Number,
    parse_int=Number,
    parse_constant=NonJsonToken,
    strict=False,  # a raw newline inside a string is taken as said
)
