"""Chroma as an index, embedded or a server: it follows SQL, and what it does not say is not made up."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate.errors import BackendUnavailableError, StoreError
from debate.memory import MemoryStore, RecallRequest
from debate.memory.database import Database
from debate.memory.embedders import Vectors
from debate.memory.indexes.base import Search
from debate.memory.indexes.chroma_client import Near, open_chroma, prefix_of
from debate.memory.indexes.chroma_index import ChromaIndex
from debate.memory.recall.snapshot import Columns, Snapshot
from debate.memory.recall.vectors import VectorCache
from tests.memory import oracle
from tests.memory.indexes.chroma_stores import EXACT, filled, inside, texts
from tests.memory.oracle import NOW, Directions, words
from tests.processes import free_port, wait_until_it_listens
from tests.required import required, required_module

required_module("chromadb")

# ---- following SQL


def test_what_another_process_wrote_is_found_and_what_it_erased_is_not(tmp_path: Path) -> None:
    file = tmp_path / "m.sqlite"
    with filled(file) as store, MemoryStore(file, Directions(), "exact") as other:
        assert texts(store) == texts(other)
        other.add("a", [f"topic3 {i}" for i in range(100, 140)])
        assert texts(store, "topic3 120") == texts(other, "topic3 120")
        other.forget("a", kind="semantic", before=NOW + 1)
        assert texts(store) == texts(other) != []
        assert store.verify().is_ok


def test_a_database_that_was_put_back_from_a_copy_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "m.sqlite"
    filled(file, 30).close()
    shutil.copy(file, tmp_path / "copy")
    with MemoryStore(file, Directions(), "chroma") as store:
        store.add("a", [f"topic7 {i}" for i in range(40)])
    shutil.copy(tmp_path / "copy", file)
    with MemoryStore(file, Directions(), "chroma") as store:
        store.add("a", [f"topic8 {i}" for i in range(5)])
        assert sorted(texts(store, "topic8 1", k=5)) == [f"topic8 {i}" for i in range(5)]
        assert texts(store, "topic7 1", k=50).count("topic7 1") == 0
        assert store.collections() == {"a": 35}


@pytest.mark.parametrize("damage", ["lost", "emptied", "garbled"])
def test_an_index_that_is_damaged_is_told_of_and_made_anew(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "m.sqlite"
    filled(file).close()
    if damage == "lost":
        shutil.rmtree(inside(file).parent)
    elif damage == "emptied":
        database = Database(str(file))
        with database.read() as connection:
            store_id = database.about(connection)["store"]
        chroma = open_chroma(None, database.file, store_id)
        index = ChromaIndex(chroma, VectorCache(database, Directions()), prefix_of(store_id))
        handle, _ = chroma.open(f"{index._prefix}-1")  # pyright: ignore[reportPrivateUsage]
        chroma.delete(handle, chroma.ids(handle)[:20])
        index.close()
        database.close()
    else:
        inside(file).write_bytes(b"no database" * 100)
    with MemoryStore(file, Directions(), "chroma") as store, MemoryStore(file, Directions(), "exact") as exact:
        if damage == "emptied":
            assert store.verify().problems == ("a: 20 memories are not in Chroma",)
            assert len(texts(store, k=60)) == 60  # slower, but nothing is missing where all are asked for
        elif damage == "garbled":
            with pytest.raises(StoreError):
                texts(store)
        store.rebuild()
        assert store.verify().problems == ()
        assert texts(store) == texts(exact)


def test_another_embedder_has_collections_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "m.sqlite"
    filled(file).close()
    with MemoryStore(file, Directions(24, id="other"), "chroma") as store:
        assert store.rebuild() == 60
        assert store.verify().problems == ()
        assert len(texts(store)) == 8


# ---- a server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Chroma's own server."""
    program = shutil.which("chroma", path=str(Path(sys.executable).parent))
    required(program, "Chroma's server is not installed")
    assert program is not None
    port = free_port()
    command = [program, "run", "--host", "127.0.0.1", "--port", str(port), "--path", str(tmp_path_factory.mktemp("c"))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until_it_listens(process, port)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)


def test_a_server_serves_several_processes_and_several_stores(server: str, tmp_path: Path) -> None:
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    with (
        filled(one, 50, chroma=server) as first,
        MemoryStore(one, Directions(), "chroma", chroma=server) as second,
        filled(other, 10, chroma=server) as third,
    ):
        assert texts(first) == texts(second)
        second.add("a", [f"topic3 {i}" for i in range(100, 130)])
        first.forget("a", kind="semantic", before=NOW + 1)
        assert (
            sorted(texts(first, k=50)) == sorted(texts(second, k=50)) == sorted(f"topic3 {i}" for i in range(100, 130))
        )
        assert len(texts(third, k=50)) == 10
        assert first.verify().problems == second.verify().problems == third.verify().problems == ()
        first.rebuild()
        assert first.verify().problems == third.verify().problems == ()


