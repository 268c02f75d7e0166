"""Memories as JSONL: what goes out comes in again, and a file with a fault changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debate.errors import ConfigError, StoreError
from debate.memory import MemoryStore
from tests.memory.oracle import NOW

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def write(path: Path, *lines: dict[str, Any] | str) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "A", "b/c"]),
            TEXTS,
            st.sampled_from(["episodic", "semantic", "reflection"]),
            st.floats(0, 10),
            st.floats(0, 4e9),
            st.none() | st.sampled_from(["s", "ä"]),
            st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXTS, max_size=3),
        ),
        max_size=6,
    )
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_export_read_into_an_empty_store_exports_the_same_bytes(
    tmp_path: Path, memories: list[tuple[str, str, str, float, float, str | None, dict[str, Any]]]
) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    with MemoryStore("sqlite://", "hashing") as store:
        for collection, text, kind, importance, created, source, metadata in memories:
            store.add(collection, text, source, kind, importance, created, metadata=metadata)
        n = store.export(first)
        assert n == sum(store.collections().values())
    with MemoryStore("sqlite://", "hashing") as store:
        assert store.import_(first) == n
        assert store.import_(first) == 0
        assert store.export(second) == n
    assert first.read_bytes() == second.read_bytes()


def test_collections_can_be_exported_apart(url: str, tmp_path: Path) -> None:
    with MemoryStore(url, "hashing") as store:
        for name in ("a", "b", "c"):
            store.add(name, ["one", "two"])
        assert store.export(tmp_path / "m.jsonl", "b") == 2
        assert store.export(tmp_path / "m.jsonl", ["a", "c", "none"]) == 4
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert {line["collection"] for line in lines} == {"a", "c"}


def test_a_line_needs_a_collection_and_a_text_alone(tmp_path: Path) -> None:
    file = write(
        tmp_path / "m.jsonl",
        {"collection": "a", "text": "one"},
        "",
        {"collection": "a", "text": "two", "created_at": "2026-01-01T00:00:00Z", "importance": 9},
        {"collection": "a", "text": "one"},
    )
    with MemoryStore("sqlite://", "hashing", clock=lambda: NOW) as store:
        assert store.import_(file) == 2
        assert store.import_(file) == 0
        assert store.add("a", "one") == [store.recall("a", "one", k=1)[0].id]
        assert {each.text: each.importance for each in store.recall("a", "two")} == {"one": 0.5, "two": 0.9}


@pytest.mark.parametrize(
    ("line", "field", "problem"),
    [
        ("{", None, "is not JSON"),
        ("[1]", None, "must be a mapping"),
        ({"text": "x"}, "collection", "is missing"),
        ({"collection": "a"}, "text", "is missing"),
        ({"collection": "a", "text": 3}, "text", "must be text"),
        ({"collection": "", "text": "x"}, "collection", "1 to 200"),
        ({"collection": "a", "text": "x", "kind": "opinion"}, "kind", "opinion|semantic"),
        ({"collection": "a", "text": "x", "importance": 11}, "importance", r"\[0, 10\]"),
        ({"collection": "a", "text": "x", "importance": "high"}, "importance", "must be a number"),
        ({"collection": "a", "text": "x", "created_at": "yesterday"}, "created_at", "not an ISO date"),
        ({"collection": "a", "text": "x", "created_at": "2026-01-01"}, "created_at", "no time zone"),
        ({"collection": "a", "text": "x", "created_at": -5}, "created_at", "since 1970"),
        ({"collection": "a", "text": "x", "created_at": 253402300800}, "created_at", "years 1970 to 9999"),
        ({"collection": "a", "text": "x", "created_at": "9999-12-31T23:00:00-05:00"}, "created_at", "1970 to 9999"),
        ({"collection": "a", "text": "x", "created_at": "0001-01-01T00:00:00+05:00"}, "created_at", "1970 to 9999"),
        ({"collection": "a", "text": "x", "created_at": "x" * 100_000}, "created_at", "^.{,200}$"),
        ({"collection": "a", "text": "x" * 200_001}, "text", "200,001 characters"),
        ('{"collection": "a", "text": "x", "text": "y"}', "text", "duplicate key"),
        ('{"collection": "a", "text": "x", "metadata": {"n": 1, "n": 2}}', "n", "duplicate key"),
        ('{"collection": "a", "text": "x", "metadata": {"n": ' + "9" * 5_000 + "}}", None, "a number of 5,000 digits$"),
        ({"collection": "a", "text": "x", "embedding": [1, 2]}, "embedding", "unknown key"),
        ({"collection": "a", "text": "x", "metadata": [1]}, "metadata", "mapping"),
        ('{"collection": "a", "text": "x", "metadata": {"y": NaN}}', "metadata", "plain JSON"),
        ('{"collection": "a", "text": "\\ud800"}', "text", "not valid Unicode"),
        ({"collection": "b", "text": "other", "id": "same"}, "id", "another memory"),
        ('{"a": ' * 100_000, None, "is not JSON"),
    ],
)
def test_a_file_with_a_fault_is_refused_whole_with_line_and_field(
    tmp_path: Path, line: dict[str, Any] | str, field: str | None, problem: str
) -> None:
    file = write(tmp_path / "m.jsonl", {"collection": "a", "text": "fine", "id": "same"}, line)
    with MemoryStore("sqlite://", "hashing") as store:
        with pytest.raises(ConfigError, match=problem) as caught:
            store.import_(file)
        assert (caught.value.file, caught.value.line, caught.value.field) == (str(file), 2, field)
        assert store.collections() == {}


def test_an_id_that_stands_for_another_memory_of_the_store_is_refused(tmp_path: Path) -> None:
    with MemoryStore("sqlite://", "hashing") as store:
        (identifier,) = store.add("a", "one")
        file = write(tmp_path / "m.jsonl", {"collection": "a", "text": "two", "id": identifier})
        with pytest.raises(ConfigError, match="another memory"):
            store.import_(file)
        assert store.collections() == {"a": 1}


def test_a_file_that_is_not_there_or_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.jsonl").write_bytes(b'{"collection": "a", "text": "\xe4"}\n')
    with MemoryStore("sqlite://", "hashing") as store:
        for name, problem in (("none.jsonl", "cannot be read"), ("latin.jsonl", "not UTF-8")):
            with pytest.raises(ConfigError, match=problem):
                store.import_(tmp_path / name)


def test_an_export_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").mkdir()
    with MemoryStore("sqlite://", "hashing") as store:
        store.add("a", "one")
        with pytest.raises(StoreError, match="cannot be written"):
            store.export(tmp_path / "m.jsonl")
    assert [each.name for each in tmp_path.iterdir()] == ["m.jsonl"]


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"collection": "a", "text": "one"}\n', encoding="utf-8-sig")
    with MemoryStore("sqlite://", "hashing") as store:
        assert store.import_(tmp_path / "m.jsonl") == 1


def test_memories_of_the_last_year_are_kept_and_exported(tmp_path: Path) -> None:
    line = {"collection": "a", "text": "one", "created_at": "9999-12-31T23:59:59+00:00"}
    with MemoryStore("sqlite://", "hashing") as store:
        store.import_(write(tmp_path / "m.jsonl", line))
        store.export(tmp_path / "again.jsonl")
    assert "9999-12-31T23:59:59.000000" in (tmp_path / "again.jsonl").read_text()
