"""`/evaluate` and `/evaluate/batch` over real sockets, asked by `curl`: evaluations, refusals, clients that leave."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from debate import DebateEvaluator, Engine, Evaluation, Task
from debate.backends import Call, Scripted
from debate.config.settings import ServerLimits
from debate.errors import BackendUnavailableError, CallError
from debate.testing import reply_for
from tests.required import required, required_module
from tests.server.listening import connected, listening
from tests.small_flows import Stalling

required_module("fastapi")

from debate.server.app import create_app  # noqa: E402 - fastapi is looked for first
from debate.server.evaluations import Served  # noqa: E402

required(shutil.which("curl"), "curl is not installed")

DEBATE = DebateEvaluator("general", rounds=1, retries=0)
TASK = {"x": "What is 2 + 2?", "candidates": ["4", "5"]}


@contextmanager
def serving(script: Any = reply_for, **settings: Any) -> Generator[str]:
    """An address at which debates over a script are served."""
    with Engine(Scripted(script)) as engine, listening(create_app(served=Served(engine, DEBATE), **settings)) as url:
        yield url


def curl(url: str, body: Any = None, *flags: str) -> tuple[int, str]:
    """The status and the body of what `curl` is answered."""
    given = [] if body is None else ["--data-binary", "@-"]
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    command = ["curl", "-sS", "--max-time", "60", "-w", "\n%{http_code}", *given, *flags, url]
    done = subprocess.run(command, input=raw, capture_output=True, timeout=90, check=True)
    text, _, status = done.stdout.decode().rpartition("\n")
    return int(status), text


def test_curl_has_a_task_evaluated_as_python_has_it() -> None:
    with serving() as url:
        status, text = curl(f"{url}/evaluate", TASK)
    with Engine(Scripted(reply_for)) as engine:
        expected = engine.evaluate(Task("What is 2 + 2?", ["4", "5"]), DEBATE)
    assert status == 200
    found = Evaluation.from_dict(json.loads(text))
    for each in (one := found.to_dict(), other := expected.to_dict()):
        del each["seconds"]
    assert one == other


def test_a_batch_comes_back_in_its_order_with_failures_among_values() -> None:
    def script(call: Call) -> str:
        if "broken" in call.messages[-1]["content"]:
            raise CallError("server_error", "the server said 500")
        return reply_for(call)

    tasks = [{**TASK, "id": "a"}, {"x": "broken", "candidates": ["4", "5"], "id": "b"}, {**TASK, "id": "c"}]
    with serving(script) as url:
        status, text = curl(f"{url}/evaluate/batch", {"tasks": tasks})
    assert status == 200
    found = [Evaluation.from_dict(each) for each in json.loads(text)["evaluations"]]
    assert [(each.task_id, each.status) for each in found] == [("a", "ok"), ("b", "failed"), ("c", "ok")]
    assert json.loads(text)["evaluations"][1]["scores"] == [None, None]
    assert {failure.reason for failure in found[1].failures} == {"server_error"}


def test_a_file_of_tasks_is_answered_line_by_line_as_evaluations_finish() -> None:
    first_is_there = threading.Event()

    async def script(call: Call) -> str:
        while "late" in call.messages[-1]["content"] and not first_is_there.is_set():
            await asyncio.sleep(0.01)
        return reply_for(call)

    lines = [json.dumps({"x": x, "candidates": ["4", "5"]}) for x in ("late", "early")]
    kinds = ["-H", "Content-Type: application/x-ndjson", "-H", "Accept: application/x-ndjson"]
    with serving(script) as url:
        command = [
            "curl",
            "-sSN",
            "--max-time",
            "60",
            *kinds,
            "--data-binary",
            "\n".join(lines),
            f"{url}/evaluate/batch",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as asking:
            assert asking.stdout is not None
            early = json.loads(asking.stdout.readline())
            first_is_there.set()
            late = json.loads(asking.stdout.readline())
            assert asking.stdout.read() == b""
        assert asking.returncode == 0
    assert (early["index"], late["index"]) == (1, 0)
    assert Evaluation.from_dict(late["evaluation"]).status == "ok"


def test_requests_share_one_batch() -> None:
    now, most = 0, 0
    all_are_there = asyncio.Event()

    async def script(call: Call) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 4:
            all_are_there.set()
        await asyncio.wait_for(all_are_there.wait(), 30)
        now -= 1
        return reply_for(call)

    with Engine(Scripted(script, slots=8), max_concurrency=8) as engine:
        one = DebateEvaluator("general", rounds=1, mode="independent")
        with listening(create_app(served=Served(engine, one))) as url:
            asking = [threading.Thread(target=curl, args=(f"{url}/evaluate", {**TASK, "id": str(n)})) for n in range(2)]
            for each in asking:
                each.start()
            for each in asking:
                each.join(60)
    assert most >= 4


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("/evaluate", b"{", 422, None),
        ("/evaluate", {"x": "Q", "candidates": ["A", 7]}, 422, "candidates.1"),
        ("/evaluate/batch", {"tasks": [TASK, {"x": "Q"}]}, 422, "tasks.1.candidates"),
        ("/evaluate", b" " * 5000, 413, None),
        ("/evaluate", None, 405, None),
        ("/evaluated", TASK, 404, None),
        ("/forward", TASK, 404, None),
    ],
)
def test_what_is_wrong_is_answered_with_its_status_and_a_sentence(
    path: str, body: Any, status: int, field: str | None
) -> None:
    asked: list[Call] = []

    def script(call: Call) -> str:
        asked.append(call)
        return reply_for(call)

    with serving(script, limits=ServerLimits(max_body=4000)) as url:
        code, text = curl(f"{url}{path}", body)
    assert code == status
    said = json.loads(text)
    assert said["error"]
    assert said.get("field") == field
    assert asked == []


def test_a_token_is_asked_of_curl_but_not_for_the_description() -> None:
    with serving(token="secret") as url:
        assert curl(f"{url}/evaluate", TASK)[0] == 401
        assert curl(f"{url}/evaluate", TASK, "-H", "Authorization: Bearer wrong")[0] == 401
        assert curl(f"{url}/no/such/address")[0] == 401
        assert curl(f"{url}/evaluate", TASK, "-H", "Authorization: Bearer secret")[0] == 200
        assert curl(f"{url}/docs")[0] == 200
        assert curl(f"{url}/openapi.json")[0] == 200


def test_another_host_is_refused_everywhere() -> None:
    with serving() as url:
        for path, body in (("/evaluate", TASK), ("/evaluate/batch", {"tasks": [TASK]}), ("/docs", None)):
            assert curl(f"{url}{path}", body, "-H", "Host: evil.example")[0] == 403
            assert curl(f"{url}{path}", body, "-H", "Origin: http://evil.example")[0] == 403


@pytest.mark.parametrize(
    ("path", "body", "more"),
    [
        ("/evaluate", TASK, ""),
        ("/evaluate/batch", {"tasks": [TASK, TASK]}, ""),
        ("/evaluate/batch", {"tasks": [TASK, TASK]}, "Accept: application/x-ndjson\r\n"),
    ],
)
def test_a_client_that_leaves_in_the_middle_cancels_its_calls_and_leaves_nothing(
    path: str, body: Any, more: str
) -> None:
    script = Stalling()
    now: list[Call] = []

    async def counted(call: Call) -> str:
        now.append(call)
        try:
            return await script.answer(call)
        finally:
            now.remove(call)

    with serving(counted) as url:
        with connected(url) as leaving:
            raw = json.dumps(body).encode()
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: {len(raw)}\r\n\r\n"
            leaving.sendall(head.encode() + raw)
            assert script.asked.wait(20)
            assert not script.cancelled.is_set()
        assert script.cancelled.wait(20)
        deadline = time.monotonic() + 20
        while now and time.monotonic() < deadline:
            time.sleep(0.01)
        assert now == []
        assert curl(f"{url}/")[0] == 200


def test_a_model_that_is_gone_is_503_for_one_and_a_failure_for_each_of_many(caplog: pytest.LogCaptureFixture) -> None:
    def script(call: Call) -> str:
        raise BackendUnavailableError("the engine died of key sk-123")

    with serving(script) as url:
        status, text = curl(f"{url}/evaluate", TASK)
        several = curl(f"{url}/evaluate/batch", {"tasks": [TASK, TASK]})
    assert status == 503
    assert "sk-123" not in text
    assert "sk-123" in caplog.text
    assert several[0] == 200
    assert [each["status"] for each in json.loads(several[1])["evaluations"]] == ["failed", "failed"]
