"""The eval sets of `debate run`: several files, and standard input, which a run goes on from without it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from debate.jobs.run_directory import RunDirectory
from tests.command_line import debate

JUDGE = ("--backend", "scripted", "--engine-arg", "fn=debate.testing:reply_for", "--rounds", "1")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, *names: str) -> None:
    rows = [{"id": name, "x": f"{path} {name}?", "candidates": ["a", "b"]} for name in names]
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def pipe(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    rows = [{"id": name, "x": "?", "candidates": ["a", "b"]} for name in names]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(rows).encode()), isatty=bool))


def results(folder: Path) -> list[str]:
    return [json.loads(line)["task_id"] for line in (folder / "results.jsonl").read_text().splitlines()]


def test_several_files_are_one_run_that_goes_on_and_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    write("one.jsonl", "a", "b")
    write("two.jsonl", "c")
    assert debate(monkeypatch, "run", "one.jsonl", "two.jsonl", *JUDGE) == 0
    run = Path("runs/one+two")
    assert sorted(results(run)) == ["a", "b", "c"]
    assert RunDirectory.existing(run).evalset == {"path": "one.jsonl", "more": ["two.jsonl"]}
    before = (run / "results.jsonl").read_text()
    assert debate(monkeypatch, "run", "one.jsonl", "two.jsonl", *JUDGE) == 0
    assert (run / "results.jsonl").read_text() == before
    write("three.jsonl", "d")
    assert debate(monkeypatch, "run", "one.jsonl", "two.jsonl", "three.jsonl", *JUDGE, "--out", run) == 0
    assert sorted(results(run)) == ["a", "b", "c", "d"]


def test_a_run_of_one_file_goes_on_with_a_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    write("one.jsonl", "a")
    write("two.jsonl", "b")
    assert debate(monkeypatch, "run", "one.jsonl", *JUDGE) == 0
    assert debate(monkeypatch, "run", "one.jsonl", "two.jsonl", *JUDGE, "--out", "runs/one") == 0
    assert results(Path("runs/one")) == ["a", "b"]


def test_ids_that_files_share_are_refused_with_both_places_and_what_helps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("one.jsonl", "a", "b")
    write("two.jsonl", "b")
    assert debate(monkeypatch, "run", "one.jsonl", "two.jsonl", *JUDGE) == 2
    said = capsys.readouterr().err
    assert "two.jsonl:1: id: duplicate id 'b', first at one.jsonl:2" in said
    assert "--prefix-ids true" in said
    assert not Path("runs/one+two").exists()
    assert debate(monkeypatch, "run", "one.jsonl", "two.jsonl", *JUDGE, "--prefix-ids", "true") == 0
    assert sorted(results(Path("runs/one+two"))) == ["one/a", "one/b", "two/b"]


def test_an_id_that_one_file_has_twice_is_refused_with_another_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("one.jsonl", "a", "a")
    assert debate(monkeypatch, "run", "one.jsonl", *JUDGE) == 2
    said = capsys.readouterr().err
    assert "leave out the ids" in said
    assert "--prefix-ids" not in said


def test_standard_input_is_kept_in_the_folder_of_a_run_that_goes_on_by_every_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe(monkeypatch, "a", "b")
    assert debate(monkeypatch, "run", "-", *JUDGE, "--limit", 1) == 0
    (run,) = Path("runs").iterdir()
    (kept,) = run.glob("stdin-*.json")
    assert results(run) == ["a"]
    pipe(monkeypatch, "a", "b")  # the same text has the same folder
    assert debate(monkeypatch, "run", "-", *JUDGE) == 0
    assert results(run) == ["a", "b"]
    assert debate(monkeypatch, "run", kept, *JUDGE, "--out", run) == 0
    kept.unlink()
    assert debate(monkeypatch, "resume", run, "--trust") == 0
    assert results(run) == ["a", "b"]
    pipe(monkeypatch, "c")  # and another text another
    assert debate(monkeypatch, "run", "-", *JUDGE) == 0
    assert len(list(Path("runs").iterdir())) == 2


def test_a_fault_in_standard_input_is_told_with_a_file_that_can_be_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = SimpleNamespace(buffer=io.BytesIO(b'{"x": "q"}\n'), isatty=bool)
    monkeypatch.setattr(sys, "stdin", broken)
    assert debate(monkeypatch, "run", "-", *JUDGE, "--out", "out") == 2
    (kept,) = Path("out").iterdir()
    assert f"{kept}:1: candidates: is missing" in capsys.readouterr().err


def test_standard_input_goes_with_files_and_is_named_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("one.jsonl", "a")
    pipe(monkeypatch, "b")
    assert debate(monkeypatch, "run", "one.jsonl", "-", *JUDGE, "--out", "out") == 0
    assert sorted(results(Path("out"))) == ["a", "b"]
    assert debate(monkeypatch, "run", "-", "-", *JUDGE) == 2
    assert "can be read only once" in capsys.readouterr().err
