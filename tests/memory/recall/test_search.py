"""Recalling: an index says what the oracle says, a batch what single recalls say; nothing leaks; all is repeatable."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from debate.memory import MemoryStore, RecallRequest
from debate.memory.indexes.router import IndexChoice
from debate.types import Memory
from tests.memory import oracle
from tests.memory.oracle import NOW, Directions, words
from tests.required import required_module

STORES = os.environ.get("DEBATE_MEMORY_STORES")
"""Random stores that each index is compared on; a few of them otherwise."""


def assert_alike(found: Sequence[Memory], expected: Sequence[Memory]) -> None:
    """The same memories in the same order, with scores and parts equal to 1e-6."""
    assert [memory.id for memory in found] == [memory.id for memory in expected]
    for one, other in zip(found, expected, strict=True):
        assert (one.text, one.collection, one.kind, one.source) == (
            other.text,
            other.collection,
            other.kind,
            other.source,
        )
        parts = ("score", "relevance", "recency", "importance")
        assert [getattr(one, part) for part in parts] == pytest.approx(
            [getattr(other, part) for part in parts], abs=1e-6
        )


@pytest.mark.parametrize("index", ["exact", "chroma"])
def test_recall_is_what_plain_python_says(index: IndexChoice, tmp_path: Path) -> None:
    if index == "chroma":
        required_module("chromadb")
    for seed in range(int(STORES or {"exact": 24, "chroma": 4}[index])):
        rng, embedder = random.Random(seed), Directions()
        place = "sqlite://" if index == "exact" else tmp_path / f"{seed}.sqlite"
        with MemoryStore(place, embedder, index, count_tokens=words) as store:
            kept = oracle.random_store(store, rng, rng.randint(1, 60 if index == "exact" else 200))
            requests = [oracle.random_request(rng) for _ in range(12)]
            answers = store.recall_many(requests)
            assert len(answers) == len(requests)
            for request, answer in zip(requests, answers, strict=True):
                assert_alike(answer, oracle.recall(kept, request, embedder))


def test_an_empty_store_and_a_missing_collection_hold_nothing() -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        assert store.recall("a", "anything") == []
        store.add("a", "something")
        assert store.recall(["b", "A"], "something") == []
        assert store.recall([], "something") == []
        assert store.recall_many([]) == []


@pytest.mark.parametrize("index", ["exact", "chroma"])
def test_a_batch_says_what_single_recalls_say(index: IndexChoice, tmp_path: Path) -> None:
    if index == "chroma":
        required_module("chromadb")
    rng = random.Random(3)
    with MemoryStore(tmp_path / "m.sqlite", Directions(), index, count_tokens=words) as store:
        oracle.random_store(store, rng, 150)
        requests = [oracle.random_request(rng) for _ in range(40)]
        assert store.recall_many(requests) == [store.recall_many([request])[0] for request in requests]


def test_a_batch_embeds_once() -> None:
    embedder = Directions()
    with MemoryStore("sqlite://", embedder) as store:
        store.add("a", ["topic0 1", "topic1 2"])
        embedder.batches.clear()
        store.recall_many([RecallRequest("a", [f"topic{i} 5", "topic0 5"], now=NOW) for i in range(6)])
        assert embedder.batches == [6]
        store.recall_many([RecallRequest("a", "topic3 5", now=NOW)])
        assert embedder.batches == [6]


def test_the_order_in_which_memories_came_does_not_matter() -> None:
    texts = [f"topic{i % 4} {i // 8}" for i in range(40)]
    answers: list[list[Memory]] = []
    for seed in range(4):
        random.Random(seed).shuffle(texts)
        with MemoryStore("sqlite://", Directions()) as store:
            for text in texts:
                store.add("a", text, created_at=NOW)
            answers.append(store.recall("a", ["topic0 3", "topic2 1"], k=12, now=NOW, near_duplicate=None))
    assert answers[0]
    assert answers == [answers[0]] * 4


def test_recalling_changes_nothing(tmp_path: Path) -> None:
    with MemoryStore(tmp_path / "m.sqlite", Directions()) as store:
        store.add("a", [f"topic{i % 3} {i}" for i in range(30)], created_at=NOW)
        store.export(tmp_path / "before.jsonl")
        first = [store.recall("a", "topic1 9", now=NOW) for _ in range(3)]
        store.export(tmp_path / "after.jsonl")
    assert first[0] == first[1] == first[2] != []
    assert (tmp_path / "before.jsonl").read_bytes() == (tmp_path / "after.jsonl").read_bytes()


def test_what_another_store_object_adds_and_forgets_is_seen_at_once(url: str) -> None:
    with MemoryStore(url, Directions()) as one, MemoryStore(url, Directions()) as other:
        one.add("a", ["topic1 1", "topic1 2"])
        assert len(one.recall("a", "topic1 1", near_duplicate=None)) == 2
        (identifier,) = other.add("a", "topic1 3")
        assert [memory.id for memory in one.recall("a", "topic1 3", k=1)] == [identifier]
        other.forget(ids=identifier)
        assert identifier not in [memory.id for memory in one.recall("a", "topic1 3")]
        other.add("a", "topic1 4")
        assert one.recall("a", "topic1 4", k=1)[0].text == "topic1 4"


# ---- nothing leaks from one collection into another

TWINS = [
    "Critic",
    "critic",
    "CRITIC",
    "Critíc",
    unicodedata.normalize("NFD", "Critíc"),
    "Cr\u0131tic",
    "Critic ",
    "general/Critic",
    "general/../Critic",
    "./Critic",
    "Critic%",
    "Cr_tic",
    "'; DROP TABLE memories;--",
    "*",
]


def test_names_that_look_alike_are_different_collections(url: str) -> None:
    rng = random.Random(1)
    with MemoryStore(url, Directions()) as store:
        for name in TWINS:
            store.add(name, [f"topic0 {i}" for i in range(3)], source=name)
        requests = [
            RecallRequest(
                rng.sample(TWINS, rng.randint(1, 3)), f"topic0 {rng.randrange(9)}", now=NOW, near_duplicate=None
            )
            for _ in range(500)
        ]
        for request, answer in zip(requests, store.recall_many(requests), strict=True):
            assert {memory.source for memory in answer} == set(request.collections)
            assert all(memory.source == memory.collection for memory in answer)
        assert store.collections() == dict.fromkeys(sorted(TWINS), 3)


# ---- determinism

PROGRAM = """
import json, sys
from dataclasses import asdict
from debate.memory import MemoryStore, RecallRequest
from debate.memory.indexes.router import IndexChoice
with MemoryStore(sys.argv[1], "hashing", "exact") as store:
    requests = [RecallRequest(["a", "b"], [f"word{i} word{i + 1}", "word3"], k=6, now=1.75e9) for i in range(20)]
    size = int(sys.argv[2])
    answers = [each for at in range(0, 20, size) for each in store.recall_many(requests[at:at + size])]
