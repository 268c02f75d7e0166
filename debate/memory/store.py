"""A memory store: collections of memories, recalled by relevance, recency and importance.

The truth is in SQL; vectors are kept beside it, and an index only finds what is near. This is where the parts meet:
`writer` adds and forgets, `recall` recalls, `jsonl` reads and writes files, `maintenance` verifies and rebuilds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

from debate.data_files import data_folder
from debate.errors import ConfigError
from debate.flow import Recall, WeightsLike, as_json, as_texts
from debate.memory.database import COLLECTIONS, Database
from debate.memory.embedders import Embedder, HashingEmbedder, embedder_named
from debate.memory.indexes.chroma_client import open_chroma, prefix_of
from debate.memory.indexes.chroma_index import ChromaIndex
from debate.memory.indexes.router import IndexChoice, IndexRouter
from debate.memory.jsonl import read_memories, write_memories
from debate.memory.maintenance import Maintenance, Report
from debate.memory.recall.ranking import estimated_tokens
from debate.memory.recall.request import RecallRequest
from debate.memory.recall.search import BatchingRetriever, RecallService
from debate.memory.recall.snapshot import CollectionCache
from debate.memory.recall.vectors import VectorCache
from debate.memory.records import Moment, checked_kind, new_memory, seconds
from debate.memory.writer import Writer, conditions, kept_memories, newest, origins_with_evidence, sizes
from debate.registry import EMBEDDERS
from debate.types import Memory


class MemoryStore:
    """Collections of memories in one SQL database, made when opened. Close it when done; thread-safe.

    >>> with MemoryStore("sqlite:///memories.sqlite") as store:
    ...     store.add("general/Critic", "Canberra has been the capital since 1913.", source="almanac")
    ...     store.recall("general/Critic", "What is the capital of Australia?", k=3)

    Args:
        url: `sqlite:///PATH`, a bare path, or `postgresql://USER@HOST/NAME`.
        embedder: `minilm`, `hashing`, or an `Embedder`. The first memory settles it for the store.
        index: `exact` compares everything with everything; `chroma` is approximate; `auto` takes whichever is faster at
            a collection's size.
        chroma: a folder for embedded Chroma, or a server as `http://HOST:PORT`; None is a folder beside a SQLite file.
        count_tokens: the judge's tokenizer, for `max_tokens`; None estimates, rather too many than too few.
        clock: seconds since 1970, for what is added or recalled without a moment.

    Raises:
        ConfigError: for an address, embedder or index that cannot be used.
        StoreError: when the database cannot be opened, or another process holds the Chroma folder.
    """

    def __init__(
        self,
        url: str | Path,
        embedder: str | Embedder = "minilm",
        index: IndexChoice = "auto",
        *,
        chroma: str | Path | None = None,
        count_tokens: Callable[[str], int] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._embedder = embedder_named(embedder)
        self._clock = clock
        self._database = Database(str(url))
        self._vectors = VectorCache(self._database, self._embedder)
        try:
            self._indexes = IndexRouter(index, lambda: self._chroma_index(chroma), has_server="://" in str(chroma))
        except BaseException:
            self._database.close()
            raise
        self._cache = CollectionCache(self._embedder, self._indexes.is_exact)
        self._writer = Writer(self._database, self._vectors)
        self._recalls = RecallService(self._database, self._vectors, self._cache, self._indexes, self._now)
        self._count_tokens = count_tokens or estimated_tokens
        self._maintenance = Maintenance(self._database, self._vectors, self._cache, self._indexes)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="debate-memory")

    @property
    def place(self) -> str:
        """The file, or the server's address without its password."""
        return self._database.place

    @property
    def embedder(self) -> Embedder:
        """What its vectors are made by."""
        return self._embedder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections, indexes and the thread. Safe to call twice."""
        self._executor.shutdown()
        self._indexes.close()
        self._database.close()

    # ---- what is remembered

    def add(
        self,
        collection: str,
        texts: str | Sequence[str],
        source: str | None = None,
        kind: str = "semantic",
        importance: float = 5,
        created_at: Moment | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Keep one memory or several; returns their ids once they are safe. What is there already stays as it is.

        A memory is the same when collection, text, kind, source and the moment, where one is given, are.

        Args:
            collection: any name; those that differ in case or Unicode form are different ones.
            texts: one text, or several.
            source: where they come from, such as a task's id; used by `exclude_sources` and `forget`.
            kind: `episodic`, `semantic` or `reflection`.
            importance: 0 to 10.
            created_at: None is now.
            metadata: plain JSON data.

        Raises:
            ConfigError: for what cannot be kept; nothing is added then.
            StoreError: when it cannot be written; adding the same again completes it.
        """
        common: dict[str, Any] = {"kind": kind, "importance": importance, "created_at": created_at, "source": source}
        common |= {"collection": collection, "metadata": metadata}
        return self.add_many({**common, "text": text} for text in as_texts(texts))

    def add_many(self, memories: Iterable[Mapping[str, Any]]) -> list[str]:
        """Keep many memories at once, see `add`; each is given by the names of its arguments, with one `text`."""
        now = self._now()  # of all of them
        made = [new_memory(**each, now=lambda: now) for each in memories]
        if self._writer.add(made):
            self._maintenance.keep_up({memory.collection for memory in made})
        return [memory.id for memory in made]

    def forget(
        self,
        collection: str | None = None,
        *,
        ids: str | Sequence[str] | None = None,
        source: str | None = None,
        kind: str | None = None,
        before: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> list[str]:
        """Erase the memories for which all that is given holds, from every copy; returns their ids.

        Args:
            collection: of this collection.
            ids: with these ids.
            source: from this source.
            kind: of this kind.
            before: made before this moment.
            metadata: whose metadata has all these values.
            dry_run: only say which they would be.

        Raises:
            ConfigError: when nothing is given, for that would be everything.
        """
        chosen = None if ids is None else as_texts(ids)
        moment = None if before is None else seconds(before, "before")
        which = conditions(collection, chosen, source, kind and checked_kind(kind), moment)
        if not which and not metadata:
            known = "a collection, ids, a source, a kind, a moment, or metadata"
            raise ConfigError(f"say what to forget: {known}", field="forget")
        gone = self._writer.forget(which, as_json(metadata), dry_run=dry_run)
        if gone and not dry_run:
            self._maintenance.follow()
        return gone

    def collections(self) -> dict[str, int]:
        """The number of memories in each collection that has any, by name."""
        with self._database.read() as connection:
            return sizes(connection)

    def newest(self, collection: str, n: int) -> list[Memory]:
        """The memories that were made last, newest first, without scores."""
        with self._database.read() as connection:
            return newest(connection, collection, n)

    def origins(self, ids: str | Sequence[str]) -> list[str]:
        """The tasks that memories came of, and what these rest on, in the form of `records.origins_of`."""
        with self._database.read() as connection:
            return sorted(origins_with_evidence(connection, as_texts(ids)))

    # ---- what is recalled

    def recall(
        self,
        collections: str | Sequence[str],
        queries: str | Sequence[str],
        k: int = 8,
        max_tokens: int | None = None,
        now: Moment | None = None,
        weights: WeightsLike | None = None,
        exclude_sources: str | Sequence[str] = (),
        **more: Any,
    ) -> list[Memory]:
        """The memories that fit best, best first, each with its score and the parts of it. Changes nothing.

        See `RecallRequest` for the arguments; `more` are those of its that are not listed here.

        Raises:
            ConfigError: for a request that is out of range, or an embedder that is not the store's.
            StoreError, BackendError: when the store or the embedder cannot be asked.
        """
        request = RecallRequest(collections, queries, k, max_tokens, now, weights, exclude_sources, **more)
        return self.recall_many([request])[0]

    def recall_many(self, requests: Iterable[RecallRequest | Mapping[str, Any]]) -> list[list[Memory]]:
        """Answer many recalls together, in their order: one batch is embedded, and each collection is searched once."""
        checked = [each if isinstance(each, RecallRequest) else RecallRequest(**each) for each in requests]
        return self._recalls.answer(checked, self._count_tokens)

    def retriever(
        self, now: Moment | None = None, *, count_tokens: Callable[[str], int] | None = None, **settings: Any
    ) -> BatchingRetriever:
        """The store as an engine asks it: `Engine(backend, memory=store.retriever())`.

        Args:
            now: the moment that ages are counted to in the whole run; None is now.
            count_tokens: the judge's tokenizer; None is the store's.
            settings: of every recall, by the names of `RecallRequest`, where the recall does not say otherwise.
        """
        moment = self._now() if now is None else seconds(now, "now")

        def request_of(recall: Recall) -> RecallRequest:
            return RecallRequest.of(recall, moment, settings)

        answer = partial(self._recalls.answer, count_tokens=count_tokens or self._count_tokens)
        return BatchingRetriever(answer, request_of, self._executor)

    # ---- maintenance

    def export(self, path: str | Path, collections: str | Sequence[str] | None = None) -> int:
        """Write memories as JSONL, in a fixed order; returns how many. The file appears whole or not at all."""
        which = [] if collections is None else [COLLECTIONS.c.name.in_(as_texts(collections))]
        with self._database.read() as connection:
            return write_memories(Path(path), kept_memories(connection, which))

    def import_(self, path: str | Path) -> int:
        """Add the memories of a JSONL file, all or, when a line is wrong, none; returns how many are new.

        Raises:
            ConfigError: with file, line and field, for a line that is no memory.
        """
        memories = read_memories(Path(path), self._now)
        stranger = self._writer.stranger(memories)
        if stranger is not None:
            raise ConfigError(f"{stranger!r} is the id of another memory in the store", file=path, field="id")
        n_new = self._writer.add(memories)
        if n_new:
            self._maintenance.keep_up({memory.collection for memory in memories})
        return n_new

    def verify(self) -> Report:
        """Look at everything and change nothing; the report's `problems` is empty when all is well."""
        return self._maintenance.verify()

    def rebuild(self) -> int:
        """Embed what lacks a sound vector of this embedder, and rebuild the index; returns how many were embedded."""
        return self._maintenance.rebuild()

    def _now(self) -> float:
        return seconds(self._clock(), "clock")

    def _chroma_index(self, where: str | Path | None) -> ChromaIndex:
        with self._database.read() as connection:
            store = str(self._database.about(connection)["store"])
        chroma = open_chroma(where, self._database.file, store)
        return ChromaIndex(chroma, self._vectors, prefix_of(store))


def default_store() -> str:
    """The memory store that is used when none is named: a file in the user's data folder."""
    from platformdirs import user_data_path

    return str(user_data_path("debate-eval") / "memory.sqlite")


def built_in() -> MemoryStore:
    """A store in main memory with the built-in memories, found by words: so few need no embedding model."""
    memory = MemoryStore("sqlite://", HashingEmbedder(), "exact")
    for path in sorted(data_folder("memory").glob("*.jsonl")):
        memory.import_(path)
    return memory


def open_memory(url: str, embedder: str | None = None, index: str = "auto") -> MemoryStore:
    """Open a store with its own embedder, or a new one with MiniLM; `embedder` is for another one.

    Raises:
        ConfigError: for an unknown index, or a store whose embedder must be given.
        StoreError: when it cannot be opened.
    """
    chosen = embedder_named(embedder) if embedder else own_embedder(url)
    return MemoryStore(url, chosen, cast("IndexChoice", index))


def own_embedder(url: str) -> Embedder:
    """The embedder of an existing store; MiniLM for a new one.

    Raises:
        ConfigError: when that embedder has no name.
    """
    with closing(Database(url)) as database, database.read() as connection:
        about = database.about(connection).get("embedder")
    if about is None:
        return embedder_named("minilm")
    for known in map(embedder_named, EMBEDDERS.entries):
        if known.id == about["id"]:
            return known
    hint = "open it from Python, with that embedder"
    raise ConfigError(f"its vectors are of {about['id']}", file=url, field="embedder", hint=hint)
