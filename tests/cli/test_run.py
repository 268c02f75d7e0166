"""`debate run` as a user meets it: bad input without a model, and the real thing with a tiny one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from debate.cli import main
from tests.processes import processes_left, processes_of_session
from tests.scripts_loader import REPOSITORY

GOOD = {"id": "sum", "x": "What is 2 + 2?", "candidates": ["4", "5"]}
SMALL = [
    "--config", str(REPOSITORY / "tests" / "tiny_model.yaml"), "--rounds", "1",
    "--engine-arg", "max_model_len=16384", "--engine-arg", "kv_cache_memory_bytes=268435456",
    "--engine-arg", "enforce_eager=true",
]  # fmt: skip


def evalset(folder: Path, *rows: object) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["debate", "run", *map(str, arguments)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


FAULTY_ROWS: list[tuple[list[object], str, str]] = [
    ([GOOD, '{"x": "cut'], "tasks.jsonl:2", "JSON"),
    ([{"x": "q", "candidates": []}], "tasks.jsonl:1: candidates", "empty"),
    ([GOOD, {**GOOD, "x": "other"}], "tasks.jsonl:2: id", "sum"),
    ([{**GOOD, "candidate": ["a"]}], "tasks.jsonl:1: candidate", "did you mean"),
]


@pytest.mark.parametrize(("rows", "place", "problem"), FAULTY_ROWS)
def test_a_faulty_eval_set_is_refused_with_file_line_and_field(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rows: list[object],
    place: str,
    problem: str,
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    code = run_main(monkeypatch, evalset(tmp_path, *rows), "--model", model, "--out", tmp_path / "out")
    error = capsys.readouterr().err
    assert code == 2
    assert place in error
    assert problem in error
    assert "vllm" not in sys.modules or "loading" not in error


PROFILE = "personas:\n- name: Judge\n  role: You judge.\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (PROFILE + "colour: red\n", "mine.yaml:4: colour"),
        (PROFILE + "components:\n- name: style\n  description: d\n  weight: 2\n", "mine.yaml:7: components.0.weight"),
        ("personas: []\n", "mine.yaml:1: personas"),
        (PROFILE + "personas: []\n", "mine.yaml:4: personas"),
    ],
)
def test_a_faulty_profile_is_refused_with_file_line_and_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, place: str
) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text(text)
    code = run_main(monkeypatch, evalset(tmp_path, GOOD), "--profile", profile, "--model", "unread")
    assert code == 2
    assert place in capsys.readouterr().err


def test_a_template_with_an_undefined_name_is_refused_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "debate").mkdir()
    (tmp_path / "debate" / "agent.j2").write_text("You are {{ agent }}.\n{% if false %}{{ colour }}{% endif %}\n")
    code = run_main(monkeypatch, evalset(tmp_path, GOOD), "--templates", tmp_path, "--model", "unread")
    error = capsys.readouterr().err
    assert code == 2
    assert "agent.j2:2" in error
    assert "colour" in error


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--model", "/no/such/model"], "/no/such/model"),
        ([], "--model"),
        (["--model", "m", "--rounds", "0"], "rounds"),
        (["--model", "m", "--convergence", "much"], "--convergence"),
        (["--model", "m", "--candidate-order", "random"], "candidate_order"),
        (["--model", "m", "--engine-arg", "max_model_len"], "KEY=VALUE"),
        (["--model", "m", "--profile", "generall"], "did you mean 'general'"),
        (["--model", "m", "--config", "/no/such.yaml"], "no such file"),
    ],
)
def test_a_faulty_option_is_refused_by_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    named: str,
) -> None:
    monkeypatch.delenv("DEBATE_MODEL", raising=False)
    assert run_main(monkeypatch, evalset(tmp_path, GOOD), *flags) == 2
    assert named in capsys.readouterr().err


def test_an_unknown_key_of_the_config_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("rounds: 2\nround: 3\n")
    assert run_main(monkeypatch, evalset(tmp_path, GOOD), "--config", config, "--model", "m") == 2
    assert "run.yaml:2: round" in capsys.readouterr().err


def start(*arguments: object) -> subprocess.Popen[str]:
    """The command in a session of its own, whose processes can be counted."""
    command = [sys.executable, "-c", "from debate.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=REPOSITORY
    )


def name_of(process: int) -> str:
    return Path(f"/proc/{process}/comm").read_text()


def task_id(record: dict[str, object]) -> str:
    return str(record["task_id"])


@pytest.mark.vllm
def test_a_run_writes_results_and_the_same_command_brings_them_back(tmp_path: Path, tiny_model: Path) -> None:
    rows = [{"id": f"t{n}", "x": f"What is {n} + 1?", "candidates": [str(n + 1), str(n)]} for n in range(4)]
    command = ["run", evalset(tmp_path, *rows), "--model", tiny_model, "--out", tmp_path / "out", *SMALL]
    first = start(*command)
    out, err = first.communicate(timeout=900)
    assert first.returncode == 0, err
    assert "4 = 4 ok" in out
    results = tmp_path / "out" / "results.jsonl"
    before = results.read_text()
    records = [json.loads(line) for line in before.strip().split("\n")]
    assert {record["task_id"] for record in records} == {"t0", "t1", "t2", "t3"}
    assert all(len(record["tensor"][0]) == 3 for record in records)

    results.write_text("".join(line + "\n" for line in before.strip().split("\n")[:2]) + '{"task_id": "t')
    second = start(*command)
    out, err = second.communicate(timeout=900)
    assert second.returncode == 0, err
    assert "4 of 4 tasks have a result already" in err
    assert "loading" not in err
    again = [json.loads(line) for line in results.read_text().strip().split("\n")]
    assert sorted(again, key=task_id) == sorted(records, key=task_id)

    other = start(*command, "--seed", "7")
    out, err = other.communicate(timeout=300)
    assert other.returncode == 2
    assert "seed was 0, is 7" in err


def killed_engine(tmp_path: Path, tiny_model: Path, *more: object) -> subprocess.Popen[str]:
    """A run of 60 debates whose engine is killed once some are finished."""
    rows = [{"x": f"What is {n} + 1?", "candidates": [str(n + 1), str(n)]} for n in range(60)]
    arguments = ["--model", tiny_model, "--out", tmp_path / "out", *SMALL, "--engine-arg", "max_num_seqs=4", *more]
    process = start("run", evalset(tmp_path, *rows), *arguments)
    results = tmp_path / "out" / "results.jsonl"
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("loaded"):
            break
    deadline = time.monotonic() + 300
    while not results.read_text() and time.monotonic() < deadline:
        time.sleep(0.2)
    (engine,) = (pid for pid in processes_of_session(process.pid) if "Engine" in name_of(pid))
    os.kill(engine, signal.SIGKILL)
    return process


@pytest.mark.vllm
def test_an_engine_that_is_killed_is_started_again_and_the_run_is_completed(tmp_path: Path, tiny_model: Path) -> None:
    process = killed_engine(tmp_path, tiny_model)
    _, err = process.communicate(timeout=300)
    assert process.returncode in (0, 3), err  # a model of random weights may fail a turn
    assert "it is started again (1 of 3 times)" in err
    records = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().strip().split("\n")]
    assert len({task_id(record) for record in records}) == len(records) == 60
    assert processes_left(process.pid) == []


@pytest.mark.vllm
def test_a_run_whose_engine_may_not_be_started_again_keeps_what_was_finished(tmp_path: Path, tiny_model: Path) -> None:
    process = killed_engine(tmp_path, tiny_model, "--engine-restarts", "0")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 4
    assert "engine has died" in err
    records = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().strip().split("\n")]
    assert records
    assert all(record["status"] == "ok" for record in records)
    assert processes_left(process.pid) == []


@pytest.mark.vllm
@pytest.mark.parametrize("whole_group", [True, False], ids=["ctrl-c", "sigterm"])
def test_an_interrupted_run_leaves_no_process_behind_and_says_how_to_go_on(
    tmp_path: Path, tiny_model: Path, whole_group: bool
) -> None:
    rows = [{"x": f"What is {n} + 1?", "candidates": [str(n + 1), str(n), "none"]} for n in range(400)]
    process = start("run", evalset(tmp_path, *rows), "--model", tiny_model, "--out", tmp_path / "out", *SMALL)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("loaded"):
            break
    time.sleep(3)
    if whole_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.terminate()
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "the same command goes on" in err
    assert "Traceback" not in err
    assert processes_left(process.pid) == []
    for line in filter(None, (tmp_path / "out" / "results.jsonl").read_text().split("\n")):
        assert json.loads(line)["status"] == "ok"
