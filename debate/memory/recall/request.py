"""A recall as the memory store is asked for it, checked when made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debate.errors import ConfigError
from debate.flow import Recall, Weights, WeightsLike, as_texts
from debate.memory.records import Moment, checked_name, checked_text, seconds
from debate.settings import check_value

NEAR_DUPLICATE = 0.97
DECAY = 0.995


@dataclass(frozen=True, init=False)
class RecallRequest(Recall):
    """One recall, with the moment it is made at and what the store adds to the filters of `MemorySettings`.

    >>> RecallRequest("general/Critic", ["What is the capital?", "Canberra."], k=3, exclude_sources=["task-17"])

    Args:
        collections: one or more names; a collection that does not exist is empty.
        queries: one or more views of the question; the best match among them counts.
        k: most memories.
        max_tokens: most tokens of all their texts together: of the k best, in order, those that still fit.
        now: the moment that ages are counted to; None is the clock's.
        weights: `Weights`, a mapping of them, or (relevance, recency, importance).
        exclude_sources: sources that are left out, so that an eval set is not judged with its own answers.
        decay: what recency is multiplied by for each hour of age, in (0, 1].
        near_duplicate: cosine from which a memory is skipped beside a better one, in (0, 1]; None keeps all.
        filters: `kinds`, `sources`, `metadata` and `min_score`, see `MemorySettings`; and `task`, see `Recall`.

    Raises:
        ConfigError: for a value out of range, or text that is not valid Unicode.
    """

    weights: Weights = Weights()
    now: float | None = None
    decay: float = DECAY
    near_duplicate: float | None = NEAR_DUPLICATE

    def __init__(
        self,
        collections: str | Sequence[str],
        queries: str | Sequence[str],
        k: int = 8,
        max_tokens: int | None = None,
        now: Moment | None = None,
        weights: WeightsLike | None = None,
        exclude_sources: str | Sequence[str] = (),
        *,
        decay: float = DECAY,
        near_duplicate: float | None = NEAR_DUPLICATE,
        **filters: Any,
    ) -> None:
        if not as_texts(queries):
            raise ConfigError("is empty: a recall needs at least one query", field="queries")
        check_value("decay", decay, float, gt=0, le=1)
        check_value("near_duplicate", near_duplicate, float | None, gt=0, le=1)
        super().__init__(
            collections=tuple(dict.fromkeys(checked_name(name, "collections") for name in as_texts(collections))),
            queries=_checked_texts(queries, "queries"),
            k=k,
            max_tokens=max_tokens,
            weights=Weights() if weights is None else weights,  # pyright: ignore[reportArgumentType] - any form of them
            exclude_sources=_checked_texts(exclude_sources, "exclude_sources"),
            sources=_checked_texts(filters.pop("sources", ()), "sources"),
            **filters,
        )
        own = {"now": None if now is None else seconds(now, "now"), "decay": decay, "near_duplicate": near_duplicate}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, recall: Recall, now: float, defaults: Mapping[str, Any]) -> RecallRequest:
        """A flow's recall as a request; `defaults` apply where it says nothing, sources are excluded by both."""
        excluded = (*as_texts(defaults.get("exclude_sources", ())), *recall.exclude_sources)
        given: dict[str, Any] = {**defaults, **recall.given(), "now": now, "exclude_sources": excluded}
        return cls(**given)


def _checked_texts(given: str | Sequence[str], field: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(checked_text(each, field) for each in as_texts(given)))
