"""Chroma in this process, in a folder of ours. The library is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from debate.errors import ConfigError, StoreError
from debate.memory.embedders.base import Vectors
from debate.memory.indexes.chroma.base import HNSW, Near, Opened
from debate.memory.indexes.chroma.folder import ChromaFolder

T = TypeVar("T")


class EmbeddedChroma:
    """See `Chroma`. Opens the folder at the first use, so that a broken one can still be cleared."""

    def __init__(self, folder: ChromaFolder) -> None:
        self._folder = folder
        self._client: Any = None

    def open(self, name: str) -> Opened:
        """The collection of that name, made where there is none, without an embedding function."""
        collection = self._told(
            lambda: self._opened().get_or_create_collection(
                name, embedding_function=None, configuration={"hnsw": HNSW}, metadata=None
            )
        )
        return Opened(collection, dict(collection.metadata or {}))

    def note(self, handle: Any, facts: Mapping[str, int]) -> None:
        """Note facts with a collection."""
        self._told(lambda: handle.modify(metadata=dict(facts)))

    def upsert(self, handle: Any, ids: Sequence[str], vectors: Vectors) -> None:
        """Add or replace vectors."""
        self._told(lambda: handle.upsert(ids=list(ids), embeddings=vectors))

    def delete(self, handle: Any, ids: Sequence[str]) -> None:
        """Remove vectors."""
        self._told(lambda: handle.delete(ids=list(ids)))

    def query(self, handle: Any, queries: Vectors, n: int) -> list[Near]:
        """The n nearest of each query."""
        found = self._told(lambda: handle.query(query_embeddings=queries, n_results=n, include=["distances"]))
        return [
            Near(ids, [1 - each for each in distances])
            for ids, distances in zip(found["ids"], found["distances"], strict=True)
        ]

    def ids(self, handle: Any) -> list[str]:
        """All ids."""
        return self._told(lambda: handle.get(include=[]))["ids"]

    def vectors(self, handle: Any, ids: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of some ids."""
        found = self._told(lambda: handle.get(ids=list(ids), include=["embeddings"]))
        return dict(zip(found["ids"], np.asarray(found["embeddings"], np.float32), strict=True))

    def clear(self) -> None:
        """Begin with an empty folder; the old one is not opened for that."""
        self._let_go()
        self._folder.renewed()

    def close(self) -> None:
        """Close Chroma and free the folder."""
        self._let_go()
        self._folder.close()

    def _opened(self) -> Any:
        if self._client is None:
            try:
                import chromadb
                from chromadb.config import Settings
            except ImportError as error:
                hint = "pip install 'debate-eval[memory]', or use index='exact'"
                raise ConfigError(f"Chroma cannot be imported: {error}", field="index", hint=hint) from error
            settings = Settings(anonymized_telemetry=False)
            self._client = chromadb.PersistentClient(str(self._folder.current), settings=settings)
        return self._client

    def _let_go(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _told(self, do: Callable[[], T]) -> T:
        """Chroma raises whatever its parts raise; here it becomes one error, which names the place and the remedy."""
        try:
            return do()
        except (ConfigError, StoreError):
            raise
        except Exception as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise StoreError(f"{self._folder.path}: Chroma: {first}", hint="debate memory rebuild") from error
