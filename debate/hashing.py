"""Seeds by hashing: the same parts give the same number in every process, on every machine.

Nothing here draws a random number; callers seed their own generators with what `derive` returns.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any


class ById:
    """A value as a key of a cache: by identity, for values that are large, shared and never changed."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.value is other.value


class Encoded(str):
    """Canonical JSON that was put together elsewhere, as a part of what is hashed."""

    __slots__ = ()


canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
"""The canonical JSON of a plain value."""


def digest(*parts: object) -> str:
    """Hex digest of some plain values (strings, numbers, lists, dicts of these): blake2b of their canonical JSON.

    The canonical JSON of a part wrapped in `ById` is made once and kept.
    """
    return _hash(f"[{','.join(map(_encoded, parts))}]")


def derive(*parts: object) -> int:
    """A seed in [0, 2**31) from some plain values: small enough for every server that takes one."""
    return int(_hash(canonical(parts))[:16], 16) & 0x7FFF_FFFF


def _encoded(part: object) -> str:
    if isinstance(part, Encoded):
        return part
    return _kept(part) if isinstance(part, ById) else canonical(part)


@lru_cache(maxsize=128)
def _kept(key: ById) -> str:
    return canonical(key.value)


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
