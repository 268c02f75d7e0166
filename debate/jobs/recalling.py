"""The memory of a run: opened for it, counting ages to the run's beginning and tokens as its model does."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from debate.backends import Backend
from debate.runtime.runner import Retriever

BUILT_IN = "built-in"
"""Stands for the seed memories alone, in a store of the run's own."""


@contextmanager
def recalling(url: str | None, now: float, backends: Mapping[str, Backend]) -> Generator[Retriever | None]:
    """What agents recall from; None where there is no memory.

    Raises:
        ConfigError: for an address or an embedder that cannot be used.
        StoreError: when the memory cannot be opened.
    """
    if url is None:
        yield None
        return
    from debate.memory.locations import built_in, open_memory

    with built_in() if url == BUILT_IN else open_memory(url) as memory:
        yield memory.recaller(now=now, count_tokens=_counter(next(iter(backends.values()))))


def _counter(backend: Backend) -> Callable[[str], int] | None:
    """The tokenizer of the run's own model, where the backend has it."""
    return getattr(backend, "count_tokens", None)
