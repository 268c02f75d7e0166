"""Runs that are interrupted and go on: nothing recorded is asked again, and the results are those of one go."""

from __future__ import annotations

import asyncio
import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from debate import Candidate, Engine, Evaluation, Task
from debate.backends import Call, Scripted
from debate.errors import (
    BackendUnavailableError,
    BudgetExceededError,
    CallError,
    ConfigError,
    RunLockedError,
    RunMismatchError,
)
from debate.evaluators.base import Evaluator
from debate.flow import Recall
from debate.profiles import Component, MemorySettings, Persona, Profile
from debate.runtime.limits import Budget
from debate.store import Store, StoredRun
from debate.testing import Recorder, reply_for
from debate.types import Memory
from tests.small_flows import debates, gathers, plain, tasks

N_TURNS = 4
SECONDS = 60.0
"""Nothing here takes so long, unless it hangs."""
EVALUATORS = {
    "sequential": debates(),
    "simultaneous": debates(mode="simultaneous"),
    "balanced": debates(candidate_order="balanced", rounds=1),
    "gathered": gathers(3),
    "expected": debates(rounds=1, readout="expected"),
    "cells": debates(rounds=1, readout="cells", abstain=True, silent_readouts=True),
}


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


def evaluated(
    store: Store, evaluator: Evaluator, script: Callable[[Call], Any] = reply_for, n: int = 3, **more: Any
) -> list[dict[str, Any]]:
    """The results of a run called "r", without their seconds."""
    with Engine(Scripted(script), store=store, seed=1, max_concurrency=2, **more) as engine:
        return [plain(each) for each in engine.evaluate_batch(tasks(n), evaluator, run="r")]


def whole(evaluator: Evaluator, script: Callable[[Call], Any] = reply_for, n: int = 3) -> list[dict[str, Any]]:
    """The same without a store."""
    with Engine(Scripted(script), seed=1) as engine:
        return [plain(each) for each in engine.evaluate_batch(tasks(n), evaluator)]


def dying(after: int, script: Callable[[Call], Any] = reply_for) -> Recorder:
    """A script whose backend dies for good after some calls."""

    def answer(call: Call) -> Any:
        if len(counted.calls) > after:
            raise BackendUnavailableError("gone")
        return script(call)

    counted = Recorder(answer)
    return counted


def sometimes_bad(call: Call) -> Any:
    if call.schema is not None and call.seed % 5 == 0:
        return "what?\0\ud800"
    if (call.schema is not None or call.read_out is not None) and call.seed % 7 == 0:
        raise CallError("engine_refused", "not this one")
    return reply_for(call)


def read(store: Store, run: str = "r") -> StoredRun:
    return store.read(run)


# ---- going on


@pytest.mark.parametrize("evaluator", EVALUATORS.values(), ids=EVALUATORS.keys())
def test_a_run_cut_anywhere_goes_on_to_the_same_results_with_the_missing_calls_alone(
    store: Store, evaluator: Evaluator
) -> None:
    expected, asked = whole(evaluator, sometimes_bad), 0
    for after in (3, 5, 2, 100):
        script = dying(after, sometimes_bad)
        found = evaluated(store, evaluator, script)
        asked += min(len(script.calls), after)
    assert found == expected
    assert asked == read(store).totals().calls


def test_a_finished_run_asks_nothing_and_gives_back_what_it_had(store: Store) -> None:
    first, script = evaluated(store, debates(), sometimes_bad), Recorder()
    assert evaluated(store, debates(), script) == first
    assert script.calls == []


def test_evaluations_come_back_from_the_store_as_they_were(store: Store) -> None:
    for name, evaluator in EVALUATORS.items():
        with Engine(Scripted(sometimes_bad), store=store, seed=2) as engine:
            first = engine.evaluate_batch(tasks(2), evaluator, run=name)
        back = dict((task.id, evaluation) for task, evaluation in read(store, name).results())
        assert [back[each.task_id].to_dict() for each in first] == [each.to_dict() for each in first]


def test_new_tasks_of_a_run_are_added_to_it(store: Store) -> None:
    evaluated(store, debates(), n=2)
    script = Recorder()
    assert len(evaluated(store, debates(), script, n=5)) == 5
    assert {call.info["task_id"] for call in script.calls} == {"t2", "t3", "t4"}


