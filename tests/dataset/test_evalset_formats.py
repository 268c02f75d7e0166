"""How a format is recognised, and what is refused because a format has no use for it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.dataset.evalset import EvalSet
from debate.errors import ConfigError, InputError, TaskError
from debate.registry import FORMATS
from tests.dataset.files import Row, array, count, lines, tasks_of

RECORDS: dict[str, Row] = {
    "own": {"x": "q", "candidates": ["a"]},
    "pandalm": {"idx": 0, "instruction": "i", "input": "", "response1": "a", "response2": "b", "annotator1": 1},
    "llmbar": {"input": "i", "output_1": "a", "output_2": "b", "label": 1},
    "judge_bench": {"pair_id": "p", "question": "q", "response_A": "a", "response_B": "b", "label": "A>B"},
    "reward_bench": {"prompt": "p", "chosen": ["a"], "rejected": ["b"], "subset": "s", "id": 1},
    "bigbench_mistake": {"input": "i", "steps": ["s"], "answer": "a", "target": "t", "mistake_index": None},
    "process_bench": {"id": "p", "problem": "q", "steps": ["s"], "final_answer_correct": True, "label": -1},
    "chat_eval": {"question_id": 1, "question": "q", "response": {"m": "a"}, "category": "c"},
    "openai_batch": {
        "custom_id": "1",
        "response": {"status_code": 200, "body": {"model": "m", "choices": [{"message": {"content": "a"}}]}},
        "error": None,
    },
    "lm_eval": {
        "doc_id": 0, "arguments": [["q"]], "resps": [["a"]], "target": "t", "filter": "f", "metrics": ["m"], "m": 1.0,
    },
    "inspect_log": {
        "id": 1, "epoch": 1, "input": "q", "target": "t", "model": "m",
        "output": {"choices": [{"message": {"content": "a"}}]}, "scores": {"match": {"value": "C"}},
    },
    "mt_bench": {"question_id": 1, "turns": ["q"], "reference": ["r"], "category": "c"},
    "alpaca_eval": {"instruction": "i", "output": "a", "generator": "m", "dataset": "d"},
}  # fmt: skip
ANSWERS: dict[str, Row] = {
    "openai_batch": {"custom_id": "1", "body": {"messages": [{"role": "user", "content": "q"}]}},
    "lm_eval": RECORDS["lm_eval"],
    "inspect_log": RECORDS["inspect_log"],
    "mt_bench": {"question_id": 1, "model_id": "m", "answer_id": "x", "choices": [{"turns": ["a"]}]},
    "alpaca_eval": RECORDS["alpaca_eval"],
}
"""Of the formats that take further files, one record of such a file."""
BAR = json.dumps(RECORDS["llmbar"])


def evalset(folder: Path, name: str, row: Row, answer: Row | None = None) -> EvalSet:
    further = ANSWERS.get(name) if answer is None else answer
    answers = () if further is None else (lines(folder / "answers.jsonl", further),)
    return EvalSet(lines(folder / "tasks.jsonl", row), format=name, answers=answers)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_recognised_by_its_keys(tmp_path: Path, name: str) -> None:
    given_ = evalset(tmp_path, name, RECORDS[name])
    assert EvalSet(given_.path).read().format_name == name
    assert [len(task.candidates) > 0 for task, _, _ in given_.tasks()] == [True]


def test_every_format_has_a_record_here_and_a_description() -> None:
    ours = {name: FORMATS.load(name) for name, entry in FORMATS.entries.items() if entry.package is None}
    assert set(ours) == {*RECORDS, "table"}
    assert all(FORMATS.entries[name].description for name in ours)
    assert {name for name, known in ours.items() if known.takes == "files"} == set(ANSWERS)


def test_a_format_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mt_bench"):
        EvalSet(tmp_path / "t.jsonl", format="mtbench")


def test_keys_of_no_format_are_told_with_the_formats_there_are(tmp_path: Path) -> None:
    file = array(tmp_path / "t.json", {"one": 1, "two": 2})
    with pytest.raises(TaskError, match="no format that is known, by its keys one, two") as caught:
        count(file)
    assert caught.value.hint is not None
    assert all(name in caught.value.hint for name in RECORDS)


def test_keys_of_no_format_are_told_with_the_columns_of_a_table(tmp_path: Path) -> None:
    file = lines(tmp_path / "t.jsonl", {"question": "q", "answers": ["a", "b"], "label": "B"})
    with pytest.raises(TaskError) as caught:
        count(file)
    flags = "--format table --column x=question --column candidates=answers --column best=label"
    assert caught.value.hint is not None
    assert flags in caught.value.hint
    (task,) = tasks_of(file, columns={"x": "question", "candidates": "answers", "best": "label"})
    assert (task.x, task.best) == ("q", (1,))


@pytest.mark.parametrize(
    ("row", "flags"),
    [
        ({"question": "q", "answers": ["a"]}, "--column x=question --column candidates=answers"),
        ({"id": "1", "prompt": "q", "outputs": ["a"]}, "--column x=prompt --column candidates=outputs"),
        (
            {"uid": 7, "answer_a": "a", "answer_b": "b", "user query": "q", "gold": "a"},
            "--column x='user query' --column candidates=answer_a,answer_b --column reference=gold",
        ),
        ({"one": "q", "two": 2}, "--column x=one --column candidates=KEY"),
    ],
)
def test_the_columns_are_guessed_by_the_keys_of_the_record(tmp_path: Path, row: Row, flags: str) -> None:
    with pytest.raises(TaskError) as caught:
        count(lines(tmp_path / "t.jsonl", row))
    assert caught.value.hint is not None
    assert f"--format table {flags};" in caught.value.hint


def test_tasks_under_a_key_are_told_how_to_be_taken_out(tmp_path: Path) -> None:
    file = lines(tmp_path / "t.json", {"tasks": [RECORDS["own"]]})
    with pytest.raises(TaskError) as caught:
        count(file)
    assert caught.value.hint == f"are the tasks under 'tasks'? Take them out of it: jq '.tasks' {file} | debate run -"


def test_a_misspelled_key_of_ours_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="unknown key"):
        count(lines(tmp_path / "t.jsonl", {"X": "q", "candidate": ["a"]}))


@pytest.mark.parametrize("name", [name for name in RECORDS if name not in ANSWERS])
def test_further_files_that_a_format_has_no_use_for_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="has all candidates in one file"):
        count(evalset(tmp_path, name, RECORDS[name]).path, answers=(tmp_path / "tasks.jsonl",))


def test_columns_that_a_format_has_no_use_for_are_refused(tmp_path: Path) -> None:
    file = lines(tmp_path / "t.jsonl", RECORDS["llmbar"])
    with pytest.raises(ConfigError, match="has columns of its own"):
        count(file, format="llmbar", columns={"x": "input"})


def test_reading_takes_the_same_settings_as_the_eval_set(tmp_path: Path) -> None:
    outputs = [lines(tmp_path / f"{m}.jsonl", {"instruction": "i", "output": m, "generator": m}) for m in "ab"]
    (task,) = tasks_of(outputs[0], format="alpaca_eval", answers=(outputs[1],))
    assert [candidate.text for candidate in task.candidates] == ["a", "b"]


def test_a_pipe_among_the_files_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    questions = lines(tmp_path / "q.jsonl", RECORDS["mt_bench"])
    for broken in (EvalSet(tmp_path / "pipe"), EvalSet(questions, answers=(tmp_path / "pipe",))):
        with pytest.raises(TaskError, match="can be read only once"):
            broken.tasks()
        with pytest.raises(TaskError, match="can be read only once"):
            broken.digest()


# ---- how records are read, in every format


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" + BAR, "the array is not closed"),
        (f"[{BAR},", "the array is not closed"),
        (f"[{BAR}] x", "something follows the array"),
        (f"[{BAR} {BAR}]", "the array is not closed"),
        ("[1]", r"l\.json:1: 0: must be a JSON object, got int"),
        (f"{BAR} {BAR}", "something follows the object"),
        ('{"input": 1, "input": 2}', r"l\.json:1: input: duplicate key"),
        ('{"input": ' + "[" * 100_000, "nested too deeply"),
        ('{"input": ' + "9" * 5000 + "}", "is not valid JSON"),
        ("[]", "holds no tasks"),
        ('[{"input": "\\ud83d", "output_1": "a", "output_2": "b"}]', "0.input: is not valid Unicode"),
    ],
)
def test_broken_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (file := tmp_path / "l.json").write_text(text)
    with pytest.raises(TaskError, match=message) as caught:
        list(EvalSet(file, format="llmbar").tasks())
    assert caught.value.file == str(file)


def test_a_number_that_json_has_not_is_null(tmp_path: Path) -> None:
    row = {"instruction": "i", "output_1": "a", "output_2": "b", "preference": float("nan")}
    ((task, _, _),) = EvalSet(lines(tmp_path / "a.jsonl", row)).tasks()
    assert task.metadata == {}


def test_metadata_that_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    file = lines(tmp_path / "p.jsonl", {**RECORDS["pandalm"], "motivation_app": "cut \ud83d"})
    with pytest.raises(TaskError, match=r"p\.jsonl:1: motivation_app: .*lone surrogate"):
        count(file)
    file.write_text(json.dumps(RECORDS["pandalm"])[:-1] + ', "motivation_app": 1e999}')
    with pytest.raises(TaskError, match="motivation_app: holds a number that is too large"):
        count(file)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(["\ud83d", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside a value."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        inner = list(enumerate(value))  # pyright: ignore[reportUnknownArgumentType]
    return [place for key, each in inner for place in ((*path, key), *_places(each, (*path, key)))]


def _changed(row: Row, path: tuple[Any, ...], value: Any) -> Row:
    """A copy with another value at a path."""
    copy: Any = json.loads(json.dumps(row))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return copy


@pytest.mark.parametrize("name", RECORDS)
def test_whatever_a_record_holds_it_is_tasks_or_a_fault_with_its_file(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.mktemp(name)
    answer = ANSWERS.get(name)

    @settings(deadline=None)
    @given(st.data(), JSON, st.booleans())
    def check(data: st.DataObject, value: Any, in_answer: bool) -> None:
        row, other = RECORDS[name], answer
        if in_answer and other is not None:
            other = _changed(other, data.draw(st.sampled_from(_places(other))), value)
        else:
            row = _changed(row, data.draw(st.sampled_from(_places(row))), value)
        changed = evalset(folder, name, row, other)
        try:
            tasks = [task for task, _, _ in changed.tasks()]
        except InputError as fault:
            assert fault.file in {str(changed.path), *map(str, changed.answers)}
            return
        for task in tasks:  # what is read can be kept
            json.dumps([task.id, task.x, dict(task.metadata)], ensure_ascii=False, allow_nan=False).encode()
            assert all(candidate.text.encode() is not None for candidate in task.candidates)

    check()
