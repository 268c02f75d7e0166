"""What one call of the engine may be given of its own: a budget, and a line that says how it goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from debate import Budget, Engine
from debate.backends import Call, Scripted
from debate.errors import BackendError, BudgetExceededError, ConfigError, EngineError, TaskError
from debate.flow import Completion
from debate.testing import reply_for
from debate.types import Usage
from tests.small_flows import Stalling, Startable, asks, debates, late, plain, tasks


def of_ten_tokens(call: Call) -> Completion:
    return Completion("1", usage=Usage(9, 0, 1, 1))


def reasons(evaluations: list[Any]) -> list[list[str]]:
    return [[failure.reason for failure in each.failures] for each in evaluations]


# ---- a budget of the call


def test_what_a_calls_budget_leaves_undone_comes_back_as_failed() -> None:
    budget = Budget(tokens=40)
    with Engine(Scripted(of_ten_tokens), max_concurrency=1) as engine:
        found = engine.evaluate_batch(tasks(4), asks(2), budget=budget)
        assert reasons(found) == [[], [], ["budget"], ["budget"]]
        assert [each.status for each in found] == ["ok", "ok", "failed", "failed"]
        assert [each.task_id for each in found] == ["t0", "t1", "t2", "t3"]
        assert found[2].error == "the budget of 40 tokens is used up (40)"
        assert budget.spent == 40
        assert reasons(engine.evaluate_batch(tasks(4), asks(2))) == [[]] * 4
        assert reasons(asyncio.run(engine.aevaluate_batch(tasks(2), asks(2), budget=Budget(tokens=1)))) == [
            ["budget"], ["budget"],
        ]  # fmt: skip


def test_an_evaluation_that_is_under_way_when_the_budget_ends_fails_as_a_whole() -> None:
    with Engine(Scripted(of_ten_tokens), max_concurrency=1) as engine:
        found = engine.evaluate_batch(tasks(2), asks(3), budget=Budget(tokens=50))
    assert reasons(found) == [[], ["budget"]]


def test_one_budget_of_several_calls_is_for_all_of_them() -> None:
    budget = Budget(tokens=30)
    with Engine(Scripted(of_ten_tokens), max_concurrency=1) as engine:
        assert reasons(engine.evaluate_batch(tasks(2), asks(1), budget=budget)) == [[], []]
        assert reasons(engine.evaluate_batch(tasks(2), asks(1), budget=budget)) == [[], ["budget"]]


def test_calls_side_by_side_have_budgets_of_their_own() -> None:
    async def both() -> list[list[Any]]:
        rich = engine.aevaluate_batch(tasks(3), asks(2), budget=Budget(tokens=1000))
        poor = engine.aevaluate_batch(tasks(3), asks(2), budget=Budget(tokens=10))
        return list(await asyncio.gather(rich, poor))

    with Engine(Scripted(of_ten_tokens)) as engine:
        rich, poor = asyncio.run(both())
    assert reasons(rich) == [[]] * 3
    assert reasons(poor) == [["budget"]] * 3


def test_the_engines_own_budget_counts_beside_it_and_is_raised() -> None:
    own = Budget(tokens=40)
    with Engine(Scripted(of_ten_tokens), max_concurrency=1, budget=own) as engine:
        assert reasons(engine.evaluate_batch(tasks(3), asks(1), budget=Budget(tokens=20))) == [[], [], ["budget"]]
        assert own.spent == 20
        with pytest.raises(BudgetExceededError, match="the budget of 40 tokens is used up"):
            engine.evaluate_batch(tasks(3), asks(1), budget=Budget(tokens=1000))


def test_a_budget_of_seconds_ends_a_call_too() -> None:
    clock = iter(range(100))
    budget = Budget(seconds=2.5, clock=lambda: next(clock))
    with Engine(Scripted(of_ten_tokens), max_concurrency=1) as engine:
        found = engine.evaluate_batch(tasks(4), asks(1), budget=budget)
    assert reasons(found) == [[], [], ["budget"], ["budget"]]
    assert found[2].error == "the budget's 2.5 seconds are over"


def test_what_the_budget_left_undone_is_not_recorded_and_is_evaluated_when_there_is_more(tmp_path: Path) -> None:
    with Engine(Scripted(of_ten_tokens), store=f"sqlite:///{tmp_path}/runs.sqlite", max_concurrency=1) as engine:
        first = engine.evaluate_batch(tasks(3), asks(1), run="r", budget=Budget(tokens=10))
        budget = Budget(tokens=20)
        second = engine.evaluate_batch(tasks(3), asks(1), run="r", budget=budget)
    assert reasons(first) == [[], ["budget"], ["budget"]]
    assert reasons(second) == [[], [], []]
    assert budget.spent == 20


def test_what_is_no_budget_is_refused() -> None:
    budget: Any = 20_000
    with Engine(Scripted(of_ten_tokens)) as engine, pytest.raises(ConfigError, match="budget"):
        engine.evaluate_batch(tasks(1), asks(1), budget=budget)


# ---- futures


def test_a_submitted_task_comes_to_what_evaluating_it_does() -> None:
    with Engine(Scripted(reply_for)) as engine:
        futures = [engine.submit(task, debates()) for task in tasks(3)]
        assert [plain(future.result()) for future in futures] == [
            plain(each) for each in engine.evaluate_batch(tasks(3), debates())
        ]


def test_cancelling_the_future_cancels_its_calls() -> None:
    stalling = Stalling()
    with Engine(Scripted(stalling.answer)) as engine:
        future = engine.submit(tasks(1)[0], asks(1))
        assert stalling.asked.wait(30)
        assert future.cancel()
        assert stalling.cancelled.wait(30)


def test_the_future_has_what_evaluating_would_raise() -> None:
    stalling = Stalling()
    task: Any = "no task"
    with Engine(Scripted(stalling.answer)) as engine:
        refused, left = engine.submit(task, asks(1)), engine.submit(tasks(1)[0], asks(1))
        assert stalling.asked.wait(30)
    with pytest.raises(TaskError, match="must be a Task"):
        refused.result(30)
    with pytest.raises(EngineError, match="closed while this was under way"):
        left.result(30)


# ---- the live line


@pytest.mark.parametrize("how", ["one", "batch", "stream", "awaited", "awaited stream"])
def test_a_line_says_how_a_call_goes_on_and_changes_nothing(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def streamed() -> list[Any]:
        return [each async for each in engine.astream(tasks(n), debates(), progress=True)]

    n = 1 if how == "one" else 3
    with Engine(Startable(late(reply_for, 1))) as engine:
        match how:
            case "one":
                found = [engine.evaluate(tasks(1)[0], debates(), progress=True)]
            case "batch":
                found = engine.evaluate_batch(tasks(n), debates(), progress=True)
            case "stream":
                found = list(engine.iter_evaluate(tasks(n), debates(), progress=True))
            case "awaited":
                found = asyncio.run(engine.aevaluate_batch(tasks(n), debates(), progress=True))
            case _:
                found = asyncio.run(streamed())
        out, err = capsys.readouterr()
        expected = engine.evaluate_batch(tasks(n), debates())
        assert capsys.readouterr() == ("", "")
    assert sorted(plain(each)["task_id"] for each in found) == sorted(plain(each)["task_id"] for each in expected)
    assert {each.task_id: plain(each) for each in found} == {each.task_id: plain(each) for each in expected}
    assert out == ""
    assert err.splitlines()[-1].startswith(f"{n} of {n} task")
    assert f", {4 * n} calls, " in err


def test_the_line_says_what_is_loaded_and_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    class Slow(Startable):
        async def start(self) -> None:
            await asyncio.sleep(0.3)
            await super().start()

    def script(call: Call) -> str:
        return "nonsense" if call.info["task_id"] == "t1" else reply_for(call)

    with Engine(Slow(script, model="judge-7b")) as engine:
        engine.evaluate_batch(tasks(2), debates(), progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("loading judge-7b, ") for line in lines[:2]), lines
    assert ", 1 failed, " in lines[-1]


def test_the_line_stands_when_loading_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with Engine(Startable(faults=1)) as engine:
        with pytest.raises(BackendError, match="out of memory"):
            engine.evaluate_batch(tasks(2), asks(1), progress=True)
        assert capsys.readouterr().err.splitlines()[-1].startswith("loading scripted")
