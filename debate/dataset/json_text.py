"""What Python's JSON decoder passes over in silence: keys that stand twice, texts that were cut inside a character."""

from __future__ import annotations

from typing import Any


class DuplicateKey(Exception):
    """A key that stands twice in one object, of which `json` would silently drop the first."""


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some pairs, for `object_pairs_hook`.

    Raises:
        DuplicateKey: with the key that stands twice.
    """
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        raise DuplicateKey(short(next(key for n, key in enumerate(keys) if key in keys[:n]))[1:-1])
    return data


def short(text: str) -> str:
    """Quoted, on one line, and not too long for a message."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: a lone surrogate, left where a text was cut inside a character, cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
