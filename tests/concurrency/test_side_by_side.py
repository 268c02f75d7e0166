from __future__ import annotations

import asyncio

import pytest

from debate.concurrency.side_by_side import side_by_side
from debate.errors import CallError


def test_results_come_in_the_order_of_the_coroutines() -> None:
    async def late(n: int) -> int:
        for _ in range(5 - n):
            await asyncio.sleep(0)
        return n

    assert asyncio.run(side_by_side(late(n) for n in range(5))) == [0, 1, 2, 3, 4]


async def wait(n: int, ended: list[int]) -> None:
    """Wait until it is cancelled, and say then that it has ended."""
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(n)


def test_the_first_error_is_raised_as_it_is_and_ends_the_others() -> None:
    ended: list[int] = []

    async def fail() -> None:
        await asyncio.sleep(0)
        raise CallError("refused", "no")

    async def run() -> None:
        with pytest.raises(CallError, match="no"):
            await side_by_side([wait(0, ended), fail(), wait(1, ended)])
        assert sorted(ended) == [0, 1]

    asyncio.run(run())


def test_a_cancellation_ends_all_and_is_passed_on() -> None:
    ended: list[int] = []

    async def run() -> None:
        task = asyncio.create_task(side_by_side([wait(0, ended), wait(1, ended)]))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(ended) == [0, 1]

    asyncio.run(run())
