"""A run's folder that somebody else made does nothing by itself: no import, no key, no task sent without a word."""

from __future__ import annotations

import json
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from debate import Engine, Task
from debate.backends import Scripted
from debate.testing import reply_for
from debate.testing.fake_server import FakeServer, Request, every, failing, properly

KEY = "sk-VICTIM"
PLANTED = "open('PWNED', 'w').close()\n\n\ndef score(x, answer):\n    return 1.0\n"


@pytest.fixture(scope="module")
def shared_server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@pytest.fixture(scope="module")
def begun(shared_server: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that asked the server and got no answer."""
    cwd = tmp_path_factory.mktemp("begun")
    eval_set(cwd)
    shared_server.behavior = every(1, failing(401, "no"))
    where = ("--backend", "openai", "--base-url", f"{shared_server.url}/v1", "--model", "judge", "--rounds", "1")
    code, error = debate(cwd, "run", "tasks.jsonl", "--out", "out", *where)
    assert code == 4, error
    return cwd


@pytest.fixture
def server(shared_server: FakeServer, begun: Path, tmp_path: Path) -> FakeServer:
    """The server, which answers now; the run is in `out`."""
    shutil.copytree(begun / "out", tmp_path / "out")
    shared_server.requests.clear()
    shared_server.behavior = properly
    return shared_server


def debate(cwd: Path, *arguments: object, said: str | None = None, **environment: str) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DEBATE_", "OPENAI_"))}
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(cwd)])
    command = [sys.executable, "-m", "debate", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=120, input=said,
        env={**kept, "PYTHONPATH": path, "COLUMNS": "200", **environment},
    )  # fmt: skip
    return done.returncode, done.stderr


def eval_set(cwd: Path) -> None:
    tasks = [{"id": f"t{n}", "x": f"Question {n}?", "candidates": ["a", "b"]} for n in range(2)]
    (cwd / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))


def edited(cwd: Path, **settings: Any) -> None:
    """Change the settings in the folder's record, as somebody might, and nothing in its store."""
    file = cwd / "out" / "run.json"
    record = json.loads(file.read_text())
    record["settings"] = {name: value for name, value in (record["settings"] | settings).items() if value is not None}
    file.write_text(json.dumps(record))


def _forget_settings(cwd: Path) -> None:
    """Make the store one of a version that noted no settings."""
    with closing(sqlite3.connect(cwd / "out" / "run.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE runs SET about = json_remove(about, '$.settings')")


def authorizations(requests: list[Request]) -> set[str | None]:
    return {request.headers.get("authorization") for request in requests}


# ---- servers


def test_no_key_is_sent_to_an_address_that_the_folder_alone_names(tmp_path: Path, server: FakeServer) -> None:
    code, error = debate(tmp_path, "resume", "out", OPENAI_API_KEY=KEY)
    assert (code, server.requests) == (2, [])
    assert f"names the server {server.url}/v1, which would be sent the key in OPENAI_API_KEY" in error
    assert "debate resume out --trust" in error
    assert KEY not in error
    code, error = debate(tmp_path, "resume", "out", "--trust", OPENAI_API_KEY=KEY)
    assert code == 0, error
    assert authorizations(server.requests) == {f"Bearer {KEY}"}


def test_a_key_of_another_name_is_asked_about_too(tmp_path: Path, server: FakeServer) -> None:
    edited(tmp_path, engine_args={"api_key_env": "OTHER_KEY"})
    _forget_settings(tmp_path)
    code, error = debate(tmp_path, "resume", "out", OTHER_KEY=KEY)
    assert (code, server.requests) == (2, [])
    assert "the key in OTHER_KEY" in error


def test_a_server_on_this_machine_is_asked_without_a_word_where_there_is_no_key(
    tmp_path: Path, server: FakeServer
) -> None:
    code, error = debate(tmp_path, "resume", "out")
    assert code == 0, error
    assert authorizations(server.requests) == {None}


def test_no_task_is_sent_to_a_server_elsewhere_without_a_word(tmp_path: Path, server: FakeServer) -> None:
    edited(tmp_path, base_url="http://192.0.2.1/v1")
    file = tmp_path / "out" / "run.json"
    code, error = debate(tmp_path, "resume", "out")
    assert code == 2
    assert f"{file.relative_to(tmp_path)} says otherwise than the run's store: base_url: {server.url}/v1 -> " in error
    _forget_settings(tmp_path)  # as a store of an earlier version
    code, error = debate(tmp_path, "resume", "out")
    assert code == 2
    assert "names the server http://192.0.2.1/v1, which would be sent the tasks" in error


@pytest.mark.parametrize(("typed", "status"), [("yes", 0), ("y", 2), ("", 2)])
def test_the_user_may_type_yes(tmp_path: Path, server: FakeServer, typed: str, status: int) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OPENAI_API_KEY": KEY}
    command = [sys.executable, "-m", "debate", "resume", "out"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    )
    os.close(theirs)
    os.write(ours, f"{typed}\n".encode())
    said = b""
    with suppress(OSError):  # the other end is closed
        while part := os.read(ours, 4096):
            said += part
    os.close(ours)
    assert process.wait(timeout=60) == status, said.decode()
    assert b"Type yes if that is right" in said
    assert bool(server.requests) == (status == 0)


# ---- modules


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"evaluator": "callback", "options": {"function": "evilmod:score"}}, "evilmod:score"),
        ({"evaluator": "evilmod:score"}, "evilmod:score"),
        ({"backend": "evilmod:score", "base_url": None}, "evilmod:score"),
        ({"evaluator": "callback", "options": {"function": "debate.files:os.execv"}}, "debate.files:os.execv"),
        ({"models": {"other": {"backend": "evilmod:score"}}}, "evilmod:score"),
        ({"backend": "scripted", "base_url": None, "engine_args": {"fn": "evilmod:score"}}, "evilmod:score"),
    ],
)
def test_no_module_is_imported_that_the_folder_alone_names(
    tmp_path: Path, server: FakeServer, settings: dict[str, Any], named: str
) -> None:
    planted(tmp_path, **settings)
    _forget_settings(tmp_path)
    code, error = debate(tmp_path, "resume", "out")
    assert code == 2, error
    assert f"names {named}, which would be imported" in error
    assert not (tmp_path / "PWNED").exists()
    assert server.requests == []


