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


def digest(*parts: object) -> str:
    """Hex digest of some plain values (strings, numbers, lists, dicts of these): blake2b of their canonical JSON.

    The canonical JSON of a part wrapped in `ById` is made once and kept.
    """
    each = [_kept(part) if isinstance(part, ById) else _canonical(part) for part in parts]
    return hashlib.blake2b(f"[{','.join(each)}]".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=128)
def _kept(key: ById) -> str:
    return _canonical(key.value)


def derive(*parts: object) -> int:
    """A seed in [0, 2**31): small enough for every server that takes one."""
    return int(digest(*parts)[:16], 16) & 0x7FFF_FFFF
