"""The facade: shared futures, a bounded memo, cancelling, and what stands for a missing score."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import Budget, CallbackEvaluator, Engine, Judge, Scale, Task
from debate.adapters.judge import Judged, cut, waited
from debate.backends import Call, Scripted
from debate.errors import (
    BackendUnavailableError,
    BudgetExceededError,
    ConfigError,
    EngineError,
    TaskError,
    UnscoredError,
)
from debate.scorers import scored_on
from debate.testing import reply_for
from tests.small_flows import FlowEvaluator, Stalling, asks, debates, scored, tasks


class Counting:
    """A script that counts its calls."""

    def __init__(self, script: Callable[[Call], Any] = reply_for) -> None:
        self.calls = 0
        self._script = script

    def answer(self, call: Call) -> Any:
        self.calls += 1
        return self._script(call)


def one(call: Call) -> str:
    return "1"


def told(call: Call, scores: dict[str, float | None], comment: str = "fine") -> str:
    """A reply that gives every candidate the same scores."""
    each = {"comment": comment, "scores": scores}
    return json.dumps({"overall": "all the same", "candidates": dict.fromkeys(call.info["labels"], each)})


def unreadable(call: Call) -> str:
    return "I would rather not say."


# ---- scores


def test_scores_and_components_are_on_the_scale_of_the_judge() -> None:
    def script(call: Call) -> str:
        return told(call, {"clarity": 8, "truth": 2})

    with Engine(Scripted(script)) as engine:
        judged = Judge(engine, debates()).many([Task("2 + 2?", ["4", "5"])])[0]
        wide = Judge(engine, debates(), scale=(-1, 1)).submit(Task("2 + 2?", ["4", "5"])).result()
    assert judged.scores() == pytest.approx([0.6, 0.6])
    assert judged.components(1) == judged.objectives(1) == pytest.approx({"clarity": 0.8, "truth": 0.2})
    assert wide.scores() == pytest.approx([0.2, 0.2])
    assert wide.components() == pytest.approx({"clarity": 0.6, "truth": -0.6})


def test_more_is_better_also_where_the_lowest_score_is_the_best() -> None:
    @scored_on(Scale(0, 4, higher_is_better=False))
    def mistakes(x: str, answer: str) -> float:
        return float(len(answer))

    with Engine(Scripted(one)) as engine:
        judge = Judge(engine, CallbackEvaluator(mistakes))
        assert [judge.score(Task("x", ["a", "abcd"]), j) for j in (0, 1)] == [0.75, 0.0]


def test_feedback_is_what_was_said_of_the_candidate() -> None:
    with Engine(Scripted(reply_for)) as engine:
        judge, task = Judge(engine, debates()), Task("2 + 2?", ["4", "5"])
        evaluation = judge.submit(task).result().evaluation
        assert judge.feedback(task, 1) == evaluation.feedback(1)
        assert evaluation.feedback(1).startswith(judge.feedback(task, 1, 80).removesuffix("..."))
        assert len(judge.feedback(task, 1, 80)) <= 80


@given(st.text(alphabet="ab\n", max_size=60), st.integers(1, 70))
def test_a_text_that_is_cut_keeps_whole_lines_of_its_beginning(text: str, most: int) -> None:
    found = cut(text, most)
    assert len(found) <= most
    if len(text) <= most:
        assert found == text
    elif most > 3:
        assert found.endswith("...")
        kept = found.removesuffix("...")
        assert text.startswith(kept)
        assert kept.endswith("\n") or "\n" not in text[: most - 3]


@pytest.mark.parametrize("most", [0, -1, 2.5, "80"])
def test_a_text_of_no_characters_is_refused(most: Any) -> None:
    with pytest.raises(ConfigError, match="max_characters: must be a whole number, at least 1"):
        cut("text", most)


# ---- unscored


def test_a_missing_score_raises_with_its_reason_and_never_comes_back_as_nan() -> None:
    with Engine(Scripted(unreadable)) as engine:
        judged = Judge(engine, debates(retries=0)).submit(Task("2 + 2?", ["4"], id="sum")).result()
    with pytest.raises(UnscoredError, match="candidate 0 of the task 'sum' has no score: ") as caught:
        judged.score()
    assert 'on_unscored="fallback"' in str(caught.value.hint)
    assert not judged.is_scored()
    assert judged.feedback().startswith("Candidate 1 was not scored: ")


def test_a_missing_score_is_the_fallback_with_the_reason_in_the_feedback() -> None:
    with Engine(Scripted(unreadable)) as engine:
        judge = Judge(engine, debates(retries=0), on_unscored="fallback", fallback=-0.5)
        judged = judge.submit(Task("2 + 2?", ["4"])).result()
    assert judged.scores() == [-0.5]
    first, second, *_ = judged.feedback().split("\n")
    assert first == f"Candidate 1 was not scored: {judged.why_unscored()}."
    assert second == "Its score of -0.5 only stands for the missing one."


def test_one_candidate_without_a_score_leaves_the_other_its_own() -> None:
    def flow(task: Task, run: Any) -> Any:
        yield from ()
        return replace(scored(task, 50.0), scores=np.array([50.0, np.nan]), probabilities=np.array([1.0, 0.0]))

    with Engine(Scripted(one)) as engine:
        judged = Judge(engine, FlowEvaluator(flow)).submit(Task("x", ["a", "b"])).result()
        assert judged.score(0) == 0.75
        assert judged.why_unscored(0) is None
        with pytest.raises(UnscoredError):
            judged.score(1)
        lenient = Judge(engine, FlowEvaluator(flow), "fallback")
        assert lenient.submit(Task("x", ["a", "b"])).result().scores() == [0.75, 0]


def test_a_component_that_every_agent_leaves_out_is_nan_and_the_other_is_not() -> None:
    def script(call: Call) -> str:
        return told(call, {"clarity": 6, "truth": None}, "nobody can know")

    with Engine(Scripted(script)) as engine:
        judge = Judge(engine, debates(abstain=True), "fallback", 0.25)
        judged = judge.submit(Task("2 + 2?", ["4"])).result()
    found = judged.components()
    assert found["clarity"] == pytest.approx(0.6)
    assert math.isnan(found["truth"])
    assert judged.objectives() == pytest.approx({"clarity": 0.6, "truth": 0.25})
    assert judged.score() == 0.25


@pytest.mark.parametrize("candidate", [-1, 1])
def test_a_candidate_that_is_not_there_is_an_index_error(candidate: int) -> None:
    with Engine(Scripted(reply_for)) as engine:
        judged = Judge(engine, debates()).submit(Task("x", ["a"])).result()
    for ask in (judged.score, judged.feedback, judged.components, judged.is_scored):
        with pytest.raises(IndexError, match=f"no candidate {candidate}"):
            ask(candidate)


# ---- shared futures and the memo


def test_equal_tasks_share_one_future_and_are_paid_once() -> None:
    script = Counting(one)
    with Engine(Scripted(script.answer)) as engine:
        judge = Judge(engine, asks(1))
        first = judge.submit(Task("x", ["a"], context=["c"]))
        assert judge.submit(Task("x", ["a"], context=["c"])) is first
        first.result()
        assert judge.submit(Task("x", ["a"], context=["c"])) is first
        assert judge.many([Task("x", ["a"], context=["c"])] * 3) == [first.result()] * 3
    assert script.calls == 1


@pytest.mark.parametrize(
    "other",
    [
        Task("y", ["a"]), Task("x", ["b"]), Task("x", ["a", "a"]), Task("x", ["a"], context=["c"]),
        Task("x", ["a"], reference="a"), Task("x", ["a"], id="named"), Task("x", ["a"], metadata={"group": 1}),
    ],
)  # fmt: skip
def test_tasks_that_differ_are_judged_each(other: Task) -> None:
    script = Counting(one)
    with Engine(Scripted(script.answer)) as engine:
        Judge(engine, asks(1)).many([Task("x", ["a"]), other])
    assert script.calls == 2


def test_the_memo_keeps_what_was_asked_for_last() -> None:
    script = Counting(one)
    first, second, third = tasks(3)
    with Engine(Scripted(script.answer)) as engine:
        judge = Judge(engine, asks(1), memo=2)
        for task in (first, second, first, third, first):
            judge.submit(task).result()
        assert script.calls == 3
        judge.submit(second).result()
        assert script.calls == 4


def test_without_a_memo_only_those_who_ask_meanwhile_share() -> None:
    all_asked = threading.Event()

    async def late(call: Call) -> str:
        await asyncio.to_thread(all_asked.wait, 30)
        return "1"

    script = Counting(late)
    with Engine(Scripted(script.answer)) as engine:
        judge = Judge(engine, asks(1), memo=0)
        futures = [judge.submit(task) for task in tasks(1) * 4]
        all_asked.set()
        assert [future.result().score() for future in futures] == [0.505] * 4
        judge.many(tasks(1))
    assert script.calls == 2


def test_a_run_of_the_store_is_not_asked_again(tmp_path: Path) -> None:
    script, store = Counting(), f"sqlite:///{tmp_path}/runs.sqlite"
    found: list[list[Judged]] = []
    for _ in range(2):
        with Engine(Scripted(script.answer), store=store) as engine:
            found.append(Judge(engine, debates(), run="judged").many(tasks(3)))
    assert script.calls == 3 * 4
    assert [each.scores() for each in found[0]] == [each.scores() for each in found[1]]


# ---- many threads


def test_what_64_threads_submit_is_in_flight_together_and_paid_once() -> None:
    """Nothing is answered before all of it has been asked."""
    n, asked = 640, 0
    together = asyncio.Event()

    async def answer(call: Call) -> str:
        nonlocal asked
        asked += 1
        if asked == n:
            together.set()
        await asyncio.wait_for(together.wait(), 120)
        return "1"

    found: dict[int, list[float]] = {}

    def work(judge: Judge, thread: int) -> None:
        mine = [*tasks(n)[thread % 32 :: 32]]  # each task is submitted by two threads
        found[thread] = [future.result().score() for future in [judge.submit(task) for task in mine]]

    with Engine(Scripted(answer), max_concurrency=n) as engine:
        judge = Judge(engine, asks(1))
        threads = [threading.Thread(target=work, args=(judge, k)) for k in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert asked == n
    assert found == {k: [0.505] * 20 for k in range(64)}


# ---- cancelling


def test_a_cancelled_future_cancels_its_calls_and_is_forgotten() -> None:
    stalling = Stalling()
    with Engine(Scripted(stalling.answer)) as engine:
        judge = Judge(engine, asks(1))
        future = judge.submit(tasks(1)[0])
        assert stalling.asked.wait(30)
        assert future.cancel()
        assert stalling.cancelled.wait(30)
        with pytest.raises(CancelledError):
            future.result()
        again = judge.submit(tasks(1)[0])
        assert again is not future
        assert again.cancel()


def test_what_one_of_two_cancels_goes_on_for_the_other() -> None:
    stalling = Stalling()
    with Engine(Scripted(stalling.answer)) as engine:
        judge = Judge(engine, asks(1))
        first, second = judge.submit(tasks(1)[0]), judge.submit(tasks(1)[0])
        assert stalling.asked.wait(30)
        assert not first.cancel()
        assert not stalling.cancelled.is_set()
        assert second.cancel()
        assert stalling.cancelled.wait(30)


def test_what_is_done_cannot_be_cancelled() -> None:
    with Engine(Scripted(one)) as engine:
        judge = Judge(engine, asks(1))
        future = judge.submit(tasks(1)[0])
        future.result()
        assert not future.cancel()
        assert judge.submit(tasks(1)[0]) is future


def test_cancelling_what_awaits_it_in_asyncio_cancels_its_calls() -> None:
    stalling = Stalling()

    async def impatient() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(judge.submit(tasks(1)[0])), 0.2)

    with Engine(Scripted(stalling.answer)) as engine:
        judge = Judge(engine, asks(1))
        asyncio.run(impatient())
        assert stalling.cancelled.wait(30)


def test_what_is_canceled_in_the_moment_of_its_end_is_asked_anew() -> None:
    class Judging(Judge):
        def _keep(self, task: Task, shared: Any) -> None:
            ends.append(shared)
            threading.Thread(target=lambda: canceled.put(shared.cancel())).start()
            super()._keep(task, shared)

    ends: list[Any] = []
    canceled: SimpleQueue[bool] = SimpleQueue()
    with Engine(Scripted(one)) as engine:
        judge = Judging(engine, asks(1))
        assert judge.submit(tasks(1)[0]).result(30).score() == 0.505
        assert canceled.get(timeout=30) is False
        assert judge.score(tasks(1)[0]) == 0.505
    assert len(ends) == 1


def test_closing_a_judge_cancels_what_is_under_way_and_the_engine_goes_on() -> None:
    stalling = Stalling()
    with Engine({"slow": Scripted(stalling.answer), "quick": Scripted(one)}) as engine:
        with Judge(engine, asks(1)) as judge:
            futures = [judge.submit(tasks(1)[0]) for _ in range(2)]
            assert stalling.asked.wait(30)
        assert stalling.cancelled.wait(30)
        assert futures[0].cancelled()
        engine.start()


# ---- what an engine raises


def test_an_engine_that_is_closed_meanwhile_is_an_error_for_all_who_wait() -> None:
    stalling = Stalling()
    with Engine(Scripted(stalling.answer)) as engine:
        judge = Judge(engine, asks(1))
        futures = [judge.submit(task) for task in tasks(2)]
        assert stalling.asked.wait(30)
    wait(futures, 30)
    for future in futures:
        with pytest.raises(EngineError, match="closed"):
            future.result(0)


def test_what_an_engine_raises_is_raised_and_not_kept() -> None:
    faults = [BackendUnavailableError("the server is gone")]

    def script(call: Call) -> str:
        if faults:
            raise faults.pop()
        return "1"

    with Engine(Scripted(script)) as engine:
        judge = Judge(engine, asks(1))
        with pytest.raises(BackendUnavailableError, match="gone"):
            judge.score(tasks(1)[0])
        assert judge.score(tasks(1)[0]) == 0.505


def test_an_exception_of_one_of_many_cancels_the_others() -> None:
    stalling = Stalling()

    async def script(call: Call) -> str:
        return await stalling.answer(call) if call.info["task_id"] == "t0" else "1"

    with Engine(Scripted(script), budget=Budget(tokens=1)) as engine:
        judge = Judge(engine, asks(1))
        with pytest.raises(BudgetExceededError):
            judge.many([tasks(1)[0], *(Task(f"x {n}", ["a"]) for n in range(20))])
        assert stalling.cancelled.wait(30)


def test_one_that_has_failed_already_ends_the_wait_for_the_others() -> None:
    failed, endless = Future[str](), Future[str]()
    failed.set_exception(BudgetExceededError("nothing is left"))
    with pytest.raises(BudgetExceededError):
        waited([endless, failed])


def test_waiting_in_the_thread_of_the_engine_is_an_error_and_not_the_end_of_it() -> None:
    found: SimpleQueue[Any] = SimpleQueue()

    def wait_for_another(_: Future[Judged]) -> None:
        try:
            found.put(judge.score(Task("x", ["b"])))
        except EngineError as error:
            found.put(error)

    with Engine(Scripted(one)) as engine:
        judge = Judge(engine, asks(1))
        judge.submit(tasks(1)[0]).add_done_callback(wait_for_another)
        assert "its own thread" in str(found.get(timeout=30))
        assert judge.score(Task("x", ["c"])) == 0.505


def test_tasks_that_raise_while_they_are_read_cancel_those_before() -> None:
    stalling = Stalling()

    def read() -> Any:
        yield tasks(1)[0]
        assert stalling.asked.wait(30)
        raise OSError("the file is gone")

    with Engine(Scripted(stalling.answer)) as engine:
        with pytest.raises(OSError, match="the file is gone"):
            Judge(engine, asks(1)).many(read())
        assert stalling.cancelled.wait(30)


# ---- settings


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"on_unscored": "zero"}, "on_unscored"),
        ({"on_unscored": "fallback", "fallback": math.nan}, "fallback: must be a number"),
        ({"scale": (1, 0)}, "scale: a scale needs low < high"),
        ({"scale": (0, math.inf)}, "scale: must end at a finite number"),
        ({"scale": 1}, "scale: must be two numbers"),
        ({"memo": -1}, "memo"),
        ({"evaluator": "nobody"}, "nobody"),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_anything_is_loaded(settings: Any, problem: str) -> None:
    with Engine(Scripted(one)) as engine, pytest.raises(ConfigError, match=problem):
        Judge(engine, **settings)


def test_what_is_no_task_is_refused() -> None:
    task: Any = "What is 2 + 2?"
    with Engine(Scripted(one)) as engine, pytest.raises(TaskError, match="task: must be a Task, got str"):
        Judge(engine, asks(1)).submit(task)


def test_a_future_of_the_judge_is_one_of_the_standard_library() -> None:
    with Engine(Scripted(one)) as engine:
        assert isinstance(Judge(engine, asks(1)).submit(tasks(1)[0]), Future)
