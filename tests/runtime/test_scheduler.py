"""Many evaluations at once: names, order of starting, laziness, and every way in which a stream can end early."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from debate import Evaluation, Task
from debate.backends import Call, Scripted
from debate.backends.scripted import Script
from debate.errors import BackendUnavailableError, TaskError
from debate.evaluators.base import Evaluator, Footprint, RunContext
from debate.runtime.limits import Admission
from debate.runtime.runner import Runner
from debate.runtime.scheduler import EvaluationRequest, stream, with_unique_ids
from debate.testing import Recorder, reply_for
from tests.small_flows import FlowEvaluator, asks, debates, tasks

UNTAKEN = 256
"""The bound that the stream puts on finished evaluations which nobody has taken."""


def parts(script: Script, limit: int = 3) -> tuple[Runner, Admission]:
    return Runner({"scripted": Scripted(script)}, RunContext()), Admission(limit=limit, cache_tokens=None)


def jobs(given: Iterable[Task], evaluator: Evaluator | None = None) -> Iterator[EvaluationRequest]:
    chosen = evaluator or asks(1)
    return (EvaluationRequest(position, task, chosen) for position, task in enumerate(given))


Items = AsyncGenerator[tuple[int, Evaluation]]


def opened(script: Script, given: Iterable[EvaluationRequest], limit: int = 3) -> Items:
    return stream(*parts(script, limit), given)


def drained(items: Items, seconds: float = 10) -> list[tuple[int, Evaluation]]:
    """All of a stream, which must end within some seconds."""

    async def drain() -> list[tuple[int, Evaluation]]:
        return [item async for item in items]

    return asyncio.run(asyncio.wait_for(drain(), seconds))


# ---- names


def names(*given: tuple[str, str | None]) -> list[str]:
    return [task.id for task in with_unique_ids(Task(x, ["a"], id=name) for x, name in given)]


def test_tasks_keep_their_names() -> None:
    assert names(("x", "one"), ("x", "two")) == ["one", "two"]


def test_equal_rows_without_ids_are_numbered_from_the_second() -> None:
    content = Task("x", ["a"]).id
    assert names(("x", None), ("x", None), ("y", None), ("x", None)) == [
        content,
        f"{content}-2",
        Task("y", ["a"]).id,
        f"{content}-3",
    ]


def test_a_row_that_is_numbered_keeps_all_else() -> None:
    first, second = with_unique_ids(Task("x", ["a", "b"], None, ["c"], {"k": 1}, "r", best=1) for _ in range(2))
    assert (second.context, second.metadata, second.reference, second.best) == (("c",), first.metadata, "r", (1,))


def test_a_number_that_somebody_else_was_given_is_skipped() -> None:
    content = Task("x", ["a"]).id
    given = [("x", None), ("y", f"{content}-2"), ("x", None), ("x", None)]
    assert names(*given) == [content, f"{content}-2", f"{content}-3", f"{content}-4"]


def test_an_id_given_twice_is_refused() -> None:
    with pytest.raises(TaskError, match="duplicate id 'one'"):
        names(("x", "one"), ("y", "one"))


# ---- order and room


def test_every_job_comes_back_once_under_its_position() -> None:
    found = drained(opened(reply_for, jobs(tasks(20))))
    assert sorted((position, evaluation.task_id) for position, evaluation in found) == sorted(
        (n, f"t{n}") for n in range(20)
    )


def test_a_slow_debate_holds_nobody_up() -> None:
    answered = 0
    others_are_done = asyncio.Event()

    async def script(call: Call) -> str:
        nonlocal answered
        if call.info["task_id"] == "t0":
            await others_are_done.wait()
        else:
            answered += 1
            if answered == 11 * 3:
                others_are_done.set()
        return "1"

    found = drained(opened(script, jobs(tasks(12), asks(3)), limit=2))
    assert found[-1][1].task_id == "t0"


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_are_open_than_there_is_room_for_and_the_open_ones_go_first(limit: int) -> None:
    left: dict[str, int] = {}
    most = 0

    async def script(call: Call) -> str:
        nonlocal most
        left.setdefault(call.info["task_id"], 4)
        most = max(most, sum(n > 0 for n in left.values()))
        await asyncio.sleep(0.001)
        left[call.info["task_id"]] -= 1
        return "1"

    drained(opened(script, list(jobs(tasks(12), asks(4))), limit))
    assert most == limit
    assert list(left) == [f"t{n}" for n in range(12)]


def test_room_in_tokens_is_shared_by_size() -> None:
    now: set[str] = set()
    together: set[tuple[str, ...]] = set()

    async def script(call: Call) -> str:
        now.add(call.info["task_id"])
        together.add(tuple(sorted(now)))
        await asyncio.sleep(0.005)
        now.discard(call.info["task_id"])
        return "1"

    sizes = {"t0": 60, "t1": 30, "t2": 60, "t3": 500, "t4": 10}
    sized = FlowEvaluator(asks(1).body, size=lambda task: Footprint(0, 1, sizes[task.id]))
    runner = Runner({"scripted": Scripted(script)}, RunContext())
    drained(stream(runner, Admission(limit=None, cache_tokens=100), jobs(tasks(5), sized)))
    assert ("t0", "t1") in together
    assert all(sum(sizes[name] for name in names) <= 100 or names == ("t3",) for names in together)


def started(given: Iterable[EvaluationRequest]) -> list[str]:
    """The tasks in the order in which they begin, one after the other."""
    order: list[str] = []

    def script(call: Call) -> str:
        order.append(call.info["task_id"])
        return "1"

    drained(opened(script, given, 1))
    return order


def test_the_longest_of_a_list_begin_first_and_equal_ones_in_their_order() -> None:
    replies = {"t0": 1, "t1": 9, "t2": 1, "t3": 3}
    sized = FlowEvaluator(asks(1).body, size=lambda task: Footprint(0, replies[task.id], 10))
    assert started(list(jobs(tasks(4), sized))) == ["t1", "t3", "t0", "t2"]
    assert started(jobs(tasks(4), sized)) == ["t0", "t1", "t2", "t3"]


def test_a_call_says_how_many_replies_its_evaluation_may_still_wait_for() -> None:
    recorder = Recorder()
    drained(opened(recorder, jobs(tasks(1), debates(rounds=3))))
    assert [call.replies_ahead for call in recorder.calls] == [6, 5, 4, 3, 2, 1]


def test_a_list_is_evaluated_although_one_task_has_no_footprint() -> None:
    def size(task: Task) -> Footprint:
        if task.id == "t1":
            raise ValueError("no size")
        return Footprint(0, 1, 10)

    found = drained(opened(lambda _: "1", list(jobs(tasks(3), FlowEvaluator(asks(1).body, size=size))), 1))
    assert {position: evaluation.status for position, evaluation in found} == {0: "ok", 1: "failed", 2: "ok"}


# ---- laziness


def counting(n: int, read: list[int]) -> Iterator[Task]:
    for i in range(n):
        read.append(i)
        yield Task(f"q{i}", ["a"])


def test_tasks_are_read_one_ahead_of_the_room() -> None:
    read: list[int] = []
    answered = 0
    ahead: list[int] = []

    async def script(call: Call) -> str:
        nonlocal answered
        await asyncio.sleep(0.001)
        ahead.append(len(read) - answered)
        answered += 1
        return "1"

    drained(opened(script, jobs(counting(40, read)), limit=3))
    assert len(read) == 40
    assert max(ahead) <= 3 + 1


def test_results_that_nobody_takes_stop_the_reading() -> None:
    async def scene() -> None:
        read: list[int] = []
        async with aclosing(opened(reply_for, jobs(counting(10_000, read)), limit=3)) as items:
            await anext(items)
            while len(read) < UNTAKEN:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            assert len(read) <= 1 + UNTAKEN + 3 + 1

    asyncio.run(asyncio.wait_for(scene(), 20))


def test_a_source_that_is_slow_to_yield_blocks_nobody() -> None:
    more = threading.Event()

    def source() -> Iterator[Task]:
        yield from tasks(2)
        assert more.wait(10)
        yield Task("last", ["a"], id="last")

    async def scene() -> list[str]:
        async with aclosing(opened(reply_for, jobs(source(), asks(3)))) as items:
            first_two = {(await anext(items))[1].task_id, (await anext(items))[1].task_id}
            assert first_two == {"t0", "t1"}
            more.set()
            return [evaluation.task_id async for _, evaluation in items]

    assert asyncio.run(asyncio.wait_for(scene(), 10)) == ["last"]


# ---- ending early


def test_closing_a_stream_cancels_what_is_under_way_and_leaves_the_room_free() -> None:
    asked: list[str] = []
    cancelled: list[str] = []

    async def script(call: Call) -> str:
        asked.append(call.info["task_id"])
        try:
            await asyncio.sleep(0 if call.info["task_id"] == "t0" else 60)
        except asyncio.CancelledError:
            cancelled.append(call.info["task_id"])
            raise
        return "1"

    async def scene() -> None:
        runner, admission = parts(script)
        items = stream(runner, admission, jobs(tasks(9)))
        await anext(items)
        while len(asked) < 4:
            await asyncio.sleep(0.001)
        await items.aclose()
        assert sorted(cancelled) == ["t1", "t2", "t3"]
        assert admission.open == 0
        [(_, again)] = [item async for item in stream(runner, admission, jobs(tasks(1)))]
        assert again.status == "ok"

    asyncio.run(scene())


def test_a_stream_full_of_results_that_nobody_took_can_be_closed() -> None:
    async def scene() -> None:
        read: list[int] = []
        items = opened(reply_for, jobs(counting(10_000, read)))
        await anext(items)
        while len(read) < UNTAKEN + 4:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        await asyncio.wait_for(items.aclose(), 5)

    asyncio.run(scene())


def test_an_error_of_the_source_is_raised_once_what_is_under_way_was_cancelled() -> None:
    is_asked = threading.Event()
    cancelled: list[str] = []

    async def script(call: Call) -> str:
        if call.info["task_id"] == "t0":
            return "1"
        is_asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(call.info["task_id"])
            raise
        return "1"

    def source() -> Iterator[Task]:
        yield from tasks(2)
        assert is_asked.wait(10)
        raise OSError("the file is gone")

    finished: list[str] = []

    async def scene() -> None:
        async for _, evaluation in opened(script, jobs(source())):
            finished.append(evaluation.task_id)

    with pytest.raises(OSError, match="the file is gone"):
        asyncio.run(asyncio.wait_for(scene(), 10))
    assert finished == ["t0"]
    assert cancelled == ["t1"]


# ---- failures


def raises(*_: Any) -> Any:
    raise KeyError("no such field")


@pytest.mark.parametrize(
    "broken", [FlowEvaluator(raises), FlowEvaluator(asks(1).body, size=raises)], ids=["flow", "footprint"]
)
def test_an_evaluator_that_raises_loses_its_own_task_alone(broken: Evaluator) -> None:
    mixed = [EvaluationRequest(n, task, broken if n % 3 == 0 else asks(2)) for n, task in enumerate(tasks(10))]
    found = dict(drained(opened(reply_for, mixed)))
    assert sorted(found) == list(range(10))
    for position, evaluation in found.items():
        assert evaluation.status == ("failed" if position % 3 == 0 else "ok")
    assert found[0].error == "KeyError: 'no such field'"


def dies_at(n: int) -> Recorder:
    """Answers n calls, then is dead for good."""
    count = itertools.count()

    async def script(call: Call) -> str:
        place = next(count)
        await asyncio.sleep(0.002)
        if place >= n:
            raise BackendUnavailableError("the engine has died")
        return "1"

    return Recorder(script)


@pytest.mark.parametrize("n_answered", [0, 1, 7, 12])
def test_when_the_backend_dies_what_is_open_comes_back_failed_and_nothing_more_is_started(n_answered: int) -> None:
    script, limit = dies_at(n_answered), 3
    found: list[Evaluation] = []

    async def scene() -> None:
        async for _, evaluation in opened(script, jobs(tasks(30), asks(2)), limit):
            found.append(evaluation)

    with pytest.raises(BackendUnavailableError, match="the engine has died"):
        asyncio.run(asyncio.wait_for(scene(), 10))
    lost = [evaluation for evaluation in found if evaluation.status == "failed"]
    assert {failure.reason for evaluation in lost for failure in evaluation.failures} == {"backend_dead"}
    assert len(found) - len(lost) == sum(evaluation.status == "ok" for evaluation in found)
    assert len({evaluation.task_id for evaluation in found}) == len(found)
    # Only those that were open asked a dead backend, each once; at most one more had been read.
    assert len(script.calls) - n_answered <= limit
    assert {call.info["task_id"] for call in script.calls} <= {evaluation.task_id for evaluation in found}
    assert len(lost) <= limit + 1


def test_results_that_were_not_taken_when_the_backend_died_are_still_handed_over() -> None:
    script = dies_at(8)

    async def scene() -> list[Evaluation]:
        items = opened(script, jobs(tasks(30), asks(2)))
        found = [(await anext(items))[1]]
        await asyncio.sleep(0.1)
        with pytest.raises(BackendUnavailableError):
            async for _, evaluation in items:
                found.append(evaluation)
        return found

    found = asyncio.run(asyncio.wait_for(scene(), 10))
    assert sum(evaluation.status == "ok" for evaluation in found) >= 2


@pytest.mark.parametrize("steps", range(8))
def test_a_stream_that_is_left_at_any_moment_gives_all_its_room_back(steps: int) -> None:
    async def leave() -> int:
        runner, admission = parts(reply_for, limit=1)
        async with aclosing(stream(runner, admission, list(jobs(tasks(4))))) as items:
            await anext(items)
            for _ in range(steps):  # the next evaluation is let in, and made a task that has not begun
                await asyncio.sleep(0)
        return admission.open

    assert asyncio.run(leave()) == 0
