"""A Chroma server, asked over HTTP.

Not by Chroma's own client: that would run whatever embedding function the server names for a collection. Here an answer
is data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from debate.errors import CallError, StoreError
from debate.memory.embedders.base import Vectors
from debate.memory.indexes.chroma.base import AT_ONCE, HNSW, Near, Opened
from debate.net.http import JsonClient

API_KEY_ENV = "CHROMA_TOKEN"
"""Environment variable with the server's bearer token, where it wants one."""


class ServedChroma:
    """See `Chroma`.

    Args:
        url: `http://HOST:PORT`.
        prefix: what the names of this store's collections begin with.
    """

    def __init__(self, url: str, prefix: str) -> None:
        self._server = JsonClient(url, API_KEY_ENV)
        self._prefix = prefix
        self._root = "/api/v2/tenants/default_tenant/databases/default_database/collections"

    def open(self, name: str) -> Opened:
        """The collection of that name, made where there is none."""
        body = {"name": name, "get_or_create": True, "configuration": {"hnsw": HNSW}}
        answer = self._ask("POST", "", body)
        return Opened(answer["id"], answer.get("metadata") or {})

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
        found = self._ask("POST", f"/{handle}/query", body)
        return [
            Near(ids, [1 - float(each) for each in distances])
            for ids, distances in zip(found["ids"], found["distances"], strict=True)
        ]

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
            raise StoreError(f"Chroma: {error.message}", hint="debate memory rebuild") from None
