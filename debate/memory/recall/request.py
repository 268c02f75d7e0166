"""A recall as it is asked, and the weights of a score's parts: values that check themselves when made.

Knows nothing of vectors, databases or how memories are ranked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debate.errors import ConfigError
from debate.flow import Recall
from debate.memory.records import Kind, Moment, checked_kind, checked_metadata, checked_name, checked_text, seconds

NEAR_DUPLICATE = 0.97
DECAY = 0.995


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What the three parts of a score weigh."""

    relevance: float = 1.0
    recency: float = 0.1
    importance: float = 0.1

    def __post_init__(self) -> None:
        for name in ("relevance", "recency", "importance"):
            weight = getattr(self, name)
            if not (math.isfinite(weight) and weight >= 0):
                raise ConfigError(f"must be at least 0 and finite, got {weight}", field=f"weights.{name}")


WeightsLike = Weights | Mapping[str, float] | Sequence[float] | None


@dataclass(frozen=True, init=False)
class RecallRequest:
    """One recall.

    >>> RecallRequest("general/Critic", ["What is the capital?", "Canberra."], k=3, exclude_sources=["task-17"])

    Args:
        collections: one or more; one that does not exist holds nothing.
        queries: one or more views of the question; the best match among them counts.
        k: most memories.
        max_tokens: most tokens of all their texts together: of the k best, in order, those that still fit.
        now: the moment that ages are counted to; None is the clock's.
        weights: `Weights`, a mapping of them, or (relevance, recency, importance).
        exclude_sources: sources that are left out, so that an eval set is not judged with its own answers.
        kinds: only these kinds; empty is all.
        sources: only from these sources; empty is all.
        metadata: only memories whose metadata has all these values.
        min_score: only memories with at least this score.
        decay: what recency is multiplied by for each hour of age, in (0, 1].
        near_duplicate: cosine from which a memory is skipped beside a better one, in (0, 1]; None keeps all.

    Raises:
        ConfigError: for what is out of range, or not valid Unicode.
    """

    collections: tuple[str, ...]
    queries: tuple[str, ...]
    k: int
    max_tokens: int | None
    now: float | None
    weights: Weights
    exclude_sources: tuple[str, ...]
    kinds: tuple[Kind, ...]
    sources: tuple[str, ...]
    metadata: Mapping[str, Any]
    min_score: float | None
    decay: float
    near_duplicate: float | None

    def __init__(
        self,
        collections: str | Sequence[str],
        queries: str | Sequence[str],
        k: int = 8,
        max_tokens: int | None = None,
        now: Moment | None = None,
        weights: WeightsLike = None,
        exclude_sources: str | Sequence[str] = (),
        *,
        kinds: str | Sequence[str] = (),
        sources: str | Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        decay: float = DECAY,
        near_duplicate: float | None = NEAR_DUPLICATE,
    ) -> None:
        if not _listed(queries):
            raise ConfigError("is empty: a recall needs at least one query", field="queries")
        _check_range("k", k, 1, math.inf)
        _check_range("max_tokens", max_tokens, 0, math.inf)
        _check_range("decay", decay, 1e-9, 1)
        _check_range("near_duplicate", near_duplicate, 1e-9, 1)
        _check_range("min_score", min_score, -math.inf, math.inf)
        checked = {
            "collections": tuple(dict.fromkeys(checked_name(name, "collections") for name in _listed(collections))),
            "queries": tuple(dict.fromkeys(checked_text(query, "queries") for query in _listed(queries))),
            "k": k,
            "max_tokens": max_tokens,
            "now": None if now is None else seconds(now, "now"),
            "weights": as_weights(weights),
            "exclude_sources": tuple(checked_text(each, "exclude_sources") for each in _listed(exclude_sources)),
            "kinds": tuple(checked_kind(kind) for kind in _listed(kinds)),
            "sources": tuple(checked_text(each, "sources") for each in _listed(sources)),
            "metadata": checked_metadata(metadata),
            "min_score": min_score,
            "decay": decay,
            "near_duplicate": near_duplicate,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def _listed(given: str | Sequence[str]) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given


def _check_range(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise ConfigError(f"must lie in [{low:g}, {high:g}], got {value}", field=name)


def as_weights(given: WeightsLike) -> Weights:
    """Weights from any of their spellings.

    Raises:
        ConfigError: for an unknown name, or a sequence that is not three numbers long.
    """
    if given is None or isinstance(given, Weights):
        return given or Weights()
    try:
        named = dict(given) if isinstance(given, Mapping) else dict(zip(_PARTS, given, strict=True))
        return Weights(**named)
    except (TypeError, ValueError):
        raise ConfigError(
            f"cannot be read: {given!r}", field="weights", hint="relevance, recency and importance, as numbers"
        ) from None


_PARTS = ("relevance", "recency", "importance")


def request_for(recall: Recall, now: float, settings: Mapping[str, Any]) -> RecallRequest:
    """A flow's recall as a request. `settings` hold where the recall says nothing; sources are excluded by both."""
    own = {name: getattr(recall, name) for name in ("weights", "min_score", "kinds", "sources", "metadata")}
    more = {**settings, **{name: value for name, value in own.items() if value not in (None, (), {})}}
    excluded = (*_listed(more.pop("exclude_sources", ())), *recall.exclude_sources)
    return RecallRequest(
        recall.collections, recall.queries, recall.k, recall.max_tokens, now, exclude_sources=excluded, **more
    )
