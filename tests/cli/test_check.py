"""`debate check`: what is in eval sets and what a run would ask; faults as a run would tell them, and no model."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.command_line import debate

ROWS: list[dict[str, Any]] = [
    {"id": "a", "x": "q", "candidates": ["1", "2"], "best": 0, "reference": "1", "metadata": {"group": "sums"}},
    {"id": "b", "x": "q", "candidates": ["1", "1", "2"], "metadata": {"group": "sums", "ranking": [1, 1, 2]}},
    {"id": "c", "x": "q", "candidates": [{"text": "1", "generator": "m"}, "2"], "metadata": {"ranking": [1, 1]}},
    {
        "id": "d",
        "x": "q",
        "candidates": ["1"],
        "context": ["c"],
        "components": [{"name": "brevity", "description": "Is it short?"}],
        "metadata": {"votes": [{"best": 0}]},
    },
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))


class Said:
    """What a command said, and its exit code."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> None:
        self.code = debate(monkeypatch, "check", *arguments)
        self.out, self.err = capsys.readouterr()
        self.words = " ".join(self.out.split())


def as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    return json.loads(Said(monkeypatch, capsys, *arguments, "--json").out)


def test_it_says_what_is_in_an_eval_set_and_what_a_run_would_ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(monkeypatch, capsys, "t.jsonl", "--rounds", 2)
    assert said.code == 0
    for expected in (
        "t.jsonl: 4 tasks, format own",
        "candidates 8: 1 to 3 each, 2.0 on average",
        "generators m 1",
        "labels 4 of 4 tasks: 2 best, 1 ranking, 1 tie, 1 votes",
        "groups sums 2",
        "reference in 1 of 4 tasks",
        "context in 1 of 4 tasks",
        "own components in 1 of 4 tasks",
        "calls 12 to 24, 3 to 6 per task",
        "the same candidate stands twice in 1 of the tasks, first t.jsonl:2",
        "one candidate stands alone, so that there is nothing to compare, in 1 of the tasks, first t.jsonl:4",
    ):
        assert expected in said.words
    assert not Path("runs").exists()


def test_it_says_what_the_run_would_cost_where_every_model_it_asks_has_a_price(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(monkeypatch, capsys, "t.jsonl", "--price", "2000,0.5,1000")
    least, most = (
        (tokens["prompt_tokens"] * 2000 + tokens["completion_tokens"] * 1000) / 1e6
        for tokens in (found["estimate"]["least"], found["estimate"]["most"])
    )
    assert found["cost"] == {"least": pytest.approx(least), "most": pytest.approx(most)}
    said = Said(monkeypatch, capsys, "t.jsonl", "--price", "2000,0.5,1000")
    assert f"cost about {least:,.2f} to {most:,.2f}" in said.words
    assert as_json(monkeypatch, capsys, "t.jsonl")["cost"] is None
    assert "cost" not in Said(monkeypatch, capsys, "t.jsonl").words
    priced = ("--price", "1,1", "--models", "big={backend: openai, model: b}")
    assert as_json(monkeypatch, capsys, "t.jsonl", *priced)["cost"] is not None  # big is not asked


def test_the_flags_of_a_run_are_taken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("question,one,two\nq,a,b\n")
    flags = ("--column", "x=question", "--column", "candidates=one,two", "--evaluator", "vote", "--option", "ballots=2")
    found = as_json(monkeypatch, capsys, "t.csv", *flags)
    assert found["files"] == [{"path": "t.csv", "format": "table", "tasks": 1}]
    assert found["estimate"]["most"]["calls"] == found["estimate"]["least"]["calls"] == 2
    assert found["notes"] == ["no task has a label: with `best`, the run states its accuracy"]
    found = as_json(monkeypatch, capsys, "t.jsonl", "--limit", 3, "--memory", "built-in")
    assert found["tasks"] == 3
    assert "not counted among the prompt tokens" in found["notes"][-1]


def test_several_files_and_standard_input_are_read_as_a_run_would(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pipe(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode()), isatty=bool))

    pipe(json.dumps([ROWS[0]]))
    said = Said(monkeypatch, capsys, "t.jsonl", "-")
    assert said.code == 2
    assert "error: -:1: id: duplicate id 'a', first at t.jsonl:1" in said.err
    assert "--prefix-ids true" in said.err
    pipe(json.dumps([{**ROWS[1], "id": "z"}]))
    found = as_json(monkeypatch, capsys, "-", "t.jsonl")
    assert [file["path"] for file in found["files"]] == ["-", "t.jsonl"]
    assert "first -:1" in found["notes"][0]
    pipe('{"x": "q"}')
    assert "error: -:1: candidates: is missing" in Said(monkeypatch, capsys, "-").err


FAULTS = [
    ("t.jsonl --profile nowhere", "nowhere"),
    ("t.jsonl --rounds 0", "rounds"),
    ("none.jsonl", "none.jsonl: there is no such file"),
    ("t.jsonl --format pandalm", "t.jsonl:1"),
    ("t.jsonl --evaluator cross", "judges"),
]


@pytest.mark.parametrize(("arguments", "said"), FAULTS)
def test_what_a_run_would_refuse_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    found = Said(monkeypatch, capsys, *arguments.split())
    assert found.code == 2
    assert said in found.err
    assert found.out == ""


def test_a_task_that_the_evaluator_cannot_evaluate_is_refused_with_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("c.yaml").write_text(
        "evaluator: cross\noptions:\n  judges:\n    m: {evaluator: vote}\n    n: {evaluator: vote, ballots: 3}\n"
    )
    found = Said(monkeypatch, capsys, "t.jsonl", "--config", "c.yaml")
    assert found.code == 2
    assert "t.jsonl:1: candidates.0.generator: is missing" in found.err
