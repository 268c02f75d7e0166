"""`debate run --backend openai --base-url ...` as a user meets it, against a server in every state of health."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from debate import Engine, Price, Usage, load
from debate.backends import Call, OpenAICompatible, Scripted
from debate.errors import ConfigError
from debate.flow import Block, Completion, Flow, Generate, Prompt, ReadOut, Segment, generate
from debate.testing import check_backend
from debate.testing.fake_server import (
    DIE,
    HANG,
    FakeServer,
    Reply,
    Request,
    completion,
    every,
    failing,
    from_the,
    judgment,
)
from tests.backends.asking import tasks
from tests.command_line import debate
from tests.driving import evaluator
from tests.processes import processes_left, processes_of_session

KEY = "sk-TESTSECRET123"
QUICK = ["first_wait=0.001", "longest_wait=0.01", "timeout=2", "deadline=8"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def evalset(tmp_path: Path) -> Path:
    rows = [{"id": task.id, "x": task.x + " </s>", "candidates": ["yes", "no"]} for task in tasks(12)]
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(monkeypatch: pytest.MonkeyPatch, evalset: Path, server: FakeServer, *more: object) -> int:
    backend = ["--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "tiny", *more]
    quick = [word for setting in QUICK for word in ("--engine-arg", setting)]
    out = ["--rounds", 1, "--out", evalset.parent / "out"]
    return debate(monkeypatch, "run", evalset, *backend, *quick, *out)


def results(evalset: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (evalset.parent / "out" / "results.jsonl").read_text().splitlines()]


def keys_of(value: Any) -> Any:
    """The shape of a record: names at every depth, without what they stand for."""
    if isinstance(value, dict):
        return {key: keys_of(item) for key, item in value.items() if key not in ("labels", "seconds")}  # pyright: ignore
    return [keys_of(item) for item in value] if isinstance(value, list) else None  # pyright: ignore


def scripted(call: Call) -> str:
    assert call.schema is not None
    return judgment(call.schema)


def test_results_of_a_server_have_the_form_of_those_in_process(evalset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer() as server:
        assert run(monkeypatch, evalset, server) == 0
    records = results(evalset)
    assert {record["task_id"] for record in records} == {task.id for task in tasks(12)}
    assert {record["status"] for record in records} == {"ok"}
    from debate import DebateEvaluator

    with Engine(Scripted(scripted)) as engine:
        in_process = engine.evaluate(tasks(1)[0], DebateEvaluator("general", rounds=1)).to_dict()
    assert keys_of(records[0]) == keys_of(json.loads(json.dumps(in_process)))


def test_show_tells_of_escaped_special_tokens(
    evalset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer() as server:
        run(monkeypatch, evalset, server)
    capsys.readouterr()
    first = results(evalset)[0]
    assert debate(monkeypatch, "show", evalset.parent / "out", first["task_id"]) == 0
    turns = len(first["transcript"])
    assert capsys.readouterr().out.count("special tokens escaped in the prompt: 1") == turns


def test_a_server_that_fails_a_tenth_of_requests_costs_no_score(evalset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(every(10, failing(500))) as server:
        assert run(monkeypatch, evalset, server) == 0
    assert [record["status"] for record in results(evalset)] == ["ok"] * 12


def test_a_server_that_dies_leaves_a_run_that_the_same_command_completes(
    evalset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = ["--max-concurrency", 3]
    with FakeServer(from_the(20, DIE)) as server:
        assert run(monkeypatch, evalset, server, *narrow) == 4
    error = capsys.readouterr().err
    assert f"error: tiny at {server.url}/v1: no connection" in error
    assert "Traceback" not in error
    kept = results(evalset)
    assert 4 <= len(kept) <= 6
    assert {record["status"] for record in kept} == {"ok"}
    with FakeServer() as server:
        assert run(monkeypatch, evalset, server, *narrow) == 0
    records = results(evalset)
    assert records[: len(kept)] == kept
    assert sorted(record["task_id"] for record in records) == sorted(task.id for task in tasks(12))


def test_a_server_that_hangs_for_good_ends_the_run(
    evalset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    with FakeServer(lambda request: HANG) as server:
        assert run(monkeypatch, evalset, server, "--engine-arg", "timeout=0.5", "--engine-arg", "deadline=1") == 4
    assert time.monotonic() - began < 10
    assert "no answer within" in capsys.readouterr().err


def test_replies_that_can_never_be_read_are_failures_and_no_scores(
    evalset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeServer(lambda request: Reply(body=completion("I like both."))) as server:
        assert run(monkeypatch, evalset, server) == 3
    records = results(evalset)
    assert [record["status"] for record in records] == ["failed"] * 12
    assert {score for record in records for score in record["scores"]} == {None}


@pytest.mark.parametrize("status", [200, 401, 500])
def test_the_key_is_in_no_output_and_no_file(
    evalset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    with FakeServer(lambda request: failing(status, f"what about {KEY}?") if status > 200 else None) as server:
        assert run(monkeypatch, evalset, server) == (0 if status == 200 else 4)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    written = "".join(
        path.read_bytes().decode("utf-8", "replace") for path in (evalset.parent / "out").rglob("*") if path.is_file()
    )
    captured = capsys.readouterr()
    assert '"tiny"' in written
    assert "SECRET" not in written + captured.out + captured.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--base-url", f"http://me:{KEY}@127.0.0.1/v1"], "user name"),
        (["--base-url", "http://169.254.169.254/v1"], "link-local"),
        (["--base-url", "http://127.0.0.1/v1", "--engine-arg", f"api_key={KEY}"], "api_key"),
        (["--base-url", "http://127.0.0.1/v1", "--engine-arg", "timeout=soon"], "timeout: must be a number"),
        (["--base-url", "http://127.0.0.1/v1", "--engine-arg", "attempts=0"], "attempts"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_sent(
    evalset: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    problem: str,
) -> None:
    assert debate(monkeypatch, "run", evalset, "--backend", "openai", "--model", "tiny", *arguments) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert "SECRET" not in error


SERVE = [
    "--dtype", "bfloat16", "--enforce-eager", "--max-model-len", "16384", "--max-num-seqs", "16",
    "--kv-cache-memory-bytes", "268435456", "--no-enable-chunked-prefill", "--max-num-batched-tokens", "16384",
    "--max-logprobs", "-1", "--structured-outputs-config", '{"backend":"xgrammar","disable_any_whitespace":true}',
]  # fmt: skip


@contextmanager
def vllm_serve(model: Path, log: Path) -> Generator[str]:
    """The base URL of a `vllm serve` in a session of its own, of which no process is left at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port), "--served-model-name", "tiny", *SERVE],
            stdout=output, stderr=output, env=environment, start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 240
        while not is_healthy(f"http://127.0.0.1:{port}/health"):
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            if processes_of_session(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
    assert processes_left(process.pid) == []


def is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


def read_out() -> Flow[Completion]:
    """Two places of a reply, read out."""
    texts = ('{"comment":"Good.","score":', '{"comment":"Bad, as all have said before.","score":')
    labels = ReadOut(tuple(map(str, range(11))), tuple((Block([Segment(text, is_content=True)]),) for text in texts))
    messages = [{"role": "system", "content": "You judge."}, {"role": "user", "content": "What is it worth?"}]
    answer = yield from generate(Generate(prompt=Prompt.from_messages(messages), read_out=labels))
    assert isinstance(answer, Completion), answer
    return answer


@pytest.mark.vllm
def test_debates_over_vllm_serve_are_complete_and_in_range_and_labels_are_those_of_vllm_in_process(
    tiny_model: Path, vllm_engine: Engine, tmp_path: Path
) -> None:
    settings = evaluator(rounds=1, comment_chars=12, overall_chars=12)
    with vllm_serve(tiny_model, tmp_path / "log") as url:
        backend = OpenAICompatible("tiny", url, slots=8)
        with Engine(backend) as engine:
            evaluations = engine.evaluate_batch(tasks(4), settings)
            again = engine.evaluate_batch(tasks(4), settings)
        check_backend(OpenAICompatible("tiny", url, slots=8))
        every_token = {"top_logprobs": -1}
        with Engine(OpenAICompatible("tiny", url, extra_body=every_token)) as engine:
            served, own = engine.drive(read_out()), vllm_engine.drive(read_out())
    assert len(served.distributions) == len(own.distributions) == 2
    for one, other in zip(served.distributions, own.distributions, strict=True):
        # The shares of 1 and 10 are too small in this model for a request that tells them apart.
        for label in map(str, range(2, 10)):
            expected = other.probabilities[label] * other.mass
            assert one.probabilities[label] * one.mass == pytest.approx(expected, rel=0.05)
    with Engine(Scripted(scripted)) as engine:
        in_process = engine.evaluate(tasks(1)[0], settings).to_dict()
    assert backend.response_format.current == "json_schema"
    for evaluation, same in zip(evaluations, again, strict=True):
        assert evaluation.status == "ok"
        assert evaluation.tensor is not None
        assert ((evaluation.tensor >= 0) & (evaluation.tensor <= 10)).all()
        assert evaluation.usage.prompt_tokens > 100
        assert (same.tensor == evaluation.tensor).all()
        assert keys_of(json.loads(evaluation.to_json())) == keys_of(json.loads(json.dumps(in_process)))


# Cost. The fake server counts 100 tokens for each prompt and 20 for each reply.


def cost_line(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("cost ")).split(maxsplit=1)[1].strip()


def test_the_cost_of_a_run_is_that_of_a_hand_count(
    evalset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(request: Request) -> Reply | None:
        if request.n % 5 == 0:  # refused, and asked again
            return failing(503)
        said = completion(judgment(request.schema or {}))
        said["usage"]["prompt_tokens_details"] = {"cached_tokens": 40}
        return Reply(body=said)

    with FakeServer(answer) as server:
        assert run(monkeypatch, evalset, server, "--price", "2,0.5,30") == 0
        asked = sum(request.n % 5 != 0 for request in server.requests)
    assert asked == 12 * 3  # tasks and agents
    by_hand = asked * (60 * 2 + 40 * 0.5 + 20 * 30) / 1e6
    assert by_hand == pytest.approx(0.02664)
    assert cost_line(capsys.readouterr().out) == "0.0266"
    found = load(evalset.parent / "out")
    assert found.cost() == pytest.approx(by_hand)
    assert found.cost(Price(1, 0)) == pytest.approx(asked * 100 / 1e6)
    assert found.used() == {"tiny": Usage(100 * asked, 40 * asked, 20 * asked, asked)}


def test_a_run_ends_in_order_when_its_money_is_spent_and_goes_on_with_more(
    evalset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    each = (100 * 1000 + 20 * 1000) / 1e6
    priced = ["--price", "1000,1000", "--max-concurrency", 1]
    with FakeServer() as server:
        assert run(monkeypatch, evalset, server, *priced, "--max-cost", 10 * each) == 3
        assert len(server.requests) == 10
        assert f"error: the run's {10 * each:g} of --max-cost are spent" in capsys.readouterr().err
        assert run(monkeypatch, evalset, server, *priced, "--max-cost", 10 * each) == 3  # what was spent stays spent
        assert len(server.requests) == 10
        again = ["resume", evalset.parent / "out", "--trust", "--max-cost", 1000 * each]
        assert debate(monkeypatch, *again) == 0
        assert len(server.requests) == 12 * 3
    assert cost_line(capsys.readouterr().out) == f"{36 * each:.2f}"


def test_several_models_are_priced_apart_and_one_without_a_price_is_named(
    evalset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer() as server:
        profile, config = evalset.parent / "two.yaml", evalset.parent / "config.yaml"
        profile.write_text(
            "name: two\npersonas:\n  - {name: One, role: Judge.}\n  - {name: Two, role: Judge., model: big}\n"
            "components:\n  - {name: good, description: Good.}\n"
        )
        big = {"backend": "openai", "base_url": f"{server.url}/v1", "model": "large", "price": [100, 50]}
        config.write_text(json.dumps({"profile": str(profile), "models": {"big": big}}))
        refused = run(monkeypatch, evalset, server, "--config", config, "--max-cost", 1)
        assert (refused, len(server.requests)) == (2, 0)
        assert "max_cost: needs the price of 'tiny'" in capsys.readouterr().err
        assert run(monkeypatch, evalset, server, "--config", config, "--max-cost", 1, "--price", "10,0") == 0
    assert cost_line(capsys.readouterr().out) == "0.1440 = 0.1320 big + 0.0120 tiny"
    found = load(evalset.parent / "out")
    assert found.cost() == pytest.approx(12 * (100 * 100 + 20 * 50 + 100 * 10) / 1e6)
    with pytest.raises(ConfigError, match="needs the price of 'big'"):
        found.cost({"tiny": Price(1, 1)})
