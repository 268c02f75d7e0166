"""`debate doctor --backend openai`: asks the server's model, and says what works or what to do, in plain words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from debate.testing import FakeServer
from debate.testing.fake_server import Behavior, Reply, Request, completion, failing, only
from tests.command_line import debate


def asked(monkeypatch: pytest.MonkeyPatch, server: FakeServer, *more: object, model: str = "m") -> int:
    return debate(
        monkeypatch, "doctor", "--backend", "openai", "--base-url", f"{server.url}/v1", "--model", model, *more
    )


def words(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_a_server_that_can_all_is_said_to(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer() as server:
        assert asked(monkeypatch, server) == 0
        said = words(capsys)
        for expected in (
            f"address {server.url}/v1 model m, which answered in",
            "tokens 100 in, 20 out in the first reply",
            "schema whole, as response_format json_schema; the reply follows it",
            "read-outs --readout expected, --readout cells",
        ):
            assert expected in said
        assert said.endswith("Ready: a debate can run with this model.")


def plain(request: Request) -> Reply | None:
    return Reply(body={**completion("It is Canberra."), "usage": None})


def by_seed(request: Request) -> Reply | None:
    return None if "response_format" in request.body else Reply(body=completion(f"Boat {request.body.get('seed')}"))


def at_random(request: Request) -> Reply | None:
    return None if "response_format" in request.body else Reply(body=completion(f"Boat {request.n}"))


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        (only("json_schema_plain", "none"), "without bounds on texts and numbers; the reply follows it"),
        (only("json_object", "none"), "not taken; response_format json_object is, so replies are JSON of any form"),
        (only("none"), "not taken, in no form"),
        (plain, "json_schema; the reply does not follow it"),
        (plain, "tokens not counted: the server states no usage"),
        (plain, "Replies are not held to a schema"),
        (by_seed, "seeds work: the same seed gives the same reply"),
        (at_random, "seeds do not work: the same seed gave two replies"),
    ],
)
def test_what_a_server_cannot_do_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], behavior: Behavior, expected: str
) -> None:
    with FakeServer(behavior) as server:
        assert asked(monkeypatch, server) == 0
    assert expected in words(capsys)


def test_a_server_without_probabilities_can_be_read_out_in_no_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer(logprobs=False) as server:
        assert asked(monkeypatch, server, "--json") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["ready"]
    assert told["server"]["reads"] == {"expected": False, "cells": False}
    assert "gives no log-probabilities" in told["server"]["read_fault"]
    assert told["server"]["schema_form"] == "json_schema"


def not_there(request: Request) -> Reply | None:
    return failing(404)


def without_key(request: Request) -> Reply | None:
    return failing(401, "bad key")


def without_model(request: Request) -> Reply | None:
    if request.path == "/v1/models":
        return Reply(body={"data": [{"id": "tiny"}, {"id": "huge"}]})
    return failing(404, "The model does not exist.")


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        (without_model, "the server has tiny, huge; did you mean --model tiny?"),
        (not_there, "is the address right, with /v1 at its end"),
        (without_key, "set OPENAI_API_KEY in the environment"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], behavior: Behavior, expected: str
) -> None:
    with FakeServer(behavior) as server:
        assert asked(monkeypatch, server, model="tinny") == 1
    said = words(capsys)
    assert "To do: " in said
    assert expected in said


def test_nobody_at_the_address_is_said_soon(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer() as server:
        pass
    assert asked(monkeypatch, server, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["server"] is None
    assert not told["ready"]
    assert "is the server running" in told["to_do"][0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--base-url", "http://127.0.0.1:1/v1", "--model", "m"), "--backend openai for a server"),
        (("--backend", "opanai", "--model", "m"), "did you mean 'openai'?"),
        (("--backend", "openai", "--base-url", "http://127.0.0.1:1/v1"), "no model was given"),
        (("--backend", "value_server", "--base-url", "http://127.0.0.1:1"), "asks no chat model"),
    ],
)
def test_settings_that_name_nothing_to_ask_are_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.delenv("DEBATE_MODEL", raising=False)
    assert debate(monkeypatch, "doctor", *arguments) == 2
    assert expected in capsys.readouterr().err
