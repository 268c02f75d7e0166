"""When a failed attempt is made again, how long after, and when a server counts as dead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.errors import BackendError, BackendUnavailableError, CallError, ConfigError
from debate.net.retry import Retrier, RetryPolicy, TransportError, error_from_status, retry_after

QUICK = RetryPolicy(first_wait=0.001, longest_wait=0.01, timeout=0.2, deadline=5)


def server_error(header: str | None = None) -> TransportError:
    return error_from_status(503, "busy", header)


class Server:
    """Fails as often as it is told, then answers."""

    def __init__(self, *faults: TransportError, forever: TransportError | None = None) -> None:
        self.faults = list(faults)
        self.forever = forever
        self.asked = 0

    async def __call__(self) -> str:
        self.asked += 1
        await asyncio.sleep(0)
        fault = self.faults.pop(0) if self.faults else self.forever
        if fault is not None:
            raise fault
        return "answer"


def call(server: Callable[[], Awaitable[str]], retry_policy: RetryPolicy = QUICK) -> str:
    return asyncio.run(Retrier(retry_policy, "m").call(server))


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(status: int) -> None:
    server = Server(*[error_from_status(status, "later", None)] * 4)
    assert call(server) == "answer"
    assert server.asked == 5


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 302, 307])
def test_what_cannot_get_better_is_asked_once(status: int) -> None:
    server = Server(forever=error_from_status(status, "never", None))
    with pytest.raises(BackendError, match=f"HTTP {status}"):
        call(server)
    assert server.asked == 1


def test_attempts_stay_within_their_limit() -> None:
    async def two_calls() -> Server:
        retrier = Retrier(QUICK, "m")
        await retrier.call(Server())
        poison = Server(forever=server_error())
        with pytest.raises(CallError, match=r"HTTP 503: busy \(given up after 5 attempts\)"):
            await retrier.call(poison)
        assert await retrier.call(Server()) == "answer"
        return poison

    assert asyncio.run(two_calls()).asked == 5


@pytest.mark.parametrize("attempt", [1, 2, 3, 10, 5000])
def test_waits_grow_and_are_jittered_and_capped(attempt: int) -> None:
    retry_policy = RetryPolicy(first_wait=0.5, longest_wait=60)
    waits = [retry_policy.wait_before(attempt, None) for _ in range(100)]
    longest = min(0.5 * 2 ** min(attempt - 1, 20), 60)
    assert len(set(waits)) > 90
    assert all(longest / 2 <= wait <= longest for wait in waits)


def test_what_the_server_asks_for_is_waited_for_up_to_the_cap() -> None:
    retry_policy = RetryPolicy(first_wait=0.5, longest_wait=60)
    assert 7 <= retry_policy.wait_before(1, 7.0) <= 7.5
    assert 60 <= retry_policy.wait_before(1, 86400.0) <= 60.5


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0), ("0.5", 0.5), ("-4", 0.0), (" 2 ", 2.0),
        (formatdate(1_000_030, usegmt=True), 30.0), (formatdate(999_000, usegmt=True), 0.0),
        (None, None), ("", None), ("soon", None), ("nan", None), ("inf", None), ("1e999", None),
        ("Wed, 99 Nov 2026 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after_is_read_in_both_forms(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, now=1_000_000) == seconds


@given(st.text(max_size=60) | st.from_regex(r"\A\w{3}, \d{1,3} \w{3} \d{1,6} \d\d:\d\d:\d\d [+-]?\w{1,5}\Z"))
def test_no_retry_after_header_can_break_the_call(header: str) -> None:
    seconds = retry_after(header)
    assert seconds is None or seconds >= 0


def test_a_hanging_attempt_is_cut_off_and_made_again() -> None:
    asked = 0

    async def ask() -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            await asyncio.sleep(60)
        return "answer"

    assert call(ask, RetryPolicy(timeout=0.05, first_wait=0.001)) == "answer"
    assert asked == 2


def test_no_call_outlives_its_deadline() -> None:
    async def ask() -> str:
        await asyncio.sleep(60)
        raise AssertionError

    began = time.monotonic()
    with pytest.raises(BackendError, match="no answer within"):
        call(ask, RetryPolicy(timeout=0.1, deadline=0.25, attempts=100, first_wait=0.001))
    assert time.monotonic() - began < 20


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    began = time.monotonic()
    with pytest.raises(BackendError):
        call(Server(forever=server_error("30")), RetryPolicy(deadline=1))
    assert time.monotonic() - began < 10


async def many(retrier: Retrier, server: Callable[[], Awaitable[str]], n: int, slots: int = 64) -> list[object]:
    room = asyncio.Semaphore(slots)

    async def one() -> str:
        async with room:
            return await retrier.call(server)

    return list(await asyncio.gather(*(one() for _ in range(n)), return_exceptions=True))


def test_a_thousand_calls_of_a_dead_server_make_less_than_two_hundred_attempts() -> None:
    server = Server(forever=server_error())
    outcomes = asyncio.run(many(Retrier(QUICK, "m"), server, 1000))
    assert all(isinstance(outcome, BackendUnavailableError) for outcome in outcomes)
    assert server.asked < 200


def test_a_burst_of_refusals_does_not_kill_a_server_that_recovers() -> None:
    server = Server(*[error_from_status(429, "slow down", None)] * 60)
    outcomes = asyncio.run(many(Retrier(QUICK, "m"), server, 200))
    assert outcomes == ["answer"] * 200


def test_a_server_that_refuses_some_while_it_works_on_others_is_not_dead() -> None:
    at_once = 0

    async def narrow() -> str:
        nonlocal at_once
        if at_once >= 4:
            raise error_from_status(429, "slow down", None)
        at_once += 1
        await asyncio.sleep(0.1)
        at_once -= 1
        return "answer"

    retry_policy = RetryPolicy(first_wait=0.001, longest_wait=0.01, breaker=5, attempts=3)
    outcomes = asyncio.run(many(Retrier(retry_policy, "m"), narrow, 40, slots=40))
    assert not any(isinstance(outcome, BackendUnavailableError) for outcome in outcomes)
    assert outcomes.count("answer") >= 4


def test_a_wrong_key_ends_all_calls_and_those_that_wait_too() -> None:
    async def scene() -> float:
        retrier = Retrier(RetryPolicy(first_wait=30), "m at u")
        waiting = asyncio.create_task(retrier.call(Server(forever=server_error())))
        await asyncio.sleep(0.01)
        with pytest.raises(BackendUnavailableError, match="m at u: HTTP 401: wrong key"):
            await retrier.call(Server(forever=error_from_status(401, "wrong key", None)))
        began = time.monotonic()
        with pytest.raises(BackendUnavailableError):
            await waiting
        untouched = Server()
        with pytest.raises(BackendUnavailableError):
            await retrier.call(untouched)
        assert untouched.asked == 0
        return time.monotonic() - began

    assert asyncio.run(scene()) < 10


def test_a_server_that_is_gone_is_dead_at_the_first_call_that_gives_up() -> None:
    async def scene() -> None:
        retrier = Retrier(QUICK, "m")
        await retrier.call(Server())
        gone = TransportError("no_connection", "refused", is_retryable=True)
        with pytest.raises(BackendUnavailableError, match="refused"):
            await retrier.call(Server(forever=gone))

    asyncio.run(scene())


def test_a_cancelled_probe_lets_others_probe() -> None:
    async def scene() -> object:
        retry_policy = RetryPolicy(first_wait=0.001, longest_wait=0.01, breaker=1)
        retrier = Retrier(retry_policy, "m")
        probing = asyncio.create_task(retrier.call(Server(server_error(), server_error("0.005"), server_error())))
        await asyncio.sleep(0.002)
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
        return await asyncio.wait_for(retrier.call(Server()), 1)

    assert asyncio.run(scene()) == "answer"


@pytest.mark.parametrize(
    "settings",
    [
        {"attempts": 0}, {"breaker": 0}, {"timeout": 0}, {"deadline": -1}, {"longest_wait": float("nan")},
        {"deadline": float("inf")}, {"first_wait": -1}, {"timeout": "soon"}, {"attempts": True},
    ],
)  # fmt: skip
def test_an_impossible_policy_is_refused_by_name(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        RetryPolicy(**settings)
