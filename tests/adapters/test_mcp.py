"""The tool `judge_candidates` as the official client sees it, over the real command's stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from debate import Engine, Judge
from debate.backends import Call, Scripted
from tests.adapters.by_answer import ByAnswer, Late
from tests.required import required_module
from tests.scripts_loader import REPOSITORY
from tests.small_flows import Stalling, debates

mcp: Any = required_module("mcp")
pytestmark = pytest.mark.filterwarnings("ignore")

SUM = {"x": "What is 2 + 2?", "candidates": ["It is 8.", "It is 3."]}
BY_ANSWER = ByAnswer()


def script(call: Call) -> str:
    """For the command, in a process of its own. It writes to stdout as a library might."""
    sys.stdout.write("noise of a library\n")
    os.write(1, b"noise of a process\n")
    assert call.schema is not None
    names = call.schema["properties"]["candidates"]["properties"]["A"]["properties"]["scores"]["properties"]
    each = {"comment": "fine", "scores": dict.fromkeys(names, 7)}
    return json.dumps({"overall": "so it is", "candidates": dict.fromkeys(call.info["labels"], each)})


def command(*flags: str) -> Any:
    """How a client starts the command."""
    args = ["-m", "debate", "mcp", "--backend", "tests.adapters.test_mcp:script", "--profile", "general", *flags]
    environment = {"PYTHONPATH": str(REPOSITORY)}
    return mcp.StdioServerParameters(command=sys.executable, args=args, env=environment, cwd=str(REPOSITORY))


def ran(work: Coroutine[Any, Any, Any]) -> Any:
    async def in_time() -> Any:
        return await asyncio.wait_for(work, 120)

    return asyncio.run(in_time())


def test_the_official_client_starts_the_command_and_has_candidates_judged() -> None:
    rounds: list[tuple[float, float | None, str | None]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        rounds.append((progress, total, message))

    async def asked() -> Any:
        started = mcp.stdio_client(command("--rounds", "3", "--convergence", "none"))
        async with mcp.Client(started) as client:
            [tool] = (await client.list_tools()).tools
            found = await client.call_tool("judge_candidates", SUM, progress_callback=heard)
            return tool, found

    tool, found = ran(asked())
    assert tool.name == "judge_candidates"
    assert tool.input_schema["required"] == ["x", "candidates"]
    assert not found.is_error
    assert found.structured_content["scores"] == pytest.approx([0.7, 0.7])
    assert found.structured_content["tied"] == [0, 1]
    assert json.loads(found.content[0].text) == found.structured_content
    assert [each[:2] for each in rounds] == [(1, 3), (2, 3), (3, 3)]
    assert str(rounds[0][2]).startswith("round 1 has ended")


def test_stdout_carries_the_protocol_alone_and_the_end_of_stdin_ends_the_command() -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    said = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "judge_candidates", "arguments": SUM}},
    ]
    with begun() as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write("".join(json.dumps(each) + "\n" for each in said))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        rest, errors = process.stdout.read(), process.stderr.read()
        assert process.wait(30) == 0, errors
    assert [each["id"] for each in answers] == [1, 2]
    assert not answers[1]["result"]["isError"]
    assert rest == ""
    assert "noise of a process" in errors
    assert "Traceback" not in errors


def begun() -> subprocess.Popen[str]:
    given = command("--rounds", "1")
    environment = {**os.environ, **given.env}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [given.command, *given.args],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=environment,
        cwd=REPOSITORY,
    )


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command_while_stdin_is_open(told: signal.Signals) -> None:
    with begun() as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        began = time.monotonic()
        process.send_signal(told)
        process.wait(30)
        assert time.monotonic() - began < 15
        assert "Traceback" not in process.stderr.read()


@asynccontextmanager
async def connected(answer: Any) -> AsyncGenerator[Any]:
    """The official client in front of the server, in this process."""
    from debate.adapters.mcp import Rounds, tool_server

    rounds = Rounds()
    with Engine(Scripted(answer), on_turn=rounds.tell) as engine:
        judge = Judge(engine, debates(retries=0, rounds=1, abstain=True), memo=0)
        async with mcp.Client(tool_server(judge, rounds, 4000)) as client:
            yield client


def called(arguments: Any, name: str = "judge_candidates", answer: Any = BY_ANSWER.answer) -> Any:
    async def asked() -> Any:
        async with connected(answer) as client:
            return await client.call_tool(name, arguments)

    return ran(asked())


def test_the_answer_has_scores_components_and_feedback_of_each_candidate() -> None:
    found = called({**SUM, "reference": "4"}).structured_content
    assert found["status"] == "ok"
    assert found["selected"] == 0
    assert found["scores"] == pytest.approx([0.8, 0.3])
    assert found["components"][1] == pytest.approx({"clarity": 0.3, "truth": 0.3})
    assert "it is right" in found["feedback"][0]


def test_what_is_unscored_is_null_with_the_reason_and_no_number() -> None:
    found = called({"x": "a riddle", "candidates": ["8", "9"]})
    assert not found.is_error
    assert found.structured_content["scores"] == [None, None]
    assert found.structured_content["selected"] is None
    assert found.structured_content["error"]
    assert "was not scored" in found.structured_content["feedback"][0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": "Q"}, "candidates: is missing"),
        ({"x": "Q", "candidates": []}, "candidates: is empty"),
        ({"x": "Q", "candidates": ["A", 5]}, "candidates.1: must be text"),
        ({"x": "Q", "candidates": ["A"], "answers": []}, "answers: unknown key"),
    ],
)
def test_what_is_no_task_is_an_error_of_the_tool_with_a_sentence(arguments: Any, words: str) -> None:
    found = called(arguments)
    assert found.is_error
    assert words in found.content[0].text


def test_another_tool_is_an_error() -> None:
    found = called(SUM, name="judge")
    assert found.is_error
    assert "there is no tool 'judge'" in found.content[0].text


def test_a_model_that_is_gone_is_an_error_of_the_tool() -> None:
    from debate.errors import BackendUnavailableError

    def gone(call: Call) -> str:
        raise BackendUnavailableError("the engine died", hint="start it again")

    found = called(SUM, answer=gone)
    assert found.is_error
    assert "could not be judged: the engine died (start it again)" in found.content[0].text


def test_a_call_that_is_cancelled_cancels_the_calls_of_its_debate() -> None:
    script = Stalling()

    async def left() -> bool:
        async with connected(script.answer) as client:
            asking = asyncio.ensure_future(client.call_tool("judge_candidates", SUM))
            await asyncio.to_thread(script.asked.wait, 20)
            asking.cancel()
            return await asyncio.to_thread(script.cancelled.wait, 20)

    assert ran(left())


def test_calls_are_judged_side_by_side() -> None:
    late = Late(BY_ANSWER.answer, 0.3)

    async def asked() -> list[Any]:
        async with connected(late.answer) as client:
            tasks = [{"x": f"{n} + 2?", "candidates": ["8"]} for n in range(6)]
            return await asyncio.gather(*(client.call_tool("judge_candidates", each) for each in tasks))

    assert all(not each.is_error for each in ran(asked()))
    assert late.most > 1
