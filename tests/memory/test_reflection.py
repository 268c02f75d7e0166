"""Conclusions written down, and insights distilled from them with links to their evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import (
    Candidate,
    CrossEvaluator,
    DebateEvaluator,
    Engine,
    Evaluation,
    PanelEvaluator,
    Task,
    ValueEvaluator,
)
from debate.backends import Call, Scripted
from debate.errors import CallError
from debate.evaluators.base import Evaluator
from debate.flow import Flow, MemorySettings, Recall, RunContext, recall
from debate.memory import HashingEmbedder, MemoryStore
from debate.memory.reflection import Insight, insights_schema, reflection, remember, write_insights
from debate.store.identity import prompt_identity
from debate.testing import drive, reply_for
from debate.types import Memory, Transcript
from tests.required import required_module
from tests.small_flows import PROFILE, FlowEvaluator, debates, scored, tasks

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
    assert remember(store, judged, debates().describe(), "run") == 6
    assert store.collections() == {"pair/Critic": 3, "pair/Reader": 3}
    remember(store, judged, debates().describe(), "run")
    assert store.collections() == {"pair/Critic": 3, "pair/Reader": 3}
    (found,) = store.recall("pair/Critic", "question 1", k=1)
    assert (found.kind, found.source) == ("episodic", "t1")
    assert found.text.startswith('Asked "question 1", I found "')


def test_nobody_is_called_worst_where_means_tie_within_rounding(store: MemoryStore) -> None:
    told: list[bool] = []
    for scores in ([[0.1, 0.2], [0.3, 0.0]], [[0.1, 0.2], [0.4, 0.0]]):
        ((task, evaluation),) = results(1)
        turns = tuple(replace(turn, scores=np.array(scores)) for turn in evaluation.transcript)  # (J, K)
        remember(store, [(task, replace(evaluation, transcript=Transcript(turns)))], debates().describe(), "run")
        (newest,) = store.newest("pair/Critic", 1)
        told.append("Worst was" in newest.text)
    assert told == [False, True]


def recalled(store: MemoryStore, task: Task, collection: str = "pair/Critic") -> set[str]:
    """The texts that an agent recalls for a task, of all that there are."""
    return {each.text for each in store.recall(collection, "question", k=99, task=task, near_duplicate=None)}


def sources(store: MemoryStore, task: Task) -> set[str | None]:
    return {each.source for each in store.recall("pair/Critic", "question", k=99, task=task)}


def test_a_task_recalls_nothing_that_came_of_itself_by_content_or_by_id(store: MemoryStore) -> None:
    remember(store, results(), debates().describe(), "run")
    assert sources(store, tasks(3)[1]) == {"t0", "t2"}
    assert sources(store, Task("question 1", ["one", "two"], id="another id")) == {"t0", "t2"}
    assert sources(store, Task("question 1", ["two", "one"])) == {"t0", "t2"}
    assert sources(store, Task("question 1", ["one", "three"], id="t1")) == {"t0", "t2"}
    assert sources(store, Task("another question", ["one", "two"], id="t1")) == {"t0", "t1", "t2"}
    assert sources(store, Task("question 1", ["one", "three"], id="another")) == {"t0", "t1", "t2"}


def test_memories_that_do_not_know_their_task_are_excluded_by_the_id_in_their_source(store: MemoryStore) -> None:
    store.add("pair/Critic", ["old"], source="t1", kind="episodic", metadata={"run": "of an older version"})
    store.add("pair/Critic", ["odd"], source="t1", metadata={"came_of": 3, "evidence": {"x": 1}})
    assert recalled(store, tasks(2)[1]) == {"odd"}
    assert recalled(store, tasks(2)[0]) == {"old", "odd"}


def reflect_on(store: MemoryStore, collection: str, text: str, *evidence: str) -> str:
    (identifier,) = write_insights(store, collection, [Insight(text, evidence, 5)])
    return identifier


def test_a_task_recalls_no_insight_that_rests_on_it_over_several_levels(store: MemoryStore) -> None:
    remember(store, results(), debates().describe(), "run")
    of_task = {each.source: each.id for each in store.newest("pair/Critic", 9)}
    first = reflect_on(store, "pair/Critic", "first", of_task["t1"])
    second = reflect_on(store, "pair/Critic", "second", of_task["t0"], first)
    reflect_on(store, "pair/Reader", "third", second)  # evidence in another collection
    store.forget(ids=[of_task["t1"], first])
    reflect_on(store, "pair/Critic", "other", of_task["t2"])
    insights = {"second", "third", "other"}
    for collection, seen in (("pair/Critic", {"other"}), ("pair/Reader", set[str]())):
        assert recalled(store, tasks(3)[1], collection) & insights == seen
    assert recalled(store, Task("question 1", ["two", "one"], id="x")) & insights == {"other"}
    assert recalled(store, tasks(3)[2]) & insights == {"second"}
    assert recalled(store, Task("unrelated", ["one"], id="t1")) & insights == {"second", "other"}


def test_insights_of_an_older_version_are_followed_by_their_evidence(store: MemoryStore) -> None:
    (old,) = store.add("c", "old", source="t1", kind="episodic")
    (first,) = store.add("c", "first", source="reflection", kind="reflection", metadata={"evidence": [old, "gone"]})
    (circle,) = store.add("c", "circle", source="reflection", kind="reflection", metadata={"evidence": [first]})
    store.add("c", "free", source="reflection", kind="reflection", metadata={"evidence": ["gone"]})
    assert recalled(store, tasks(2)[1], "c") == {"free"}
    assert recalled(store, tasks(2)[0], "c") == {"old", "first", "circle", "free"}
    reflect_on(store, "d", "new", circle)
    assert recalled(store, tasks(2)[1], "d") == set()


def test_evidence_that_goes_round_in_a_circle_is_followed_once(store: MemoryStore, tmp_path: Path) -> None:
    lines = [
        {"collection": "c", "id": "a", "text": "a", "source": "t1", "metadata": {"evidence": ["b"]}},
        {"collection": "c", "id": "b", "text": "b", "metadata": {"evidence": ["a"]}},
    ]
    (tmp_path / "circle.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    store.import_(tmp_path / "circle.jsonl")
    assert recalled(store, tasks(2)[1], "c") == set()
    assert store.origins("b") == ["id:t1"]


def test_a_debate_does_not_recall_what_came_of_its_task(store: MemoryStore) -> None:
    personas = [replace(each, memory=MemorySettings(k=9)) for each in PROFILE.personas]
    remembering = debates(profile=replace(PROFILE, personas=tuple(personas)), rounds=1)
    remember(store, results(), remembering.describe(), "run")
    again = [Task("question 0", ["one", "two"], id="under another id"), Task("new", ["one"], id="t0")]
    with Engine(Scripted(reply_for), memory=store) as engine:
        known, new = engine.evaluate_batch(again, remembering)
    assert [{memory.source for memory in turn.memories} for turn in known.transcript] == [{"t1", "t2"}] * 2
    assert [{memory.source for memory in turn.memories} for turn in new.transcript] == [{"t0", "t1", "t2"}] * 2


def test_no_evaluator_recalls_what_came_of_its_task_even_from_a_part_of_it(store: MemoryStore) -> None:
    judge = named("a", collections=("a/Critic", "a/Reader"))
    cross = CrossEvaluator(judges={"a": judge, "b": replace(judge, mode="independent")})
    other = Task(WRITTEN.x, WRITTEN.candidates, id="under another id")
    with Engine(Scripted(reply_for), memory=store) as engine:
        remember(store, [(WRITTEN, engine.evaluate(WRITTEN, cross))], cross.describe(), "run")
        store.add("a/Critic", "something else")
        found = engine.evaluate(other, cross)
        silent = engine.evaluate(other, FlowEvaluator(_recalls_without_a_task))
    turns = [turn for member in found.members for turn in member.transcript]
    assert {memory.text for turn in turns for memory in turn.memories} == {"something else"}
    assert silent.details == {"recalled": ["something else"]}


def _recalls_without_a_task(task: Task, run: RunContext) -> Flow[Evaluation]:
    memories = yield from recall(Recall(collections=("a/Critic",), queries=(task.x,)))
    return scored(task, 1.0, details={"recalled": [memory.text for memory in memories]})


def test_both_orders_of_a_debate_are_remembered_once_and_failed_turns_are_not(store: MemoryStore) -> None:
    balanced = debates(candidate_order="balanced", rounds=1)
    assert remember(store, results(1, candidate_order="balanced", rounds=1), balanced.describe(), "run") == 2
    with Engine(Scripted(lambda call: "what?")) as engine:
        failed = engine.evaluate(tasks(1)[0], debates(retries=0))
    assert remember(store, [(tasks(1)[0], failed)], debates().describe(), "other") == 0


def named(profile: str, *, collections: tuple[str, ...] = (), **settings: Any) -> DebateEvaluator:
    """A debate of the same two agents under another profile's name."""
    personas = [replace(each, memory=MemorySettings(collections=collections)) for each in PROFILE.personas]
    return debates(profile=replace(PROFILE, name=profile, personas=tuple(personas)), rounds=1, **settings)


