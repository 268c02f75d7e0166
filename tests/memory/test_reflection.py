"""Conclusions written down, and insights distilled from them with links to their evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import Engine, Evaluation, Task
from debate.backends import Call, Scripted
from debate.errors import CallError
from debate.memory import HashingEmbedder, MemoryStore
from debate.memory.reflection import Insight, insights_schema, reflection, remember, write_insights
from debate.testing import reply_for
from debate.types import Memory, Transcript
from tests.required import required_module
from tests.small_flows import debates, tasks

MEMORIES = [Memory(f"memory {n}", f"id{n}") for n in range(4)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore(tmp_path / "m.sqlite", HashingEmbedder(), "exact") as opened:
        yield opened


def results(n: int = 3, **settings: Any) -> list[tuple[Task, Evaluation]]:
    with Engine(Scripted(reply_for)) as engine:
        return list(zip(tasks(n), engine.evaluate_batch(tasks(n), debates(**settings)), strict=True))


def test_each_agent_keeps_its_own_conclusions_once(store: MemoryStore) -> None:
    judged = results()
    assert remember(store, judged, "pair", "run") == 6
    assert store.collections() == {"pair/Critic": 3, "pair/Reader": 3}
    remember(store, judged, "pair", "run")
    assert store.collections() == {"pair/Critic": 3, "pair/Reader": 3}
    (found,) = store.recall("pair/Critic", "question 1", k=1)
    assert (found.kind, found.source) == ("episodic", "t1")
    assert found.text.startswith('Asked "question 1", I found "')


def test_nobody_is_called_worst_where_means_tie_within_rounding(store: MemoryStore) -> None:
    for name, scores in (("tied", [[0.1, 0.2], [0.3, 0.0]]), ("apart", [[0.1, 0.2], [0.4, 0.0]])):
        ((task, evaluation),) = results(1)
        turns = tuple(replace(turn, scores=np.array(scores)) for turn in evaluation.transcript)  # (J, K)
        remember(store, [(task, replace(evaluation, transcript=Transcript(turns)))], name, "run")
    (tied,), (apart,) = (store.recall(f"{name}/Critic", "question", k=1) for name in ("tied", "apart"))
    assert ("Worst was" in tied.text, "Worst was" in apart.text) == (False, True)


def test_a_task_does_not_remind_of_its_own_debate(store: MemoryStore) -> None:
    remember(store, results(), "pair", "run")
    assert {each.source for each in store.recall("pair/Critic", "question", exclude_sources=["t1"])} == {"t0", "t2"}


def test_turns_of_members_are_remembered_and_failed_ones_are_not(store: MemoryStore) -> None:
    assert remember(store, results(1, candidate_order="balanced", rounds=1), "pair", "run") == 2
    with Engine(Scripted(lambda call: "what?")) as engine:
        failed = engine.evaluate(tasks(1)[0], debates(retries=0))
    assert remember(store, [(tasks(1)[0], failed)], "pair", "other") == 0


def reflected(script: Any, retries: int = 2) -> list[Insight]:
    with Engine(Scripted(script)) as engine:
        parsed = engine.drive(reflection("pair/Critic", MEMORIES, retries=retries))
    if parsed.failure is not None:
        raise CallError(parsed.failure.reason, parsed.failure.message)
    assert parsed.value is not None
    return parsed.value


def reply(**insight: Any) -> str:
    return json.dumps({"insights": [{"text": "Check units.", "evidence": [2, 4], "importance": 7, **insight}]})


def test_insights_are_linked_to_the_memories_they_rest_on(store: MemoryStore) -> None:
    asked: list[Call] = []

    def script(call: Call) -> str:
        asked.append(call)
        return reply()

    (insight,) = reflected(script)
    assert insight == Insight("Check units.", ("id1", "id3"), 7.0)
    assert all(memory.text in asked[0].messages[0]["content"] for memory in MEMORIES)
    write_insights(store, "pair/Critic", [insight])
    (found,) = store.recall("pair/Critic", "units", kinds=["reflection"])
    assert (found.text, found.importance, found.kind) == ("Check units.", 0.7, "reflection")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("what?", "JSON"),
        ("[]", "insights"),
        (reply(text=""), "needs a text"),
        (reply(evidence=[]), "numbers of the memories"),
        (reply(evidence=[5]), "from 1 to 4"),
        (reply(evidence=[1.5]), "from 1 to 4"),
        (reply(importance=11), "0 to 10"),
        (reply(importance="high"), "0 to 10"),
    ],
)
def test_an_unreadable_reflection_is_asked_again_with_the_error(bad: str, problem: str) -> None:
    asked: list[Call] = []

    def script(call: Call) -> str:
        asked.append(call)
        return bad if len(asked) == 1 else reply()

    assert len(reflected(script)) == 1
    assert "could not be used" in asked[1].messages[0]["content"]
    with pytest.raises(CallError, match=problem):
        reflected(_always(bad), retries=0)


def _always(reply: str) -> Any:
    def script(call: Call) -> str:
        return reply

    return script


@pytest.mark.vllm
def test_xgrammar_makes_a_grammar_of_the_schema() -> None:
    xgrammar = required_module("xgrammar")
    vocabulary = xgrammar.TokenizerInfo([chr(n) for n in range(128)])
    xgrammar.GrammarCompiler(vocabulary).compile_json_schema(json.dumps(insights_schema(3, 30)))


@pytest.mark.vllm
def test_a_model_on_vllm_reflects(vllm_engine: Engine) -> None:
    said: list[str] = []
    for seed in range(3):  # a tiny model fills in whatever the schema lets it
        parsed = vllm_engine.drive(reflection(f"pair/Critic {seed}", MEMORIES, n=1))
        said += [parsed.text, *(each.text for each in parsed.invalid_replies)]
        if parsed.failure is not None:
            assert parsed.failure.reason == "unreadable_reply", parsed.failure
    assert any(text.lstrip().startswith('{"insights"') for text in said), said
