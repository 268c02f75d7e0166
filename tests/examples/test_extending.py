"""`examples/extending`: an evaluator, a backend, an export and a format in a package of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from debate import Task
from debate.errors import TaskError
from debate.testing import check_backend, check_evaluator

EXTENDING = Path(__file__).resolve().parents[2] / "examples" / "extending"
REPOSITORY = EXTENDING.parents[1]
QUIZ = [
    {"question": "What is 2 + 2?", "options": ["3", "4"], "answer": "4", "topic": "sums"},
    {"question": "What is 3 + 3?", "options": ["6", "5"], "answer": "6", "topic": "sums"},
]


class LlamaServer(BaseHTTPRequestHandler):
    """Enough of llama.cpp's server: yes where the prompt holds a right answer."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        text, cut = self.reply(body)
        answer = {
            "content": text,
            "tokens_evaluated": 10,
            "tokens_predicted": 5,
            "stop_type": "limit" if cut else "eos",
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def reply(self, body: dict[str, Any]) -> tuple[str, bool]:
        properties = body.get("json_schema", {}).get("properties", {})
        if "met" in properties:
            is_right = any(right in body["prompt"] for right in ("# Answer\n4\n", "# Answer\n6\n"))
            return json.dumps({"reason": "computed", "met": is_right}), False
        return json.dumps(dict.fromkeys(properties, 5) | {"comment": "fine"}), body["n_predict"] == 1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Address of the server, and what it was asked."""
    asked: list[dict[str, Any]] = []
    handler = type("Handler", (LlamaServer,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}", asked
        serving.shutdown()


def loaded(monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    monkeypatch.syspath_prepend(EXTENDING)  # pyright: ignore[reportUnknownMemberType]
    return import_module(f"debate_extras.{name}")


def test_the_evaluator_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    checklist = loaded(monkeypatch, "checklist")
    check_evaluator(checklist.Checklist(), [Task("What is 2 + 2?", ["4", "5"]), Task("Say yes.", ["Yes."])])


def test_the_backend_keeps_the_contract(
    monkeypatch: pytest.MonkeyPatch, server: tuple[str, list[dict[str, Any]]]
) -> None:
    check_backend(loaded(monkeypatch, "llama_cpp").LlamaCpp(base_url=server[0]))


def test_the_format_refuses_an_answer_that_is_not_an_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from debate.dataset import Record

    quiz = loaded(monkeypatch, "quiz")
    record = Record({**QUIZ[0], "answer": "5"}, tmp_path / "quiz.jsonl", 7)
    with pytest.raises(TaskError, match=r"quiz\.jsonl:7: answer: must be one of the options"):
        list(quiz.quiz(iter([record])))


# ---- installed, and used from the command line


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which the package is installed, with its entry points."""
    site = tmp_path / "site"
    shutil.copytree(EXTENDING / "debate_extras", site / "debate_extras")
    project = tomllib.loads((EXTENDING / "pyproject.toml").read_text())["project"]
    about = site / f"debate_extras-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    points = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{n} = {target}\n" for n, target in named.items()) for group, named in points]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(REPOSITORY)]), "COLUMNS": "200"}


def debate(environment: dict[str, str], *words: object) -> str:
    command = [sys.executable, "-m", "debate", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_package_is_run_resumed_exported_and_listed(
    environment: dict[str, str], tmp_path: Path, server: tuple[str, list[dict[str, Any]]]
) -> None:
    url, asked = server
    evalset, out = tmp_path / "quiz.jsonl", tmp_path / "run"
    evalset.write_text("".join(json.dumps(row) + "\n" for row in QUIZ))
    names = ("--format", "quiz", "--evaluator", "checklist", "--backend", "llama_cpp")
    run = ("run", evalset, *names, "--base-url", url, "--out", out)

    assert "2 of 2" in debate(environment, *run, "--option", "questions=Is it right?")
    assert len(asked) == 4
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert sorted(result["scores"] for result in results) == [[0.0, 1.0], [1.0, 0.0]]

    debate(environment, "resume", out)
    assert len(asked) == 4

    debate(environment, "export", out, "--to", "markdown")
    assert "- 1.00 (selected): 4" in (out / "results.md").read_text()

    shown = " ".join(debate(environment, "run", "--help").replace("│", " ").split())
    assert all(f"{name} (from debate-extras)" in shown for name in ("checklist", "llama_cpp", "quiz"))
