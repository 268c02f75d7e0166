"""The key of a server: read from the environment, sent to the server, and shown nowhere."""

from __future__ import annotations

import logging
import socket
import traceback
from collections.abc import Iterator

import pytest

from debate.backends import OpenAICompatible, RetryPolicy
from debate.errors import BackendError
from tests.backends.asking import QUICK, answer
from tests.backends.fake_server import HANG, RESET, Behaviour, FakeServer, Reply, completion, failing, properly

KEY = "sk-TESTSECRET123"
TRACE = 1


@pytest.fixture(autouse=True)
def everything_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    names = ["openai", "httpx2", "httpcore2", "debate", "asyncio"]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(TRACE)
    with caplog.at_level(TRACE):
        yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def everything_said(backend: OpenAICompatible, caplog: pytest.LogCaptureFixture) -> str:
    """All that a call leaves behind: its reply or its error with the traceback, the log and the backend's own words."""
    try:
        outcome = answer(backend).text
    except BackendError as error:
        outcome = "".join(traceback.format_exception(error)) + repr(error)
    log = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    return f"{outcome}\n{caplog.text}\n{log}\n{backend!r} {backend} {backend.capacity!r} {vars(backend)!r}"


SERVERS: dict[str, Behaviour] = {
    "success": properly,
    "401 that repeats the key": lambda request: failing(401, f"Incorrect API key provided: {KEY}. Find it at ..."),
    "401 that repeats it at the end of a long message": lambda request: failing(401, "x" * 490 + KEY),
    "401 in HTML": lambda request: Reply(401, f"<p>{KEY}</p>".encode(), {"content-type": "text/html"}),
    "401 of another shape": lambda request: Reply(401, {"error": f"bad key {KEY}", "key": KEY}),
    "400 about the schema": lambda request: failing(400, f"schema refused for {KEY}"),
    "400 about a parameter": lambda request: failing(400, f"Unsupported parameter: 'seed' {KEY}"),
    "500": lambda request: failing(500, f"no luck with {KEY}"),
    "no JSON": lambda request: Reply(200, f'{{"{KEY}'.encode()),
    "a string": lambda request: Reply(200, KEY),
    "refusal": lambda request: Reply(body=completion("", choices=[{"message": {"refusal": f"not for {KEY}"}}])),
    "reset": lambda request: RESET,
    "hang": lambda request: HANG,
}


@pytest.mark.parametrize("kind", SERVERS)
def test_the_key_reaches_the_server_and_nothing_else(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    retry_policy = QUICK if kind != "hang" else RetryPolicy(timeout=0.1, deadline=0.2, first_wait=0.001)
    with FakeServer(SERVERS[kind]) as server:
        said = everything_said(OpenAICompatible("tiny", f"{server.url}/v1", retry_policy=retry_policy), caplog)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "httpcore2" in said
    assert "SECRET" not in said


def test_a_failed_connection_does_not_show_the_key(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        said = everything_said(OpenAICompatible("tiny", url, retry_policy=QUICK), caplog)
    assert "no connection" in said
    assert "SECRET" not in said


def test_another_variable_may_hold_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {KEY}-mine\n")
    with FakeServer() as server:
        answer(OpenAICompatible("tiny", f"{server.url}/v1", retry_policy=QUICK, api_key_env="MY_KEY"))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}-mine"
