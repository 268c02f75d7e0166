"""`debate memory` from the first text to the last, and a run that recalls."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debate.cli import app
from debate.data_files import data_folder
from debate.errors import ConfigError, StoreError
from debate.memory.store import default_store, own_embedder
from debate.testing.fake_server import FakeServer, Reply


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
        json.dumps({"id": "t", "x": "Which percentage of 240 is 16.8?", "candidates": ["a", "b"]})
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


def run_with_memory(tmp_path: Path, *more: object, says: str = "", is_silent_of: str = "\0") -> str:
    """A run of one task; returns what its server was asked."""
    (tmp_path / "t.jsonl").write_text(json.dumps({"id": "t", "x": "What is 2 + 2?", "candidates": ["4", "5"]}))
    with FakeServer() as server:
        where = ["--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge"]
        result = CliRunner().invoke(app, [*map(str, ["run", tmp_path / "t.jsonl", *where, *more])])
        assert result.exit_code == 0, result.output
        assert says in result.output
        assert is_silent_of not in result.output
        return "".join(each.text for each in server.requests)


def test_what_a_run_concluded_is_filed_under_the_name_of_the_profile_not_its_path(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text((data_folder("personas") / "general.yaml").read_text())
    run_with_memory(tmp_path, "--profile", tmp_path / "my.yaml", "--rounds", 1, "--out", tmp_path / "out")
    memory("remember", tmp_path / "out", "--embedder", "hashing")
    assert "general/Critic" in (stats := memory("stats"))
    assert "my.yaml" not in stats


EVIL = "\x1b[31mRED\x07\x1b]0;pwn\x07 \r\u202eevil"
SPELLED = r"\x1b[31mRED\x07\x1b]0;pwn\x07 \x0d\u202eevil"


def test_an_insight_reaches_the_terminal_with_its_controls_spelled_out() -> None:
    memory("add", "c", "one", "--embedder", "hashing")
    reply = json.dumps({"insights": [{"text": EVIL, "evidence": [1], "importance": 5}]})
    with FakeServer(lambda request: Reply(body={"choices": [{"message": {"content": reply}}]})) as server:
        said = memory("reflect", "c", "--model", "m", "--backend", "openai", "--base-url", f"{server.url}/v1")
    assert said == f"- {SPELLED} (from 1 memory)\n"
    assert memory("search", "c", "RED", "-k", 1).count(SPELLED) == 1


def test_names_are_printed_with_their_controls_spelled_out(tmp_path: Path) -> None:
    assert memory("add", "\x1b[31mX\u200b", "t", "--embedder", "hashing") == "1 memory in \\x1b[31mX\\u200b\n"
    assert r"\x1b[31mX\u200b" in memory("stats")


def test_a_look_into_a_store_that_is_not_there_makes_none(store: Path, tmp_path: Path) -> None:
    looking = [
        ["stats"], ["verify"], ["rebuild"], ["search", "c", "q"], ["forget", "--source", "s"],
        ["export", str(tmp_path / "m.jsonl")], ["reflect", "c", "--model", "m"],
    ]  # fmt: skip
    for arguments in looking:
        with pytest.raises(ConfigError, match="there is no memory store"):
            memory(*arguments)
    assert not store.parent.exists()


def test_a_collection_that_holds_nothing_is_refused_with_one_that_is_like_it() -> None:
    memory("add", "general/Critic", "one", "--embedder", "hashing")
    with pytest.raises(ConfigError, match="did you mean 'general/Critic'"):
        memory("search", "general/critic", "one")
    with pytest.raises(ConfigError, match="holds no memories"):
        memory("reflect", "nothing like it", "--model", "m")
    memory("forget", "--collection", "general/Critic")
    assert "holds no memories" in memory("stats")


def test_empty_texts_and_queries_are_refused() -> None:
    memory("add", "c", "one", "--embedder", "hashing")
    with pytest.raises(ConfigError, match="texts: is empty"):
        memory("add", "c", "two", "  ")
    with pytest.raises(ConfigError, match="query: is empty"):
        memory("search", "c", "")
    assert memory("stats").split()[-1] == "1"


def test_an_export_replaces_a_file_only_when_it_is_told_to(tmp_path: Path) -> None:
    memory("add", "c", "one", "--embedder", "hashing")
    (tmp_path / "tasks.jsonl").write_text("precious")
    with pytest.raises(ConfigError, match="exists already"):
        memory("export", tmp_path / "tasks.jsonl")
    assert (tmp_path / "tasks.jsonl").read_text() == "precious"
    assert "1 memory" in memory("export", tmp_path / "tasks.jsonl", "--force")


def test_a_huge_memory_of_an_older_store_is_cut_before_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("debate.memory.records.MAX_TEXT", 10_000_000)
    memory("add", "c", "lorem ipsum " * 300_000, "--embedder", "hashing")
    began = time.monotonic()
    found = memory("search", "c", "lorem")
    assert time.monotonic() - began < 20  # it took minutes
    assert "(3,600,000" in found
    assert len(found) < 20_000


def test_a_store_in_a_folder_that_cannot_be_made_is_one_sentence() -> None:
    for arguments in (["add", "a", "b"], ["import", "--built-in"]):
        with pytest.raises(StoreError, match="cannot be made"):
            memory(*arguments, "--memory", "/proc/nowhere/m.sqlite", "--embedder", "hashing")


def test_a_home_that_cannot_be_written_is_one_sentence() -> None:
    command = [sys.executable, "-m", "debate", "memory", "add", "a/b", "hi"]
    environment = {name: value for name, value in os.environ.items() if name != "DEBATE_MEMORY"}
    environment |= {"HOME": "/proc", "XDG_DATA_HOME": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 5
    assert re.fullmatch(r"error: /proc/\S+: cannot be made: .*\n", done.stderr)


def test_a_run_with_an_empty_memory_says_so(tmp_path: Path, store: Path) -> None:
    new = "m.sqlite is new and empty, so agents recall none"
    run_with_memory(tmp_path, "--rounds", 1, "--out", tmp_path / "new", "--memory", store, says=new)
    note = "m.sqlite holds no memories, so agents recall none"
    run_with_memory(tmp_path, "--rounds", 1, "--out", tmp_path / "one", "--memory", store, says=note)
    memory("import", "--built-in")
    run_with_memory(tmp_path, "--rounds", 1, "--out", tmp_path / "two", "--memory", store, is_silent_of=note)


def test_evaluators_without_agents_remember_nothing_and_say_so(tmp_path: Path) -> None:
    run_with_memory(tmp_path, "--evaluator", "value", "--out", tmp_path / "out")
    assert memory("remember", tmp_path / "out", "--embedder", "hashing").startswith("0 conclusions remembered\nonly a")


def test_the_store_of_a_run_is_no_memory_store_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"id": "t", "x": "?", "candidates": ["a", "b"]}\n')
    given = ["run", tmp_path / "t.jsonl", "--backend", "debate.testing:reply_for", "--rounds", "1", "--out"]
    assert CliRunner().invoke(app, [*map(str, [*given, tmp_path / "run"])]).exit_code == 0
    file = tmp_path / "run" / "run.sqlite"
    before = file.read_bytes()
    for command in (["stats"], ["verify"], ["search", "a/b", "what?"]):
        result = CliRunner().invoke(app, ["memory", *command, "--memory", str(file)])
        assert isinstance(result.exception, ConfigError)
        assert "is no memory store" in str(result.exception)
    assert file.read_bytes() == before


def test_to_remember_a_run_whose_store_is_gone_makes_no_other(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"id": "t", "x": "?", "candidates": ["a", "b"]}\n')
    given = ["run", tmp_path / "t.jsonl", "--backend", "debate.testing:reply_for", "--rounds", "1", "--out"]
    assert CliRunner().invoke(app, [*map(str, [*given, tmp_path / "run"])]).exit_code == 0
    (tmp_path / "run" / "run.sqlite").unlink()
    result = CliRunner().invoke(app, ["memory", "remember", str(tmp_path / "run"), "--memory", str(tmp_path / "m")])
    assert result.exit_code != 0
    assert "is gone" in str(result.exception)
    assert not (tmp_path / "run" / "run.sqlite").exists()
