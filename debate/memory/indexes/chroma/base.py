"""What the index asks of Chroma, embedded or served. No texts, no metadata of memories, no embedding functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from debate.memory.embedders.base import Vectors

HNSW = {"space": "ip", "ef_construction": 300, "ef_search": 300, "max_neighbors": 32}
"""Of every collection: inner product, and a graph dense enough for recall@10 above 0.99."""
AT_ONCE = 1000
"""Memories in one request, below every server's limit."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A collection in Chroma."""

    handle: Any
    noted: Mapping[str, Any]
    """What was noted with it last."""


@dataclass(frozen=True, slots=True)
class Near:
    """What Chroma found for one query, nearest first."""

    ids: Sequence[str]
    cosines: Sequence[float]


class Chroma(Protocol):
    """Chroma's collections. Every fault is a `StoreError`, `BackendUnavailableError` or `CallError`."""

    def open(self, name: str) -> Opened:
        """The collection of that name, made where there is none."""
        ...

    def note(self, handle: Any, facts: Mapping[str, int]) -> None:
        """Note facts with a collection."""
        ...

    def upsert(self, handle: Any, ids: Sequence[str], vectors: Vectors) -> None:
        """Add vectors, or replace those of these ids; at most `AT_ONCE`."""
        ...

    def delete(self, handle: Any, ids: Sequence[str]) -> None:
        """Remove vectors; at most `AT_ONCE`."""
        ...

    def query(self, handle: Any, queries: Vectors, n: int) -> list[Near]:
        """The n nearest of each query."""
        ...

    def ids(self, handle: Any) -> list[str]:
        """All ids."""
        ...

    def vectors(self, handle: Any, ids: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of some ids, (D,) each; what is not there is left out."""
        ...

    def clear(self) -> None:
        """Remove every collection of this store."""
        ...

    def close(self) -> None:
        """Let go. Safe to call twice."""
        ...
