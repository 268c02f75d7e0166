"""Choosing among what an index offers: nothing is settled that a memory not offered could change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.memory.indexes.base import ExactIndex, Search, margin, top_n_with_bound
from debate.memory.recall.ranking import Scored, estimated_tokens, select_top_k
from debate.memory.recall.request import RecallRequest
from debate.memory.recall.snapshot import Columns, Snapshot

NONE = np.zeros(0)


def snapshot(n: int, dimension: int = 8, seed: int = 0) -> Snapshot:
    rows = np.random.default_rng(seed).standard_normal((n, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    names = [f"{i:03}" for i in range(n)]
    columns = Columns(np.arange(n), names, names, names, names, [None] * n, names, np.zeros(n), np.zeros(n))
    return Snapshot(1, "a", 1, 0, columns, rows.astype(np.float32))


def one(score: float, name: str = "000", vector: tuple[float, ...] = (1, 0), created: float = 0.0) -> Scored:
    return Scored((-score, -created, name), score, 0.0, 0, np.array(vector, np.float32), snapshot(1))


def request(k: int = 2, near_duplicate: float | None = None, min_score: float | None = None) -> RecallRequest:
    return RecallRequest("a", "q", k, near_duplicate=near_duplicate, min_score=min_score)


def names(found: list[Scored] | None) -> list[str] | None:
    return None if found is None else [each.key[2] for each in found]


def test_what_scores_above_the_bound_is_settled_and_what_does_not_is_open() -> None:
    offers = [one(0.9, "b"), one(0.8, "c"), one(0.5, "d")]
    assert names(select_top_k(offers, 0.7, request(2))) == ["b", "c"]
    assert (
        names(select_top_k(offers, 0.8, request(2))) is None
    )  # one that is not offered may score as much, and go first
    assert names(select_top_k(offers, 0.7, request(3))) is None
    assert names(select_top_k(offers, -np.inf, request(3))) == ["b", "c", "d"]
    assert names(select_top_k(offers, -np.inf, request(9))) == ["b", "c", "d"]


def test_a_floor_settles_what_lies_below_it() -> None:
    offers = [one(0.9, "b"), one(0.4, "c")]
    assert names(select_top_k(offers, 0.45, request(2, min_score=0.5))) == ["b"]
    assert names(select_top_k(offers, 0.5, request(2, min_score=0.5))) is None
    assert names(select_top_k([], 0.3, request(2, min_score=0.5))) == []


def test_ties_go_to_the_newer_then_to_the_smaller_id() -> None:
    offers = [one(0.5, "b"), one(0.5, "a"), one(0.5, "c", created=1.0)]
    assert names(select_top_k(offers, -np.inf, request(3))) == ["c", "a", "b"]


def test_a_near_duplicate_of_one_that_was_skipped_is_not_skipped_for_it() -> None:
    first, near, further = (1.0, 0.0), (0.98, 0.19899748742132398), (0.92, 0.39191835884530846)
    offers = [one(0.9, "a", first), one(0.8, "b", near), one(0.7, "c", further)]
    assert names(select_top_k(offers, -np.inf, request(3, near_duplicate=0.95))) == ["a", "c"]


@pytest.mark.parametrize("cosine", [0.5, 0.95, 0.97, 1.0])
def test_a_cosine_at_the_limit_is_near(cosine: float) -> None:
    exact = float(np.float32(cosine))
    offers = [one(0.9, "a", (1.0, 0.0)), one(0.8, "b", (exact, float(np.sqrt(1 - exact**2))))]
    assert names(select_top_k(offers, -np.inf, request(2, near_duplicate=round(exact, 9)))) == ["a"]


@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 5), st.booleans())
def test_the_bound_of_the_exact_index_holds_for_all_that_is_not_offered(
    n_memories: int, n: int, seed: int, is_masked: bool
) -> None:
    held = snapshot(n_memories, seed=seed)
    rng = np.random.default_rng(seed)
    mask = rng.random(n_memories) < 0.5 if is_masked else None
    queries, prior = snapshot(3, seed=seed + 100).matrix, rng.random(n_memories)
    assert queries is not None and held.matrix is not None
    (found,) = ExactIndex().search(held, [Search(queries, 0.7, prior, mask, n)])
    exact = 0.7 * (held.matrix.astype(np.float64) @ queries.T.astype(np.float64)).max(axis=1) + prior
    allowed = np.arange(n_memories) if mask is None else np.flatnonzero(mask)
    assert set(found.positions) <= set(allowed)
    assert len(found.positions) == min(n, len(allowed))
    assert np.array_equal(found.vectors, held.matrix[found.positions])
    rest = np.setdiff1d(allowed, found.positions)
    assert (exact[rest] <= found.bound).all()
    assert bool(rest.size) == (found.bound > -np.inf)


def test_many_searches_are_answered_in_parts_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    held = snapshot(40)
    assert held.matrix is not None
    searches = [Search(held.matrix[i : i + 2], 1.0, np.zeros(40), None, 5) for i in range(12)]
    whole = ExactIndex().search(held, searches)
    monkeypatch.setattr("debate.memory.indexes.base._CELLS", 200)
    parts = ExactIndex().search(held, searches)
    assert [set(each.positions) for each in whole] == [set(each.positions) for each in parts]


def test_few_that_are_allowed_are_all_offered() -> None:
    search = Search(np.eye(1, dtype=np.float32), 1.0, NONE, np.array([True, False, True]), 2)
    positions, bound = top_n_with_bound(np.array([1.0, 9.0, 2.0]), search)
    assert positions.tolist() == [0, 2]
    assert bound == -np.inf


def test_the_margin_is_more_than_rounding_can_be() -> None:
    rng = np.random.default_rng(0)
    for dimension in (8, 384, 3072):
        rows = rng.standard_normal((200, dimension)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        error = np.abs((rows @ rows.T).astype(np.float64) - rows.astype(np.float64) @ rows.T.astype(np.float64))
        assert error.max() < margin(1.0, dimension)


@pytest.mark.parametrize("text", ["", "one", "a longer text, with words in it.", "日本語", "\U0001f600" * 5])
def test_the_estimate_of_tokens_is_generous(text: str) -> None:
    assert estimated_tokens(text) >= len(text.split())
    assert estimated_tokens(text) * 3 >= len(text.encode())