@pytest.mark.parametrize("run", ["r", None])
@pytest.mark.parametrize("how", ["evaluate", "evaluate_batch", "iter_evaluate"])
def test_a_task_that_changed_under_its_id_is_refused_and_asks_nothing(store: Store, how: str, run: str | None) -> None:
    changed, script = Task("question 0", ["another", "two"], "t0"), Recorder()
    with Engine(Scripted(script), store=store, seed=1) as engine:
        first = engine.evaluate_batch(tasks(2), debates(), run=run)
        asked = len(script.calls)
        with pytest.raises(RunMismatchError, match="another task of the id 't0'") as caught:
            result: Any = getattr(engine, how)(changed if how == "evaluate" else [changed], debates(), run=run)
            list(result)
        assert "--" not in str(caught.value)  # it is Python that was called, not the command line
        assert [plain(each) for each in engine.evaluate_batch(tasks(2), debates(), run=run)] == list(map(plain, first))
    assert len(script.calls) == asked


def test_new_candidates_without_an_id_are_another_task(store: Store) -> None:
    with Engine(Scripted(reply_for), store=store, seed=1) as engine:
        found = [engine.evaluate(Task("x", [text]), debates(), run="r") for text in ("one", "two", "one")]
    assert [each.status for each in found] == ["ok"] * 3
    assert len({each.task_id for each in found}) == 2


def test_metadata_that_json_cannot_hold_fail_their_task_alone_before_anything_is_asked(store: Store) -> None:
    wrong: list[Any] = [{1}, datetime.date(2026, 1, 31), b"x", np.int64(1), {(1, 2): 3}, object()]
    faulty = [Task("x", ["a", "b"], f"bad{n}", (), {"deep": [each]}) for n, each in enumerate(wrong)]
    faulty.append(Task("x", [Candidate("a", metadata={"seen": {1}})], "bad6"))
    script = Recorder()
    with Engine(Scripted(script), store=store, seed=1) as engine:
        found = engine.evaluate_batch([*tasks(3), *faulty], debates(), run="r")
    assert [each.status for each in found] == ["ok"] * 3 + ["failed"] * 7
    assert all(f"task 'bad{n}' cannot be recorded, as its metadata" in str(found[3 + n].error) for n in range(7))
    assert {call.info["task_id"] for call in script.calls} == {"t0", "t1", "t2"}
    assert len(store.read("r").evaluated()) == 3


# ---- the same task at once


def slowly(call: Call) -> Any:
    async def answer() -> str:
        await asyncio.sleep(0.002)
        return reply_for(call)

    return answer()


@pytest.mark.parametrize("run", ["r", None])
def test_the_same_task_at_once_is_paid_once_and_answered_to_all(store: Store, run: str | None) -> None:
    script, (task,) = Recorder(slowly), tasks(1)

    async def ask_at_once(engine: Engine) -> list[Evaluation]:
        asking = [engine.aevaluate(task, debates(), run=run) for _ in range(5)]
        return await asyncio.wait_for(asyncio.gather(*asking), SECONDS)

    with Engine(Scripted(script), store=store, seed=1) as engine:
        found = asyncio.run(ask_at_once(engine))
    assert [plain(each) for each in found] == whole(debates(), n=1) * 5
    assert len(script.calls) == N_TURNS


@pytest.mark.parametrize("run", ["r", None])
def test_the_same_task_from_many_threads_is_paid_once_and_answered_to_all(store: Store, run: str | None) -> None:
    script, (task,) = Recorder(slowly), tasks(1)
    with Engine(Scripted(script), store=store, seed=1) as engine, ThreadPoolExecutor(6) as threads:
        found = [
            each.result(SECONDS) for each in [threads.submit(engine.evaluate, task, debates(), run) for _ in range(6)]
        ]
    assert [plain(each) for each in found] == whole(debates(), n=1) * 6
    assert len(script.calls) == N_TURNS


def test_the_same_task_at_once_under_other_weights_and_rounds_shares_its_calls(store: Store) -> None:
    script, (task,) = Recorder(slowly), tasks(1)
    evaluators = [debates(), debates(weights=[1, 0]), debates(rounds=1), debates(rounds=3)]

    async def ask_at_once(engine: Engine) -> list[Evaluation]:
        asking = [engine.aevaluate(task, each, run="r") for each in evaluators]
        return await asyncio.wait_for(asyncio.gather(*asking), SECONDS)

    with Engine(Scripted(script), store=store, seed=1) as engine:
        found = asyncio.run(ask_at_once(engine))
    assert [plain(each) for each in found] == [whole(each, n=1)[0] for each in evaluators]
    assert len(script.calls) == 3 * 2


