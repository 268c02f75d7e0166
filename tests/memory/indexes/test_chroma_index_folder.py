"""The folder of an embedded Chroma: one process at a time, none that was made elsewhere."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from debate.errors import ConfigError, StoreError
from debate.memory import MemoryStore
from debate.memory.indexes import router as choosing_module
from debate.memory.indexes.chroma_client import EmbeddedChroma
from tests.memory.indexes.chroma_stores import filled, folder_of, inside, texts
from tests.memory.oracle import Directions
from tests.required import required_module

required_module("chromadb")

HOLDER = """
import sys
from debate.memory import MemoryStore
from tests.memory.oracle import Directions
with MemoryStore(sys.argv[1], Directions(), "chroma") as store:
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_on_the_folder_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    file = tmp_path / "m.sqlite"
    filled(file).close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match=rf"in use by process {holder.pid} on .*one process at a time") as caught:
            MemoryStore(file, Directions(), "chroma")
        assert "http://" in str(caught.value.hint)
        with MemoryStore(file, Directions(), "exact") as store:  # SQL needs no lock
            assert len(texts(store)) == 8
    finally:
        holder.kill()
        holder.communicate()
    with MemoryStore(file, Directions(), "chroma") as store:  # the lock ends with its process
        assert len(texts(store)) == 8


def test_auto_does_without_chroma_where_another_process_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(choosing_module, "AUTO_FROM", 50)
    file = tmp_path / "m.sqlite"
    with filled(file) as holder, MemoryStore(file, Directions(), "auto") as store:
        assert texts(store) == texts(holder)
        store.add("a", "topic9 9")
        assert texts(store, "topic9 9", k=1) == ["topic9 9"]
    assert len([each for each in caplog.records if "without Chroma" in each.message]) == 1


def test_auto_takes_chroma_for_large_collections_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing_module, "AUTO_FROM", 50)
    file = tmp_path / "m.sqlite"
    with MemoryStore(file, Directions()) as store:
        store.add("a", [f"topic1 {i}" for i in range(49)])
        assert len(texts(store)) == 8
        assert not folder_of(file).exists()
        store.add("a", "topic1 49")
        assert inside(file).is_file()
        assert len(texts(store, k=50)) == 50


def test_a_folder_made_elsewhere_is_never_opened(tmp_path: Path) -> None:
    import chromadb

    theirs = tmp_path / "theirs"
    client: Any = chromadb.PersistentClient(str(theirs))
    client.create_collection("theirs", embedding_function=None)
    client.close()
    before = sorted(each.name for each in theirs.iterdir())
    with pytest.raises(ConfigError, match="was not made by debate-eval") as caught:
        MemoryStore(tmp_path / "m.sqlite", Directions(), "chroma", chroma=theirs)
    assert caught.value.file == str(theirs)
    assert sorted(each.name for each in theirs.iterdir()) == before


def test_the_index_of_another_store_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "one.sqlite").close()
    with pytest.raises(ConfigError, match="index of another memory store"):
        MemoryStore(tmp_path / "other.sqlite", Directions(), "chroma", chroma=folder_of(tmp_path / "one.sqlite"))


def test_a_collection_has_no_embedding_function(tmp_path: Path) -> None:
    file = tmp_path / "m.sqlite"
    filled(file).close()
    with closing(sqlite3.connect(inside(file))) as connection:
        (schema,) = connection.execute("SELECT schema_str FROM collections").fetchone()
    assert '"embedding_function":{"type":"legacy"}' in schema  # how Chroma writes that there is none


def test_an_address_without_a_file_needs_a_folder_or_a_server() -> None:
    with pytest.raises(ConfigError) as caught:
        MemoryStore("sqlite://", Directions(), "chroma")
    assert caught.value.field == "chroma"


def test_a_folder_is_let_go_of_when_the_store_is_closed(tmp_path: Path) -> None:
    folder = EmbeddedChroma(tmp_path / "c", "store")
    with pytest.raises(StoreError, match="in use"):
        EmbeddedChroma(tmp_path / "c", "store")
    folder.close()
    folder.close()
    EmbeddedChroma(tmp_path / "c", "store").close()
