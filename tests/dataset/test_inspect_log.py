"""Logs of inspect as eval sets, in the form `.json`, which is read without it; for `.eval` see the adapters' tests."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from debate.errors import ConfigError, TaskError
from tests.dataset.files import Row, generators, read, tasks_of, texts


def sample(name: Any, answer: str = "4", **more: Any) -> Row:
    said = {"model": "served", "choices": [{"message": {"role": "assistant", "content": answer}}], "completion": answer}
    return {"id": name, "epoch": 1, "input": "2 + 2?", "target": "4", "output": said, **more}


def log(path: Path, *samples: Row, model: str = "m", status: str = "success") -> Path:
    """A log as inspect writes it, with line breaks."""
    header = {"version": 2, "status": status, "eval": {"task": "sums", "model": model}}
    path.write_text(json.dumps({**header, "samples": [*samples]}, indent=2), encoding="utf-8")
    return path


def test_epochs_and_the_logs_of_several_models_are_candidates_of_one_task(tmp_path: Path) -> None:
    one = log(tmp_path / "one.json", sample(1, "4"), sample(1, "5", epoch=2), sample(2), model="a")
    other = log(tmp_path / "other.json", sample(2, "22"), sample(1, "four"), model="b")
    first, second = read(one, "inspect_log", answers=(other,))
    assert (first.id, texts(first), generators(first)) == ("1", ["4", "5", "four"], ["a", "a", "b"])
    assert (second.id, texts(second), generators(second)) == ("2", ["4", "22"], ["a", "b"])
    assert [each.metadata for each in first.candidates[1:]] == [
        {"epoch": 2, "log": "one.json"},
        {"epoch": 1, "log": "other.json"},
    ]
    assert first.reference == "4"


def test_scores_of_inspect_are_labels_and_what_is_no_number_is_null(tmp_path: Path) -> None:
    marks = {"match": {"value": "C"}, "judge": {"value": {"clear": 0.5, "true": None}}, "words": {"value": "long"}}
    unscored = {"match": {"value": float("nan")}, "judge": {"value": {"clear": True}}}
    file = log(tmp_path / "log.json", sample("a", scores=marks), sample("a", "5", epoch=2, scores=unscored))
    [task] = tasks_of(file)
    assert task.metadata["scores"] == {"match": [1.0, None], "judge.clear": [0.5, 1.0]}


def test_a_sample_s_metadata_stay_except_those_that_would_be_labels(tmp_path: Path) -> None:
    file = log(tmp_path / "log.json", sample("a", metadata={"group": "sums", "best": "unlike any candidate"}))
    [task] = tasks_of(file)
    assert task.metadata == {"group": "sums"}


def test_conversations_choices_and_several_targets_are_read(tmp_path: Path) -> None:
    call = {"id": "1", "function": "weather", "arguments": {"city": "Canberra"}, "type": "function"}
    parts = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "How warm?"}]
    asked = [
        {"id": "x", "role": "system", "content": "Be brief."},
        {"id": "y", "role": "user", "content": parts, "source": "input"},
        {"id": "z", "role": "assistant", "content": "", "tool_calls": [call]},
        {"id": "w", "role": "tool", "content": "21", "tool_call_id": "1", "function": "weather"},
    ]
    choices: Row = {"choices": ["cold", "warm"], "target": ["B", "warm"]}
    [task] = tasks_of(log(tmp_path / "log.json", sample("a", input=asked, **choices)))
    assert [message["role"] for message in task.messages] == ["system", "user", "assistant", "tool"]
    assert "How warm?" in task.x
    assert 'weather({"city": "Canberra"})' in task.x
    assert "hm" not in task.x
    assert task.context == ("Choices:\nA) cold\nB) warm",)
    assert task.reference == "B\nwarm"


def test_texts_that_inspect_keeps_apart_are_put_back(tmp_path: Path) -> None:
    kept: Row = {"input": "attachment://abc", "attachments": {"abc": "a long input"}}
    [task] = tasks_of(log(tmp_path / "log.json", sample("a", **kept)))
    assert task.x == "a long input"


def refused(path: Path, *samples: Row, more: Path | None = None, **about: Any) -> str:
    file = log(path / "log.json", *samples, **about)
    with pytest.raises(TaskError) as found:
        list(tasks_of(file, answers=() if more is None else (more,)))
    assert str(found.value.file).endswith(".json")
    return str(found.value)


def test_a_log_that_is_not_complete_is_refused_with_what_completes_it(tmp_path: Path) -> None:
    said = refused(tmp_path, sample("a"), status="cancelled")
    assert "its status is 'cancelled'" in said
    assert "inspect eval-retry" in said
    assert "is a log without samples" in refused(tmp_path)


def test_a_sample_without_an_answer_is_refused_with_its_place(tmp_path: Path) -> None:
    failed = sample("b", error={"message": "the sandbox died", "traceback": "..."})
    said = refused(tmp_path, sample("a"), failed)
    assert "log.json:2: error: the sample 'b' failed: the sandbox died" in said
    assert "eval-retry" in said
    silent = sample("b", output={"model": "m", "choices": [], "error": "429"})
    assert "the model's answer failed: 429" in refused(tmp_path, silent)
    assert "choices: is empty" in refused(tmp_path, sample("b", output={"model": "m", "choices": []}))
    assert "output: is missing" in refused(tmp_path, {**sample("b"), "output": None})


def test_logs_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    other = log(tmp_path / "other.json", sample("a", input="3 + 3?"))
    assert "input: is not that of the sample 'a' at" in refused(tmp_path, sample("a"), more=other)
    assert "has no sample 'b' for" in refused(tmp_path, sample("a", input="3 + 3?"), sample("b"), more=other)
    assert "id: is a sample that the first log does not hold" in refused(
        tmp_path, sample("c"), more=log(tmp_path / "other.json", sample("c"), sample("d"))
    )


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    seen = [{"role": "user", "content": [{"type": "image", "image": "data:..."}]}]
    said = refused(tmp_path, sample("a", input=seen))
    assert "input.0.content.0.type: is of the kind 'image', and judges read texts alone" in said


def test_a_log_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    file = log(tmp_path / "log.json", sample("a"))
    file.write_text(file.read_text()[:-20])
    with pytest.raises(TaskError, match="is not valid JSON"):
        list(tasks_of(file))


def test_the_other_form_needs_inspect_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="there is no such file"):
        list(tasks_of(tmp_path / "log.eval"))
    (tmp_path / "log.eval").write_bytes(b"PK no log")
    missing = (ConfigError, "are read by inspect") if not find_spec("inspect_ai") else (TaskError, "is no log")
    with pytest.raises(missing[0], match=missing[1]):
        list(tasks_of(tmp_path / "log.eval"))
