"""The gate: room is reserved, given back, and goes to whoever came first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.errors import BudgetExceededError, ConfigError
from debate.evaluators.base import Footprint
from debate.flow import Completion
from debate.runtime.limits import Admission, Budget
from debate.types import Price, Usage


def tokens(n: int) -> Footprint:
    """A footprint of n tokens while nothing was observed."""
    return Footprint(characters=0, replies=1, max_tokens=n)


async def settle() -> None:
    """Let everything that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def enters(admission: Admission, n: int) -> asyncio.Task[int]:
    return asyncio.ensure_future(admission.enter(tokens(n)))


def test_an_evaluation_reserves_its_prompt_at_three_characters_a_token_and_its_longest_replies() -> None:
    admission = Admission(limit=None, cache_tokens=10_000)
    assert asyncio.run(admission.enter(Footprint(characters=300, replies=4, max_tokens=50))) == 300 // 3 + 4 * 50
    assert admission.open == 1


def test_no_evaluation_reserves_more_than_the_context_length() -> None:
    admission = Admission(limit=None, cache_tokens=10_000, context_length=128)
    assert asyncio.run(admission.enter(tokens(5000))) == 128


def test_whoever_does_not_fit_waits_until_enough_room_is_given_back() -> None:
    async def scene() -> None:
        admission = Admission(limit=None, cache_tokens=100)
        first, second = await admission.enter(tokens(40)), await admission.enter(tokens(60))
        waiting = enters(admission, 50)
        await settle()
        assert not waiting.done()
        admission.leave(first)
        await settle()
        assert not waiting.done()
        admission.leave(second)
        assert await waiting == 50
        assert admission.open == 1

    asyncio.run(scene())


def test_one_is_always_let_in_however_large() -> None:
    async def scene() -> None:
        admission = Admission(limit=None, cache_tokens=100)
        huge = await admission.enter(tokens(1000))
        small, other_huge = enters(admission, 1), enters(admission, 2000)
        await settle()
        assert not small.done()
        admission.leave(huge)
        admission.leave(await small)
        assert await other_huge == 2000

    asyncio.run(scene())


