"""Which index serves a collection: the exact one, Chroma, or for `auto` whichever is faster at its size.

Knows nothing of queries.
"""

from __future__ import annotations

import importlib.util
import logging
import threading
from collections.abc import Callable
from typing import Literal

from debate.errors import ConfigError, StoreError
from debate.memory.indexes.base import ExactIndex, VectorIndex
from debate.memory.indexes.chroma_index import ChromaIndex
from debate.memory.recall.snapshot import Snapshot
from debate.registry import INDEXES

IndexChoice = Literal["auto", "exact", "chroma"]
AUTO_FROM = 200_000
"""Memories from which `auto` takes Chroma for a collection; see the measurements in the documentation."""

_log = logging.getLogger("debate")


class IndexRouter:
    """The indexes of one store.

    Args:
        choice: what the user asked for.
        open_chroma: makes the Chroma index.
        has_server: whether Chroma is a server, so that its library is not needed here.

    Raises:
        ConfigError, StoreError: when Chroma is asked for and cannot be had.
    """

    def __init__(self, choice: IndexChoice, open_chroma: Callable[[], ChromaIndex], *, has_server: bool) -> None:
        known = ["auto", *INDEXES.entries]
        if choice not in known:
            raise ConfigError(f"there is no index {choice!r}", field="index", hint=", ".join(known))
        self.choice = choice
        self._open_chroma = open_chroma
        self._can_have_chroma = has_server or importlib.util.find_spec("chromadb") is not None
        self._exact = ExactIndex()
        self.opened: ChromaIndex | None = open_chroma() if choice == "chroma" else None
        """Chroma, where it is open already."""
        self._lock = threading.Lock()

    def of(self, snapshot: Snapshot) -> VectorIndex:
        """The index that serves a collection."""
        if snapshot.matrix is not None:
            return self._exact
        assert self.opened is not None
        return self.opened

    def is_exact(self, n_memories: int) -> bool:
        """Whether a collection of so many memories is served by the exact index, which holds its vectors."""
        if self.choice != "auto":
            return self.choice == "exact"
        return n_memories < AUTO_FROM or self.chroma() is None

    def chroma(self) -> ChromaIndex | None:
        """Chroma, where it is used; for `auto` opened now. None where it cannot be had, which is said once."""
        with self._lock:
            if self.opened is None and self.choice == "auto" and self._can_have_chroma:
                try:
                    self.opened = self._open_chroma()
                except (ConfigError, StoreError) as error:
                    self._can_have_chroma = False
                    _log.warning("recalling without Chroma, which is slower: %s", error)
            return self.opened

    def close(self) -> None:
        """Let go of Chroma."""
        if self.opened is not None:
            self.opened.close()
