"""`debate run --evaluator`: what is refused before a model is loaded, and that options reach the evaluator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debate.cli import app
from debate.config.settings import RunSettings
from debate.errors import ConfigError, InputError, TaskError
from debate.testing.fake_server import FakeServer

CROSS = """
evaluator: cross
options:
  judges:
    a: {evaluator: value, model: a}
    b: {evaluator: vote, model: b, ballot: plurality}
models:
  a: {model: somewhere}
  b: {model: elsewhere}
"""


def refused(folder: Path, *arguments: object) -> InputError:
    """The error of a run that must not come to loading a model."""
    command = ["run", folder / "tasks.jsonl", "--model", "no-such-model", "--out", folder / "out", *arguments]
    result = CliRunner().invoke(app, [*map(str, command)])
    assert isinstance(result.exception, InputError), result.output
    assert "loading" not in result.output
    return result.exception


@pytest.mark.parametrize("judge", ["value_model", "reward_model"])
@pytest.mark.parametrize(
    "options",
    [
        "evaluator: step\noptions: {{judge: {0}}}\n",
        "evaluator: panel\noptions: {{members: {{a: {{evaluator: value}}, b: {{evaluator: step, judge: {0}}}}}}}\n",
    ],
)
def test_a_step_judge_that_is_no_chat_model_is_refused_on_a_chat_server_before_anything_is_asked(
    tasks: Path, options: str, judge: str
) -> None:
    (tasks / "run.yaml").write_text(options.format(judge))
    with FakeServer() as server:
        chat = ["--backend", "openai", "--base-url", f"{server.url}/v1", "--cache", "1h"]
        error = refused(tasks, "--config", tasks / "run.yaml", *chat)
    assert "no-such-model is a chat model" in str(error)
    assert "--backend value_server" in str(error)
    assert server.requests == []


@pytest.mark.parametrize("how", [["--readout", "cells"], ["--evaluator", "value", "--readout", "expected"]])
def test_a_read_out_is_refused_on_a_server_that_cannot_be_read_out_before_anything_is_asked(
    tasks: Path, how: list[str]
) -> None:
    with FakeServer() as server:
        error = refused(tasks, "--backend", "ollama", "--base-url", server.url, "--cache", "1h", *how)
    assert error.field == "readout"
    assert error.problem.startswith("the backend of no-such-model gives no probabilities")
    assert server.requests == []


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    known = {"text": "one", "generator": "a"}
    rows = [{"x": "q1", "candidates": [known]}, {"x": "q2", "candidates": [known, {"text": "two", "generator": "c"}]}]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_a_candidate_whose_author_is_unknown_is_refused_at_its_line(tasks: Path) -> None:
    (tasks / "cross.yaml").write_text(CROSS)
    error = refused(tasks, "--config", tasks / "cross.yaml")
    assert isinstance(error, TaskError)
    assert str(error).startswith(f"{tasks / 'tasks.jsonl'}:2: candidates.1.generator: 'c' is unknown")
    assert not (tasks / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--evaluator", "guess"], "evaluator"),
        (["--evaluator", "value", "--rounds", "2"], "rounds: belongs to a debate"),
        (["--evaluator", "value", "--option", "ballots=3"], "options.ballots: value has no option 'ballots'"),
        (["--evaluator", "value", "--option", "samples"], "--option: must be KEY=VALUE"),
        (["--evaluator", "vote", "--option", "ballot=guess"], "ballot: must be one of"),
        (["--option", "samples=3"], "options: do not belong to a debate"),
        (["--evaluator", "step", "--option", "judge=oracle"], "there is no judge of steps"),
    ],
)
def test_what_an_evaluator_does_not_have_is_refused_by_name(tasks: Path, arguments: list[str], words: str) -> None:
    error = refused(tasks, *arguments)
    assert isinstance(error, ConfigError)
    assert words in str(error)


def test_flags_and_options_reach_the_evaluator() -> None:
    flags = {"evaluator": "value", "temperature": 0.9, "reply_tokens": 77, "options": {"samples": 5, "reduce": "sum"}}
    described = RunSettings.read(None, flags).make_evaluator().describe()
    assert described["sampling"] == {"temperature": 0.9, "max_tokens": 77}
    assert described["aggregation"]["samples"] == 5
    assert described["aggregation"]["reduce"] == "sum"
