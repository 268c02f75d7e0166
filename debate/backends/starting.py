"""Several backends started and let go of together."""

from __future__ import annotations

from collections.abc import Collection

from debate.backends.base import Backend


async def start_all(backends: Collection[Backend]) -> None:
    """All or none: what was loaded before one that fails is let go, so that a later call starts each anew."""
    try:
        for backend in backends:
            await backend.start()
    except BaseException:
        await close_all(backends)
        raise


async def close_all(backends: Collection[Backend]) -> None:
    """Let go of all of them."""
    for backend in backends:
        await backend.aclose()
