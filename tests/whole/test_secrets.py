"""The key of a server: read from the environment, sent to the server, and shown nowhere."""

from __future__ import annotations

import logging
import socket
import traceback
from collections.abc import Callable, Iterator

import pytest

from debate.backends import Ollama, OpenAICompatible, RetryPolicy, ValueServer
from debate.errors import BackendError
from debate.memory.embedders import OpenAIEmbedder
from debate.testing.fake_server import HANG, RESET, Behavior, FakeServer, Reply, completion, failing, properly
from tests.backends.asking import QUICK, answer

KEY = "sk-TESTSECRET123"
TRACE = 1


@pytest.fixture(autouse=True)
def everything_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    names = ["httpx2", "httpcore2", "debate", "asyncio"]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(TRACE)
    with caplog.at_level(TRACE):
        yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def chat(url: str, policy: RetryPolicy) -> str:
    backend = OpenAICompatible("tiny", f"{url}/v1", retry_policy=policy)
    return said_by(backend, lambda: answer(backend).text)


def ollama(url: str, policy: RetryPolicy) -> str:
    backend = Ollama("tiny", url, retry_policy=policy, api_key_env="OPENAI_API_KEY")
    return said_by(backend, lambda: answer(backend).text)


def value_server(url: str, policy: RetryPolicy) -> str:
    backend = ValueServer(url, retry_policy=policy, api_key_env="OPENAI_API_KEY")
    return said_by(backend, lambda: answer(backend).text)


def embedder(url: str, policy: RetryPolicy) -> str:
    embedder = OpenAIEmbedder("tiny", f"{url}/v1", retry_policy=policy)
    try:
        return said_by(embedder, lambda: str(embedder.embed(["text"])))
    finally:
        embedder.close()


CLIENTS = {"chat": chat, "ollama": ollama, "value_server": value_server, "embedder": embedder}


def said_by(client: object, ask: Callable[[], str]) -> str:
    """The reply, or the error with its traceback, and what the client says of itself."""
    try:
        outcome = ask()
    except BackendError as error:
        outcome = "".join(traceback.format_exception(error)) + repr(error)
    return f"{outcome}\n{client!r} {client} {vars(client)!r}"


def logged(caplog: pytest.LogCaptureFixture) -> str:
    records = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    return f"{caplog.text}\n{records}"


SERVERS: dict[str, Behavior] = {
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


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", SERVERS)
def test_the_key_reaches_the_server_and_nothing_else(kind: str, client: str, caplog: pytest.LogCaptureFixture) -> None:
    policy = QUICK if kind != "hang" else RetryPolicy(timeout=0.1, deadline=0.2, first_wait=0.001)
    with FakeServer(SERVERS[kind]) as server:
        said = CLIENTS[client](server.url, policy) + logged(caplog)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "httpcore2" in said
    assert "SECRET" not in said


@pytest.mark.parametrize("client", CLIENTS)
def test_a_failed_connection_does_not_show_the_key(client: str, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        said = CLIENTS[client](f"http://127.0.0.1:{taken.getsockname()[1]}", QUICK) + logged(caplog)
    assert "no connection" in said
    assert "SECRET" not in said


def test_another_variable_may_hold_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {KEY}-mine\n")
    with FakeServer() as server:
        answer(OpenAICompatible("tiny", f"{server.url}/v1", retry_policy=QUICK, api_key_env="MY_KEY"))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}-mine"


def test_openais_key_is_sent_to_no_other_kind_of_server() -> None:
    with FakeServer() as server:
        answer(Ollama("tiny", server.url, retry_policy=QUICK))
        with pytest.raises(BackendError):
            answer(ValueServer(server.url, retry_policy=QUICK))
    assert not any("authorization" in request.headers for request in server.requests)
