"""One collection in main memory, as of one version of it: columns by position, and the vectors where they are held.

A snapshot never changes; a newer version is a new snapshot. What a request leaves out, and the parts of a score that do
not depend on the query, are worked out here and kept, for many requests ask alike. Knows nothing of SQL or of indexes.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from debate.memory.embedders.base import Vectors
from debate.memory.recall.request import RecallRequest
from debate.memory.records import canonical
from debate.types import FloatArray

T = TypeVar("T")
Mask = NDArray[np.bool_]
_KEPT = 8
"""Masks, and unasked parts of scores, that a snapshot remembers."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The memories of a collection in the order in which they were committed, N of them."""

    seqs: NDArray[np.int64]
    ids: Sequence[str]
    texts: Sequence[str]
    """As JSON: few of them are ever read."""
    hashes: Sequence[str]
    """Of the texts; what vectors go by."""
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
        """What one of them says."""
        return str(json.loads(self.texts[position]))

    def followed_by(self, more: Columns) -> Columns:
        """These, then those."""
        return Columns(
            np.concatenate([self.seqs, more.seqs]),
            [*self.ids, *more.ids],
            [*self.texts, *more.texts],
            [*self.hashes, *more.hashes],
            [*self.kinds, *more.kinds],
            [*self.sources, *more.sources],
            [*self.details, *more.details],
            np.concatenate([self.created, more.created]),
            np.concatenate([self.importance, more.importance]),
        )


@dataclass(frozen=True, slots=True)
class Unasked:
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
    _kept: OrderedDict[object, Any] = field(default_factory=OrderedDict[object, Any], repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def last_seq(self) -> int:
        """Of the newest memory; 0 when there is none."""
        return int(self.columns.seqs[-1]) if len(self) else 0

    @property
    def positions(self) -> Mapping[str, int]:
        """Where each memory stands, by id."""
        return self._once("positions", lambda: {each: n for n, each in enumerate(self.columns.ids)})

    def unasked(self, request: RecallRequest, now: float) -> Unasked:
        """Recency and importance for a request at the moment `now`."""
        key = (now, request.decay, request.weights)
        return self._once(key, lambda: self._unasked(request, now))

    def _unasked(self, request: RecallRequest, now: float) -> Unasked:
        hours = np.maximum(now - self.columns.created, 0.0) / 3600  # (N,)
        recency = request.decay**hours  # (N,)
        weights = request.weights
        return Unasked(recency, weights.recency * recency + weights.importance * self.columns.importance)

    def mask(self, request: RecallRequest) -> Mask | None:
        """Which memories may be recalled, (N,); None is all."""
        parts = (request.kinds, request.sources, request.exclude_sources)
        if not any(parts) and not request.metadata:
            return None
        return self._once((*parts, canonical(request.metadata)), lambda: self._mask(request))

    def _mask(self, request: RecallRequest) -> Mask:
        columns, allowed = self.columns, np.ones(len(self), bool)  # (N,)
        if request.kinds:
            allowed &= _among(columns.kinds, request.kinds)
        if request.sources:
            allowed &= _among(columns.sources, request.sources)
        if request.exclude_sources:
            allowed &= ~_among(columns.sources, request.exclude_sources)
        if request.metadata:
            allowed &= np.fromiter((_has(each, request.metadata) for each in columns.details), bool, len(self))
        return allowed

    def _once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` gives, remembered; what has not been asked for longest is forgotten."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]


def _among(column: Sequence[object], values: Sequence[object]) -> Mask:
    wanted = set(values)
    return np.fromiter((each in wanted for each in column), bool, len(column))


def _has(details: str, wanted: Mapping[str, Any]) -> bool:
    found: dict[str, Any] = json.loads(details)
    return all(key in found and found[key] == value for key, value in wanted.items())
