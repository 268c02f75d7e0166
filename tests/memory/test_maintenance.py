"""Verifying and rebuilding: every damage is told of, and whatever follows from the texts is made anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from debate.errors import ConfigError, StoreError
from debate.memory import MemoryStore
from debate.memory.embedders import Vectors
from tests.memory.oracle import NOW, Directions


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store of 20 memories with 15 different texts."""
    place = tmp_path / "m.sqlite"
    with MemoryStore(place, Directions()) as store:
        store.add("a", [f"topic{i % 3} {i}" for i in range(15)], created_at=NOW)
        store.add("b", [f"topic{i % 3} {i}" for i in range(5)], created_at=NOW)
    return place


def run(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def recalled(store: MemoryStore) -> list[tuple[str, float]]:
    return [(each.id, each.score) for each in store.recall(["a", "b"], "topic1 4", k=20, now=NOW, near_duplicate=None)]


def test_a_sound_store_has_no_problems_and_nothing_to_make_anew(file: Path) -> None:
    with MemoryStore(file, Directions()) as store:
        report = store.verify()
        assert (report.memories, report.collections, report.vectors, report.problems) == (20, 2, 15, ())
        assert report.is_ok
        assert store.rebuild() == 0


@pytest.mark.parametrize(
    ("statement", "problem", "n_made"),
    [
        ("DELETE FROM memory_vectors", "15 texts have no vector", 15),
        ("DELETE FROM memory_vectors WHERE rowid % 3 = 0", "5 texts have no vector", 5),
        ("UPDATE memory_vectors SET data = zeroblob(64) WHERE rowid < 3", "2 vectors are damaged", 2),
        ("UPDATE memory_vectors SET data = x'00' WHERE rowid = 1", "1 vectors are damaged", 1),
    ],
)
def test_vectors_that_are_lost_or_damaged_are_made_anew(file: Path, statement: str, problem: str, n_made: int) -> None:
    with MemoryStore(file, Directions()) as store:
        before = recalled(store)
        run(file, statement)
        assert store.verify().problems == (problem,)
        assert store.rebuild() == n_made
        assert store.verify().is_ok
        assert recalled(store) == before


def test_a_vector_that_is_missing_is_told_of_when_it_is_needed(file: Path) -> None:
    run(file, "DELETE FROM memory_vectors WHERE rowid = 1")
    with MemoryStore(file, Directions()) as store, pytest.raises(StoreError, match="no vector of 16") as caught:
        recalled(store)
    assert caught.value.hint == "debate memory rebuild"


def test_a_text_that_was_changed_behind_the_stores_back_is_told_of(file: Path) -> None:
    run(file, """UPDATE memories SET text = '"something else"' WHERE seq = 3""")
    with MemoryStore(file, Directions()) as store:
        (problem,) = store.verify().problems
    assert "its text is not the one that was kept" in problem


def test_a_damaged_file_is_told_of(file: Path) -> None:
    content = bytearray(file.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 2048] = b"\xff" * 2048
    file.write_bytes(content)
    try:
        with MemoryStore(file, Directions()) as store:
            assert store.verify().problems
    except StoreError as error:  # damage in the wrong place is met sooner
        assert str(file) in error.message


def test_rebuilding_moves_a_store_to_another_embedder(file: Path) -> None:
    with MemoryStore(file, Directions(24, id="new")) as store:
        assert store.rebuild() == 15
        assert store.verify().is_ok
        assert store.verify().vectors == 15
        assert len(recalled(store)) == 20
    with MemoryStore(file, Directions()) as store:
        assert "holds vectors of new" in store.verify().problems[0]
        store.rebuild()
        before = recalled(store)
    with MemoryStore(file, Directions(24, id="new")) as new, MemoryStore(file, Directions()) as old:
        assert recalled(old) == before
        new.rebuild()
        with pytest.raises(ConfigError, match="holds vectors of new"):
            recalled(old)  # told in the process that had it open, too


class Fails(Directions):
    """Embeds so many texts, and then no more."""

    def __init__(self, n: int) -> None:
        super().__init__(24, id="new")
        self._n = n

    def embed(self, texts: Sequence[str]) -> Vectors:
        self._n -= 1
        if self._n < 0:
            raise KeyboardInterrupt
        return super().embed(texts)


def test_a_rebuild_that_is_cut_off_leaves_the_store_as_it_was_and_goes_on(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("debate.memory.maintenance._AT_ONCE", 4)
    with MemoryStore(file, Directions()) as store:
        before = recalled(store)
    with MemoryStore(file, Fails(2)) as store, pytest.raises(KeyboardInterrupt):
        store.rebuild()
    with MemoryStore(file, Directions()) as store:
        assert recalled(store) == before
        assert store.verify().is_ok
    with MemoryStore(file, Fails(2)) as store:
        assert store.rebuild() == 7
        assert store.verify().is_ok