def test_who_comes_with_other_prompts_is_refused_and_takes_the_run_from_nobody(store: Store) -> None:
    script, (task,) = Recorder(slowly), tasks(1)

    async def ask_at_once(engine: Engine) -> list[Evaluation | BaseException]:
        evaluators = [debates(), debates(mode="simultaneous"), debates()]
        asking = [engine.aevaluate(task, each, run="r") for each in evaluators]
        return await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), SECONDS)

    with Engine(Scripted(script), store=store, seed=1) as engine:
        engine.evaluate(task, debates(), run="r")
        first, refused, again = asyncio.run(ask_at_once(engine))
        with pytest.raises(RunLockedError):
            store.run("r", {})
    assert isinstance(refused, RunMismatchError) and "mode" in str(refused)
    assert isinstance(first, Evaluation) and isinstance(again, Evaluation)
    assert plain(first) == plain(again) == whole(debates(), n=1)[0]
    assert len(script.calls) == N_TURNS


def test_who_waits_for_a_task_that_is_cancelled_or_fails_evaluates_it_then(store: Store) -> None:
    script, (task,) = Recorder(slowly), tasks(1)

    async def ask_and_cancel(engine: Engine) -> Evaluation:
        first = asyncio.ensure_future(engine.aevaluate(task, debates(), run="r"))
        while len(script.calls) < 2:
            await asyncio.sleep(0.001)
        second = asyncio.ensure_future(engine.aevaluate(task, debates(), run="r"))
        await asyncio.sleep(0.001)
        first.cancel()
        return await asyncio.wait_for(second, SECONDS)

    with Engine(Scripted(script), store=store, seed=1) as engine:
        found = asyncio.run(ask_and_cancel(engine))
    assert plain(found) == whole(debates(), n=1)[0]
    assert N_TURNS <= len(script.calls) <= N_TURNS + 2


def test_without_a_name_each_evaluator_has_a_run_of_its_own(store: Store) -> None:
    with Engine(Scripted(reply_for), store=store) as engine:
        for evaluator in (debates(), debates(rounds=1), debates(mode="simultaneous")):
            engine.evaluate(tasks(1)[0], evaluator)
    assert len(store.runs()) == 2  # the number of rounds shapes no prompt


def test_several_evaluators_under_one_name_have_runs_of_their_own(store: Store) -> None:
    evaluators = [debates(), debates(mode="simultaneous"), debates()]
    with Engine(Scripted(reply_for), store=store) as engine:
        engine.evaluate_batch(tasks(3), evaluators, run="r")
    assert [name.startswith("r/") for name in store.runs()] == [True, True]


def test_a_run_needs_a_store() -> None:
    with Engine(Scripted(reply_for)) as engine, pytest.raises(ConfigError, match="a run needs a store"):
        engine.evaluate(tasks(1)[0], debates(), run="r")


# ---- other settings


@pytest.mark.parametrize(
    "changed",
    [{"weights": [1, 0]}, {"method": "weighted_mean"}, {"selection": "sample"}, {"rounds": 1}, {"convergence": 99.0}],
    ids=lambda changed: next(iter(changed)),
)
def test_other_aggregation_asks_nothing(store: Store, changed: dict[str, Any]) -> None:
    evaluated(store, debates(), sometimes_bad)
    script = Recorder()
    assert evaluated(store, debates(**changed), script) == whole(debates(**changed), sometimes_bad)
    assert script.calls == []


def test_more_rounds_ask_for_these_rounds_alone(store: Store) -> None:
    evaluated(store, debates(rounds=1))
    script = Recorder()
    assert evaluated(store, debates(rounds=3), script) == whole(debates(rounds=3))
    assert sorted({call.info["round"] for call in script.calls}) == [1, 2]
    assert len(script.calls) == 3 * 2 * 2


def test_a_stricter_threshold_goes_on_where_the_debate_had_stopped(store: Store) -> None:
    loose = debates(convergence=99.0, rounds=2)
    assert {each["rounds_run"] for each in evaluated(store, loose)} == {1}
    script = Recorder()
    assert evaluated(store, debates(convergence=0.0, rounds=2), script) == whole(debates(convergence=0.0, rounds=2))
    assert {call.info["round"] for call in script.calls} == {1}


def test_other_prompts_are_refused_with_the_difference(store: Store) -> None:
    evaluated(store, debates())
    with pytest.raises(RunMismatchError, match="mode: sequential -> simultaneous"):
        evaluated(store, debates(mode="simultaneous"))


