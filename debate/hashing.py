"""Seeds by hashing: the same parts give the same number in every process, on every machine.

Nothing here draws a random number; callers seed their own generators with what `derive` returns.
"""

from __future__ import annotations

import hashlib
import json


def digest(*parts: object) -> str:
    """Hex digest of some plain values (strings, numbers, lists, dicts of these): blake2b of their canonical JSON."""
    canonical = json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def derive(*parts: object) -> int:
    """A seed in [0, 2**31): small enough for every server that takes one."""
    return int(digest(*parts)[:16], 16) & 0x7FFF_FFFF
