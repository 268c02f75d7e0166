"""Recalling in plain Python, one memory after the other: what every index is held against. And random stores for it."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from debate.memory import MemoryStore, RecallRequest
from debate.memory.embedders import Vectors
from debate.types import Memory

NOW = 1_750_000_000.0
HOUR = 3600.0


class Directions:
    """An embedder whose vectors are random, but the same for the same text; texts of one topic lie close together.

    The topic is what stands before the first blank.
    """

    is_reproducible = True

    def __init__(self, dimension: int = 16, id: str = "directions") -> None:  # noqa: A002
        self.id = id
        self.dimension = dimension
        self.batches: list[int] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(len(texts))
        rows = [self._drawn(text.partition(" ")[0]) + 0.5 * self._drawn(text) for text in texts]
        norms = [np.linalg.norm(row) for row in rows]
        return np.stack([row / norm for row, norm in zip(rows, norms, strict=True)]).astype(np.float32)

    def _drawn(self, text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        seed = int.from_bytes(hashlib.blake2b(f"{self.id} {text}".encode(), digest_size=8).digest(), "big")
        return np.random.default_rng(seed).standard_normal(self.dimension)


@dataclass(frozen=True)
class Kept:
    """A memory as a test added it."""

    id: str
    collection: str
    text: str
    kind: str
    importance: float
    created_at: float
    source: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


def random_store(store: MemoryStore, rng: random.Random, n: int) -> list[Kept]:
    """Fill a store with up to `n` memories in three collections; some have equal texts, moments and importances."""
    kept: dict[str, Kept] = {}
    for i in range(n):
        text = f"topic{rng.randrange(6)} {rng.randrange(n)}"
        collection, kind = rng.choice(["a", "b", "c"]), rng.choice(["episodic", "semantic", "reflection"])
        importance, source = float(rng.randrange(11)), rng.choice([None, "s1", "s2"])
        created, metadata = NOW - HOUR * rng.choice([0, 1, 24, 700, -5, i]), {"n": rng.randrange(3)}
        (identifier,) = store.add(collection, text, source, kind, importance, created, metadata=metadata)
        added = Kept(identifier, collection, text, kind, importance, created, source, metadata)
        kept.setdefault(identifier, added)
    return list(kept.values())


def random_request(rng: random.Random) -> RecallRequest:
    """Any request: each setting is left out about as often as it is used."""
    return RecallRequest(
        rng.sample(["a", "b", "c", "missing"], rng.randint(1, 4)),
        [f"topic{rng.randrange(6)} {rng.randrange(40)}" for _ in range(rng.randint(1, 4))],
        k=rng.choice([1, 2, 5, 40]),
        max_tokens=rng.choice([None, None, 0, 4, 30]),
        now=NOW,
        weights=rng.choice([None, (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0.3, 2, 0.01)]),
        exclude_sources=rng.choice([(), ("s1",), ("s1", "s2")]),
        kinds=rng.choice([(), ("episodic",), ("semantic", "reflection")]),
        sources=rng.choice([(), ("s2",), ("nowhere",)]),
        metadata=rng.choice([{}, {"n": 1}, {"other": 1}]),
        min_score=rng.choice([None, None, 0.3, 1.0]),
        decay=rng.choice([0.995, 0.9, 1.0]),
        near_duplicate=rng.choice([None, 0.97, 0.8]),
    )


def recall(kept: Sequence[Kept], request: RecallRequest, embedder: Directions) -> list[Memory]:
    """What a request must be answered with, without arrays, indexes or batches."""
    queries = [_plain(embedder, query) for query in request.queries]
    ranked: list[tuple[tuple[float, float, str], Memory, list[float]]] = []
    for one in kept:
        if not _is_wanted(one, request):
            continue
        vector = _plain(embedder, one.text)
        relevance = max(_dot(vector, query) for query in queries)
        hours = max(0.0, ((request.now or 0.0) - one.created_at) / HOUR)
        recency, importance = request.decay**hours, one.importance / 10
        weights = request.weights
        score = weights.relevance * relevance + weights.recency * recency + weights.importance * importance
        if request.min_score is not None and round(score, 9) < request.min_score:
            continue
        memory = Memory(one.text, one.id, one.collection, score, relevance, recency, importance, one.kind, one.source)
        ranked.append(((-round(score, 9), -one.created_at, one.id), memory, vector))
    best: list[tuple[Memory, list[float]]] = []
    for _, memory, vector in sorted(ranked, key=lambda each: each[0]):
        is_near = request.near_duplicate is not None and any(
            round(_dot(vector, other), 9) >= request.near_duplicate for _, other in best
        )
        if not is_near and len(best) < request.k:
            best.append((memory, vector))
    return _within([memory for memory, _ in best], request.max_tokens)


def _within(memories: Sequence[Memory], max_tokens: int | None) -> list[Memory]:
    left = math.inf if max_tokens is None else max_tokens
    kept: list[Memory] = []
    for memory in memories:
        if words(memory.text) <= left:
            kept.append(memory)
            left -= words(memory.text)
    return kept


def words(text: str) -> int:
    """A tokenizer for tests: a word is a token, and a long number is two."""
    return len(text.split()) + text.count("1")


def _is_wanted(one: Kept, request: RecallRequest) -> bool:
    return (
        one.collection in request.collections
        and (not request.kinds or one.kind in request.kinds)
        and (not request.sources or one.source in request.sources)
        and one.source not in request.exclude_sources
        and all(one.metadata.get(key) == value for key, value in request.metadata.items())
    )


def _plain(embedder: Directions, text: str) -> list[float]:
    return [float(each) for each in embedder.embed([text])[0]]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))