def looked_at(evaluator: Evaluator, task: Task) -> set[str]:
    """The collections in which an evaluator's agents recall."""
    asked: list[str] = []

    def note(request: Recall) -> list[Memory]:
        asked.extend(request.collections)
        return []

    drive(evaluator.flow(task, RunContext(0, "2026-01-01")), lambda call: reply_for(call), note)
    return set(asked)


WRITTEN = Task("question", [Candidate("one", generator="a"), Candidate("two", generator="b")], id="t")


@pytest.mark.parametrize(
    "evaluator",
    [
        named("one"),
        named("two", candidate_order="balanced"),
        named("three", collections=("shared",)),
        PanelEvaluator(members={"a": named("a"), "b": named("b"), "v": ValueEvaluator()}),
        PanelEvaluator(members={"a": PanelEvaluator(members={"c": named("c")}), "b": named("b")}),
        CrossEvaluator(judges={"a": named("a"), "b": named("a", mode="independent")}),
    ],
    ids=["debate", "balanced", "shared", "panel", "panel of panels", "cross"],
)
def test_conclusions_are_filed_where_the_agents_recall(store: MemoryStore, evaluator: Evaluator) -> None:
    with Engine(Scripted(reply_for)) as engine:
        judged = engine.evaluate(WRITTEN, evaluator)
    described = prompt_identity(evaluator.describe())  # as a run records it
    assert remember(store, [(WRITTEN, judged)], described, "run") > 0
    assert set(store.collections()) == looked_at(evaluator, WRITTEN)


def test_an_agent_that_recalls_from_its_own_collection_among_others_keeps_its_conclusions_there(
    store: MemoryStore,
) -> None:
    shared = named("one", collections=("handbook", "one/Reader", "one/Critic"))
    remember(store, results(1), shared.describe(), "run")
    assert store.collections() == {"one/Critic": 1, "one/Reader": 1}


def test_evaluators_without_agents_leave_nothing_to_remember(store: MemoryStore) -> None:
    with Engine(Scripted(reply_for)) as engine:
        judged = engine.evaluate(tasks(1)[0], ValueEvaluator())
    assert remember(store, [(tasks(1)[0], judged)], ValueEvaluator().describe(), "run") == 0


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
