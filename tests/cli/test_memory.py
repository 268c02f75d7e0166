"""`debate memory` from the first text to the last, and a run that recalls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debate.cli import app
from debate.data_files import data_folder
from debate.errors import ConfigError
from debate.memory.store import default_store, own_embedder
from debate.testing.fake_server import FakeServer


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "memories" / "m.sqlite"
    monkeypatch.setenv("DEBATE_MEMORY", str(path))
    monkeypatch.setenv("COLUMNS", "200")
    return path


def memory(*arguments: object) -> str:
    return CliRunner().invoke(app, ["memory", *map(str, arguments)], catch_exceptions=False).output


def test_memories_are_added_found_and_forgotten(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text("# Units\n\nLengths are in metres.\n\n# Dates\n\nISO dates only.\n")
    memory(
        "add", "general/Critic", "Canberra is the capital of Australia.", "--source", "atlas", "--embedder", "hashing"
    )
    assert "3 memories" in memory("add", "general/Critic", "Perth is in the west.", "--file", tmp_path / "guide.md")
    assert "Canberra" in memory("search", "general/Critic", "capital of Australia", "-k", "1")
    assert "general/Critic" in memory("stats")
    assert "2 memories forgotten" in memory("forget", "--source", "guide.md")
    assert "2 memories, 1 collections, 2 vectors" in memory("verify")


def test_an_export_is_imported_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory("add", "c", "one", "two", "--embedder", "hashing")
    memory("export", tmp_path / "all.jsonl")
    monkeypatch.setenv("DEBATE_MEMORY", str(tmp_path / "other.sqlite"))
    assert "2 memories added" in memory("import", tmp_path / "all.jsonl", "--embedder", "hashing")
    assert "0 memories added" in memory("import", tmp_path / "all.jsonl")


def test_the_built_in_memories_are_there_for_every_agent_of_the_built_in_profiles() -> None:
    memory("import", "--built-in", "--embedder", "hashing")
    collections = memory("stats")
    for name in ("general/Critic", "general/Supporter", "prompt_tuning/Goal Advocate", "chateval/Scientist"):
        assert name in collections


def test_a_store_keeps_its_embedder(store: Path) -> None:
    memory("add", "c", "one", "--embedder", "hashing")
    assert own_embedder(str(store)).id.startswith("hashing")
    with pytest.raises(ConfigError, match="holds vectors of hashing"):
        memory("add", "c", "x", "--embedder", "minilm")


def test_nothing_is_forgotten_by_a_command_that_names_nothing() -> None:
    with pytest.raises(ConfigError, match="nothing selected to forget"):
        memory("forget")
    with pytest.raises(ConfigError, match="nothing to add"):
        memory("add", "c")


def test_without_a_place_the_store_is_in_the_users_data_folder() -> None:
    assert default_store().endswith("debate-eval/memory.sqlite")


def test_a_run_recalls_writes_down_what_was_concluded_and_reflects(tmp_path: Path, store: Path) -> None:
    memory("import", "--built-in", "--embedder", "hashing")
    (tmp_path / "t.jsonl").write_text(
        json.dumps({"id": "t", "x": "What is 7 percent of 240?", "candidates": ["a", "b"]})
    )
    with FakeServer() as server:
        where = ["--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge"]
        arguments = ["run", tmp_path / "t.jsonl", *where, "--out", tmp_path / "out", "--rounds", "1", "--memory", store]
        result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        critic = server.requests[0].text
        assert "What you remember" in critic
        assert "percentage taken of the wrong base" in critic
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "out")], catch_exceptions=False).output
    assert "recalled:" in shown
    assert "from built-in" in shown
    assert "3 conclusions remembered" in memory("remember", tmp_path / "out")
    assert "8" in memory("stats")


def run_with_memory(tmp_path: Path, *more: object) -> str:
    """A run of one task; returns what its server was asked."""
    (tmp_path / "t.jsonl").write_text(json.dumps({"id": "t", "x": "What is 2 + 2?", "candidates": ["4", "5"]}))
    with FakeServer() as server:
        where = ["--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge"]
        result = CliRunner().invoke(app, [*map(str, ["run", tmp_path / "t.jsonl", *where, *more])])
        assert result.exit_code == 0, result.output
        return "".join(each.text for each in server.requests)


def test_what_a_run_concluded_is_filed_under_the_name_of_the_profile_not_its_path(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text((data_folder("personas") / "general.yaml").read_text())
    run_with_memory(tmp_path, "--profile", tmp_path / "my.yaml", "--rounds", 1, "--out", tmp_path / "out")
    memory("remember", tmp_path / "out", "--embedder", "hashing")
    assert "general/Critic" in (stats := memory("stats"))
    assert "my.yaml" not in stats
