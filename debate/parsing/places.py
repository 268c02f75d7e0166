"""Finds the values in a reply's JSON: the places of which a model's probabilities are read out."""

from __future__ import annotations

import re

_STRING_OR_VALUE = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(?P<value>-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?|\bnull\b)', re.DOTALL
)
_THOUGHTS = re.compile(r"[\s\ufeff]*+<think>.*?</think>", re.DOTALL)


def value_spans(text: str) -> list[tuple[int, int]]:
    """Start and end, in characters, of each number and each `null` outside strings, in the order of the text.

    What stands before the first brace after a leading `<think>` block is passed over.
    """
    thoughts = _THOUGHTS.match(text)
    start = text.find("{", thoughts.end() if thoughts else 0)
    if start < 0:
        return []
    return [found.span() for found in _STRING_OR_VALUE.finditer(text, start) if found["value"] is not None]


def with_ordinals(text: str) -> str:
    """The text with each of these values replaced by its place among them, from 0.

    A parser that reads it finds, in place of a value, where the value's distribution is.
    """
    parts, end = list[str](), 0
    for n, (start, stop) in enumerate(value_spans(text)):
        parts += [text[end:start], str(n)]
        end = stop
    return "".join([*parts, text[end:]])
