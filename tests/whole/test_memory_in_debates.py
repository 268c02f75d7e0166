"""Agents that remember, on real vLLM: each gets its own memories in every round, and none when it is switched off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from debate import DebateEvaluator, Engine, Profile, Task
from debate.flow import Call, Completion, Recall, RunContext
from debate.memory import HashingEmbedder, MemoryStore
from debate.profiles import Component, MemorySettings, Persona
from debate.runtime.runner import Retriever, Runner
from debate.types import Memory

pytestmark = pytest.mark.vllm
FACTS = {
    "pair/Cook": ("Salt brings out sweetness.", "Rice doubles its weight in water.", "Ovens are hotter at the back."),
    "pair/Smith": ("Iron glows red at 700 degrees.", "Quench steel in oil.", "A file cuts on the push stroke."),
}
TASK = Task("How long does rice cook, and how hot is red iron?", ["Twelve minutes; 700 degrees.", "An hour; cold."])


def evaluator() -> DebateEvaluator:
    personas = tuple(Persona(name, f"You are a {name}.", memory=MemorySettings(k=1)) for name in ("Cook", "Smith"))
    profile = Profile("pair", personas, (Component("truth", "Is it true?"),))
    return DebateEvaluator(profile, rounds=3, convergence=None, comment_chars=60, overall_chars=60)


class Noting:
    """A recaller that notes what it is asked."""

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner
        self.asked: list[Recall] = []

    async def recall(self, request: Recall) -> Sequence[Memory]:
        self.asked.append(request)
        return await self._inner.recall(request)


def prompts_of(engine: Engine, memory: MemoryStore | None, asked: list[Recall] | None = None) -> dict[str, list[str]]:
    """Each agent's prompts in the order of its turns."""
    found: dict[str, list[str]] = defaultdict(list)

    def note(call: Call, completion: Completion) -> None:
        if call.info["attempt"] == 0:
            found[call.info["agent"]].append("\n".join(message["content"] for message in call.messages))

    recaller = None if memory is None else Noting(memory.retriever())
    # The engine's own runner has no memory; another one shares its backend, on its loop.
    runner = Runner(engine.backends, RunContext(3, "2026-01-31"), memory=recaller, observe=note)
    engine._loop.run(runner.evaluate(evaluator(), TASK))  # pyright: ignore[reportPrivateUsage]
    if asked is not None and recaller is not None:
        asked += recaller.asked
    return found


def test_agents_get_their_own_memories_in_every_round_and_none_when_it_is_switched_off(
    vllm_engine: Engine, tmp_path: Path
) -> None:
    with MemoryStore(tmp_path / "m.sqlite", HashingEmbedder(), "exact") as memory:
        for collection, texts in FACTS.items():
            memory.add(collection, texts)
        asked: list[Recall] = []
        remembering = prompts_of(vllm_engine, memory, asked)
    for agent, prompts in remembering.items():
        own = FACTS[f"pair/{agent}"]
        others = [text for name, texts in FACTS.items() if not name.endswith(agent) for text in texts]
        assert len(prompts) == 3
        for prompt in prompts:
            last = prompt.rpartition("# Your turn")[2]
            assert sum(text in last for text in own) == 1
            assert not any(text in prompt for text in others)
    fixed = (TASK.x, *(candidate.text for candidate in TASK.candidates))
    for collection in FACTS:
        queries = [request.queries for request in asked if request.collections == (collection,)]
        assert len(queries) == 3
        assert all(each[:3] == fixed for each in queries)
        assert len(set(queries)) == 3  # what was said last is part of the query, so it moves with the debate
    without = prompts_of(vllm_engine, None)
    assert not any("What you remember" in prompt for prompts in without.values() for prompt in prompts)
