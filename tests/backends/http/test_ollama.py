"""`Ollama` against servers that behave in every way a server may."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from debate import Engine
from debate.backends import Ollama, RetryPolicy
from debate.errors import BackendError, BackendUnavailableError, CallError, ConfigError
from debate.testing.fake_server import DRIP, HANG, RESET, FakeServer, Reply, every, failing, first, judgment
from debate.types import Sampling
from tests.backends.asking import QUICK, SCHEMA, answer, call_of, tasks
from tests.driving import evaluator


def backend_of(server: FakeServer, **changes: Any) -> Ollama:
    told: dict[str, Any] = {"retry_policy": QUICK, **changes}
    return Ollama("tiny", server.url, **told)


def said(text: object, **changes: object) -> Reply:
    return Reply(body={"message": {"role": "assistant", "content": text}, "done": True, **changes})


def test_a_request_carries_the_schema_as_its_format_and_sets_the_context() -> None:
    sampling = Sampling(temperature=0.5, top_p=0.9, top_k=40, min_p=0.1, max_tokens=64)
    with FakeServer() as server:
        got = answer(backend_of(server, context_length=2048), call_of("Which?", sampling=sampling))
    body = server.requests[0].body
    assert server.requests[0].path == "/api/chat"
    assert json.loads(got.text) == json.loads(judgment(SCHEMA))
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.calls) == (100, 20, 1)
    assert body.pop("messages")[1] == {"role": "user", "content": "Which?"}
    assert body.pop("options") == {
        "seed": 7, "num_ctx": 2048, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "num_predict": 64,
    }  # fmt: skip
    assert body == {"model": "tiny", "stream": False, "format": SCHEMA}


@pytest.mark.parametrize("suffix", ["", "/", "/api", "/api/"])
def test_the_address_may_end_in_api_or_not(suffix: str) -> None:
    with FakeServer() as server:
        answer(Ollama("tiny", server.url + suffix, retry_policy=QUICK))
    assert server.requests[0].path == "/api/chat"


def test_a_whole_debate_is_scored() -> None:
    with FakeServer(every(10, failing(503))) as server, Engine(backend_of(server)) as engine:
        evaluations = engine.evaluate_batch(tasks(10), evaluator(rounds=2))
    assert [evaluation.status for evaluation in evaluations] == ["ok"] * 10


def test_control_strings_are_broken_and_counted() -> None:
    with FakeServer() as server:
        assert answer(backend_of(server), call_of("a <|im_end|> b")).escaped_special_tokens == 1
    assert server.requests[0].text.endswith("a <·|im_end|> b")


def test_a_reply_that_was_cut_off_is_called_so() -> None:
    with FakeServer(lambda request: said('{"ov', done_reason="length")) as server:
        assert answer(backend_of(server)).finish_reason == "length"


def test_a_prompt_that_fills_the_context_fails_its_call_alone() -> None:
    with FakeServer(first(1, said("{}", prompt_eval_count=2048))) as server:
        backend = backend_of(server, context_length=2048)
        with pytest.raises(CallError, match="raise context_length") as caught:
            answer(backend)
        assert answer(backend).text
    assert caught.value.reason == "context_length"
    assert len(server.requests) == 2


PASSING = {
    "500": failing(500), "429": failing(429, retry_after="0"), "reset": RESET, "no JSON": Reply(body=b"{"),
    "a list": Reply(body=[]), "no message": Reply(body={"done": True}), "no text": said(None),
    "unfinished": said("{", done=False), "message of another kind": Reply(body={"message": "x"}),
    "502 in HTML": Reply(502, b"<html>"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PASSING)
def test_a_fault_that_passes_costs_one_more_attempt_and_nothing_else(kind: str) -> None:
    with FakeServer(first(1, PASSING[kind])) as server:
        assert json.loads(answer(backend_of(server)).text)
    assert len(server.requests) == 2


@pytest.mark.parametrize("kind", PASSING)
def test_a_fault_that_stays_ends_within_the_attempts(kind: str) -> None:
    given_up = pytest.raises(BackendError, match="given up after 5 attempts")
    with FakeServer(lambda request: PASSING[kind]) as server, given_up:
        answer(backend_of(server))
    assert len(server.requests) == 5


@pytest.mark.parametrize("trouble", [HANG, DRIP], ids=["hang", "drip"])
def test_a_server_that_does_not_come_to_an_end_is_cut_off_at_the_deadline(trouble: Reply) -> None:
    began = time.monotonic()
    retry_policy = RetryPolicy(timeout=0.3, deadline=0.8, first_wait=0.001)
    with FakeServer(lambda request: trouble) as server, pytest.raises(BackendError):
        answer(backend_of(server, retry_policy=retry_policy))
    assert time.monotonic() - began < 20


def test_a_model_that_is_not_there_ends_everything_and_says_how_to_get_it() -> None:
    missing = Reply(404, {"error": "model 'tiny' not found"})
    said_so = pytest.raises(BackendUnavailableError, match=r"model 'tiny' not found \(`ollama pull tiny` fetches it\)")
    with FakeServer(lambda request: missing) as server, said_so:
        answer(backend_of(server))
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed() -> None:
    with FakeServer() as other:
        redirect = Reply(302, b"", {"location": f"{other.url}/api/chat"})
        with (
            FakeServer(lambda request: redirect) as server,
            pytest.raises(BackendUnavailableError, match="not followed"),
        ):
            answer(backend_of(server))
    assert other.requests == []


def test_no_context_is_refused() -> None:
    with pytest.raises(ConfigError, match="context_length"):
        Ollama("m", context_length=0)
