"""`debate align` from the command line: teach, look first, take back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debate.memory import HashingEmbedder, MemoryStore
from tests.command_line import debate
from tests.meta_evaluation.names_world import questions

PROFILE = """
name: pair
components: [{name: truth, description: Is it true?}]
personas:
  - {name: Critic, role: You look for faults., memory: {k: 6}}
  - {name: Reader, role: You read for pleasure., memory: {k: 6}}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions(12)))
    (tmp_path / "pair.yaml").write_text(PROFILE)
    judge = ("--backend", "tests.meta_evaluation.names_world:judge", "--profile", tmp_path / "pair.yaml")
    assert debate(monkeypatch, "run", tmp_path / "tasks.jsonl", *judge, "--rounds", 1, "--out", tmp_path / "run") == 0
    return tmp_path / "run"


def test_labels_are_taught_and_taken_back(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = run.parent / "memory.sqlite"
    how = ("--memory", memory, "--embedder", "hashing", "--folds", 3, "--sizes", "0,8", "--no-rules", "--trust")
    capsys.readouterr()
    assert debate(monkeypatch, "align", run, *how, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "12 labeled tasks; on 12 of them the panel chose otherwise" in shown
    assert 'Asked "blorp+2?", people' in " ".join(shown.split())
    assert not memory.exists()

    assert debate(monkeypatch, "align", run, *how) == 0
    shown = capsys.readouterr().out
    assert "The labels help: +" in shown
    assert "12 memories in pair/Critic, 12 memories in pair/Reader" in " ".join(shown.split())
    with MemoryStore(memory, HashingEmbedder(), "exact") as opened:
        assert opened.collections() == {"pair/Critic": 12, "pair/Reader": 12}

    assert debate(monkeypatch, "align", run, *how, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["labels"] for each in found["learned"]] == [0, 8]
    assert found["learned"][0]["agreement"]["estimate"] == 0.0
    assert found["learned"][1]["difference"]["estimate"] > 0.5

    assert debate(monkeypatch, "align", run, "--memory", memory, "--forget") == 0
    assert capsys.readouterr().out == "24 memories forgotten\n"


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--sizes", "5,many"), "--sizes: must be whole numbers such as 0,5,10,20,50, got '5,many'"),
        (("--no-rules", "--no-cases"), "rules: nothing would be taught"),
        (("--forget",), "there is no memory store"),
    ],
)
def test_what_cannot_be_is_refused_with_the_flag(
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    problem: str,
) -> None:
    assert debate(monkeypatch, "align", run, "--memory", run.parent / "memory.sqlite", *flags) == 2
    assert problem in capsys.readouterr().err
    assert not (run.parent / "memory.sqlite").exists()
