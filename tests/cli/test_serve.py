"""`debate serve` refuses what would let anybody in, and ends when it is told to."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from debate.cli import app
from debate.errors import ConfigError
from debate.server.access import is_loopback
from debate.testing.fake_server import HANG, FakeServer
from tests.processes import free_port, wait_until_it_listens
from tests.required import required, required_module

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::", "example.org"])
def test_an_address_that_others_can_reach_needs_a_token(host: str) -> None:
    result = CliRunner().invoke(app, ["serve", "--host", host, "--model", "m"])
    assert isinstance(result.exception, ConfigError)
    assert "can be reached from outside" in str(result.exception)
    assert not is_loopback(host)


def test_help_shows_an_example() -> None:
    assert "debate serve --model built-in" in CliRunner().invoke(app, ["serve", "--help"]).output


def test_a_judge_with_roles_of_its_own_is_refused_on_a_chat_server_before_it_listens() -> None:
    required_module("fastapi")
    with FakeServer() as model, serving(model, "--option", "judge=value_model") as (process, _):
        _, said = process.communicate(timeout=30)
        assert process.returncode == 2
    assert "tiny is a chat model" in said
    assert model.requests == []


def test_a_debate_and_a_value_model_are_served_side_by_side() -> None:
    required_module("fastapi")
    with FakeServer() as model, serving(model, "--rounds", "1") as (process, port):
        evaluated = curl(f"http://127.0.0.1:{port}/evaluate", {"x": "2 + 2?", "candidates": ["4", "5"]})
        with send(port) as waiting:
            assert waiting.recv(4096).startswith(b"HTTP/1.1 200 ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert (evaluated["evaluator"], evaluated["status"], evaluated["rounds_run"]) == ("debate", "ok", 1)


def test_an_evaluator_that_is_named_is_served_at_all_addresses() -> None:
    required_module("fastapi")
    with FakeServer() as model, serving(model, "--evaluator", "value") as (_, port):
        evaluated = curl(f"http://127.0.0.1:{port}/evaluate", {"x": "2 + 2?", "candidates": ["4", "5"]})
    assert evaluated["evaluator"] == "value"


def curl(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """What `curl` is answered."""
    required(shutil.which("curl"), "curl is not installed")
    command = ["curl", "-sS", "--max-time", "60", "-d", json.dumps(body), url]
    return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=90).stdout)


def test_limits_are_flags_and_are_checked_like_settings() -> None:
    result = CliRunner().invoke(app, ["serve", "--max-conversations", "0", "--model", "m"])
    assert isinstance(result.exception, ConfigError)
    assert "max_conversations" in str(result.exception)


@contextmanager
def serving(model: FakeServer, *flags: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """`debate serve` in a process of its own, and the port where it answers."""
    port = free_port()
    chat = ["--backend", "openai", "--base-url", f"{model.url}/v1", "--model", "tiny", "--port", str(port)]
    command = [sys.executable, "-m", "debate", "serve", *chat, *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        try:
            wait_until_it_listens(process, port)
            yield process, port
        finally:
            process.kill()


def send(port: int) -> socket.socket:
    """A connection over which a conversation was sent."""
    said = [{"role": "user", "content": "2+2"}, {"role": "last_step", "content": "4"}]
    body = json.dumps({"messages": said})
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    head = f"POST /forward HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall((head + body).encode())
    return connection


def wait_for_a_request(model: FakeServer) -> None:
    deadline = time.monotonic() + 30
    while not model.requests and time.monotonic() < deadline:
        time.sleep(0.05)
    assert model.requests


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_within_its_grace_while_calls_hang(told: signal.Signals) -> None:
    required_module("fastapi")
    hangs = FakeServer(lambda request: HANG)
    with hangs as model, serving(model, "--grace-seconds", "1") as (process, port), send(port) as waiting:
        wait_for_a_request(model)
        process.send_signal(told)
        began = time.monotonic()
        _, said = process.communicate(timeout=30)
        assert time.monotonic() - began < 10
        answer = waiting.recv(4096)
    assert process.returncode == 0, said
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert "Traceback" not in said


def test_what_is_under_way_when_the_signal_comes_is_answered() -> None:
    required_module("fastapi")
    with FakeServer(delay=1.0) as model, serving(model) as (process, port):
        with send(port) as waiting:
            wait_for_a_request(model)
            process.send_signal(signal.SIGTERM)
            answer = waiting.recv(4096)
        assert process.wait(30) == 0
    assert answer.startswith(b"HTTP/1.1 200 ")
