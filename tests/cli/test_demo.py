"""`debate demo`: what it asks for before it begins. What it shows is tested with its tasks, in tests/scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import debate


@pytest.fixture(autouse=True)
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DEBATE_MODEL", raising=False)
    return tmp_path


def test_without_vllm_it_says_what_to_install_and_what_else_to_give(
    cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("debate.cli.execution.can_find", lambda module: False)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert debate(monkeypatch, "demo") == 2
    error = capsys.readouterr().err
    assert "vllm needs vLLM, which is not installed" in error
    assert "debate-eval[cpu]" in error
    assert "--backend openai --base-url URL --model M" in error
    assert not (cwd / "runs").exists()


def test_a_file_of_settings_chooses_the_model_and_the_folder(
    cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = cwd / "mine.yaml"
    settings.write_text("backend: debate.testing:reply_for\nprofile: general\nrounds: 1\nlimit: 2\nout: there\n")
    assert debate(monkeypatch, "demo", "--config", settings) == 0
    assert "debate show there hidden-1" in capsys.readouterr().out
    assert json.loads((cwd / "there" / "run.json").read_text())["settings"]["profile"] == "general"
    assert (cwd / "there" / "results.jsonl").read_text().count("\n") == 2


def test_the_same_command_again_asks_nothing_and_shows_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("demo", "--backend", "debate.testing:reply_for", "--rounds", "1", "--limit", "2")
    assert debate(monkeypatch, *command) == 0
    first = capsys.readouterr().out
    assert debate(monkeypatch, *command) == 0
    again = capsys.readouterr()
    assert "2 of 2 tasks have a result already" in again.err
    assert first.partition("\nsum-1 ─")[2] == again.out.partition("\nsum-1 ─")[2] != ""