def test_a_prompt_that_changed_unseen_ends_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(store, debates(), dying(5))
    from debate.evaluators.debate import prompts as debate_prompts

    original = debate_prompts.DebatePrompts.prompt

    def changed(self: Any, i: int, *rest: Any) -> Any:
        return original(self, (i + 1) % 2, *rest)

    monkeypatch.setattr(debate_prompts.DebatePrompts, "prompt", changed)
    with pytest.raises(RunMismatchError, match="is not the one that was recorded"):
        evaluated(store, debates())


# ---- failures


def refusing(*places: tuple[str, int, str]) -> Callable[[Call], str]:
    """By seed, but refuses the calls of some (task, round, agent)."""

    def answer(call: Call) -> str:
        if (call.info["task_id"], call.info["round"], call.info["agent"]) in places:
            raise CallError("engine_refused", "not now")
        return reply_for(call)

    return answer


def retried(store: Store, script: Recorder, evaluator: Evaluator | None = None) -> list[dict[str, Any]]:
    with Engine(Scripted(script), store=store, seed=1) as engine:
        engine.evaluate_batch(tasks(3), evaluator or debates(), run="r")
        record = engine_record(engine)
        record.reopen_failed()
        return [plain(each) for each in engine.evaluate_batch(tasks(3), evaluator or debates(), run="r")]


def engine_record(engine: Engine) -> StoredRun:
    (held,) = engine._recording._runs.values()  # pyright: ignore[reportPrivateUsage]
    return held[1]


def test_what_failed_is_asked_again_and_only_that(store: Store) -> None:
    places = [("t0", 0, "Critic"), ("t2", 1, "Reader")]
    first = evaluated(store, debates(), refusing(*places))
    assert [each["status"] for each in first] == ["partial", "ok", "partial"]
    script = Recorder()
    second = retried(store, script)
    assert sorted((call.info["task_id"], call.info["round"], call.info["agent"]) for call in script.calls) == places
    assert [each["status"] for each in second] == ["ok"] * 3
    assert second[1] == first[1]
    # Later turns stay as they were, though they did not see the one that is there now.
    assert second[0]["transcript"][1:] == first[0]["transcript"][1:]


def test_unreadable_replies_are_asked_again_under_new_seeds(store: Store) -> None:
    seeds: list[int] = []

    def unreadable(call: Call) -> str:
        if (call.info["task_id"], call.info["round"]) == ("t1", 1):
            seeds.append(call.seed)
            return "what?"
        return reply_for(call)

    evaluated(store, debates(), unreadable)
    script = Recorder()
    assert [each["status"] for each in retried(store, script)] == ["ok"] * 3
    assert len(script.calls) == 2
    assert not {call.seed for call in script.calls} & set(seeds)
    assert evaluated(store, debates(), Recorder(_nothing_more)) == retried(store, Recorder(_nothing_more))


def _nothing_more(call: Call) -> str:
    raise AssertionError("it is all recorded")


def test_a_retry_that_is_interrupted_goes_on(store: Store) -> None:
    places = [(f"t{n}", 0, agent) for n in range(3) for agent in ("Critic", "Reader")]
    evaluated(store, debates(), refusing(*places))
    retried(store, dying(2))
    script = Recorder()
    found = evaluated(store, debates(), script)
    assert [each["status"] for each in found] == ["ok"] * 3
    assert all(call.info["round"] == 0 or call.info["task_id"] for call in script.calls)
    assert read(store).totals().failures == 0


# ---- memories, budgets, time


class Remembering:
    """A memory that says another thing every time."""

    def __init__(self) -> None:
        self.asked = 0

    async def recall(self, request: Recall) -> Sequence[Memory]:
        self.asked += 1
        return [Memory(f"thought {self.asked}", f"id{self.asked}", "c", 0.5, math.nan, 0.25, 1.0)]


def test_what_was_recalled_is_recorded_with_its_parts_and_recalled_once(store: Store) -> None:
    persona = Persona("Elder", "You remember.", memory=MemorySettings(collections=("c",)))
    evaluator = debates(profile=Profile("one", (persona,), (Component("truth", "Is it true?"),)))
    memory = Remembering()
    first = evaluated(store, evaluator, dying(3), memory=memory)
    again = evaluated(store, evaluator, memory=memory)
    assert [each["status"] for each in first].count("ok") == 1
    assert memory.asked == 6
    thoughts = [turn["memories"][0] for each in again for turn in each["transcript"]]
    assert sorted(thought["id"] for thought in thoughts) == [f"id{n}" for n in range(1, 7)]
    assert (thoughts[0]["relevance"], thoughts[0]["recency"]) == (None, 0.25)


