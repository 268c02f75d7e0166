"""Chroma, embedded in this process or served over HTTP. It gets ids and vectors: no texts, no embedding functions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import numpy as np

from debate.errors import CallError, ConfigError, StoreError
from debate.files import FileInUseError, FileLock, write_text
from debate.memory.database import REBUILD
from debate.memory.embedders.base import Vectors
from debate.net.http import JsonClient

T = TypeVar("T")

HNSW = {"space": "ip", "ef_construction": 300, "ef_search": 300, "max_neighbors": 32}
"""Of every collection: inner product, and a graph dense enough for recall@10 above 0.99."""
AT_ONCE = 1000
"""Memories per request, below every server's limit."""
MARKER = "debate-memory-index.json"
"""File that marks a folder as the index of a memory store, and says of which."""


@dataclass(frozen=True, slots=True)
class Near:
    """What Chroma found for one query, nearest first."""

    ids: Sequence[str]
    cosines: Sequence[float]


def open_chroma(where: str | Path | None, beside: Path | None, store: str) -> Chroma:
    """Chroma for a memory store.

    Args:
        where: a server's address, a folder, or None for a folder beside the SQLite file.
        beside: the SQLite file, where there is one.
        store: the store's id.

    Raises:
        ConfigError: when there is no place for a folder, or the folder is not this store's.
        StoreError: when another process holds the folder.
    """
    if where is not None and "://" in str(where):
        return ServedChroma(str(where), prefix_of(store))
    if where is None and beside is None:
        hint = "name a folder, or a Chroma server as http://HOST:PORT"
        raise ConfigError("there is no file to put an embedded Chroma beside", field="chroma", hint=hint)
    return EmbeddedChroma(Path(where).expanduser() if where else Path(f"{beside}.chroma"), store)


def prefix_of(store: str) -> str:
    """What the names of a store's collections begin with; a server may have those of several."""
    return f"debate-{store[:16]}-"


def _near(found: Mapping[str, Any]) -> list[Near]:
    rows = zip(found["ids"], found["distances"], strict=True)
    return [Near(ids, [1 - float(each) for each in distances]) for ids, distances in rows]


