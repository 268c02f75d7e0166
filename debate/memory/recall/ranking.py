"""What a memory scores for a query, and which of the scored ones are recalled: numbers alone.

    score = w_relevance * relevance + w_recency * recency + w_importance * importance

The sum of Generative Agents (arXiv 2304.03442, section 4.1), with two differences. Its parts are min-max normalized
over all memories, so that one memory more changes the score of every other; ours are absolute: the cosine of the best
matching query, in [-1, 1]; decay ** hours since the memory was made, in (0, 1]; importance / 10. And recalling changes
nothing: age counts from the making, not from the last recall. Scores are rounded to 9 digits after float64 sums whose
order is fixed, so that they do not depend on threads or batches. Ties go to the newer memory, then to the smaller id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from debate.memory.embedders.base import Vectors
from debate.memory.recall.request import RecallRequest
from debate.memory.recall.snapshot import PriorScores, Snapshot
from debate.types import FloatArray

DIGITS = 9
_ROUGH = 1e-3
"""More than a float32 product of two unit vectors can be off."""
Positions = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class SearchHits:
    """What an index offers of one collection for one request: the memories that may score best.

    `bound` is a score that no memory exceeds which is not offered; -inf when all are.
    """

    positions: Positions
    """(M,)"""
    vectors: Vectors
    """(M, D)"""
    bound: float


class Scored(NamedTuple):
    """A memory with its score and the parts of it. They sort as they are recalled: best first."""

    key: tuple[float, float, str]
    """(-score, -created_at, id)."""
    relevance: float
    recency: float
    position: int
    vector: Vectors
    """(D,)"""
    snapshot: Snapshot

    @property
    def score(self) -> float:
        """The weighted sum."""
        return -self.key[0] + 0.0  # never -0.0

    @property
    def text(self) -> str:
        """What is remembered."""
        return self.snapshot.columns.text(self.position)


def scored(
    hits: SearchHits, snapshot: Snapshot, queries: FloatArray, request: RecallRequest, prior: PriorScores
) -> list[Scored]:
    """Exact scores of the hits, in no order.

    Args:
        hits: what the index offers.
        snapshot: the collection they are of.
        queries: (Q, D) float64; the best match counts.
        request: whose weights are used.
        prior: the collection's `Snapshot.prior_scores` for this request.
    """
    at, columns = hits.positions, snapshot.columns
    # einsum sums in one order on every machine, thread and batch; a matrix product does not.
    relevance = np.einsum("md,qd->mq", hits.vectors.astype(np.float64), queries).max(axis=1)  # (M,)
    total = (request.weights.relevance * relevance + prior.weighted[at]).round(DIGITS)  # (M,)
    rows = zip(
        (-total).tolist(),
        (-columns.created[at]).tolist(),
        relevance.round(DIGITS).tolist(),
        prior.recency[at].round(DIGITS).tolist(),
        at.tolist(),
        hits.vectors,
        strict=True,
    )
    return [
        Scored((minus, newest, columns.ids[cast("int", n)]), match, recency, n, vector, snapshot)
        for minus, newest, match, recency, n, vector in rows
    ]


def select_top_k(offered: Sequence[Scored], bound: float, request: RecallRequest) -> list[Scored] | None:
    """The k best that are no near-duplicates of a better one; None when a memory not offered might be among them."""
    best: list[Scored] = []
    floor = -np.inf if request.min_score is None else request.min_score
    is_complete = bound == -np.inf or bound < floor
    for each in sorted(offered, key=lambda each: each.key):
        if len(best) == request.k:
            return best
        if not is_complete and each.score <= bound:
            return None
        if each.score < floor:
            return best
        if request.near_duplicate is None or not _is_near(each.vector, best, request.near_duplicate):
            best.append(each)
    return best if is_complete or len(best) == request.k else None


def _is_near(vector: Vectors, others: Sequence[Scored], cosine: float) -> bool:
    for other in others:
        roughly = float(vector @ other.vector)
        if roughly > cosine - _ROUGH and (roughly > cosine + _ROUGH or _cosine(vector, other.vector) >= cosine):
            return True
    return False


def _cosine(one: Vectors, other: Vectors) -> float:
    return round(float(np.einsum("d,d->", one.astype(np.float64), other.astype(np.float64))), DIGITS)


def fit_token_budget(
    best: Sequence[Scored], max_tokens: int | None, count_tokens: Callable[[str], int]
) -> list[Scored]:
    """Of the best, in order, those that still fit into the budget: whole texts only."""
    if max_tokens is None:
        return list(best)
    kept: list[Scored] = []
    left = max_tokens
    for each in best:
        tokens = count_tokens(each.text)
        if tokens <= left:
            kept.append(each)
            left -= tokens
    return kept


def estimated_tokens(text: str) -> int:
    """A number of tokens that no usual tokenizer exceeds by much: a third of the bytes, rounded up."""
    return -(-len(text.encode("utf-8")) // 3)