@pytest.mark.parametrize("wrong", [0, -1, "3", float("nan"), True])
@pytest.mark.parametrize("name", ["tokens", "seconds", "cost"])
def test_a_budget_is_a_number_above_zero(name: str, wrong: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Budget(**{name: wrong})
    assert caught.value.field == name


def test_a_budget_counts_what_earlier_sessions_and_other_processes_have_used() -> None:
    budget = Budget(100, spent=40, others=50)
    budget.check()
    budget.spend(Completion("", usage=Usage(4, 0, 5, 1)))
    budget.check()
    budget.others += 1
    with pytest.raises(BudgetExceededError, match=r"100 tokens is used up \(100\)"):
        budget.check()


def test_a_budget_of_money_counts_each_model_by_its_price_and_earlier_sessions_and_others() -> None:
    prices = {"small": Price(1, 10), "big": Price(100, 1000)}
    budget = Budget(cost=1.0, prices=prices, cost_before=0.25)
    budget.check_prices(prices)
    budget.spend(Completion("", usage=Usage(100_000, 0, 10_000, 1)), "small")  # 0.1 + 0.1
    budget.spend(Completion("", usage=Usage(1_000, 0, 100, 1)), "big")  # 0.1 + 0.1
    budget.spend(Completion("", usage=Usage(10**9, 0, 0, 1), cached=True), "big")
    budget.check()
    assert budget.cost_so_far == pytest.approx(0.65)
    budget.cost_of_others = 0.4
    with pytest.raises(BudgetExceededError, match=r"1 of --max-cost are spent \(1\.05\)"):
        budget.check()


def test_a_budget_of_money_needs_the_price_of_every_model() -> None:
    with pytest.raises(ConfigError, match="needs the price of 'big'") as caught:
        Budget(cost=1.0, prices={"small": Price(1, 1)}).check_prices(["small", "big"])
    assert caught.value.field == "max_cost"
    Budget(tokens=1).check_prices(["big"])


def test_a_small_evaluation_does_not_overtake_a_large_one_that_waits() -> None:
    async def scene() -> None:
        admission = Admission(limit=None, cache_tokens=100)
        inside = await admission.enter(tokens(50))
        large, small = enters(admission, 80), enters(admission, 10)
        await settle()
        assert not large.done() and not small.done()
        admission.leave(inside)
        assert await large == 80
        assert await small == 10

    asyncio.run(scene())


def test_who_gives_up_waiting_lets_the_next_one_in() -> None:
    async def scene() -> None:
        admission = Admission(limit=None, cache_tokens=100)
        await admission.enter(tokens(50))
        large, small = enters(admission, 80), enters(admission, 10)
        await settle()
        large.cancel()
        assert await small == 10
        assert large.cancelled()

    asyncio.run(scene())


def test_who_is_cancelled_at_the_moment_of_being_let_in_gives_the_room_back() -> None:
    async def scene() -> None:
        admission = Admission(limit=1, cache_tokens=None)
        inside = await admission.enter(tokens(1))
        lucky, next_one = enters(admission, 1), enters(admission, 1)
        await settle()
        admission.leave(inside)
        lucky.cancel()
        assert await next_one == 1
        assert lucky.cancelled()
        assert admission.open == 1

    asyncio.run(scene())


def test_being_cancelled_while_another_leaves_is_still_being_cancelled() -> None:
    async def scene() -> None:
        admission = Admission(limit=1, cache_tokens=None)
        inside = await admission.enter(tokens(1))
        waiting, next_one = enters(admission, 1), enters(admission, 1)
        await settle()
        waiting.cancel()
        admission.leave(inside)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await next_one == 1
        assert admission.open == 1

    asyncio.run(scene())


def test_a_limit_counts_evaluations_whatever_their_size() -> None:
    async def scene() -> None:
        admission = Admission(limit=2, cache_tokens=10)
        await admission.enter(tokens(1000))
        await admission.enter(tokens(1000))
        third = enters(admission, 1)
        await settle()
        assert not third.done()
        admission.leave(1000)
        await third

    asyncio.run(scene())


def test_observed_replies_lower_the_reservations_once_there_are_enough() -> None:
    async def scene() -> None:
        admission = Admission(limit=None, cache_tokens=None)
        footprint = Footprint(characters=400, replies=2, max_tokens=100)
        for _ in range(31):
            admission.observe(400, 100, 20)
        assert await admission.enter(footprint) == 400 // 4 + 2 * 100
        admission.observe(400, 100, 20)
        assert await admission.enter(footprint) == 400 // 4 + 2 * 25

    asyncio.run(scene())


def test_observed_replies_never_raise_a_reservation_above_the_upper_bound() -> None:
    admission = Admission(limit=None, cache_tokens=None)
    for _ in range(32):
        admission.observe(300, 100, 500)
    assert asyncio.run(admission.enter(tokens(60))) == 60


def test_prompts_without_characters_teach_nothing() -> None:
    admission = Admission(limit=None, cache_tokens=None)
    admission.observe(0, 7, 1)
    assert asyncio.run(admission.enter(Footprint(characters=300, replies=0, max_tokens=1))) == 100


ROOM = 100
visits = st.tuples(
    st.integers(0, 3),  # steps before it comes
    st.integers(1, 150),  # tokens
    st.integers(0, 4),  # steps inside
    st.none() | st.integers(0, 6),  # steps until it is cancelled
)


@settings(max_examples=100, deadline=None)
@given(st.lists(visits, max_size=12))
def test_the_room_is_never_exceeded_and_whoever_keeps_waiting_gets_in(
    visitors: list[tuple[int, int, int, int | None]],
) -> None:
    admission = Admission(limit=None, cache_tokens=ROOM)
    inside: dict[int, int] = {}
    entered: set[int] = set()

    async def visit(who: int, arrival: int, cost: int, stay: int) -> None:
        for _ in range(arrival):
            await asyncio.sleep(0)
        reserved = await admission.enter(tokens(cost))
        entered.add(who)
        inside[who] = reserved
        assert sum(inside.values()) <= ROOM or len(inside) == 1
        try:
            for _ in range(stay):
                await asyncio.sleep(0)
        finally:
            del inside[who]
            admission.leave(reserved)

    async def impatient(task: asyncio.Task[None], retry_policy: int) -> None:
        for _ in range(retry_policy):
            await asyncio.sleep(0)
        task.cancel()

    async def scene() -> None:
        started = [asyncio.ensure_future(visit(n, *visitor[:3])) for n, visitor in enumerate(visitors)]
        pairs = zip(started, visitors, strict=True)
        await asyncio.gather(*(impatient(task, visitor[3]) for task, visitor in pairs if visitor[3] is not None))
        ends = await asyncio.wait_for(asyncio.gather(*started, return_exceptions=True), 5)
        faults = [end for end in ends if end is not None and not isinstance(end, asyncio.CancelledError)]
        assert faults == []
        assert {n for n, visitor in enumerate(visitors) if visitor[3] is None} <= entered
        assert admission.open == 0
        assert await admission.enter(tokens(ROOM)) == ROOM

    asyncio.run(scene())
