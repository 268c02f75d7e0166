"""Where a memory store is when nobody says, and which embedder one that is there has."""

from __future__ import annotations

from pathlib import Path

from debate.data_files import data_folder
from debate.errors import ConfigError
from debate.memory.database import Database
from debate.memory.embedders import Embedder, HashingEmbedder, embedder_named
from debate.memory.store import MemoryStore


def default_store() -> str:
    """A file in the user's data folder."""
    from platformdirs import user_data_path

    return str(user_data_path("debate-eval") / "memory.sqlite")


def built_in() -> MemoryStore:
    """A store in main memory that holds the seed memories, by words: no embedding model is needed for so few."""
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
    if index not in ("auto", "exact", "chroma"):
        raise ConfigError(f"must be auto, exact or chroma, got {index!r}", field="index")
    if "://" not in url:
        Path(url).expanduser().parent.mkdir(parents=True, exist_ok=True)
    chosen = embedder_named(embedder) if embedder else own_embedder(url)
    return MemoryStore(url, chosen, index)


def own_embedder(url: str) -> Embedder:
    """The embedder of a store that is there; MiniLM for a new one.

    Raises:
        ConfigError: when it is one that a name does not make.
    """
    database = Database(url)
    try:
        with database.read() as connection:
            about = database.about(connection).get("embedder")
    finally:
        database.close()
    if about is None:
        return embedder_named("minilm")
    kept = str(about["id"])
    for known in (embedder_named("minilm"), HashingEmbedder()):
        if known.id == kept:
            return known
    raise ConfigError(
        f"its vectors are of {kept}", file=url, field="embedder", hint="open it from Python, with that embedder"
    )
