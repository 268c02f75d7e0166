"""Reading an eval set: what is accepted, and that every fault is found at its file, line and field."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debate.bundled_judge import demo_tasks
from debate.dataset.evalset import EvalSet
from debate.errors import ConfigError, TaskError
from debate.types import Candidate, Task
from tests.dataset.files import count, tasks_of
from tests.scripts_loader import REPOSITORY

GOOD = '{"x": "What is 2 + 2?", "candidates": ["4", "5"]}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tasks.jsonl"


def tasks_in(file: Path, text: str | bytes) -> list[Task]:
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return list(tasks_of(file))


def fault_in(file: Path, text: str | bytes) -> TaskError:
    with pytest.raises(TaskError) as caught:
        tasks_in(file, text)
    assert caught.value.file == str(file)
    return caught.value


def line(**changes: Any) -> str:
    """A good task with some keys changed."""
    return json.dumps({"x": "What is 2 + 2?", "candidates": ["4", "5"]} | changes)


# What is accepted


@pytest.mark.parametrize(
    ("label", "kept"), [(1, 1), (1.0, 1), ("B", 1), (["A", 1], [0, 1]), ("c2", 1), ([1], 1), (None, None)]
)
def test_a_label_stands_at_the_top_or_in_the_metadata(file: Path, label: Any, kept: Any) -> None:
    candidates = ["4", {"text": "5", "id": "c2"}]
    top, inside = tasks_in(
        file, f"{line(candidates=candidates, best=label)}\n{line(candidates=candidates, metadata={'best': label})}"
    )
    assert top.metadata.get("best") == inside.metadata.get("best") == kept
    assert top.best == inside.best


def test_a_reference_is_taken(file: Path) -> None:
    [task, without] = tasks_in(file, f"{line(reference='It is 4.')}\n{line(reference=None)}")
    assert (task.reference, task.context, without.reference) == ("It is 4.", (), None)


def test_a_line_with_everything_set_becomes_a_task(file: Path) -> None:
    full = {"text": "4", "id": "c1", "generator": "some-model", "metadata": {"n": 1}}
    text = line(id="sum", candidates=[full, "5"], context=["2 + 1 is 3"], metadata={"topic": "sums"})
    [task] = tasks_in(file, text)
    assert (task.id, task.x, task.context, task.metadata) == (
        "sum",
        "What is 2 + 2?",
        ("2 + 1 is 3",),
        {"topic": "sums"},
    )
    assert task.candidates == (Candidate("4", "c1", "some-model", {"n": 1}), Candidate("5"))


def test_null_is_as_good_as_a_key_left_out_where_it_may_be_left_out(file: Path) -> None:
    nothing = {"id": None, "generator": None, "metadata": None}
    with_nulls, plain = tasks_in(
        file,
        line(id=None, context=None, metadata=None, candidates=[{"text": "4"} | nothing, "5"]) + "\n" + GOOD,
    )
    assert with_nulls == plain
    assert not with_nulls.has_given_id


def test_blank_lines_a_byte_order_mark_and_windows_line_ends_are_no_fault(file: Path) -> None:
    text = b"\xef\xbb\xbf" + f"{line(id='a')}\r\n\r\n   \n{line(id='b')}".encode()
    assert [task.id for task in tasks_in(file, text)] == ["a", "b"]


def test_a_text_may_hold_line_separators(file: Path) -> None:
    text = json.dumps({"x": "one\u2028two\u0085three", "candidates": ["\x0b"]}, ensure_ascii=False)
    assert [task.x for task in tasks_in(file, text)] == ["one\u2028two\u0085three"]


def test_equal_tasks_without_ids_are_no_duplicates(file: Path) -> None:
    first, second = tasks_in(file, f"{GOOD}\n{GOOD}\n")
    assert first.id == second.id


@pytest.mark.parametrize(
    "tasks", [demo_tasks(), REPOSITORY / "scripts" / "general_tasks.jsonl"], ids=lambda file: file.stem
)
def test_the_tasks_of_the_demo_and_the_general_ones_are_eval_sets(tasks: Path) -> None:
    assert count(tasks) == sum(1 for text in tasks.read_text(encoding="utf-8").splitlines() if text.strip())


# How it is read


def test_a_limit_reads_no_further_than_it_must(file: Path) -> None:
    file.write_text(f"{GOOD}\n\n{GOOD}\nbroken\n", encoding="utf-8")
    assert len(list(tasks_of(file, limit=2))) == 2
    assert count(file, limit=2) == 2
    with pytest.raises(TaskError, match="jsonl:4: is not valid JSON"):
        count(file, limit=3)


def test_a_limit_below_one_is_refused(file: Path) -> None:
    file.write_text(GOOD, encoding="utf-8")
    with pytest.raises(ConfigError, match="limit: must be at least 1"):
        list(tasks_of(file, limit=0))


def test_tasks_come_before_a_later_fault_is_met(file: Path) -> None:
    file.write_text(f"{GOOD}\nbroken\n", encoding="utf-8")
    tasks: Iterator[Task] = tasks_of(file)
    assert next(tasks).x == "What is 2 + 2?"
    with pytest.raises(TaskError, match="jsonl:2"):
        next(tasks)


def test_memory_does_not_grow_with_the_file(file: Path) -> None:
    file.write_text("".join(line(x="x" * 10_000) + "\n" for _ in range(1000)), encoding="utf-8")
    tracemalloc.start()
    assert count(file) == 1000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < file.stat().st_size / 10


# Faults, each at its line and field


@pytest.mark.parametrize(
    ("broken", "field", "message"),
    [
        ('{"candidates": ["4"]}', "x", "is missing"),
        ('{"x": "q"}', "candidates", "is missing"),
        (line(x=4), "x", "must be text, got 4"),
        (line(x=None), "x", "must be text, got nothing"),
        (line(candidates=[]), "candidates", "is empty"),
        (line(candidates=None), "candidates", "must be a list, got nothing"),
        (line(candidates="4"), "candidates", "must be a list, got '4'"),
        (line(candidates={"A": "4"}), "candidates", "must be a list, got a mapping"),
        (line(candidates=["4", 5]), "candidates.1", "must be text, a list of messages, or a mapping with a text"),
        (line(candidates=["4", True]), "candidates.1", "must be text, a list of messages, or a mapping with a text"),
        (line(candidates=["4", ["5"]]), "candidates.1.0", "must be a message, got str"),
        (line(candidates=["4", {"text": 5}]), "candidates.1.text", "must be text, got 5"),
        (line(candidates=[{"id": "a"}]), "candidates.0.text", "is missing"),
        (line(candidates=[{"text": "4", "id": 1}]), "candidates.0.id", "must be text, got 1"),
        (line(candidates=[{"text": "4", "metadata": "m"}]), "candidates.0.metadata", "must be a mapping"),
        (line(context="c"), "context", "must be a list, got 'c'"),
        (line(context=["c", 1]), "context.1", "must be text, got 1"),
        (line(metadata=[1]), "metadata", "must be a mapping of keys to values, got a list"),
        (line(id=7), "id", "must be text, got 7"),
        (line(id="  "), "id", "must be a non-empty string"),
        (line(x="cut \ud83d"), "x", "lone surrogate"),
        (line(candidates=["4", "cut \ud83d"]), "candidates.1.text", "lone surrogate"),
        (line(id="\ud83d"), "id", "lone surrogate"),
        (line(metadata={"a": ["\ud83d"]}), "metadata.a", "lone surrogate"),
        (line(metadata={"best": 2}), "metadata.best", "must be the index of one of 2 candidates, got 2"),
        (line(metadata={"best": -1}), "metadata.best", "must be the index of one of 2 candidates, got -1"),
        (line(metadata={"best": True}), "metadata.best", "must be the index of one of 2 candidates, got True"),
        (line(metadata={"best": "C"}), "metadata.best", "'C' names no candidate"),
        (line(metadata={"best": [0, 5]}), "metadata.best.1", "must be the index of one of 2 candidates, got 5"),
        (line(best=2), "best", "must be the index of one of 2 candidates, got 2"),
        (line(best="first"), "best", "'first' names no candidate"),
        (line(best=1, metadata={"best": 0}), "best", "contradicts metadata.best, which is 0"),
        (line(reference=4), "reference", "must be text, got 4"),
        (GOOD[:-1] + ', "metadata": {"a": 1e999}}', "metadata.a", "holds a number that is too large"),
        (line(metadata={"\ud83d": 1}), "metadata", "lone surrogate"),
        (line(candidates=[{"text": "4", "metadata": {"a": "\ud83d"}}]), "candidates.0.metadata.a", "lone surrogate"),
        ('{"x": "a", "x": "b", "candidates": ["4"]}', "x", "duplicate key"),
    ],
)
def test_a_fault_is_told_with_its_line_and_field(file: Path, broken: str, field: str, message: str) -> None:
    fault = fault_in(file, f"{GOOD}\n\n{broken}\n")
    assert (fault.line, fault.field) == (3, field)
    assert fault.message.startswith(f"{file}:3: {field}: ")
    assert message in fault.message


@pytest.mark.parametrize(
    ("broken", "field", "hint"),
    [
        (line(candidate=["4"]), "candidate", "did you mean 'candidates'?"),
        (line(ID="a"), "ID", "did you mean 'id'?"),
        (line(candidates=[{"txt": "4"}]), "candidates.0.txt", "did you mean 'text'?"),
        (
            line(question="q"),
            "question",
            "known keys: id, x, candidates, context, reference, components, best, metadata",
        ),
        (line(**{"\x1b[31m": 1}), r"'\x1b[31m'", "known keys: id"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_was_meant(file: Path, broken: str, field: str, hint: str) -> None:
    fault = fault_in(file, broken)
    assert (fault.line, fault.field) == (1, field)
    assert "unknown key" in fault.message
    assert fault.hint is not None
    assert hint in fault.hint


def test_broken_json_is_told_with_its_column(file: Path) -> None:
    fault = fault_in(file, '{"x": "a" "candidates": []}')
    assert "jsonl:1: is not valid JSON, at column 11" in fault.message


def test_an_object_over_several_lines_is_told_so(file: Path) -> None:
    fault = fault_in(file, "{\n" + GOOD[1:])
    assert fault.line == 1
    assert fault.hint is not None
    assert "one object per line" in fault.hint


@pytest.mark.parametrize("text", ["[\n" + GOOD + ",\n" + GOOD + "\n]", f"[{GOOD}, {GOOD}]"])
def test_tasks_may_come_as_an_array(file: Path, text: str) -> None:
    assert tasks_in(file, text) == tasks_in(file, f"{GOOD}\n{GOOD}")


@pytest.mark.parametrize("text", ["7", '"text"', "null", "true"])
def test_a_line_that_is_not_an_object_is_refused(file: Path, text: str) -> None:
    assert "must be a JSON object, got " in fault_in(file, text).message


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 100_000])
def test_json_that_python_would_choke_on_is_a_fault(file: Path, value: str) -> None:
    fault = fault_in(file, f'{{"x": "a", "candidates": ["4"], "metadata": {{"a": {value}}}}}')
    assert fault.line == 1
    assert "is not valid JSON" in fault.message


def test_a_number_that_json_has_not_is_null(file: Path) -> None:
    [task] = tasks_in(file, '{"x": "a", "candidates": ["4"], "metadata": {"a": NaN, "b": -Infinity}}')
    assert task.metadata == {"a": None, "b": None}


def test_bytes_that_are_not_utf8_are_told_with_their_line(file: Path) -> None:
    fault = fault_in(file, GOOD.encode() + b'\n{"x": "caf\xe9", "candidates": ["a"]}\n')
    assert fault.line == 2
    assert "is not UTF-8, at byte 11 of the line" in fault.message


@pytest.mark.parametrize(
    ("content", "hint"), [(GOOD.encode("utf-16"), "UTF-16"), (gzip.compress(GOOD.encode(), mtime=0), "compressed")]
)
def test_a_file_in_another_form_is_recognised(file: Path, content: bytes, hint: str) -> None:
    fault = fault_in(file, content)
    assert fault.hint is not None
    assert hint in fault.hint


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_a_file_without_tasks_is_refused(file: Path, content: str) -> None:
    assert "holds no tasks" in fault_in(file, content).message


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"nowhere\.jsonl: there is no such file"):
        count(tmp_path / "nowhere.jsonl")
    with pytest.raises(TaskError, match="is a folder"):
        count(tmp_path)
    with pytest.raises(TaskError, match="cannot be read"):
        count("tasks\0.jsonl")


def test_a_pipe_is_refused_because_it_could_not_be_read_again(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TaskError, match="can be read only once"):
        count(tmp_path / "pipe")


# In one pass


def test_a_pass_knows_the_digest_of_what_it_has_read_without_reading_it_again(file: Path) -> None:
    file.write_text(f"{GOOD}\n{GOOD}\n", encoding="utf-8")
    expected = EvalSet(file).digest()
    reading = EvalSet(file).read()
    assert len(list(reading)) == 2
    file.unlink()
    assert reading.digest() == expected


@pytest.mark.parametrize("end", [GOOD, "broken"])
def test_the_digest_is_of_the_whole_file_whatever_was_read_of_it(file: Path, end: str) -> None:
    file.write_text(f"{GOOD}\n" * 10_000 + end, encoding="utf-8")
    reading = EvalSet(file, limit=1).read()
    assert len(list(reading)) == 1
    assert reading.digest() == EvalSet(file, limit=1).digest()
    assert reading.digest() != EvalSet(file).digest()


def test_the_digest_changes_with_every_byte(file: Path) -> None:
    file.write_text(GOOD, encoding="utf-8")
    before = EvalSet(file).digest()
    file.write_text(GOOD + "\n", encoding="utf-8")
    assert EvalSet(file).digest() != before


def test_a_file_is_opened_once_to_be_recognized_read_and_hashed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(GOOD, encoding="utf-8")
    opens: list[Path] = []
    really: Any = Path.open

    def counted(self: Path, *arguments: Any, **more: Any) -> Any:
        opens.append(self)
        return really(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", counted)
    reading = EvalSet(file).read()
    assert (len(list(reading)), len(reading.digest())) == (1, 64)
    assert opens == [file]


# Rubrics of one task


@pytest.mark.parametrize(
    ("components", "field", "problem"),
    [
        ([{"name": "a", "description": "d"}, {"name": "A", "description": "e"}], "components.1.name", "duplicate name"),
        ([{"name": "a", "description": "d", "weight": -0.5}], "components.0.weight", "must lie in [0, 1], got -0.5"),
        ([{"name": "a", "description": "d", "weight": 0}], "components", "have weights that sum to 0"),
        ([{"name": "a"}], "components.0.description", "is missing"),
        ([{"name": "a" * 101, "description": "d"}], "components.0.name", "has 101 characters, and may have 100"),
        ({"a": "d"}, "components", "must be a list of components, got dict"),
    ],
)
def test_a_faulty_component_is_refused_with_its_line_and_field(
    tmp_path: Path, components: Any, field: str, problem: str
) -> None:
    file = tmp_path / "tasks.jsonl"
    row = {"x": "x", "candidates": ["a"], "components": [{"name": "n", "description": "d"}]}
    file.write_text("".join(json.dumps(each) + "\n" for each in (row, {**row, "components": components})))
    with pytest.raises(TaskError) as caught:
        list(EvalSet(file).tasks())
    assert (caught.value.line, caught.value.field) == (2, field)
    assert problem in caught.value.problem


# Conversations

CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}]
SAID = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "4"},
]


@pytest.mark.parametrize("name", ["tasks.jsonl", "tasks.json"])
def test_inputs_and_candidates_may_be_conversations(tmp_path: Path, name: str) -> None:
    row = {"x": ASKED, "candidates": [SAID, {"messages": SAID, "generator": "m"}, "4"]}
    file = tmp_path / name
    file.write_text(json.dumps([row]) if name.endswith(".json") else json.dumps(row) + "\n")
    [task] = tasks_of(file)
    assert task.x == "System:\nBe brief.\n\nUser:\n2 + 2?"
    assert task.candidates[0].text == "Assistant, call 1:\nadd({})\n\nTool, result of call 1:\n4"
    assert (task.candidates[1].text, task.candidates[1].generator) == (task.candidates[0].text, "m")
    assert ([*task.messages], task.candidates[2].messages) == (ASKED, ())


IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"x": [ASKED[0], IMAGE]}, "x.1.content.0", "is of the type 'image_url', and cannot be shown as text"),
        ({"x": []}, "x", "is empty"),
        ({"x": [{"role": "judge", "content": "a"}]}, "x.0.role", "must be one of system, developer, user"),
        ({"candidates": [[IMAGE]]}, "candidates.0.0.content.0", "is of the type 'image_url'"),
        ({"candidates": [{"messages": [IMAGE]}]}, "candidates.0.messages.0.content.0", "is of the type 'image_url'"),
        ({"candidates": [{"messages": 3}]}, "candidates.0.messages", "must be a list of messages, got int"),
        ({"candidates": [{"text": "a", "messages": SAID}]}, "candidates.0.text", "stands beside messages"),
        ({"candidates": [{"id": "a"}]}, "candidates.0.text", "is missing"),
    ],
)
def test_a_fault_in_a_conversation_is_told_with_its_line_and_field(
    file: Path, changes: dict[str, Any], field: str, problem: str
) -> None:
    fault = fault_in(file, f"{GOOD}\n{line(**changes)}\n")
    assert (fault.line, fault.field) == (2, field)
    assert problem in fault.problem
