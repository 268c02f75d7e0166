"""Small stores with Chroma as their index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from debate.memory import MemoryStore
from tests.memory.oracle import NOW, Directions

EXACT = (1.0, 0.0, 0.0)


def filled(file: Path, n: int = 60, **settings: Any) -> MemoryStore:
    store = MemoryStore(file, Directions(), "chroma", **settings)
    store.add("a", [f"topic{i % 5} {i}" for i in range(n)], created_at=NOW)
    return store


def folder_of(file: Path) -> Path:
    return Path(f"{file}.chroma")


def inside(file: Path) -> Path:
    """Chroma's own database."""
    return next(folder_of(file).glob("*/chroma.sqlite3"))


def texts(store: MemoryStore, query: str = "topic3 8", k: int = 8) -> list[str]:
    return [each.text for each in store.recall("a", query, k=k, now=NOW, weights=EXACT, near_duplicate=None)]