def test_settings_that_were_changed_are_seen_before_anything_is_imported(tmp_path: Path, server: FakeServer) -> None:
    planted(tmp_path, evaluator="callback", options={"function": "evilmod:score"})
    code, error = debate(tmp_path, "resume", "out")
    assert code == 2
    assert "says otherwise than the run's store: evaluator: not there -> callback" in error
    assert not (tmp_path / "PWNED").exists()


def planted(cwd: Path, **settings: Any) -> None:
    (cwd / "evilmod.py").write_text(PLANTED)
    edited(cwd, **settings, **({"rounds": None} if "evaluator" in settings else {}))


@pytest.mark.parametrize(
    "engine_args", [{"trust_remote_code": True}, {"worker_cls": "evil.Worker"}, {"hf_overrides": {"a": 1}}]
)
def test_no_engine_argument_that_can_load_code_is_used_without_a_word(
    tmp_path: Path, server: FakeServer, engine_args: dict[str, Any]
) -> None:
    edited(tmp_path, backend="vllm", base_url=None, engine_args=engine_args)
    _forget_settings(tmp_path)
    code, error = debate(tmp_path, "resume", "out")
    assert code == 2
    assert f"sets the engine argument {next(iter(engine_args))}=" in error


def test_a_module_that_the_user_trusts_is_imported(tmp_path: Path) -> None:
    eval_set(tmp_path)
    (tmp_path / "mine.py").write_text("def score(x, answer):\n    return 1.0\n")
    option = ("--option", "function=mine:score", "--option", "scale=[0, 1]")
    code, error = debate(
        tmp_path, "run", "tasks.jsonl", "--out", "out", "--evaluator", "callback", *option, "--limit", "1"
    )
    assert code == 0, error
    code, error = debate(tmp_path, "resume", "out")
    assert code == 2
    assert "names mine:score, which would be imported" in error
    code, error = debate(tmp_path, "resume", "out", "--trust")
    assert code == 0, error


# ---- what is said of other runs


def test_a_run_that_was_begun_in_python_says_where_it_goes_on(tmp_path: Path) -> None:
    eval_set(tmp_path)
    code = (
        "from pathlib import Path\n"
        "from debate.backends import Scripted\n"
        "from debate.dataset.evalset import EvalSet\n"
        "from debate.jobs.run import Run\n"
        "from debate.testing import SilentListener, reply_for\n"
        "from tests.small_flows import debates\n"
        "run = Run(evalset=EvalSet(Path('tasks.jsonl')), folder=Path('out'), evaluator=debates())\n"
        "run.execute({'mine': Scripted(reply_for)}, SilentListener())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60, env=environment)
    status, error = debate(tmp_path, "resume", "out")
    assert status == 2
    assert "out: was begun in Python: its settings name neither model nor evaluator" in error
    assert "Run(evalset=None" in error


def test_a_store_that_python_made_is_no_run_of_the_command_line_and_says_how_to_go_on(tmp_path: Path) -> None:
    with Engine(Scripted(reply_for), store=tmp_path / "mine.sqlite") as engine:
        engine.evaluate(Task("2 + 2?", ["4", "5"]), run="mine")
    status, error = debate(tmp_path, "resume", "mine.sqlite")
    assert status == 2
    assert "mine.sqlite: is a file, not the folder of a run" in error
    assert "store='mine.sqlite').evaluate_batch(tasks, evaluator, run=NAME)" in error


def test_a_model_that_a_persona_asks_for_is_missed_with_the_flag_that_names_it(tmp_path: Path) -> None:
    eval_set(tmp_path)
    (tmp_path / "mine.yaml").write_text("personas:\n- name: Doctor\n  role: You heal.\n  model: clinician\n")
    where = ("--backend", "openai", "--base-url", "http://127.0.0.1:9/v1", "--model", "judge")
    code, error = debate(tmp_path, "run", "tasks.jsonl", "--profile", "mine.yaml", "--out", "out", *where)
    assert code == 2
    assert "asks for the model 'clinician', and the run has 'judge'" in error
    assert "--models clinician={backend: B, model: M}" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["built_in", "builtin", "Built-In"])
def test_a_name_near_the_bundled_judge_is_refused_with_it(tmp_path: Path, name: str) -> None:
    eval_set(tmp_path)
    code, error = debate(tmp_path, "run", "tasks.jsonl", "--model", name, "--out", "out")
    assert code == 2
    assert "did you mean 'built-in'?" in error
    assert not (tmp_path / "out").exists()
