"""Single items in batches: how large they get, when they go, and who meets an error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from debate.concurrency.micro_batch import MicroBatcher


class Squares:
    """Answers with squares, keeps the batches, and refuses what it is told to refuse."""

    def __init__(self, *refused: int, seconds: float = 0.0) -> None:
        self.batches: list[list[int]] = []
        self.most_at_once = self._at_once = 0
        self._refused = refused
        self._seconds = seconds

    async def __call__(self, batch: list[int]) -> Sequence[int]:
        self.batches.append(batch)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(self._seconds)
        self._at_once -= 1
        if set(batch) & set(self._refused):
            raise ValueError(f"refused {batch}")
        return [item * item for item in batch]


async def all_of(batcher: MicroBatcher[int, int], items: Sequence[int]) -> list[int | BaseException]:
    return await asyncio.gather(*map(batcher.ask, items), return_exceptions=True)


def test_items_of_one_moment_are_one_batch() -> None:
    send = Squares()
    assert asyncio.run(all_of(MicroBatcher(send), range(5))) == [0, 1, 4, 9, 16]
    assert send.batches == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_no_batch_is_larger_and_no_more_are_under_way_than_allowed(at_once: int) -> None:
    send = Squares(seconds=0.01)
    answers = asyncio.run(all_of(MicroBatcher(send, size=4, at_once=at_once), range(10)))
    assert answers == [n * n for n in range(10)]
    assert [len(batch) for batch in send.batches] == [4, 4, 2]
    assert send.most_at_once == min(at_once, 3)


def test_items_gather_while_a_batch_is_being_answered() -> None:
    send = Squares(seconds=0.05)

    async def scene() -> list[int]:
        batcher = MicroBatcher(send)
        first = asyncio.ensure_future(batcher.ask(1))
        await asyncio.sleep(0.01)
        later: list[asyncio.Future[int]] = []
        for n in (2, 3, 4):
            later.append(asyncio.ensure_future(batcher.ask(n)))
            await asyncio.sleep(0.001)
        return await asyncio.gather(first, *later)

    assert asyncio.run(scene()) == [1, 4, 9, 16]
    assert send.batches == [[1], [2, 3, 4]]


def test_a_batch_waits_for_further_items_as_long_as_it_is_told() -> None:
    send = Squares()

    async def scene() -> None:
        batcher = MicroBatcher(send, seconds=0.05)
        first = asyncio.ensure_future(batcher.ask(1))
        await asyncio.sleep(0.01)
        await asyncio.gather(first, batcher.ask(2))

    asyncio.run(scene())
    assert send.batches == [[1, 2]]


def test_an_error_is_met_by_its_batch_alone() -> None:
    outcomes = asyncio.run(all_of(MicroBatcher(Squares(5), size=3), range(9)))
    assert [isinstance(outcome, ValueError) for outcome in outcomes] == [False] * 3 + [True] * 3 + [False] * 3


def test_an_error_that_may_be_one_items_fault_is_met_by_that_item_alone() -> None:
    outcomes = asyncio.run(all_of(MicroBatcher(Squares(2), one_by_one=(ValueError,)), range(4)))
    assert [outcome for outcome in outcomes if not isinstance(outcome, BaseException)] == [0, 1, 9]
    assert isinstance(outcomes[2], ValueError)


def test_an_error_that_is_no_exception_is_met_too() -> None:
    class Odd(BaseException): ...

    async def odd(batch: list[int]) -> Sequence[int]:
        raise Odd

    outcomes = asyncio.run(asyncio.wait_for(all_of(MicroBatcher(odd), range(3)), 5))
    assert [type(outcome) for outcome in outcomes] == [Odd] * 3


def test_too_few_answers_are_an_error() -> None:
    async def short(batch: list[int]) -> Sequence[int]:
        return batch[:-1]

    outcomes = asyncio.run(all_of(MicroBatcher(short), range(3)))
    assert all(isinstance(outcome, ValueError) for outcome in outcomes)


def test_an_item_that_was_given_up_is_not_sent_and_holds_up_no_other() -> None:
    send = Squares()

    async def scene() -> int:
        batcher = MicroBatcher(send)
        leaving, staying = (asyncio.ensure_future(batcher.ask(n)) for n in (1, 2))
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    assert asyncio.run(scene()) == 4
    assert send.batches == [[2]]


def test_several_event_loops_are_served_side_by_side_and_one_after_the_other() -> None:
    batcher = MicroBatcher(Squares(seconds=0.01), size=2)
    answers: dict[int, list[int | BaseException]] = {}

    def loop(n: int) -> None:
        answers[n] = asyncio.run(all_of(batcher, range(n, n + 5)))

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    loop(4)
    assert answers == {n: [k * k for k in range(n, n + 5)] for n in range(5)}
