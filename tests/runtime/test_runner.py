"""Driving flows: addresses, replay, seeds, failures and usage."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from typing import Any

import pytest

from debate import Evaluation, PanelEvaluator, Persona, Profile, Sampling, Task
from debate.backends import Call, Scripted
from debate.backends.scripted import Script
from debate.errors import BackendUnavailableError, CallError
from debate.evaluators.base import Evaluator, RunContext
from debate.flow import Completion, Flow, Gather, Generate, Recall, gather, generate, recall
from debate.journal import Answer, CallKey, Journal
from debate.profiles import Component, MemorySettings
from debate.runtime.runner import Retriever, Runner
from debate.testing import DictJournal, Recorder, reply_for
from debate.types import Failure, Memory, Usage
from tests.small_flows import FlowEvaluator, ask, asks, debates, gathers, late, plain, scored

TASK = Task("x", ["one", "two"], id="t")


def evaluate(
    evaluator: Evaluator,
    script: Script = reply_for,
    *,
    task: Task = TASK,
    seed: int = 0,
    journal: Journal | None = None,
    memory: Retriever | None = None,
) -> Evaluation:
    runner = Runner({"scripted": Scripted(script)}, RunContext(seed, "2026-01-31"), memory=memory)
    return asyncio.run(runner.evaluate(evaluator, task, journal))


class Remembering:
    """A memory that echoes the query, and counts."""

    def __init__(self) -> None:
        self.asked = 0

    async def recall(self, request: Recall) -> Sequence[Memory]:
        self.asked += 1
        return [Memory(f"about {request.queries[0]}", score=0.5, relevance=0.5, recency=0.5, importance=0.5)]


def _everything(task: Task, run: RunContext) -> Flow[Evaluation]:
    """One of each request, an unreadable reply, and a gather within a gather."""

    def child(n: int) -> Flow[str]:
        answer = yield from generate(ask(task, f"child {n}", sample_key=(n,)))
        again = yield from generate(ask(task, f"child {n}", sample_key=(n,), attempt=1))
        return f"{answer} {again}"

    def parent() -> Flow[str]:
        return "".join((yield from gather([child(2)])))

    yield from generate(ask(task, "first"))
    yield from gather([child(0), child(1), parent()])
    memories = yield from recall(Recall(collections=("c",), queries=(task.x,)))
    last = yield from generate(ask(task, memories[0].text))
    assert isinstance(last, Completion)
    return scored(task, float(last.text))


EVERYTHING = FlowEvaluator(_everything)


# ---- addresses


def test_a_call_is_addressed_by_its_path_of_children_and_its_ordinal_there() -> None:
    journal = DictJournal()
    evaluate(EVERYTHING, journal=journal, memory=Remembering())
    children = [(1, 0, 0), (1, 1, 0), (1, 2, 0, 0, 0)]
    retried = {CallKey(address, attempt) for address in children for attempt in (0, 1)}
    assert set(journal.entries) == retried | {CallKey((n,)) for n in (0, 2, 3)}


def test_a_turn_asked_again_keeps_its_address() -> None:
    journal = DictJournal()
    evaluate(debates(rounds=1), lambda call: "what?" if call.info["attempt"] < 2 else reply_for(call), journal=journal)
    assert list(journal.entries) == [CallKey((turn,), attempt) for turn in (0, 1) for attempt in (0, 1, 2)]


def test_addresses_do_not_depend_on_the_order_of_arrival() -> None:
    def slow(late_child: str) -> Script:
        async def script(call: Call) -> str:
            await asyncio.sleep(0.1 if call.info["text"].startswith(f"x {late_child}") else 0)
            return reply_for(call)

        return script

    first, second = DictJournal(), DictJournal()
    for journal, late_child in ((first, "0"), (second, "1")):
        evaluate(gathers(2), slow(late_child), journal=journal)
    assert list(first.entries) != list(second.entries)
    assert first.entries == second.entries


# ---- sessions


def sessions(task: Task = TASK, seed: int = 0) -> set[str]:
    recorder = Recorder()
    panel = PanelEvaluator(members={"short": debates(rounds=1), "long": debates(rounds=2)})
    evaluate(panel, recorder, task=task, seed=seed)
    return {call.session for call in recorder.calls}


def test_all_calls_of_a_task_share_a_session_of_its_run() -> None:
    (session,) = sessions()
    assert sessions() == {session}, "not the same when the run is resumed"
    assert len({session, *sessions(seed=1), *sessions(task=Task("x", ["one", "two"], id="other"))}) == 3
    assert TASK.id not in (session, "")


# ---- journal and replay


REPEATABLE = {
    "everything": EVERYTHING,
    "gather": gathers(3),
    "sequential debate": debates(),
    "simultaneous debate": debates(mode="simultaneous"),
    "balanced debate": debates(candidate_order="balanced", rounds=1),
}


def sometimes_bad(call: Call) -> str:
    """By seed: sometimes unreadable, sometimes no answer at all."""
    if call.schema is not None and call.seed % 5 == 0:
        return "what?"
    if call.schema is not None and call.seed % 7 == 0:
        raise CallError("engine_refused", "not this one")
    return reply_for(call)


@pytest.mark.parametrize("evaluator", REPEATABLE.values(), ids=REPEATABLE.keys())
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_cut_at_any_call_goes_on_to_the_same_result_with_the_missing_calls_alone(
    evaluator: Evaluator, seed: int
) -> None:
    journal, memory = DictJournal(), Remembering()
    whole = evaluate(evaluator, late(sometimes_bad, seed), seed=seed, journal=journal, memory=memory)
    entries = list(journal.entries.items())
    for n in range(len(entries) + 1):
        kept, script, remembering = DictJournal(dict(entries[:n])), Recorder(sometimes_bad), Remembering()
        resumed = evaluate(evaluator, script, seed=seed, journal=kept, memory=remembering)
        assert len(script.calls) + remembering.asked == len(entries) - n
        assert plain(resumed) == plain(whole)
        assert kept.entries == journal.entries


def test_the_bad_replies_of_that_test_do_occur() -> None:
    """Otherwise it would not show that failures and retries are replayed."""
    entries: list[tuple[CallKey, Answer]] = []
    for seed, evaluator in itertools.product((1, 2), list(REPEATABLE.values())[2:]):
        journal = DictJournal()
        evaluate(evaluator, sometimes_bad, seed=seed, journal=journal)
        entries += journal.entries.items()
    assert any(key.attempt for key, _ in entries)
    assert any(isinstance(answer, Failure) for _, answer in entries)


def test_a_flow_goes_on_only_when_its_answer_is_safe() -> None:
    events: list[str] = []

    class Slow(DictJournal):
        async def put(self, key: CallKey, call: Call | Recall, answer: Answer) -> None:
            await asyncio.sleep(0.005)
            events.append("safe")

    def script(call: Call) -> str:
        events.append("asked")
        return "1"

    evaluate(asks(3), script, journal=Slow())
    assert events == ["asked", "safe"] * 3


def test_only_what_a_backend_said_is_observed() -> None:
    seen: list[str] = []
    journal = DictJournal({CallKey((0,)): Completion("1"), CallKey((2,)): Failure("refused", "no")})
    runner = Runner(
        {"scripted": Scripted(reply_for)},
        RunContext(),
        observe=lambda call, completion: seen.append(call.info["text"]),
    )
    asyncio.run(runner.evaluate(asks(4), TASK, journal))
    assert seen == ["x 1", "x 3"]


def test_a_call_that_would_begin_after_the_time_of_its_evaluation_fails_also_where_calls_block() -> None:
    asked: list[str] = []

    def blocks(call: Call) -> str:
        asked.append(call.info["text"])
        time.sleep(0.3)
        return "1"

    runner = Runner({"scripted": Scripted(blocks)}, RunContext(), task_seconds=0.5)
    found = asyncio.run(runner.evaluate(asks(4), TASK))
    assert asked == ["x 0", "x 1"]
    assert found.scores.tolist() == [1 + 1 - 1 - 1] * 2  # -1 stands for a failed call


def test_what_is_recalled_reaches_the_prompt_and_is_recorded() -> None:
    persona = Persona("Elder", "You remember.", memory=MemorySettings(collections=("c",)))
    profile = Profile("one", (persona,), (Component("truth", "Is it true?"),))
    script, journal = Recorder(), DictJournal()
    evaluation = evaluate(debates(profile=profile, rounds=1), script, journal=journal, memory=Remembering())
    assert "about x" in script.calls[0].messages[1]["content"]
    assert evaluation.transcript.turns[0].memories == journal.entries[CallKey((0,))]


def test_without_a_memory_nothing_is_recalled() -> None:
    def flow(task: Task, run: RunContext) -> Flow[Evaluation]:
        memories = yield from recall(Recall(collections=("c",), queries=("q",)))
        return scored(task, len(memories))

    journal = DictJournal()
    assert evaluate(FlowEvaluator(flow), journal=journal).scores.tolist() == [0, 0]
    assert journal.entries == {}


# ---- seeds


def seed_of(run_seed: int = 0, text: str = "same", task: Task = TASK, **settings: Any) -> int:
    def flow(task: Task, run: RunContext) -> Flow[Evaluation]:
        yield from generate(ask(task, text, **settings))
        return scored(task, 0)

    script = Recorder()
    runner = Runner({"a": Scripted(script), "b": Scripted(script)}, RunContext(run_seed))
    asyncio.run(runner.evaluate(FlowEvaluator(flow), task))
    return script.calls[0].seed


@pytest.mark.parametrize(
    "change",
    [
        {"run_seed": 1},
        {"text": "other"},
        {"model": "b"},
        {"schema": {"type": "number"}},
        {"sampling": Sampling(temperature=0.5)},
        {"sample_key": ("agent", 1)},
        {"attempt": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_shapes_the_reply_changes_the_seed(change: dict[str, Any]) -> None:
    assert seed_of(**change) != seed_of()


def test_equal_requests_share_a_seed_whatever_task_they_come_from() -> None:
    assert seed_of(task=Task("another", ["a"])) == seed_of() == seed_of(model="a")


def debate_seeds(**settings: Any) -> dict[tuple[Any, ...], int]:
    script = Recorder(lambda call: "what?" if call.info["attempt"] == 0 else reply_for(call))
    evaluate(debates(**settings), script)
    return {(call.info["agent"], call.info["round"], call.info["attempt"]): call.seed for call in script.calls}


def test_every_turn_and_every_attempt_of_a_debate_has_its_own_seed() -> None:
    for mode in ("sequential", "independent"):
        seeds = debate_seeds(mode=mode)
        assert len(seeds) == 2 * 2 * 2
        assert len(set(seeds.values())) == len(seeds)


@pytest.mark.parametrize(
    "setting",
    [
        {"weights": [0.2, 0.9]},
        {"convergence": 0.0},
        {"over": "pooled"},
        {"selection": "sample", "softmax_temperature": 3.0},
        {"method": "weighted_mean"},
        {"quorum": 1},
        {"retries": 5},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_what_is_done_with_the_scores_changes_no_seed(setting: dict[str, Any]) -> None:
    assert debate_seeds(**setting) == debate_seeds()


# ---- failures


def test_a_failed_call_fails_its_turn_and_no_other() -> None:
    def script(call: Call) -> str:
        if (call.info["agent"], call.info["round"]) == ("Reader", 0):
            raise RuntimeError("out of words")
        return reply_for(call)

    evaluation = evaluate(debates(), script)
    assert evaluation.status == "partial"
    [failure] = evaluation.failures
    assert (failure.reason, failure.agent, failure.round) == ("script_raised", "Reader", 0)
    assert [turn.failure is None for turn in evaluation.transcript] == [True, False, True, True]


def raising(task: Task, run: RunContext) -> Flow[Evaluation]:
    yield from generate(ask(task, "before"))
    raise LookupError("lost the thread")


def raising_child(task: Task, run: RunContext) -> Flow[Evaluation]:
    yield Gather((asks(2).flow(task, run), raising(task, run)))
    return scored(task, 1)


def unknown_model(task: Task, run: RunContext) -> Flow[Evaluation]:
    yield from generate(ask(task, "x", model="absent"))
    return scored(task, 1)


def yields_nonsense(task: Task, run: RunContext) -> Flow[Evaluation]:
    yield "what?"  # pyright: ignore[reportReturnType]
    return scored(task, 1)


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (raising, "LookupError: lost the thread"),
        (raising_child, "LookupError: lost the thread"),
        (yields_nonsense, "TypeError: a flow yields Generate, Recall, CallFunction or Gather, got str"),
        (unknown_model, "ConfigError: model: there is no backend for"),
    ],
    ids=["raises", "child raises", "yields nonsense", "unknown model"],
)
def test_an_evaluator_that_raises_is_a_failed_evaluation(flow: Any, message: str) -> None:
    evaluation = evaluate(FlowEvaluator(flow))
    assert evaluation.status == "failed"
    assert evaluation.error is not None and evaluation.error.startswith(message)
    assert [failure.reason for failure in evaluation.failures] == ["evaluator_error"]
    assert plain(evaluation)["scores"] == [None, None]
    assert evaluation.selected is None


def test_a_dead_backend_ends_the_siblings_and_is_raised() -> None:
    cancelled: list[str] = []

    async def script(call: Call) -> str:
        if call.info["text"] == "x 1 0":
            await asyncio.sleep(0.01)
            raise BackendUnavailableError("gone")
        if call.info["text"] == "x first":
            return "1"
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(call.info["text"])
            raise
        return "2"

    with pytest.raises(BackendUnavailableError, match="gone"):
        evaluate(gathers(3), script)
    assert sorted(cancelled) == ["x 0 0", "x 2 0"]


def test_a_flow_is_closed_whatever_becomes_of_it() -> None:
    closed: list[str] = []

    def flow(task: Task, run: RunContext) -> Flow[Evaluation]:
        try:
            yield from generate(ask(task, "x"))
        finally:
            closed.append("closed")
        return scored(task, 0)

    def dead(call: Call) -> str:
        raise BackendUnavailableError("gone")

    with pytest.raises(BackendUnavailableError):
        evaluate(FlowEvaluator(flow), dead)
    assert closed == ["closed"]


# ---- usage and time


def test_usage_is_the_sum_of_all_calls_and_of_the_members() -> None:
    evaluation = evaluate(gathers(3, calls=2), lambda call: Completion("1", usage=Usage(10, 5, 2, 1)))
    assert evaluation.usage == Usage(70, 35, 14, 7)
    assert [member.usage for member in evaluation.members] == [Usage(20, 10, 4, 2)] * 3


def test_unreadable_replies_are_paid_for_and_failed_calls_are_not() -> None:
    def script(call: Call) -> str | Completion:
        if call.info["agent"] == "Critic":
            raise RuntimeError("no")
        return Completion("what?" if call.info["attempt"] == 0 else reply_for(call), usage=Usage(100, 0, 7, 1))

    assert evaluate(debates(rounds=1), script).usage == Usage(200, 0, 14, 2)


def test_seconds_are_those_of_the_evaluation_and_of_each_member() -> None:
    async def script(call: Call) -> str:
        await asyncio.sleep(0.02)
        return "1"

    evaluation = evaluate(gathers(2, calls=1), script)
    assert 0.04 <= evaluation.seconds < 10
    assert all(0.02 <= member.seconds < evaluation.seconds for member in evaluation.members)


def test_a_flow_may_make_no_call_at_all() -> None:
    def silent(task: Task, run: RunContext) -> Flow[Evaluation]:
        yield from gather(list[Flow[int]]())
        return scored(task, 3)

    assert evaluate(FlowEvaluator(silent)).usage == Usage()


def test_a_call_is_what_the_flow_asked_for() -> None:
    request: Generate = ask(TASK, "x", sampling=Sampling(top_p=0.5), schema={"type": "number"})
    script = Recorder()

    def flow(task: Task, run: RunContext) -> Flow[Evaluation]:
        yield from generate(request)
        return scored(task, 1)

    evaluate(FlowEvaluator(flow), script)
    [call] = script.calls
    assert (call.model, call.prompt, call.sampling) == ("scripted", request.prompt, request.sampling)
    assert (call.schema, call.info) == (request.schema, request.info)
