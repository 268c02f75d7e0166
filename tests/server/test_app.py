"""An evaluator served as x1's value model: its wire format, its refusals, its token, and our own client against it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from debate import Candidate, Engine, StepEvaluator, Task
from debate.backends import Call, RetryPolicy, Scripted, ValueServer
from debate.errors import BackendUnavailableError
from debate.evaluators.steps.reward_models import ValueModelSteps
from tests.required import required_module

required_module("fastapi")
import httpx2  # noqa: E402 - fastapi is looked for first
import uvicorn  # noqa: E402 - fastapi is looked for first

from debate.server.app import Unvalued, create_app, forward, valued_by  # noqa: E402 - fastapi is looked for first

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


@contextmanager
def served(app: Any) -> Generator[str]:
    """An address at which the application answers, over real HTTP."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(20)


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

        with served(create_app(noting)) as url, Engine(ValueServer(url, batch_size=2)) as engine:
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
    with served(create_app(tenths, token="secret")) as url, httpx2.Client() as client:
        body = {"messages": [TASK, STEP]}
        assert client.get(url).status_code == 401
        assert client.post(f"{url}/forward", json=body).status_code == 401
        wrong = {"Authorization": "Bearer wrong"}
        assert client.post(f"{url}/forward", json=body, headers=wrong).status_code == 401
        right = {"Authorization": "Bearer secret"}
        assert client.post(f"{url}/forward", json=body, headers=right).json() == {"result": [0.1]}
        assert client.get(url, headers=right).json()["allow_inference"] is True


def test_what_is_no_json_is_refused_and_not_a_fault_of_the_server() -> None:
    with served(create_app(tenths)) as url, httpx2.Client() as client:
        assert client.post(f"{url}/forward", content=b"{").status_code == 400
        assert client.post(f"{url}/forward", content=b"[" * 100_000).status_code == 400
        assert client.post(f"{url}/forward", content=b" " * (9 << 20)).status_code == 413


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