class EmbeddedChroma:
    """Chroma in this process, in a folder of one store and open in one process at a time: two that write destroy it.

    Every fault is a `StoreError`, or a `ConfigError` where Chroma is not installed.

    Args:
        folder: made where there is none; a lock file lies beside it.
        store: the store's id.

    Raises:
        ConfigError: when the folder holds something else, or the index of another store.
        StoreError: when another process holds it.
    """

    def __init__(self, folder: Path, store: str) -> None:
        self._folder = folder
        self._store = store
        self._client: Any = None
        try:
            self._lock = FileLock(folder.with_name(f"{folder.name}.lock"))
        except FileInUseError as error:
            raise StoreError(
                f"{folder}: is in use by {error.holder}; an embedded Chroma belongs to one process at a time",
                hint="wait for it, name a Chroma server with chroma='http://HOST:PORT', or use index='exact'",
            ) from None
        try:
            self._claim()
        except BaseException:
            self.close()
            raise

    def open(self, name: str) -> tuple[Any, Mapping[str, Any]]:
        """The collection of that name and what was noted with it; made where there is none, without a function."""
        settings: dict[str, Any] = {"embedding_function": None, "configuration": {"hnsw": HNSW}, "metadata": None}
        made = self._guarded(lambda: self._opened().get_or_create_collection(name, **settings))
        return made, made.metadata or {}

    def note(self, handle: Any, facts: Mapping[str, int]) -> None:
        """Note facts with a collection."""
        self._guarded(lambda: handle.modify(metadata=dict(facts)))

    def upsert(self, handle: Any, ids: Sequence[str], vectors: Vectors) -> None:
        """Add vectors, (N, D), or replace those of these ids; at most `AT_ONCE`."""
        self._guarded(lambda: handle.upsert(ids=list(ids), embeddings=vectors))

    def delete(self, handle: Any, ids: Sequence[str]) -> None:
        """Remove vectors; at most `AT_ONCE`."""
        self._guarded(lambda: handle.delete(ids=list(ids)))

    def query(self, handle: Any, queries: Vectors, n: int) -> list[Near]:
        """The n nearest of each query, (Q, D)."""
        return _near(self._guarded(lambda: handle.query(query_embeddings=queries, n_results=n, include=["distances"])))

    def ids(self, handle: Any) -> list[str]:
        """All ids."""
        return self._guarded(lambda: handle.get(include=[]))["ids"]

    def vectors(self, handle: Any, ids: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of some ids, (D,) each; ids that are not there are left out."""
        found = self._guarded(lambda: handle.get(ids=list(ids), include=["embeddings"]))
        return dict(zip(found["ids"], np.asarray(found["embeddings"], np.float32), strict=True))

    def clear(self) -> None:
        """Begin with an empty folder; a broken one is not opened for that."""
        self._close_client()
        for each in self._subfolders():
            shutil.rmtree(each, ignore_errors=True)

    def close(self) -> None:
        """Close Chroma and free the folder."""
        self._close_client()
        self._lock.release()

    def _claim(self) -> None:
        """Mark a new folder as this store's; refuse one that is not."""
        marker = self._folder / MARKER
        hint = "give another folder with chroma=..., or move this one away"
        if marker.is_file():
            if json.loads(marker.read_text()).get("store") != self._store:
                raise ConfigError("is the index of another memory store", file=self._folder, field="chroma", hint=hint)
        elif self._folder.is_dir() and any(self._folder.iterdir()):
            raise ConfigError(
                "was not made by debate-eval, and is not opened", file=self._folder, field="chroma", hint=hint
            )
        else:
            write_text(marker, json.dumps({"made_by": "debate-eval", "store": self._store}))

    def _subfolders(self) -> list[Path]:
        return [each for each in self._folder.iterdir() if each.is_dir()]

    def _opened(self) -> Any:
        if self._client is None:
            try:
                import chromadb
                from chromadb.config import Settings
            except ImportError as error:
                hint = "pip install 'debate-eval[memory]', or use index='exact'"
                raise ConfigError(f"Chroma cannot be imported: {error}", field="index", hint=hint) from error
            settings = Settings(anonymized_telemetry=False)
            # Chroma remembers each path for as long as the process lives, so a cleared folder needs a new name.
            data = next(iter(self._subfolders()), self._folder / uuid4().hex)
            self._client = chromadb.PersistentClient(str(data), settings=settings)
        return self._client

    def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _guarded(self, do: Callable[[], T]) -> T:
        """Chroma raises whatever its parts raise; here it becomes one error, which names the place and the remedy."""
        try:
            return do()
        except (ConfigError, StoreError):
            raise
        except Exception as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise StoreError(f"{self._folder}: Chroma: {first}", hint=REBUILD) from error


class ServedChroma:
    """Chroma on a server, with the methods of `EmbeddedChroma`.

    Every fault is a `StoreError`, or a `BackendUnavailableError` when the server cannot be reached.

    Args:
        url: `http://HOST:PORT`.
        prefix: what the names of this store's collections begin with.

    A bearer token, where the server wants one, is read from the environment variable CHROMA_TOKEN. Not by Chroma's own
    client: that would run whatever embedding function the server names for a collection. Here an answer is data.
    """

    def __init__(self, url: str, prefix: str) -> None:
        self._server = JsonClient(url, "CHROMA_TOKEN")
        self._prefix = prefix
        self._root = "/api/v2/tenants/default_tenant/databases/default_database/collections"

    def open(self, name: str) -> tuple[Any, Mapping[str, Any]]:
        """The collection of that name and what was noted with it; made where there is none."""
        answer = self._ask("POST", "", {"name": name, "get_or_create": True, "configuration": {"hnsw": HNSW}})
        return answer["id"], answer.get("metadata") or {}

    def note(self, handle: Any, facts: Mapping[str, int]) -> None:
        """Note facts with a collection."""
        self._ask("PUT", f"/{handle}", {"new_metadata": dict(facts)})

    def upsert(self, handle: Any, ids: Sequence[str], vectors: Vectors) -> None:
        """Add or replace vectors."""
        self._ask("POST", f"/{handle}/upsert", {"ids": list(ids), "embeddings": vectors.tolist()})

    def delete(self, handle: Any, ids: Sequence[str]) -> None:
        """Remove vectors."""
        self._ask("POST", f"/{handle}/delete", {"ids": list(ids)})

    def query(self, handle: Any, queries: Vectors, n: int) -> list[Near]:
        """The n nearest of each query."""
        body = {"query_embeddings": queries.tolist(), "n_results": n, "include": ["distances"]}
        return _near(self._ask("POST", f"/{handle}/query", body))

    def ids(self, handle: Any) -> list[str]:
        """All ids, page by page."""
        found: list[str] = []
        while True:
            page = self._ask("POST", f"/{handle}/get", {"include": [], "limit": AT_ONCE, "offset": len(found)})["ids"]
            if not page:
                return found
            found += page

    def vectors(self, handle: Any, ids: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of some ids."""
        found = self._ask("POST", f"/{handle}/get", {"ids": list(ids), "include": ["embeddings"]})
        rows = zip(found["ids"], found["embeddings"], strict=True)
        return {each: np.array(row, np.float32) for each, row in rows}

    def clear(self) -> None:
        """Remove the collections whose names begin with the prefix."""
        names: list[str] = []
        while page := self._ask("GET", f"?limit={AT_ONCE}&offset={len(names)}"):
            names += [each["name"] for each in page]
        for name in names:
            if name.startswith(self._prefix):
                self._ask("DELETE", f"/{quote(name, safe='')}")

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        try:
            return self._server.ask(method, self._root + path, body)
        except CallError as error:
            raise StoreError(f"Chroma: {error.message}", hint=REBUILD) from None


Chroma = EmbeddedChroma | ServedChroma
