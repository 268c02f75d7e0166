"""`debate run` as a user meets it: bad input without a model, and the real thing with a tiny one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from debate.cli import main
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
        (["--model", "m", "--convergence", "much"], "convergence: must be a number"),
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
