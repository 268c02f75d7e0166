"""An evaluator served as x1's value model: its wire format, its refusals, its token, and our own client against it."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from typing import Any

import pytest

from debate import Candidate, Engine, StepEvaluator, Task
from debate.backends import Call, RetryPolicy, Scripted, ValueServer
from debate.config.settings import ServerLimits
from debate.errors import BackendUnavailableError, CallError
from debate.evaluators.steps.reward_models import ValueModelSteps
from tests.required import required_module
from tests.server.listening import connected, listening
from tests.small_flows import Stalling

required_module("fastapi")
import httpx2  # noqa: E402 - fastapi is looked for first

from debate.server.access import Access, is_loopback  # noqa: E402 - fastapi is looked for first
from debate.server.app import create_app  # noqa: E402
from debate.server.forward import Unvalued, forward, valued_by  # noqa: E402

TASK = {"role": "user", "content": "Q"}
STEP = {"role": "last_step", "content": "A"}


async def tenths(conversations: Sequence[Any]) -> list[float]:
    return [0.1 * (n + 1) for n in range(len(conversations))]


def answer(body: object) -> tuple[int, dict[str, Any]]:
    return asyncio.run(forward(body, tenths))


def test_one_conversation_has_one_value_and_several_have_one_each() -> None:
    assert answer({"messages": [TASK, STEP]}) == (200, {"result": [0.1]})
    assert answer({"messages": [[TASK, STEP], [TASK, STEP]]}) == (200, {"result": [0.1, 0.2]})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Invalid input"),
        ({"messages": []}, "Invalid input"),
        (None, "Invalid input"),
        ([], "Invalid input"),
        ({"messages": "text"}, "Invalid input, input messages is not a list."),
        ({"messages": [{"role": "user"}]}, "'role' and 'content'."),
        ({"messages": [[{"role": "user"}]]}, "'role' and 'content'."),
        ({"messages": [[TASK, STEP], TASK]}, "'role' and 'content'."),
        ({"messages": [{"role": "user", "content": 1}, STEP]}, "'role' and 'content'."),
        ({"messages": [TASK]}, "at least one step"),
        ({"messages": [STEP, TASK]}, "at least one step"),
    ],
)
def test_what_is_no_conversation_is_refused_in_words(body: object, words: str) -> None:
    status, said = answer(body)
    assert status == 400
    assert said["error"].endswith(words) or words in said["error"]


def test_a_step_without_a_value_is_no_zero() -> None:
    async def none(conversations: Sequence[Any]) -> list[float]:
        raise Unvalued("the judge was silent")

    assert asyncio.run(forward({"messages": [TASK, STEP]}, none)) == (503, {"error": "the judge was silent"})


def judge(call: Call) -> str:
    """Worth 50 of -100..100 where the step is right, and -100 where it is not."""
    step = call.messages[-1]["content"].rpartition("# Step to judge")[2]
    return json.dumps({"reasoning": "", "score": 50 if "right" in step else -100})


def test_our_client_speaks_to_our_server_as_x1s_would() -> None:
    seen: list[Any] = []
    with Engine(Scripted(judge)) as inside:
        value = valued_by(inside, StepEvaluator())

        async def noting(conversations: Sequence[Any]) -> Sequence[float]:
            seen.extend(conversations)
            return await value(conversations)

        with listening(create_app(noting)) as url, Engine(ValueServer(url, batch_size=2)) as engine:
            candidates = [
                Candidate("one\nright", metadata={"steps": ["one", "right"]}),
                Candidate("right", metadata={"final": False}),
            ]
            task = Task("Q", candidates, context=["before"])
            evaluation = engine.evaluate(task, StepEvaluator(judge=ValueModelSteps()))
    assert evaluation.status == "ok"
    assert evaluation.details["steps"] == [[-1.0, 0.5], [0.5]]
    assert evaluation.details["first_error"] == [0, -1]
    roles = sorted([message["role"] for message in each] for each in seen)
    middle = "intermediate_step"
    assert roles == sorted([["user", middle, middle], ["user", middle, middle, "last_step"], ["user", middle, middle]])


def test_a_token_is_asked_of_every_request() -> None:
    with listening(create_app(tenths, token="secret")) as url, httpx2.Client() as client:
        body = {"messages": [TASK, STEP]}
        assert client.get(url).status_code == 401
        assert client.post(f"{url}/forward", json=body).status_code == 401
        wrong = {"Authorization": "Bearer wrong"}
        assert client.post(f"{url}/forward", json=body, headers=wrong).status_code == 401
        right = {"Authorization": "Bearer secret"}
        assert client.post(f"{url}/forward", json=body, headers=right).json() == {"result": [0.1]}
        assert client.get(url, headers=right).json()["allow_inference"] is True


def test_a_token_may_have_any_letters() -> None:
    with listening(create_app(tenths, token="gehêim")) as url, httpx2.Client() as client:
        assert client.get(url, headers={b"Authorization": "Bearer gehêim".encode()}).status_code == 200
        assert client.get(url, headers={b"Authorization": b"Bearer geheim"}).status_code == 401


def test_what_is_no_json_is_refused_and_not_a_fault_of_the_server() -> None:
    with listening(create_app(tenths)) as url, httpx2.Client() as client:
        assert client.post(f"{url}/forward", content=b"{").status_code == 400
        assert client.post(f"{url}/forward", content=b"[" * 100_000).status_code == 400
        assert client.post(f"{url}/forward", content=b" " * (9 << 20)).status_code == 413


def test_what_a_browser_sends_from_a_foreign_page_is_refused_before_anything_is_asked() -> None:
    asked: list[Any] = []

    async def noting(conversations: Sequence[Any]) -> list[float]:
        asked.append(conversations)
        return [0.0]

    body = json.dumps({"messages": [TASK, STEP]}).encode()
    with listening(create_app(noting)) as url, httpx2.Client() as client:
        rebound = client.post(f"{url}/forward", content=body, headers={"Host": "evil.example"})
        plain = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
        foreign = client.post(f"{url}/forward", content=body, headers=plain)
        status = client.get(url, headers={"Host": "evil.example"})
    assert (rebound.status_code, foreign.status_code, status.status_code) == (403, 403, 403)
    assert asked == []


def post(url: str, *conversations: list[dict[str, str]]) -> tuple[int, dict[str, Any]]:
    with httpx2.Client() as client:
        said = client.post(f"{url}/forward", json={"messages": list(conversations)})
        return said.status_code, said.json()


def test_a_client_that_leaves_cancels_its_calls() -> None:
    script = Stalling()

    with Engine(Scripted(script.answer)) as engine, listening(create_app(valued_by(engine, StepEvaluator()))) as url:
        with connected(url) as leaving:
            body = json.dumps({"messages": [TASK, STEP]}).encode()
            head = f"POST /forward HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            leaving.sendall(head.encode() + body)
            assert script.asked.wait(20)
            assert not script.cancelled.is_set()
        assert script.cancelled.wait(20)


def test_too_many_conversations_and_too_long_ones_are_413_and_nothing_is_asked() -> None:
    with Engine(Scripted(judge)) as engine:
        limits = ServerLimits(max_conversations=2, max_characters=10)
        with listening(create_app(valued_by(engine, StepEvaluator()), limits=limits)) as url:
            assert post(url, *[[TASK, STEP]] * 2)[0] == 200
            assert post(url, *[[TASK, STEP]] * 3) == (413, {"error": "More than 2 conversations"})
            long = [TASK, {"role": "last_step", "content": "A" * 10}]
            assert post(url, long) == (413, {"error": "A conversation of more than 10 characters"})


def test_a_body_that_is_sent_too_slowly_is_not_waited_for() -> None:
    limits = ServerLimits(body_seconds=0.2)
    with listening(create_app(tenths, limits=limits)) as url, connected(url) as slow:
        slow.sendall(b"POST /forward HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        said = b""
        while piece := slow.recv(4096):  # until the server closes
            said += piece
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"within 0.2 seconds" in said


def test_a_client_that_leaves_while_it_sends_is_no_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    with listening(create_app(tenths)) as url:
        logging.getLogger("uvicorn").propagate = True  # to caplog
        for _ in range(3):
            with connected(url) as leaving:
                leaving.sendall(b"POST /forward HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
                time.sleep(0.05)
        assert post(url, [TASK, STEP])[0] == 200
    assert caplog.text == ""


def test_half_a_character_is_the_clients_fault() -> None:
    with Engine(Scripted(judge)) as engine, listening(create_app(valued_by(engine, StepEvaluator()))) as url:
        body = b'{"messages": [{"role": "user", "content": "\\ud800"}, {"role": "last_step", "content": "A"}]}'
        with httpx2.Client() as client:
            said = client.post(f"{url}/forward", content=body)
    assert said.status_code == 400
    assert "lone surrogate" in said.json()["error"]


@pytest.mark.parametrize(("reason", "status"), [("context_length", 413), ("server_error", 503)])
def test_why_a_call_failed_is_for_the_log_alone(reason: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    def script(call: Call) -> str:
        raise CallError(reason, "/home/somebody/judge.j2: key sk-123")

    with Engine(Scripted(script)) as engine, listening(create_app(valued_by(engine, StepEvaluator()))) as url:
        code, body = post(url, [TASK, STEP])
    assert code == status
    assert "judge.j2" not in str(body)
    assert ("judge.j2" in caplog.text) == (status == 503)


def test_a_server_that_says_something_else_is_no_value_model() -> None:
    def wrong(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"result": ["high"]})

    server = ValueServer(
        "http://v", transport=httpx2.MockTransport(wrong), retry_policy=RetryPolicy(attempts=2, first_wait=0.0)
    )
    with Engine(server) as engine, pytest.raises(BackendUnavailableError, match="without a `result` of 1 numbers"):
        engine.evaluate(Task("Q", ["A"]), StepEvaluator(judge=ValueModelSteps()))


def test_the_clients_bytes_are_those_of_x1s_own_client() -> None:
    bodies: list[bytes] = []

    def noting(request: httpx2.Request) -> httpx2.Response:
        bodies.append(request.content)
        return httpx2.Response(200, json={"result": [0.25]})

    with Engine(ValueServer("http://v/forward", transport=httpx2.MockTransport(noting))) as engine:
        task = Task("Qé", [Candidate("A", metadata={"final": True})])
        score = engine.evaluate(task, StepEvaluator(judge=ValueModelSteps())).scores[0]
    assert score == 0.25
    expected = {"messages": [{"role": "user", "content": "Qé"}, {"role": "last_step", "content": "A"}]}
    assert bodies == [json.dumps(expected).encode()]


def status(access: Access, **headers: str) -> int:
    refused = access.refusal(headers)
    return 200 if refused is None else refused[0]


@pytest.mark.parametrize(
    "host", ["127.0.0.1:12555", "localhost", "LocalHost:80", "127.9.9.9", "[::1]:12555", "judge.example:1"]
)
def test_a_loopback_host_and_the_one_that_was_given_are_ours(host: str) -> None:
    assert status(Access("judge.example"), host=host) == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:12555", "10.0.0.1", "[::1", "", "0.0.0.0"])
def test_a_host_that_is_not_ours_is_refused_as_dns_rebinding_would_send_it(host: str) -> None:
    assert status(Access("127.0.0.1"), host=host) == 403
    assert status(Access("127.0.0.1", "secret"), host=host, authorization="Bearer secret") == 403


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:12555", 200),
        ("HTTP://LOCALHOST:12555", 200),
        ("http://evil.example", 403),
        ("http://localhost:3000", 403),
        ("http://localhost:12555.evil.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_a_page_of_another_origin_is_refused(origin: str, expected: int) -> None:
    assert status(Access("127.0.0.1"), host="localhost:12555", origin=origin) == expected


def test_with_a_token_a_server_on_every_address_goes_by_any_name() -> None:
    anywhere = Access("0.0.0.0", "secret")
    assert status(anywhere, host="judge.example", authorization="Bearer secret") == 200
    assert status(anywhere, host="judge.example") == 401
    assert status(Access("0.0.0.0"), host="judge.example") == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.0.7", "::", "example.org", "")))
