"""`debate run --otel` sends its traces to a collector, by OpenTelemetry's own variables."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.processes import free_port, wait_until_it_listens
from tests.required import required_module

required_module("opentelemetry.exporter.otlp.proto.http")


class Collector(ThreadingHTTPServer):
    """Takes what an exporter sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.taken: dict[str, bytes] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        assert isinstance(self.server, Collector)
        self.server.taken[self.path] = self.server.taken.get(self.path, b"") + body
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def evalset(tmp_path: Path) -> Path:
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": "sum", "x": "2 + 2?", "candidates": ["4", "5"]}\n')
    return path


def debate(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "debate", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**environment, **variables}
    )


def run(evalset: Path, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    out = str(evalset.parent / "run")
    common = ("--backend", "debate.testing:reply_for", "--rounds", "1", "--out", out)
    return debate("run", str(evalset), *common, *flags, **variables)


def test_spans_and_scores_arrive_at_the_collector(evalset: Path, collector: Collector) -> None:
    done = run(evalset, "--otel", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.returncode == 0, done.stderr
    for text in (b"invoke_workflow debate", b"invoke_agent", b"service.name", b"debate.task.id"):
        assert text in collector.taken["/v1/traces"]
    assert b"gen_ai.evaluation.result" in collector.taken["/v1/logs"]
    assert b"2 + 2" not in collector.taken["/v1/traces"]


def test_the_control_of_a_run_is_traced_as_the_run_is(evalset: Path, collector: Collector) -> None:
    done = run(evalset, "--control", "--otel", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.returncode == 0, done.stderr
    assert collector.taken["/v1/traces"].count(b"invoke_workflow debate") == 2


def test_without_the_flag_nothing_is_sent(evalset: Path, collector: Collector) -> None:
    done = run(evalset, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.returncode == 0, done.stderr
    assert collector.taken == {}


def test_an_unknown_exporter_is_refused_before_anything_runs(evalset: Path) -> None:
    done = run(evalset, "--otel", OTEL_TRACES_EXPORTER="jaeger")
    assert done.returncode == 2
    assert "OTEL_TRACES_EXPORTER must be otlp, console or none, got 'jaeger'" in done.stderr


TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize("of_caller", [True, False])
def test_spans_of_a_request_to_a_server_are_in_the_trace_of_its_sender(collector: Collector, of_caller: bool) -> None:
    required_module("fastapi")
    with serving("--backend", "debate.testing:reply_for", "--rounds", "1", "--otel", to=collector) as url:
        request = urllib.request.Request(f"{url}/evaluate", b'{"x": "2 + 2?", "candidates": ["4", "5"]}')
        if of_caller:
            request.add_header("traceparent", f"00-{TRACE}-b7ad6b7169203331-01")
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["status"] == "ok"
    assert b"invoke_workflow debate" in collector.taken["/v1/traces"]
    assert (bytes.fromhex(TRACE) in collector.taken["/v1/traces"]) == of_caller


@contextmanager
def serving(*flags: str, to: Collector) -> Generator[str]:
    """The address of `debate serve`, whose traces go to a collector; ended as by Ctrl-C."""
    port = free_port()
    command = [sys.executable, "-m", "debate", "serve", *flags, "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = to.url
    with subprocess.Popen(command, env=environment) as process:
        try:
            wait_until_it_listens(process, port)
            yield f"http://127.0.0.1:{port}"
            process.terminate()
            process.wait(30)
        finally:
            process.kill()
