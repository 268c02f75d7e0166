"""The engine as its users hold it: plain and async calls, batches, streams, several models, starting and closing."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import (
    CrossEvaluator,
    DebateEvaluator,
    Engine,
    Evaluation,
    PanelEvaluator,
    Persona,
    Profile,
    Sampling,
    StepEvaluator,
    Task,
    ValueEvaluator,
)
from debate.backends import Call, Capacity, Scripted
from debate.backends.base import READOUT_HINT
from debate.errors import BackendUnavailableError, CallError, ConfigError, TaskError
from debate.evaluators.base import RunContext
from debate.evaluators.steps.prompted import PromptedSteps
from debate.flow import Completion, Flow, RoundEnd, generate
from debate.store import Store
from debate.testing import Recorder, reply_for
from debate.types import Failure, Turn, Usage
from tests.small_flows import PROFILE, FlowEvaluator, Startable, ask, asks, debates, gathers, late, plain, scored, tasks

TODAY = datetime.date(2026, 1, 31)

# ---- the same results


def test_results_depend_on_the_seed_and_not_on_concurrency_or_delays() -> None:
    evaluators = [
        debates(),
        debates(mode="simultaneous"),
        gathers(3),
        debates(candidate_order="balanced", selection="sample"),
    ] * 3
    given = tasks(len(evaluators))

    def results(seed: int, max_concurrency: int | None, delays: int) -> list[dict[str, Any]]:
        with Engine(Scripted(late(reply_for, delays)), seed=seed, max_concurrency=max_concurrency) as engine:
            return [plain(evaluation) for evaluation in engine.evaluate_batch(given, evaluators)]

    first = results(7, 1, delays=1)
    assert results(7, 3, delays=2) == first
    assert results(7, 64, delays=3) == first
    assert results(7, None, delays=4) == first
    assert results(8, 3, delays=2) != first


def test_a_store_makes_a_second_run_ask_nothing(tmp_path: Path) -> None:
    url, script = str(tmp_path / "s.sqlite"), Recorder()
    with Engine(Scripted(script), store=url, seed=1) as engine:
        first = engine.evaluate_batch(tasks(4), debates(), run="one")
    asked = len(script.calls)
    with Engine(Scripted(script), store=url, seed=1) as engine:
        second = engine.evaluate_batch(tasks(4), debates(), run="one")
    assert (asked, len(script.calls)) == (16, 16)
    assert [plain(evaluation) for evaluation in second] == [plain(evaluation) for evaluation in first]


# ---- batches


def test_a_batch_comes_back_in_its_order_whatever_finishes_first() -> None:
    async def script(call: Call) -> str:
        await asyncio.sleep(0.03 if call.info["task_id"] in ("t0", "t3") else 0)
        return "1"

    with Engine(Scripted(script)) as engine:
        found = engine.evaluate_batch(tasks(6), asks(1))
    assert [evaluation.task_id for evaluation in found] == [f"t{n}" for n in range(6)]


def test_each_task_may_have_its_own_evaluator() -> None:
    with Engine(Scripted(lambda call: "1")) as engine:
        found = engine.evaluate_batch(tasks(3), [asks(1), asks(5), asks(2)])
    assert [evaluation.scores[0] for evaluation in found] == [1, 5, 2]


def test_an_empty_batch_has_no_evaluations() -> None:
    with Engine(Startable()) as engine:
        assert engine.evaluate_batch([], asks(1)) == []
        assert engine.evaluate_batch([], []) == []
        assert list(engine.iter_evaluate([], asks(1))) == []


def test_tasks_and_evaluators_that_do_not_pair_up_are_refused_before_anything_is_loaded() -> None:
    backend = Startable()
    with Engine(backend) as engine, pytest.raises(ConfigError, match="3 tasks and 2 evaluators"):
        engine.evaluate_batch(tasks(3), [asks(1), asks(1)])
    assert "start" not in backend.events


def test_equal_tasks_are_told_apart_and_equal_ids_are_refused() -> None:
    same = Task("x", ["a"])
    with Engine(Scripted(reply_for)) as engine:
        found = engine.evaluate_batch([same, same], asks(1))
        assert [evaluation.task_id for evaluation in found] == [same.id, f"{same.id}-2"]
        assert {evaluation.task_id for evaluation in engine.iter_evaluate([same, same], asks(1))} == {
            same.id,
            f"{same.id}-2",
        }
        twice = [Task("x", ["a"], id="one"), Task("y", ["a"], id="one")]
        with pytest.raises(TaskError, match="duplicate id 'one'"):
            engine.evaluate_batch(twice, asks(1))
        with pytest.raises(TaskError, match="duplicate id 'one'"):
            list(engine.iter_evaluate(twice, asks(1)))


def test_one_failure_never_loses_the_others() -> None:
    def broken(task: Task, run: RunContext) -> Flow[Evaluation]:
        yield from generate(ask(task, "x"))
        raise LookupError("lost")

    with Engine(Scripted(reply_for)) as engine:
        found = engine.evaluate_batch(tasks(5), [asks(1), FlowEvaluator(broken), asks(1), debates(), asks(1)])
    assert [evaluation.status for evaluation in found] == ["ok", "failed", "ok", "ok", "ok"]
    assert found[1].error == "LookupError: lost"


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_debates_are_open_than_max_concurrency(limit: int) -> None:
    turns_left = {task.id: 4 for task in tasks(9)}
    most = 0

    async def script(call: Call) -> str:
        nonlocal most
        name = call.info["task_id"]
        asked.add(name)
        most = max(most, sum(turns_left[each] > 0 for each in asked))
        await asyncio.sleep(0.001)
        turns_left[name] -= 1
        return reply_for(call)

    asked: set[str] = set()
    with Engine(Scripted(script), max_concurrency=limit) as engine:
        engine.evaluate_batch(tasks(9), debates())
    assert most == limit


@pytest.mark.parametrize(
    ("capacity", "most"),
    [(Capacity(slots=4), 8), (Capacity(slots=4, cache_tokens=100, context_length=50), 2)],
    ids=["twice the slots", "what the cache holds"],
)
def test_without_a_limit_the_capacity_of_the_backend_decides(capacity: Capacity, most: int) -> None:
    now: set[str] = set()
    widths: list[int] = []

    async def script(call: Call) -> Completion:
        now.add(call.info["task_id"])
        widths.append(len(now))
        await asyncio.sleep(0.01)
        now.discard(call.info["task_id"])
        return Completion("1", usage=Usage(0, 0, 0, 1))

    backend = Scripted(script)
    backend.capacity = capacity
    with Engine(backend) as engine:
        engine.evaluate_batch(tasks(20), debates(rounds=1, retries=0))
    assert max(widths) == most


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_concurrency", 0),
        ("max_concurrency", "3"),
        ("max_concurrency", 2.5),
        ("seed", "3"),
        ("seed", None),
        ("today", "2026-01-31"),
        ("memory", "built-in"),
        ("budget", 5),
        ("task_seconds", 0),
        ("task_seconds", "3"),
    ],
)
def test_an_argument_of_the_wrong_type_or_out_of_bounds_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Engine(Scripted(reply_for), **{name: value})
    assert caught.value.field == name


def test_a_seed_may_come_from_numpy(tmp_path: Path) -> None:
    seed: Any = np.int64(3)
    with Engine(Scripted(reply_for), store=tmp_path / "s.sqlite", seed=seed) as engine:
        found = engine.evaluate(tasks(1)[0], debates())
    with Engine(Scripted(reply_for), seed=3) as engine:
        assert plain(engine.evaluate(tasks(1)[0], debates())) == plain(found)


@pytest.mark.parametrize("store", [5, object()])
def test_what_is_no_store_is_refused(store: Any) -> None:
    with Engine(Scripted(reply_for), store=store) as engine, pytest.raises(ConfigError, match="store: must be text or"):
        engine.evaluate(tasks(1)[0], debates())


def test_usage_and_seconds_reach_the_user() -> None:
    with Engine(Scripted(lambda call: Completion("1", usage=Usage(10, 5, 2, 1)))) as engine:
        evaluation = engine.evaluate(tasks(1)[0], gathers(2, calls=3))
    assert evaluation.usage == Usage(70, 35, 14, 7)
    assert [member.usage.calls for member in evaluation.members] == [3, 3]
    assert evaluation.seconds > 0


@pytest.mark.parametrize("settings", [{}, {"mode": "simultaneous"}, {"candidate_order": "balanced"}])
def test_turns_and_the_ends_of_rounds_are_told_as_they_come(settings: dict[str, Any]) -> None:
    told: dict[str, list[Turn | RoundEnd]] = {task.id: [] for task in tasks(3)}
    with Engine(Scripted(late(reply_for, 1)), on_turn=lambda task, news: told[task.id].append(news)) as engine:
        found = engine.evaluate_batch(tasks(3), debates(**settings))
    for evaluation in found:
        news = told[evaluation.task_id]
        debated = evaluation.members or (evaluation,)
        turns = [(each.round, each.agent) for member in debated for each in member.transcript]
        assert sorted((each.round, each.agent) for each in news if isinstance(each, Turn)) == sorted(turns)
        assert isinstance(news[0], Turn) and isinstance(news[-1], RoundEnd)
        ends = [each for each in news if isinstance(each, RoundEnd)]
        assert sorted(end.cv for end in ends) == sorted(cv for member in debated for cv in member.cv)
        assert [end.stop_reason for end in ends if end.stop_reason] == [member.stop_reason for member in debated]


def test_a_display_of_turns_that_raises_changes_nothing() -> None:
    with Engine(Scripted(reply_for)) as engine:
        expected = plain(engine.evaluate(tasks(1)[0], debates()))
    with Engine(Scripted(reply_for), on_turn=lambda task, news: 1 // 0) as engine:
        assert plain(engine.evaluate(tasks(1)[0], debates())) == expected


def test_every_completion_is_told_to_whoever_listens() -> None:
    heard: list[tuple[str, str]] = []

    def listen(call: Call, completion: Completion) -> None:
        heard.append((call.info["task_id"], completion.text))

    with Engine(Scripted(lambda call: "3"), on_completion=listen) as engine:
        engine.evaluate(tasks(1)[0], asks(2))
    assert heard == [("t0", "3")] * 2


# ---- a backend that dies


def dies_at(n: int) -> Recorder:
    """Answers n calls, then is dead for good."""
    count = itertools.count()

    async def script(call: Call) -> str:
        place = next(count)
        await asyncio.sleep(0.001)
        if place >= n:
            raise BackendUnavailableError("the engine has died")
        return reply_for(call)

    return Recorder(script)


def test_a_batch_keeps_what_was_finished_when_the_backend_died() -> None:
    script = dies_at(9)
    with Engine(Scripted(script), max_concurrency=2) as engine:
        found = engine.evaluate_batch(tasks(10), debates(rounds=1))
    assert [evaluation.task_id for evaluation in found] == [f"t{n}" for n in range(10)]
    finished = [evaluation for evaluation in found if evaluation.status == "ok"]
    lost = [evaluation for evaluation in found if evaluation.status == "failed"]
    assert len(finished) + len(lost) == 10
    assert 3 <= len(finished) <= 4
    assert {failure.reason for evaluation in lost for failure in evaluation.failures} == {"backend_dead"}
    assert all(evaluation.error == "the engine has died" for evaluation in lost)
    assert len(script.calls) <= 9 + 2


def test_iterating_yields_the_lost_ones_that_were_open_and_then_raises() -> None:
    found: list[Evaluation] = []
    with (
        Engine(Scripted(dies_at(9)), max_concurrency=2) as engine,
        pytest.raises(BackendUnavailableError, match="has died"),
    ):
        for evaluation in engine.iter_evaluate(tasks(100), debates(rounds=1)):
            found.append(evaluation)
    statuses = [evaluation.status for evaluation in found]
    assert 3 <= statuses.count("ok") <= 4
    assert 1 <= statuses.count("failed") <= 3


def test_evaluating_one_task_raises_when_the_backend_is_dead() -> None:
    with Engine(Scripted(dies_at(0))) as engine, pytest.raises(BackendUnavailableError):
        engine.evaluate(tasks(1)[0], asks(1))


# ---- iterating


def test_evaluations_come_as_they_finish_and_tasks_are_read_as_there_is_room() -> None:
    read: list[str] = []

    def source() -> Iterator[Task]:
        for task in tasks(30):
            read.append(task.id)
            yield task

    answered = 0
    others_are_done = asyncio.Event()

    async def script(call: Call) -> str:
        nonlocal answered
        if call.info["task_id"] == "t0":
            await asyncio.wait_for(others_are_done.wait(), 10)
        else:
            answered += 1
            if answered == 29:
                others_are_done.set()
        return "1"

    with Engine(Scripted(script), max_concurrency=2) as engine:
        iterator = engine.iter_evaluate(source(), asks(1))
        assert read == []
        first = next(iterator)
        assert first.task_id == "t1"
        assert [first.task_id, *(evaluation.task_id for evaluation in iterator)][-1] == "t0"
    assert len(read) == 30


def test_leaving_the_loop_early_cancels_what_is_under_way_and_the_engine_goes_on() -> None:
    asked: list[str] = []
    cancelled: list[str] = []

    async def script(call: Call) -> str:
        asked.append(call.info["task_id"])
        if call.info["task_id"] == "t0":
            return "1"
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(call.info["task_id"])
            raise
        return "1"

    with Engine(Scripted(script), max_concurrency=3) as engine:
        for evaluation in engine.iter_evaluate(tasks(9), asks(1)):
            assert evaluation.task_id == "t0"
            while len(asked) < 4:
                time.sleep(0.001)
            break
        assert sorted(cancelled) == ["t1", "t2", "t3"]
        assert engine.evaluate(tasks(1)[0], asks(1)).status == "ok"


# ---- several models


def test_each_persona_is_asked_on_its_own_model() -> None:
    strong = Persona("Strong", "You are thorough.", model="large")
    profile = Profile("mixed", (PROFILE.personas[0], strong), PROFILE.components)
    small, large = Recorder(), Recorder()
    with Engine({"small": Scripted(small), "large": Scripted(large)}) as engine:
        engine.evaluate(tasks(1)[0], debates(profile=profile))
    assert [(call.model, call.info["agent"]) for call in small.calls] == [("small", "Critic")] * 2
    assert [(call.model, call.info["agent"]) for call in large.calls] == [("large", "Strong")] * 2


@pytest.mark.parametrize("how", ["evaluate", "evaluate_batch", "iter_evaluate"])
def test_a_model_without_a_backend_is_refused_before_anything_is_loaded(how: str) -> None:
    backend = Startable()
    evaluator = FlowEvaluator(asks(1).body, models=frozenset({"absent"}))
    with Engine(backend) as engine, pytest.raises(ConfigError, match="'absent'"):
        given: Any = tasks(1)[0] if how == "evaluate" else tasks(2)
        result = getattr(engine, how)(given, evaluator)
        list(result)
    assert "start" not in backend.events


@dataclass(frozen=True)
class ReadsOut(FlowEvaluator):
    """Asks as any other, and says whose probabilities it reads."""

    read_models: frozenset[str | None] = frozenset()

    def describe(self) -> dict[str, Any]:
        return {"evaluator": self.name, "reads": sorted(map(str, self.read_models))}


class Blind(Startable):
    """A backend whose model cannot be read out."""

    reads_labels = False


def reads_out(*models: str | None) -> ReadsOut:
    return ReadsOut(asks(1).body, read_models=frozenset(models))


@dataclass(frozen=True, kw_only=True)
class ReadOutSteps(PromptedSteps):
    """A judge of steps whose model is read out."""

    @property
    def read_models(self) -> frozenset[str | None]:
        return frozenset({self.model})


@pytest.mark.parametrize(
    "evaluator",
    [
        reads_out(None),
        reads_out("seeing", "blind"),
        PanelEvaluator(members={"one": asks(1), "two": PanelEvaluator(members={"inner": reads_out("blind")})}),
        CrossEvaluator(judges={"a": asks(1), "b": reads_out(None)}),
        StepEvaluator(judge=ReadOutSteps()),
    ],
    ids=["the run's own", "another", "panel", "cross", "steps"],
)
@pytest.mark.parametrize("is_cached", [False, True], ids=["plain", "cached"])
def test_a_model_that_cannot_be_read_out_is_refused_before_anything_is_loaded(
    evaluator: Any, is_cached: bool, tmp_path: Path
) -> None:
    blind, seeing = Blind(), Startable()
    with Store(tmp_path / "s.sqlite") as store:
        engine = Engine({"blind": blind, "seeing": seeing}, cache=store.cache() if is_cached else None)
        with engine, pytest.raises(ConfigError, match="backend of scripted gives no prob") as caught:
            engine.evaluate_batch(tasks(2), evaluator)
    assert (caught.value.field, caught.value.hint) == ("readout", READOUT_HINT)
    assert "start" not in blind.events + seeing.events


@pytest.mark.parametrize("how", ["evaluate", "evaluate_batch", "iter_evaluate"])
def test_a_model_that_can_be_read_out_is_asked_whatever_the_others_can(how: str) -> None:
    given: Any = tasks(1)[0] if how == "evaluate" else tasks(2)
    with Engine({"seeing": Startable(), "blind": Blind()}) as engine:
        found = getattr(engine, how)(given, reads_out(None, "seeing"))
        evaluations = [found] if isinstance(found, Evaluation) else list(found)
    assert {evaluation.status for evaluation in evaluations} == {"ok"}


@pytest.mark.parametrize(
    ("how", "given", "evaluator", "error", "message"),
    [
        ("evaluate", tasks(1)[0], "genral", ConfigError, "evaluator: there is neither .* 'genral'.*mean 'general'"),
        ("evaluate_batch", tasks(2), "genral", ConfigError, "did you mean 'general'"),
        ("evaluate_batch", tasks(2), ["general", "vlaue"], ConfigError, "did you mean 'value'"),
        ("iter_evaluate", tasks(2), "genral", ConfigError, "did you mean 'general'"),
        ("evaluate", tasks(1)[0], 3, ConfigError, "int is no evaluator"),
        ("evaluate", "What is 2+2?", asks(1), TaskError, r"task: must be a Task, got str.*Task\(.*\["),
        ("evaluate", tasks(2), asks(1), TaskError, "task: must be a Task, got list.*`evaluate_batch`"),
        ("evaluate_batch", tasks(1)[0], asks(1), TaskError, r"tasks: must be a list, got one Task.*\[ \]"),
        ("iter_evaluate", tasks(1)[0], asks(1), TaskError, "tasks: must be a list, got one Task"),
        ("evaluate_batch", "What is 2+2?", asks(1), TaskError, r"tasks: must be a list of tasks, got str.*Task\("),
        ("evaluate_batch", {"t0": tasks(1)[0]}, asks(1), TaskError, "tasks: must be a list of tasks, got dict"),
        ("iter_evaluate", "What is 2+2?", asks(1), TaskError, "tasks: must be a list of tasks, got str"),
        ("iter_evaluate", None, asks(1), TaskError, "tasks: must be a list of tasks, got NoneType"),
        ("evaluate_batch", iter(tasks(2)), asks(1), TaskError, "got list_iterator.*`iter_evaluate` takes"),
        ("evaluate_batch", [*tasks(1), "b"], asks(1), TaskError, "tasks.1: must be a Task, got str"),
        ("iter_evaluate", [*tasks(1), "b"], asks(1), TaskError, "tasks.1: must be a Task, got str"),
    ],
)
@pytest.mark.parametrize("is_stored", [False, True], ids=["unrecorded", "recorded"])
def test_what_is_no_task_or_no_evaluator_is_refused_with_what_to_do(
    how: str, given: Any, evaluator: Any, error: type[Exception], message: str, is_stored: bool, tmp_path: Path
) -> None:
    store = tmp_path / "s.sqlite" if is_stored else None
    with Engine(Scripted(reply_for), store=store) as engine, pytest.raises(error, match=f"(?s){message}"):
        list(getattr(engine, how)(given, evaluator))


def test_a_batch_may_come_in_any_collection_that_has_an_order() -> None:
    with Engine(Scripted(reply_for)) as engine:
        found = engine.evaluate_batch({task.id: task for task in tasks(3)}.values(), asks(1))
    assert [each.task_id for each in found] == ["t0", "t1", "t2"]


@pytest.mark.parametrize("given", [["Qwen/Qwen3-8B"], {"a": 3}, Scripted, None, len])
def test_what_is_no_backend_is_refused_with_what_to_do(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"(?s)backend: must be a backend, got .*a model's name or folder"):
        Engine(given)


def test_an_argument_of_a_wrong_name_is_answered_with_the_one_that_was_meant() -> None:
    made: Any = Engine
    with pytest.raises(TypeError, match=r"(?s)seeed: Engine has no such argument.*did you mean `seed`\?"):
        made(Scripted(reply_for), seeed=1)


@pytest.mark.parametrize("named", [None, "general", PROFILE, "value"])
def test_a_name_stands_for_its_evaluator_wherever_one_is_given(named: Any) -> None:
    made = ValueEvaluator() if named == "value" else DebateEvaluator(named or "general")
    with Engine(Scripted(reply_for), today=TODAY) as engine:
        expected = [plain(each) for each in engine.evaluate_batch(tasks(2), made)]

        async def each_async() -> list[Any]:
            one = await engine.aevaluate(tasks(1)[0], named)
            return [
                one,
                await engine.aevaluate_batch(tasks(2), named),
                [e async for e in engine.astream(tasks(2), named)],
            ]

        one, batch, streamed = asyncio.run(each_async())
        found = [engine.evaluate_batch(tasks(2), named), engine.evaluate_batch(tasks(2), [named, named]), batch]
        assert [plain(engine.evaluate(tasks(1)[0], named)), plain(one)] == expected[:1] * 2
        assert [[plain(each) for each in several] for several in found] == [expected] * 3
        for several in ([*engine.iter_evaluate(tasks(2), named)], streamed):
            assert sorted([plain(each) for each in several], key=lambda each: each["task_id"]) == expected


def test_a_named_evaluator_is_recorded_in_one_run_however_often_it_is_named(tmp_path: Path) -> None:
    script = Recorder()
    with Engine(Scripted(script), store=tmp_path / "s.sqlite") as engine:
        engine.evaluate(tasks(1)[0], "general", run="mine")
        asked = len(script.calls)
        engine.evaluate(tasks(1)[0], DebateEvaluator("general"), run="mine")
        engine.evaluate(tasks(1)[0], run="mine")
    assert len(script.calls) == asked > 0


def test_an_engine_needs_a_backend() -> None:
    with pytest.raises(ConfigError, match="at least one backend"):
        Engine({})


def test_the_date_of_the_prompts_can_be_set() -> None:
    def flow(task: Task, run: RunContext) -> Flow[Evaluation]:
        yield from generate(ask(task, run.today))
        return scored(task, 1)

    script = Recorder()
    with Engine(Scripted(script), today=datetime.date(2026, 1, 31)) as engine:
        engine.evaluate(tasks(1)[0], FlowEvaluator(flow))
    assert script.calls[0].info["text"] == "2026-01-31"


def test_the_same_seed_and_date_give_the_same_evaluations_and_another_date_gives_others() -> None:
    def evaluated(day: int) -> dict[str, Any]:
        with Engine(Scripted(reply_for), seed=3, today=datetime.date(2026, 1, day)) as engine:
            return plain(engine.evaluate(tasks(1)[0], debates()))

    assert evaluated(30) == evaluated(30) != evaluated(31)


# ---- plain generation


def test_prompts_are_answered_in_their_order_each_under_a_seed_of_its_own() -> None:
    script = Recorder(lambda call: f"{call.messages[-1]['content']} {call.seed}")
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    with Engine(Scripted(late(script, 1)), seed=3) as engine:
        answers = engine.generate(["Why?", chat, "Why?"], sampling=Sampling(max_tokens=9))
        assert engine.generate(["Why?", chat, "Why?"], sampling=Sampling(max_tokens=9)) == answers
    assert [answer.text.split()[0] for answer in answers] == ["Why?"] * 3
    assert len({answer.text for answer in answers}) == 3
    asked = {str(call.messages): call for call in script.calls}
    assert asked[str(chat)].sampling == Sampling(max_tokens=9)
    assert all(answer.usage.calls == 1 and answer.failure is None for answer in answers)


def test_a_schema_and_a_model_reach_the_backend() -> None:
    script = Recorder(lambda call: call.model)
    with Engine({"a": Scripted(script, model="a"), "b": Scripted(script, model="b")}) as engine:
        (answer,) = engine.generate(["x"], {"type": "object"}, model="b")
        with pytest.raises(ConfigError, match="no backend for the model 'c'"):
            engine.generate(["x"], model="c")
    assert answer.text == "b"
    assert [call.schema for call in script.calls] == [{"type": "object"}]


def test_a_call_that_failed_costs_no_other_prompt_its_answer() -> None:
    def script(call: Call) -> str:
        if "bad" in call.messages[-1]["content"]:
            raise CallError("refused", "no")
        return "fine"

    async def ask_all() -> list[Completion]:
        with Engine(Scripted(script)) as engine:
            return await engine.agenerate(["good", "bad"])

    good, bad = asyncio.run(ask_all())
    assert (good.text, good.failure) == ("fine", None)
    assert (bad.text, bad.failure) == ("", Failure("refused", "no", call=bad.failure and bad.failure.call))


@pytest.mark.parametrize(
    "prompts",
    [
        "one string",
        [[]],
        [[{"role": "assistant", "content": "x"}]],
        [[{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]],
        [[{"role": "user"}]],
    ],
)
def test_what_is_no_prompt_is_refused(prompts: Any) -> None:
    with Engine(Scripted(reply_for)) as engine, pytest.raises(ConfigError, match="must be"):
        engine.generate(prompts)
