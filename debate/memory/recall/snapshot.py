"""Collections in main memory, each as fresh as the database at the moment it is asked for.

A snapshot is one collection as of one version: columns by position, and the vectors where they are held. It never
changes; a newer version is a new snapshot. What a request filters out, and the parts of a score that do not depend on
the query, are computed here and kept, for many requests ask alike.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, Text, and_, select, type_coerce

from debate.errors import StoreError
from debate.memory.database import COLLECTIONS, MEMORIES, REBUILD, VECTORS, select_in
from debate.memory.embedders.base import Embedder, Vectors
from debate.memory.recall.request import RecallRequest
from debate.memory.records import CAME_OF, EVIDENCE, canonical, evidence, has_all, origins, origins_of
from debate.sql.types import Json
from debate.types import FloatArray

T = TypeVar("T")
Mask = NDArray[np.bool_]
_KEPT = 8
"""Masks and prior scores that a snapshot remembers."""


class LRU(Generic[T]):
    """A thread-safe mapping of bounded size: what was not used for longest is dropped."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[object, T] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: object) -> T | None:
        """The value, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: object, value: T) -> None:
        """Keep a value."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._size:
                self._values.popitem(last=False)

    def pop(self, key: object) -> None:
        """Drop a value, where it is there."""
        with self._lock:
            self._values.pop(key, None)

    def get_or_make(self, key: object, make: Callable[[], T]) -> T:
        """The value, made once."""
        with self._lock:
            found = self.get(key)
            if found is None:
                found = make()
                self.put(key, found)
            return found


@dataclass(frozen=True, slots=True)
class Columns:
    """The memories of a collection in the order in which they were committed, N of them."""

    seqs: NDArray[np.int64]
    ids: Sequence[str]
    texts: Sequence[str]
    """As JSON: few of them are ever read."""
    hashes: Sequence[str]
    """Of the texts; the keys of their vectors."""
    kinds: Sequence[str]
    sources: Sequence[str | None]
    details: Sequence[str]
    """Their metadata, as JSON."""
    created: FloatArray
    """Seconds since 1970."""
    importance: FloatArray
    """In 0..1."""

    def __len__(self) -> int:
        return len(self.ids)

    def text(self, position: int) -> str:
        """The text of the memory at `position`."""
        return str(json.loads(self.texts[position]))

    def followed_by(self, more: Columns) -> Columns:
        """New `Columns` with `more` appended."""
        return Columns(*(_joined(getattr(self, each.name), getattr(more, each.name)) for each in fields(self)))


def _joined(column: Any, more: Any) -> Any:
    return [*column, *more] if isinstance(column, Sequence) else np.concatenate([column, more])