def test_a_server_says_what_the_oracle_says(server: str, tmp_path: Path) -> None:
    rng, embedder = random.Random(11), Directions()
    with MemoryStore(tmp_path / "m.sqlite", embedder, "exact") as store:
        kept = oracle.random_store(store, rng, 150)
    with MemoryStore(tmp_path / "m.sqlite", embedder, "chroma", chroma=server, count_tokens=words) as store:
        requests = [oracle.random_request(rng) for _ in range(20)]
        for request, answer in zip(requests, store.recall_many(requests), strict=True):
            assert [each.id for each in answer] == [each.id for each in oracle.recall(kept, request, embedder)]


def test_a_server_that_is_not_there_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with MemoryStore(tmp_path / "m.sqlite", Directions(), "chroma", chroma="http://127.0.0.1:9") as store:
        store.add("a", "topic1 1")  # it is safe in SQL
        with pytest.raises(BackendUnavailableError, match=r"127\.0\.0\.1:9"):
            texts(store)
    with MemoryStore(tmp_path / "m.sqlite", Directions(), "exact") as store:
        assert texts(store) == ["topic1 1"]


# ---- what Chroma does not say is not made up


class Forgetful:
    """A Chroma that finds only some of what is near."""

    def __init__(self, vectors: Vectors, found: Sequence[int]) -> None:
        self._vectors = vectors
        self._found = found

    def open(self, name: str) -> tuple[None, dict[str, int]]:
        return None, {"upto": len(self._vectors)}

    def query(self, handle: Any, queries: Vectors, n: int) -> list[Near]:
        cosines = queries @ self._vectors[list(self._found)].T
        best: list[list[int]] = [np.argsort(-row)[:n].tolist() for row in cosines]
        return [
            Near([str(self._found[i]) for i in order], [float(row[i]) for i in order])
            for row, order in zip(cosines, best, strict=True)
        ]


def test_a_memory_that_is_far_off_but_new_is_offered(tmp_path: Path) -> None:
    database, embedder = Database(str(tmp_path / "m.sqlite")), Directions()
    cache = VectorCache(database, embedder)
    said = [f"topic{i} {i}" for i in range(100)]
    made = cache.embedded(said)
    with database.write() as connection:
        cache.keep(connection, made)
    rows = np.stack(list(made.values()))
    nothing = np.zeros(100)
    columns = Columns(
        np.arange(1, 101),
        [str(i) for i in range(100)],
        said,
        list(made),
        [""] * 100,
        [None] * 100,
        [],
        nothing,
        nothing,
    )
    index = ChromaIndex(Forgetful(rows, range(100)), cache, "p")  # pyright: ignore[reportArgumentType]
    recent = np.zeros(100)
    furthest = int(np.argmin(rows @ rows[0]))
    recent[furthest] = 5.0
    (found,) = index.search(Snapshot(1, "a", 1, 0, columns, None), [Search(rows[:1], 1.0, recent, None, 3)])
    assert furthest in found.positions
    assert 0 in found.positions
    others = np.setdiff1d(np.arange(100), found.positions)
    assert (rows[others] @ rows[0] + recent[others] <= found.bound).all()
    index = ChromaIndex(Forgetful(rows, range(0, 100, 9)), cache, "p")  # pyright: ignore[reportArgumentType]
    (found,) = index.search(Snapshot(1, "a", 1, 0, columns, None), [Search(rows[:1], 1.0, nothing, None, 3)])
    assert found.bound >= 1.0  # Chroma gave fewer than were asked for: nothing is known of the others
    database.close()


@pytest.mark.parametrize(("n", "shape"), [(2000, 16)])
def test_recall_at_ten_is_nearly_perfect_on_clustered_vectors(tmp_path: Path, n: int, shape: int) -> None:
    file, embedder = tmp_path / "m.sqlite", Directions(64)
    requests = [
        RecallRequest("a", f"topic{i % shape} q{i}", k=10, now=NOW, weights=EXACT, near_duplicate=None)
        for i in range(50)
    ]
    with MemoryStore(file, embedder, "exact") as store:
        store.add("a", [f"topic{i % shape} {i}" for i in range(n)])
        exact = store.recall_many(requests)
    with MemoryStore(file, embedder, "chroma") as store:
        found = store.recall_many(requests)
    shares = [
        len({each.id for each in one} & {each.id for each in other}) / 10
        for one, other in zip(exact, found, strict=True)
    ]
    assert sum(shares) / len(shares) >= 0.99
