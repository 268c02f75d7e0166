"""A server that limits its rate is never sent more than it takes, and nothing fails for having waited."""

from __future__ import annotations

import time

import pytest

from debate.backends import Ollama, OpenAICompatible, RetryPolicy
from debate.backends.http.client import HTTPBackend
from debate.flow import Completion
from debate.net.rate import RateLimits
from debate.testing.fake_server import FakeServer, Reply, Request, every, failing, limited
from tests.backends.asking import QUICK, ask, call_of

WINDOW, SLACK = 1.5, 0.3
"""Of the server's minute, in seconds, and of what is allowed for a machine that is busy."""


def hurried(backend: HTTPBackend, monkeypatch: pytest.MonkeyPatch, rpm: int | None, tpm: int | None = None) -> None:
    """Have a backend's minute be shorter."""
    monkeypatch.setattr(backend, "limits", RateLimits(rpm, tpm, window=WINDOW, slack=SLACK / WINDOW))


def most_in_a_window(moments: list[float]) -> int:
    return max(sum(0 <= later - sooner < WINDOW for later in moments) for sooner in moments)


def test_a_server_with_sixty_requests_a_minute_never_gets_more_and_refuses_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit, statuses, moments = limited(60, WINDOW), list[int](), list[float]()
    fault = every(7, failing(503, retry_after="0"))

    def behave(request: Request) -> Reply | None:
        moments.append(time.monotonic())
        reply = limit(request) or fault(request)  # a request that fails counts too, and is made again
        statuses.append(200 if reply is None else reply.status)
        return reply

    with FakeServer(behave) as server:
        backend = OpenAICompatible("m", f"{server.url}/v1", rpm=60, retry_policy=QUICK)
        hurried(backend, monkeypatch, 60)
        outcomes = ask(backend, *(call_of(f"{n}?") for n in range(70)))
    assert all(isinstance(each, Completion) for each in outcomes)
    assert 429 not in statuses
    assert statuses.count(503) >= 10
    assert len(moments) == 70 + statuses.count(503)
    assert most_in_a_window(moments) <= 60


def test_waiting_for_ones_turn_is_no_time_of_the_servers_and_fails_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = RetryPolicy(timeout=0.25, deadline=0.5, attempts=1)
    with FakeServer() as server:
        backend = OpenAICompatible("m", f"{server.url}/v1", rpm=2, retry_policy=impatient)
        hurried(backend, monkeypatch, 2)
        began = time.monotonic()
        outcomes = ask(backend, *(call_of(f"{n}?", schema=None) for n in range(3)))
    assert [type(each) for each in outcomes] == [Completion] * 3
    assert time.monotonic() - began > impatient.deadline


@pytest.mark.parametrize("kind", [OpenAICompatible, Ollama])
def test_tokens_are_counted_by_what_the_server_states(
    kind: type[OpenAICompatible] | type[Ollama], monkeypatch: pytest.MonkeyPatch
) -> None:
    moments: list[float] = []

    def behave(request: Request) -> None:
        moments.append(time.monotonic())

    with FakeServer(behave) as server:
        backend = kind("m", server.url + ("/v1" if kind is OpenAICompatible else ""), tpm=300)
        hurried(backend, monkeypatch, None, 300)
        for n in range(3):  # of 120 tokens each, by the server's count
            ask(backend, call_of(f"{n}?", schema=None))
    assert moments[1] - moments[0] < WINDOW
    assert moments[2] - moments[0] >= WINDOW


def test_a_backend_that_is_started_again_remembers_what_it_has_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(limited(2, WINDOW)) as server:
        backend = OpenAICompatible("m", f"{server.url}/v1", rpm=2, retry_policy=RetryPolicy(attempts=1))
        hurried(backend, monkeypatch, 2)
        for n in range(3):
            (outcome,) = ask(backend, call_of(f"{n}?", schema=None))
            assert isinstance(outcome, Completion)
