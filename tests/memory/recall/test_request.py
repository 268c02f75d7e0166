"""What a recall can be told: the parts of a score, limits, filters, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.errors import ConfigError
from debate.memory import MemoryStore, RecallRequest
from tests.memory.oracle import HOUR, NOW

# ---- the parts of a score


@pytest.mark.parametrize("hours", [0, 1, 24, 720])
def test_recency_is_the_decay_to_the_power_of_the_hours(hours: int) -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        store.add("a", "one", created_at=NOW - hours * HOUR)
        (memory,) = store.recall("a", "one", now=NOW)
        assert memory.recency == pytest.approx(0.995**hours, abs=1e-9)
        (memory,) = store.recall("a", "one", now=NOW, decay=0.5)
        assert memory.recency == pytest.approx(0.5**hours, abs=1e-9)


def test_a_memory_of_the_future_is_as_recent_as_can_be() -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        store.add("a", "one", created_at=NOW + 1000 * HOUR)
        assert store.recall("a", "one", now=NOW)[0].recency == 1.0


def test_of_two_that_say_the_same_the_newer_one_is_recalled() -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        for days in (20, 1, 300):
            store.add("a", "the limit is ten", created_at=NOW - days * 24 * HOUR, metadata={"days": days})
        assert len(store.collections()) == 1
        (memory,) = store.recall("a", "what is the limit", now=NOW)
        assert memory.recency == pytest.approx(0.995**24, abs=1e-9)


def test_the_score_is_the_weighted_sum_of_its_parts() -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        store.add("a", ["the cat sat", "the dog ran", "it rained"], importance=3, created_at=NOW - HOUR)
        for memory in store.recall("a", "a cat and a dog", now=NOW, weights=(0.7, 0.2, 0.4)):
            expected = 0.7 * memory.relevance + 0.2 * memory.recency + 0.4 * memory.importance
            assert memory.score == pytest.approx(expected, abs=1e-8)
            assert memory.importance == 0.3


def test_the_best_match_among_several_queries_counts() -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        store.add("a", "rivers of Australia")
        alone = store.recall("a", "rivers of Australia", now=NOW)[0]
        among = store.recall("a", ["something else entirely", "rivers of Australia", "and more"], now=NOW)[0]
        assert among.relevance == alone.relevance == pytest.approx(1.0, abs=1e-6)


# ---- limits and filters


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(1, 12), st.lists(st.integers(1, 30), max_size=12))
def test_neither_k_nor_the_budget_is_ever_exceeded(budget: int, k: int, lengths: list[int]) -> None:
    with MemoryStore("sqlite://", "hashing", count_tokens=lambda text: len(text.split())) as store:
        store.add("a", [" ".join([f"word{i}"] * length) for i, length in enumerate(lengths)])
        found = store.recall("a", "word1 word2", k=k, max_tokens=budget, now=NOW, near_duplicate=None)
        everything = store.recall("a", "word1 word2", k=k, now=NOW, near_duplicate=None)
    assert len(everything) == min(k, len(lengths))
    assert sum(len(memory.text.split()) for memory in found) <= budget
    left_out = [memory for memory in everything if memory not in found]
    shortest = min((len(memory.text.split()) for memory in left_out), default=budget + 1)
    assert shortest > budget - sum(len(memory.text.split()) for memory in found)


def test_a_text_that_is_longer_than_the_budget_keeps_no_other_out() -> None:
    with MemoryStore("sqlite://", "hashing", count_tokens=len) as store:
        store.add("a", ["cat " * 100, "cat dog"])
        assert [memory.text for memory in store.recall("a", "cat", max_tokens=50)] == ["cat dog"]


def test_filters_go_by_kind_source_metadata_and_score() -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        store.add("a", "cat one", "task-1", "episodic", metadata={"lang": "en", "n": [1, 2]})
        store.add("a", "cat two", "task-2", "semantic", metadata={"lang": "de"})
        store.add("a", "dog three", None, "reflection")

        def texts(**asked: object) -> list[str]:
            return sorted(memory.text for memory in store.recall("a", "cat", now=NOW, **asked))  # pyright: ignore[reportArgumentType]

        assert texts(kinds="episodic") == ["cat one"]
        assert texts(kinds=["episodic", "reflection"]) == ["cat one", "dog three"]
        assert texts(sources=["task-1", "task-2"]) == ["cat one", "cat two"]
        assert texts(exclude_sources="task-1") == ["cat two", "dog three"]
        assert texts(metadata={"lang": "de"}) == ["cat two"]
        assert texts(metadata={"n": [1, 2]}) == ["cat one"]
        assert texts(min_score=0.5) == ["cat one", "cat two"]


def test_near_duplicates_of_a_better_memory_are_skipped() -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        store.add("a", ["the same words in a row", "in a row the same words", "quite another thing"])
        assert len(store.recall("a", "words", near_duplicate=None)) == 3
        found = store.recall("a", "words")
        assert len(found) == 2
        assert found[1].text == "quite another thing"


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"k": 0}, "k"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"decay": 0}, "decay"),
        ({"decay": 1.1}, "decay"),
        ({"near_duplicate": 2}, "near_duplicate"),
        ({"weights": (1, 2)}, "weights"),
        ({"weights": {"relevance": 1, "beauty": 1}}, "weights"),
        ({"weights": (-1, 0, 0)}, "weights.relevance"),
        ({"kinds": "opinion"}, "kinds"),
        ({"metadata": {"x": object()}}, "metadata"),
        ({"queries": []}, "queries"),
        ({"queries": "\ud800"}, "queries"),
        ({"collections": ""}, "collections"),
        ({"now": -1}, "now"),
    ],
)
def test_a_request_that_is_out_of_range_is_refused(asked: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RecallRequest(**{"collections": "a", "queries": "b", **asked})  # pyright: ignore[reportArgumentType]
    assert caught.value.field == field
