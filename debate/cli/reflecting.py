"""Asks a model to reflect: the one command that needs a model and no evaluation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from debate.backends import Backend
from debate.errors import CallError, ReplyError
from debate.flow import RunContext
from debate.memory.reflection import Insight, reflection
from debate.runtime.runner import Runner
from debate.types import Memory


def insights_of(backend: Backend, collection: str, memories: Sequence[Memory], n: int) -> list[Insight]:
    """Start the backend, let it reflect on some memories, and let go of it.

    Raises:
        CallError: when no reply could be read.
        BackendUnavailableError: when it cannot be asked.
    """
    return asyncio.run(_asked(backend, collection, memories, n))


async def _asked(backend: Backend, collection: str, memories: Sequence[Memory], n: int) -> list[Insight]:
    await backend.start()
    try:
        return await Runner({backend.model: backend}, RunContext()).drive(reflection(collection, memories, n=n))
    except ReplyError as error:
        raise CallError(error.reason, f"nothing could be learnt: {error.message}") from None
    finally:
        await backend.aclose()