print(json.dumps([[asdict(memory) for memory in answer] for answer in answers]))
"""


def test_the_same_json_comes_from_every_process(tmp_path: Path) -> None:
    file = tmp_path / "m.sqlite"
    with MemoryStore(file, "hashing") as store:
        store.add("a", [f"word{i} word{i * 7 % 40} word{i % 3}" for i in range(200)], created_at=NOW)
        store.add("b", [f"word{i} word{i * 3 % 40}" for i in range(200)], created_at=NOW)
    said: set[str] = set()
    for hash_seed, threads, size in (("0", "1", 20), ("1", "2", 1), ("2", "4", 7), ("3", "1", 3), ("4", "8", 20)):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "OPENBLAS_NUM_THREADS": threads}
        command = [sys.executable, "-c", PROGRAM, str(file), str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environment)
        said.add(done.stdout)
    assert len(said) == 1
    assert len(json.loads(said.pop())[0]) == 6


def test_memories_carry_what_the_record_needs() -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        (identifier,) = store.add("a", "one", "task-1", "episodic", created_at=NOW)
        found = asdict(store.recall("a", "one", now=NOW)[0])
    assert found == {
        "text": "one",
        "id": identifier,
        "collection": "a",
        "score": pytest.approx(1.15),
        "relevance": pytest.approx(1.0),
        "recency": 1.0,
        "importance": 0.5,
        "kind": "episodic",
        "source": "task-1",
    }