def test_a_budget_of_tokens_holds_over_sessions_and_loses_nothing(store: Store) -> None:
    evaluator, n = debates(), 3
    with pytest.raises(BudgetExceededError, match=r"(?s)budget of 1 tokens.*the same call under the same `run`"):
        list(streamed(store, evaluator, Budget(1)))
    spent = read(store).tokens_spent()
    assert spent > 0
    with pytest.raises(BudgetExceededError):
        list(streamed(store, evaluator, Budget(spent, spent=spent)))
    assert read(store).tokens_spent() == spent
    assert len(list(streamed(store, evaluator, Budget(10**9, spent=spent)))) == n
    assert read(store).totals().calls == n * N_TURNS


def streamed(store: Store, evaluator: Evaluator, budget: Budget) -> Iterator[Evaluation]:
    def costly(call: Call) -> str:
        return reply_for(call)

    with Engine(Scripted(costly), store=store, seed=1, budget=budget) as engine:
        yield from engine.iter_evaluate(tasks(3), evaluator, run="r")


def test_a_budget_of_seconds_ends_the_run() -> None:
    now = [0.0]

    def script(call: Call) -> str:
        now[0] += 1
        return reply_for(call)

    budget = Budget(seconds=5, clock=lambda: now[0])
    with (
        Engine(Scripted(script), budget=budget) as engine,
        pytest.raises(BudgetExceededError, match="5 seconds are over"),
    ):
        list(engine.iter_evaluate(tasks(9), debates()))
    assert 5 <= now[0] < 5 + 2 * 9


def test_an_evaluation_that_is_out_of_time_keeps_what_it_has_and_goes_on_later(store: Store) -> None:
    async def slow(call: Call) -> str:
        if call.info["round"] == 1:
            await asyncio.sleep(60)
        return reply_for(call)

    found = evaluated(store, debates(), slow, task_seconds=0.5)
    assert [(each["status"], each["stop_reason"]) for each in found] == [("partial", "time_budget")] * 3
    assert {failure["reason"] for each in found for failure in each["failures"]} == {"time_budget"}
    script = Recorder()
    assert retried(store, script) == whole(debates())
    assert {call.info["round"] for call in script.calls} == {1}


# ---- taking over


def test_a_fork_keeps_the_answers_whose_prompts_are_the_same(store: Store) -> None:
    evaluated(store, debates())
    other = Profile("pair", (debates().personas[0], Persona("Poet", "You rhyme.")), debates().components)
    forked = debates(profile=other)
    script = Recorder()
    with closing(
        store.run("fork", {"evaluator": forked.describe(), "models": {"scripted": "scripted"}}, seed=1)
    ) as fork:
        fork.read_evalset([(task, None, None) for task in tasks(3)], dict)
        assert fork.inherit(read(store)) == 12
        with Engine(Scripted(script), seed=1) as engine:
            found = [plain(each) for each in engine.evaluate_batch(tasks(3), forked, run=fork)]
        assert fork.totals().calls == len(script.calls)
    assert found == whole(forked)
    # The first agent's first turn is the same; everything after it is not.
    assert sorted((call.info["round"], call.info["agent"]) for call in script.calls) == sorted(
        3 * [(0, "Poet"), (1, "Critic"), (1, "Poet")]
    )


@pytest.mark.parametrize("name", ["expected", "cells"])
def test_what_was_read_out_is_taken_from_the_cache_and_by_a_fork_and_asked_no_more(store: Store, name: str) -> None:
    evaluator, script = EVALUATORS[name], Recorder()
    first = evaluated(store, evaluator, cache=store.cache())
    identity = {"evaluator": evaluator.describe(), "models": {"scripted": "scripted"}}
    with closing(store.run("fork", identity, seed=1)) as fork:
        fork.read_evalset([(task, None, None) for task in tasks(3)], dict)
        fork.inherit(read(store))
        with Engine(Scripted(script), seed=1) as engine:
            forked = [plain(each) for each in engine.evaluate_batch(tasks(3), evaluator, run=fork)]
    with Engine(Scripted(script), store=store, seed=1, cache=store.cache()) as engine:
        cached = [plain(each) for each in engine.evaluate_batch(tasks(3), evaluator, run="cached")]
    assert forked == cached == first
    assert script.calls == []
    assert any(turn["distributions"] for each in first for turn in each["transcript"])
