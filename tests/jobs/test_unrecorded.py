"""Engines and settings of what records nothing."""

from __future__ import annotations

from pathlib import Path

from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.jobs.unrecorded import unrecorded_engine, unrecorded_settings
from debate.memory import HashingEmbedder, MemoryStore
from debate.testing import reply_for
from debate.types import Task


def test_the_bundled_judge_debates_as_its_own_panel_with_its_own_memories(tmp_path: Path) -> None:
    settings = unrecorded_settings(None, {"model": "built-in"}, RunSettings)
    assert (settings.profile, str(settings.templates), settings.memory) == ("judge", "compact", "built-in")
    mine = {"model": "built-in", "memory": "mine.sqlite"}
    assert unrecorded_settings(None, mine, RunSettings).memory == "mine.sqlite"
    assert unrecorded_settings(None, {"model": "built-in", "evaluator": "value"}, RunSettings).memory is None
    assert unrecorded_settings(None, {"model": "another", "backend": "openai"}, RunSettings).memory is None
    config = tmp_path / "mine.yaml"
    config.write_text("model: built-in\nmemory: mine.sqlite\n")
    assert unrecorded_settings(config, {}, RunSettings).memory == "mine.sqlite"


def test_agents_of_an_engine_that_records_nothing_recall_from_the_memory_of_its_settings(tmp_path: Path) -> None:
    with MemoryStore(tmp_path / "memory.sqlite", HashingEmbedder(), "exact") as store:
        store.add("general/Critic", ["Canberra is the capital since 1927."])
    asked: list[str] = []

    def answer(call: Call) -> str:
        asked.append(str(call.prompt))
        return reply_for(call)

    given = {"model": "scripted", "backend": "openai", "memory": str(tmp_path / "memory.sqlite"), "rounds": 1}
    settings, notes = unrecorded_settings(None, given, RunSettings), list[str]()
    with unrecorded_engine(settings, {"scripted": Scripted(answer)}, notes.append) as engine:
        evaluation = engine.evaluate(Task("What is the capital?", ["Canberra.", "Sydney."]), settings.make_evaluator())
    assert evaluation.status == "ok"
    assert [("since 1927" in prompt) for prompt in asked] == [True, False, False]
    assert not notes


def test_a_memory_that_holds_nothing_is_told_of(tmp_path: Path) -> None:
    settings = unrecorded_settings(None, {"model": "m", "backend": "openai", "memory": f"{tmp_path}/new"}, RunSettings)
    notes: list[str] = []
    with unrecorded_engine(settings, {"m": Scripted(reply_for)}, notes.append):
        pass
    assert "is new and empty" in notes[0]
