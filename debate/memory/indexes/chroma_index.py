"""Chroma's HNSW graphs as an index: approximate, for collections that are too large to compare with everything.

Chroma names the nearest of each query; for all other memories that gives an upper end of their relevance, and with the
parts of the score that are known, of their score. What is offered are the memories with the highest upper ends, so
that a memory which is far off but recent or important is not missed. Its collections follow SQL: what is new or gone
there is added or removed before the next search.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from debate.hashing import digest
from debate.memory.embedders.base import Vectors, slices
from debate.memory.indexes.base import Search, margin, top_n_with_bound
from debate.memory.indexes.chroma_client import AT_ONCE, Chroma, Near
from debate.memory.recall.ranking import Positions, SearchHits
from debate.memory.recall.snapshot import Snapshot
from debate.memory.recall.vectors import VectorCache
from debate.types import FloatArray

_REACH = 8
"""How many Chroma is asked for, for each that is to be offered."""
_MOST_NEAR = 2048
"""More than these cost more than they tell."""


@dataclass(slots=True)
class _Followed:
    """A collection in Chroma and how far it follows SQL."""

    handle: Any
    upto: int
    """The newest memory that is in it, by `seq`."""
    erased: int


class ChromaIndex:
    """See `VectorIndex`. Thread-safe.

    Args:
        chroma: embedded or served.
        vectors: where vectors come from.
        prefix: what the names of the collections begin with.
    """

    def __init__(self, chroma: Chroma, vectors: VectorCache, prefix: str) -> None:
        self._chroma = chroma
        self._vectors = vectors
        self._prefix = prefix + digest(vectors.embedder.id)[:8]
        self._followed: dict[int, _Followed] = {}
        self._lock = threading.RLock()

    def search(self, snapshot: Snapshot, searches: Sequence[Search]) -> list[SearchHits]:
        """The memories with the highest upper ends, for all searches with one query to Chroma."""
        n_near = min(_REACH * max(each.n for each in searches), _MOST_NEAR, len(snapshot))
        queries = np.concatenate([each.queries for each in searches])  # (Q, D)
        nearest = [Near((), ())] * len(queries)
        if n_near:
            with self._lock:
                nearest = self._chroma.query(self._up_to_date(snapshot).handle, queries, n_near)
        ends = np.cumsum([0, *(len(each.queries) for each in searches)])
        choices = [
            top_n_with_bound(_upper_ends(snapshot, each, nearest[begin:end], n_near), each)
            for each, begin, end in zip(searches, ends[:-1], ends[1:], strict=True)
        ]
        return self._with_vectors(snapshot, choices)

    def _with_vectors(self, snapshot: Snapshot, choices: Sequence[tuple[Positions, float]]) -> list[SearchHits]:
        hashes = snapshot.columns.hashes
        chosen = [(cast("list[int]", positions.tolist()), bound) for positions, bound in choices]
        read = self._vectors.read(sorted({hashes[n] for positions, _ in chosen for n in positions}))
        found: list[SearchHits] = []
        for positions, bound in chosen:
            # What has no vector any more was forgotten a moment ago.
            kept = [n for n in positions if hashes[n] in read]
            rows = [read[hashes[n]] for n in kept]
            vectors = np.stack(rows) if rows else np.zeros((0, self._vectors.embedder.dimension), np.float32)
            found.append(SearchHits(np.array(kept, np.intp), vectors, bound))
        return found

    def follow(self, snapshot: Snapshot) -> None:
        """Bring Chroma up to a snapshot now, so that nothing of what was forgotten stays in it."""
        with self._lock:
            self._up_to_date(snapshot)

    def faults(self, snapshot: Snapshot) -> list[str]:
        """Memories that Chroma lacks, that only Chroma has, or whose vectors differ."""
        with self._lock:
            handle = self._up_to_date(snapshot).handle
            there = set(self._chroma.ids(handle))
            wanted = snapshot.positions
            parts = slices(sorted(wanted.keys() & there), AT_ONCE)
            differing = sum(self._differing(handle, snapshot, part) for part in parts)
        counts = {
            "memories are not in Chroma": len(wanted.keys() - there),
            "vectors in Chroma belong to no memory": len(there - wanted.keys()),
            "vectors in Chroma differ from those in SQL": differing,
        }
        return [f"{snapshot.name}: {n} {what}" for what, n in counts.items() if n]

    def rebuild(self, snapshots: Sequence[Snapshot]) -> None:
        """Discard everything and add it again."""
        with self._lock:
            self._followed.clear()
            self._chroma.clear()
            for each in snapshots:
                self._up_to_date(each)

    def close(self) -> None:
        """Close Chroma."""
        with self._lock:
            self._chroma.close()

    def _up_to_date(self, snapshot: Snapshot) -> _Followed:
        """The collection in Chroma, with what is new in SQL added and what is gone removed."""
        followed = self._followed.get(snapshot.id) or self._opened(snapshot)
        if followed.upto >= snapshot.last_seq and followed.erased >= snapshot.erased:
            return followed
        handle = followed.handle
        if followed.erased < snapshot.erased:
            for part in slices(sorted(set(self._chroma.ids(handle)) - snapshot.positions.keys()), AT_ONCE):
                self._chroma.delete(handle, part)
        begin = int(np.searchsorted(snapshot.columns.seqs, followed.upto, side="right"))
        for at in range(begin, len(snapshot), AT_ONCE):
            self._add(handle, snapshot, range(at, min(at + AT_ONCE, len(snapshot))))
        followed.upto = max(followed.upto, snapshot.last_seq)
        followed.erased = max(followed.erased, snapshot.erased)
        # Noted last: when this is cut off, the same is added again, which changes nothing.
        self._chroma.note(handle, {"upto": followed.upto, "erased": followed.erased})
        return followed

    def _opened(self, snapshot: Snapshot) -> _Followed:
        handle, noted = self._chroma.open(f"{self._prefix}-{snapshot.id}")
        upto, erased = (int(noted.get(key, 0)) for key in ("upto", "erased"))
        if upto > snapshot.last_seq:  # SQL is older than this: it was put back from a copy
            upto, erased = 0, -1
        self._followed[snapshot.id] = _Followed(handle, upto, erased)
        return self._followed[snapshot.id]

    def _add(self, handle: object, snapshot: Snapshot, positions: range) -> None:
        columns = snapshot.columns
        read = self._vectors.read(sorted({columns.hashes[n] for n in positions}))
        kept = [n for n in positions if columns.hashes[n] in read]
        if kept:
            self._chroma.upsert(
                handle, [columns.ids[n] for n in kept], np.stack([read[columns.hashes[n]] for n in kept])
            )

    def _differing(self, handle: object, snapshot: Snapshot, ids: Sequence[str]) -> int:
        theirs = self._chroma.vectors(handle, ids)
        hashes = {each: snapshot.columns.hashes[snapshot.positions[each]] for each in ids}
        ours = self._vectors.read(sorted(set(hashes.values())))
        return sum(not _same(theirs.get(each), ours.get(hashes[each])) for each in ids)


def _upper_ends(snapshot: Snapshot, search: Search, nearest: Sequence[Near], n_near: int) -> FloatArray:
    """What each memory can score at most, (N,), from what Chroma found for each query of a search."""
    position_of = snapshot.positions
    highest = np.full(len(snapshot), -np.inf)  # (N,) upper end of the relevance
    for near in nearest:
        # Chroma may find fewer than were asked for, though there are more; nothing is then known of the others.
        furthest = min(near.cosines, default=1.0) if len(near.ids) >= n_near else 1.0
        cosines = np.full(len(snapshot), furthest)  # (N,)
        for each, cosine in zip(near.ids, near.cosines, strict=True):
            if each in position_of:
                cosines[position_of[each]] = cosine
        highest = np.maximum(highest, cosines)
    return search.weight * highest + search.prior + margin(search.weight, search.queries.shape[1])


def _same(theirs: Vectors | None, ours: Vectors | None) -> bool:
    return theirs is not None and ours is not None and np.array_equal(theirs, ours)