@dataclass(frozen=True, slots=True)
class PriorScores:
    """The parts of every memory's score that do not depend on the query, (N,) each."""

    recency: FloatArray
    """decay ** hours of age, in (0, 1]; 1 for what lies in the future."""
    weighted: FloatArray
    """Recency and importance by their weights, summed."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A collection as of one version."""

    id: int
    name: str
    version: int
    erased: int
    columns: Columns
    matrix: Vectors | None
    """(N, D), for the exact index; None where another index serves the collection."""
    _kept: LRU[Any] = field(default_factory=lambda: LRU(_KEPT), repr=False)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def last_seq(self) -> int:
        """Of the newest memory; 0 when there is none."""
        return int(self.columns.seqs[-1]) if len(self) else 0

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Where each memory stands, by id."""
        return {each: n for n, each in enumerate(self.columns.ids)}

    def prior_scores(self, request: RecallRequest, now: float) -> PriorScores:
        """Recency and importance for a request at the moment `now`."""
        key = (now, request.decay, request.weights)
        return self._kept.get_or_make(key, lambda: self._prior_scores(request, now))

    def _prior_scores(self, request: RecallRequest, now: float) -> PriorScores:
        hours = np.maximum(now - self.columns.created, 0.0) / 3600  # (N,)
        recency = request.decay**hours  # (N,)
        weights = request.weights
        return PriorScores(recency, weights.recency * recency + weights.importance * self.columns.importance)

    def mask(self, request: RecallRequest) -> Mask | None:
        """Which memories may be recalled, (N,); None is all."""
        parts = (request.kinds, request.sources, request.exclude_sources)
        if not any(parts) and not request.metadata and request.task is None:
            return None
        its_origins = None if request.task is None else origins_of(request.task)
        key = (*parts, canonical(request.metadata), its_origins)
        return self._kept.get_or_make(key, lambda: self._mask(request, its_origins or ()))

    def _mask(self, request: RecallRequest, its_origins: Sequence[str]) -> Mask:
        columns, allowed = self.columns, np.ones(len(self), bool)  # (N,)
        if request.kinds:
            allowed &= _among(columns.kinds, request.kinds)
        if request.sources:
            allowed &= _among(columns.sources, request.sources)
        if request.exclude_sources:
            allowed &= ~_among(columns.sources, request.exclude_sources)
        if request.metadata:
            found = (has_all(json.loads(each), request.metadata) for each in columns.details)
            allowed &= np.fromiter(found, bool, len(self))
        allowed[self._came_of(its_origins)] = False
        return allowed

    def _came_of(self, its_origins: Sequence[str]) -> list[int]:
        """The memories that have one of these origins, and those that rest on them, at any number of removes."""
        by_origin, by_evidence = self._descent
        found = {n for each in its_origins for n in by_origin.get(each, ())}
        left = list(found)
        while left:
            new = set(by_evidence.get(self.columns.ids[left.pop()], ())) - found
            found |= new
            left += new
        return sorted(found)

    @cached_property
    def _descent(self) -> tuple[Mapping[str, Sequence[int]], Mapping[str, Sequence[int]]]:
        """Which memories have each origin, and which rest on each memory, by its id."""
        by_origin: defaultdict[str, list[int]] = defaultdict(list)
        by_evidence: defaultdict[str, list[int]] = defaultdict(list)
        for n, (source, details) in enumerate(zip(self.columns.sources, self.columns.details, strict=True)):
            is_told = CAME_OF in details or EVIDENCE in details  # else its JSON need not be read
            metadata: Mapping[str, Any] = json.loads(details) if is_told else {}
            for each in origins(source, metadata):
                by_origin[each].append(n)
            for each in evidence(metadata):
                by_evidence[each].append(n)
        return by_origin, by_evidence


def _among(column: Sequence[object], values: Sequence[object]) -> Mask:
    wanted = set(values)
    return np.fromiter((each in wanted for each in column), bool, len(column))


_COLUMNS = tuple(
    type_coerce(column, Text) if isinstance(column.type, Json) else column  # JSON stays JSON
    for column in (
        MEMORIES.c[name]
        for name in ("seq", "id", "text", "text_hash", "kind", "source", "metadata", "created_at", "importance")
    )
)


class CollectionCache:
    """Snapshots by name.

    Args:
        embedder: whose vectors are loaded.
        holds_vectors: whether a collection of so many memories has its vectors in main memory.
    """

    def __init__(self, embedder: Embedder, holds_vectors: Callable[[int], bool]) -> None:
        self._embedder = embedder
        self._holds_vectors = holds_vectors
        self._held: dict[str, Snapshot] = {}
        self._lock = threading.Lock()

    def snapshots(self, connection: Connection, names: Collection[str]) -> dict[str, Snapshot]:
        """The collections of these names, as they are now; those that do not exist are left out.

        Raises:
            StoreError: when a memory has no vector, or one of another length.
        """
        found: dict[str, Snapshot] = {}
        with self._lock:
            for row in select_in(connection, select(COLLECTIONS), COLLECTIONS.c.name, names):
                held = self._held.get(row.name)
                if held is None or (held.version, held.erased, held.id) != (row.version, row.erased, row.id):
                    self._held[row.name] = self._loaded(connection, row, held)
                found[row.name] = self._held[row.name]
        return found

    def forget(self) -> None:
        """Drop all snapshots; the next recall loads them again."""
        with self._lock:
            self._held.clear()

    def _loaded(self, connection: Connection, row: Row[Any], held: Snapshot | None) -> Snapshot:
        """The whole collection, or the snapshot that is held with what was added since."""
        before = held if held and (held.id, held.erased) == (row.id, row.erased) else None
        columns = self._columns(connection, row.id, before.last_seq if before else 0)
        if before:
            columns = before.columns.followed_by(columns)
        matrix = None
        if self._holds_vectors(len(columns)):
            matrix = self._matrix(connection, row, columns, before.matrix if before else None)
        return Snapshot(row.id, row.name, row.version, row.erased, columns, matrix)

    def _columns(self, connection: Connection, collection: int, after: int) -> Columns:
        query = select(*_COLUMNS).where(MEMORIES.c.collection_id == collection, MEMORIES.c.seq > after)
        rows = connection.execute(query.order_by(MEMORIES.c.seq)).all()
        columns: list[Any] = list(zip(*rows, strict=True)) or [()] * len(_COLUMNS)
        seqs, *others, created, importance = columns
        columns = [np.array(seqs, np.int64), *others, np.array(created, float), np.array(importance, float) / 10]
        return Columns(*columns)

    def _matrix(self, connection: Connection, row: Row[Any], columns: Columns, before: Vectors | None) -> Vectors:
        """(N, D): what is held already, then what is read."""
        n_before = 0 if before is None else len(before)
        after = int(columns.seqs[n_before - 1]) if n_before else 0
        its_vector = and_(VECTORS.c.text_hash == MEMORIES.c.text_hash, VECTORS.c.embedder == self._embedder.id)
        query = (
            select(VECTORS.c.data)
            .select_from(MEMORIES.outerjoin(VECTORS, its_vector))
            .where(MEMORIES.c.collection_id == row.id, MEMORIES.c.seq > after)
            .order_by(MEMORIES.c.seq)
        )
        read = as_vectors(connection.execute(query).scalars().all(), self._embedder.dimension, row.name)
        return read if before is None else np.concatenate([before, read])


def as_vectors(data: Sequence[bytes | None], dimension: int, where: str) -> Vectors:
    """Vectors from the bytes they are kept as, (N, D).

    Raises:
        StoreError: when one is missing or has another length.
    """
    if any(each is None or len(each) != 4 * dimension for each in data):
        raise StoreError(f"{where}: a memory has no vector of {dimension} numbers", hint=REBUILD)
    joined = b"".join(each for each in data if each is not None)
    return np.frombuffer(joined, "<f4").reshape(len(data), dimension).astype(np.float32, copy=False)
