"""Never more requests or tokens in a window than allowed, whatever comes when, and nobody waits without need."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.errors import ConfigError
from debate.net.rate import Queue, RateLimits, Start

WINDOW = 60.0


@dataclass(frozen=True)
class Asked:
    """A request: seconds after the one before it, what it is thought to use, what it uses, and when that is known."""

    after: float
    estimate: int
    used: int
    known_after: float


requests = st.lists(
    st.builds(Asked, st.floats(0, 30), st.integers(0, 400), st.integers(0, 400), st.floats(0, 90)), max_size=60
)


def played(limits: RateLimits, asked: list[Asked]) -> list[Start]:
    """The starts of the requests, one after the other, with what each used corrected once that is known."""
    now, arrived, starts = 0.0, 0.0, list[Start]()
    known: list[tuple[float, Start, int]] = []
    for each in asked:
        arrived += each.after
        now = max(now, arrived)
        while True:
            for moment in [one for one in known if one[0] <= now]:
                known.remove(moment)
                limits.correct(*moment[1:])
            if (seconds := limits.wait(now, each.estimate)) <= 0:
                break
            now = min([now + max(seconds, 1e-6), *(moment for moment, *_ in known)])
        starts.append(limits.begin(now, each.estimate))
        known.append((now + each.known_after, starts[-1], each.used))
    return starts


@settings(max_examples=60, deadline=None)
@given(requests, st.integers(1, 20))
def test_in_no_window_do_more_requests_start_than_allowed(asked: list[Asked], rpm: int) -> None:
    at = [start.at for start in played(RateLimits(rpm), asked)]
    assert all(later - sooner > WINDOW for sooner, later in zip(at, at[rpm:], strict=False))


@settings(max_examples=60, deadline=None)
@given(requests, st.integers(1, 1000))
def test_in_no_window_do_requests_with_more_tokens_start_than_allowed(asked: list[Asked], tpm: int) -> None:
    exact = [Asked(each.after, each.used, each.used, 0.0) for each in asked]
    starts = played(RateLimits(tpm=tpm), exact)
    for n, last in enumerate(starts):
        within = [start.tokens for start in starts[: n + 1] if last.at - start.at <= WINDOW]
        assert sum(within) <= tpm or all(tokens == 0 for tokens in within[:-1])


@settings(max_examples=60, deadline=None)
@given(requests, st.integers(1, 20), st.integers(1, 1000))
def test_with_both_limits_everything_starts_in_its_order(asked: list[Asked], rpm: int, tpm: int) -> None:
    at = [start.at for start in played(RateLimits(rpm, tpm), asked)]
    assert len(at) == len(asked)
    assert at == sorted(at)


def test_requests_go_out_evenly_and_not_in_bursts() -> None:
    starts = played(RateLimits(60, slack=0.0), [Asked(0.0, 1, 1, 0.0)] * 5)
    assert [start.at for start in starts] == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0], abs=1e-5)


def test_what_a_request_did_not_use_is_free_for_the_next() -> None:
    limits = RateLimits(tpm=100)
    first = limits.begin(0.0, 90)
    assert limits.wait(1.0, 50) > 59
    limits.correct(first, 40)
    assert limits.wait(1.0, 50) == 0


def test_a_correction_that_comes_after_the_window_changes_nothing() -> None:
    limits = RateLimits(tpm=100)
    first = limits.begin(0.0, 90)
    assert limits.wait(100.0, 100) == 0
    limits.correct(first, 10)
    limits.begin(100.0, 60)
    assert limits.wait(101.0, 50) > 0


def test_a_request_larger_than_the_limit_goes_alone() -> None:
    limits = RateLimits(tpm=100)
    limits.begin(0.0, 10)
    assert limits.wait(1.0, 500) == pytest.approx(60.0)
    assert limits.wait(61.1, 500) == 0


def test_without_limits_nothing_waits() -> None:
    limits = RateLimits()
    assert not limits.are_set
    assert all(limits.wait(0.0, 10**9) == 0 for _ in range(3) if limits.begin(0.0, 10**9))


@pytest.mark.parametrize("name", ["rpm", "tpm"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "60", True])
def test_a_limit_that_is_none_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: must be"):
        RateLimits(**{name: value})  # pyright: ignore[reportArgumentType]


def test_who_waits_for_tokens_goes_as_soon_as_they_are_given_back() -> None:
    async def scene() -> float:
        queue = Queue(RateLimits(tpm=100))
        first = await queue.start(90)
        began = time.monotonic()
        waiting = asyncio.ensure_future(queue.start(90))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        queue.correct(first, 5)
        await asyncio.wait_for(waiting, 5)
        return time.monotonic() - began

    assert asyncio.run(scene()) < 5


def test_whoever_is_cancelled_while_it_waits_counts_nothing() -> None:
    async def scene() -> None:
        queue = Queue(RateLimits(tpm=100))
        first = await queue.start(90)
        waiting = asyncio.ensure_future(queue.start(90))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        queue.correct(first, 0)
        await asyncio.wait_for(queue.start(100), 5)

    asyncio.run(scene())
