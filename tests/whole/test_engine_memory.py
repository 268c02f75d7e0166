"""An engine that is given a memory store asks it; the store decides nothing else."""

from __future__ import annotations

from pathlib import Path

from debate import Component, Engine, Persona, Profile
from debate.backends import Scripted
from debate.memory import HashingEmbedder, MemoryStore
from debate.profiles import MemorySettings
from debate.testing import Recorder
from tests.small_flows import debates, tasks

PROFILE = Profile(
    "p", (Persona("Elder", "You remember.", memory=MemorySettings(k=1)),), (Component("truth", "Is it true?"),)
)


def prompts(memory: MemoryStore | None) -> list[str]:
    script = Recorder()
    with Engine(Scripted(script), memory=memory) as engine:
        engine.evaluate_batch(tasks(2), debates(profile=PROFILE, rounds=1))
    return sorted(call.messages[1]["content"] for call in script.calls)


def test_a_store_is_asked_as_it_is(tmp_path: Path) -> None:
    with MemoryStore(tmp_path / "m.sqlite", HashingEmbedder(), "exact") as memory:
        memory.add("p/Elder", "Question 1 was settled long ago.")
        remembering = prompts(memory)
    assert all("settled long ago" in prompt for prompt in remembering)


def test_an_empty_store_and_none_at_all_give_the_same_prompts(tmp_path: Path) -> None:
    with MemoryStore(tmp_path / "m.sqlite", HashingEmbedder(), "exact") as memory:
        assert prompts(memory) == prompts(None)
