"""CSV and parquet: candidates in one column or in several, and rows that are broken."""

from __future__ import annotations

import csv
import tracemalloc
from collections.abc import Mapping
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.dataset.evalset import EvalSet
from debate.errors import ConfigError, TaskError
from tests.dataset.files import Row, best, count, lines, read, tasks_of, texts
from tests.required import required_module


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_has_candidates_in_a_column_or_in_several(tmp_path: Path) -> None:
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.writer(stream)
        writer.writerow(["prompt", "response_a", "response_b", "best", "topic"])
        writer.writerow(['Hi,\n"you"?', "one", "two", "1", "x"])
    (task,) = read(tmp_path / "t.csv", "table", columns={"x": "prompt"})
    assert (task.x, texts(task), task.metadata) == ('Hi,\n"you"?', ["one", "two"], {"topic": "x", "best": 1})
    file = write(tmp_path / "u.csv", 'x,candidates\nq,"[""a"", ""b""]"\n')
    assert texts(read(file, "table")[0]) == ["a", "b"]
    file = write(tmp_path / "v.csv", "x,first,second\nq,a,b\n")
    assert texts(read(file, "table", columns={"candidates": "second, first"})[0]) == ["b", "a"]


def test_a_label_in_a_csv_is_an_index_a_letter_or_a_list(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", 'x,response_a,response_b,best\nq,a,b,B\nr,a,b,1.0\ns,a,b,"[0, ""B""]"\nt,a,b,\n')
    assert [task.best for task in read(file, "table")] == [(1,), (1,), (0, 1), ()]


def test_a_label_that_cannot_be_read_is_refused_by_the_name_of_its_column(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "x,response_a,response_b,winner\nq,a,b,A\nr,a,b,C\n")
    with pytest.raises(TaskError, match=r"t\.csv:3: winner: 'C' names no candidate"):
        read(file, "table", columns={"best": "winner"})


def test_a_column_can_hold_the_reference_answer(tmp_path: Path) -> None:
    text = "x,candidate_1,reference,gold\nq,a,r,g\ns,a,,\n"
    tasks = read(write(tmp_path / "t.csv", text), "table")
    assert [(task.reference, task.metadata) for task in tasks] == [("r", {"gold": "g"}), (None, {})]
    tasks = read(tmp_path / "t.csv", "table", columns={"reference": "gold"})
    assert [(task.reference, task.metadata) for task in tasks] == [("g", {"reference": "r"}), (None, {})]


def test_numbered_columns_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "x,candidate_10,candidate_2,candidate_1,best\nq,j,b,a,2\n")
    (task,) = read(file, "table")
    assert (texts(task), best(task)) == (["a", "b", "j"], 2)


def test_a_row_may_have_fewer_candidates_than_there_are_numbered_columns(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "x,candidate_1,candidate_2,candidate_3\nq,a,b,\nr,c,,\n")
    assert [texts(task) for task in read(file, "table")] == [["a", "b"], ["c"]]


def test_tabs_separate_the_columns_of_a_tsv(tmp_path: Path) -> None:
    (task,) = read(write(tmp_path / "t.tsv", "x\tcandidate_1\tcontext\nq, r\ta\tread this\n"), "table")
    assert (task.x, texts(task), task.context) == ("q, r", ["a"], ("read this",))


def test_json_lines_of_any_keys_are_a_table_when_their_columns_are_named(tmp_path: Path) -> None:
    file = lines(tmp_path / "t.jsonl", {"prompt": "q", "mine": "a", "yours": "b"})
    (task,) = read(file, "table", columns={"x": "prompt", "candidates": "mine,yours"})
    assert (task.x, texts(task)) == ("q", ["a", "b"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,candidates\nq,a\n", r"t\.csv:2: candidates: must be a JSON list"),
        ('x,candidates\nq,"[1]"\n', r"t\.csv:2: candidates\.0: must be a string"),
        ("x,candidates\nq\n", r"t\.csv:2: has fewer fields"),
        ("x,candidate_1\nq,a\nr,b,c\n", r"t\.csv:3: has more fields"),
        ('x,candidate_1\n"q\n1",a\n"r\n2"\n', r"t\.csv:4: has fewer fields"),
        ("x,candidate_1,x\nq,a,r\n", r"t\.csv:1: x: duplicate column"),
        ('x,candidate_1\nq,a\nr,"b\nc', r"t\.csv:3: is not valid CSV"),
        ('x,candidate_1\n"q"q,a\n', r"t\.csv:2: is not valid CSV"),
        ("x,other\nq,a\n", "there is no such column among x, other"),
        ("y,candidate_1\nq,a\n", "x: is missing"),
        ("x,candidate_1,best\nq,a,first\n", "best: 'first' names no candidate"),
        ("x,candidate_1,best\nq,a,1\n", "best: must be the index of one of 1 candidates, got 1"),
        ("x,candidate_1,candidate_2\nq,,b\n", "candidate_1: is empty"),
        ("x,response_a,response_b\nq,a,\n", "response_b: is empty"),
        ("x,candidate_1\nq,\n", "candidates: is empty"),
        ("x,candidate_1,response_1\nq,a,b\n", "could be each of candidate_1, response_1"),
        ("x,candidate_1\n", "holds no tasks"),
        ("", "holds no tasks"),
    ],
)
def test_a_broken_csv_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        read(write(tmp_path / "t.csv", text), "table")


def test_bytes_that_are_not_utf8_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"x,candidate_1\ncaf\xe9,a\n")
    with pytest.raises(TaskError, match="is not UTF-8"):
        read(tmp_path / "t.csv", "table")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": "number"}, "number: there is no such column"),
        ({"candidates": "first,third"}, "third: there is no such column"),
        ({"candidates": "third"}, "third: there is no such column"),
    ],
)
def test_a_column_that_is_named_and_not_there_is_refused(
    tmp_path: Path, columns: Mapping[str, str], message: str
) -> None:
    file = write(tmp_path / "t.csv", "x,first,second,candidate_1\nq,a,b,c\n")
    with pytest.raises(TaskError, match=message):
        read(file, "table", columns=columns)


def test_a_name_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'prompt' cannot be named"):
        EvalSet(tmp_path / "t.csv", columns={"prompt": "x"})


def parquet_file(path: Path, rows: list[Row]) -> Path:
    arrow, parquet = required_module("pyarrow"), import_module("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(rows), path, row_group_size=100)
    return path


def test_parquet_is_read_in_batches(tmp_path: Path) -> None:
    rows: list[Row] = [{"x": f"q{n}", "candidates": ["a", "b"], "id": f"t{n}", "best": n % 2} for n in range(600)]
    tasks = read(parquet_file(tmp_path / "t.parquet", rows), "table")
    assert [task.id for task in tasks] == [row["id"] for row in rows]
    assert tasks[1].metadata == {"best": 1}


def test_parquet_values_that_json_has_not_become_texts_or_null(tmp_path: Path) -> None:
    row = {
        "x": "q", "candidates": ["a", "b"], "context": ["c", "d"], "best": 1.0,
        "day": date(2026, 1, 2), "rate": float("nan"), "image": b"123", "more": {"n": [1, None]},
    }  # fmt: skip
    (task,) = read(parquet_file(tmp_path / "t.parquet", [row]), "table")
    assert task.metadata == {"best": 1, "day": "2026-01-02", "image": "(3 bytes)", "more": {"n": [1, None]}}
    assert task.context == ("c", "d")


@pytest.mark.parametrize("value", [0.5, -1, 2, True])
def test_a_best_that_is_no_index_is_refused(tmp_path: Path, value: Any) -> None:
    file = parquet_file(tmp_path / "t.parquet", [{"x": "q", "candidates": ["a", "b"], "best": value}])
    with pytest.raises(TaskError, match=r"t\.parquet:1: best: must be the index"):
        read(file, "table")


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "u.parquet").write_bytes(b"PAR1nonsense")
    with pytest.raises(TaskError, match="is not valid parquet"):
        read(tmp_path / "u.parquet", "table")
    whole = parquet_file(tmp_path / "t.parquet", [{"x": f"q{n}" * 50, "candidates": ["a"]} for n in range(50)])
    content = bytearray(whole.read_bytes())
    content[8:200] = bytes(192)
    whole.write_bytes(content)
    with pytest.raises(TaskError, match="parquet"):
        read(whole, "table")


def test_parquet_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = parquet_file(tmp_path / "t.parquet", [{"x": "q", "candidates": ["a"]}])
    monkeypatch.setitem(import_module("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError) as caught:
        EvalSet(file).tasks().__next__()
    assert caught.value.hint == "pip install 'debate-eval[parquet]'"


def test_memory_does_not_grow_with_a_csv(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "x,candidate_1\n" + ("x" * 10_000 + ",a\n") * 500)
    tracemalloc.start()
    assert count(file) == 500
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < file.stat().st_size / 10


def test_csv_keeps_every_text_as_it_is(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"

    @settings(deadline=None)
    @given(st.lists(st.tuples(*[st.text(st.characters(codec="utf-8"), min_size=1)] * 3), min_size=1, max_size=4))
    def check(rows: list[tuple[str, str, str]]) -> None:
        with path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([("x", "candidate_1", "candidate_2"), *rows])
        assert [(task.x, *texts(task)) for task in tasks_of(path)] == rows

    check()


def test_a_column_holds_the_components_of_each_task(tmp_path: Path) -> None:
    file = tmp_path / "tasks.csv"
    file.write_text('x,candidates,rubric\nq,"[""a""]","[{""name"": ""n"", ""description"": ""d""}]"\nq,"[""b""]",\n')
    first, second = [each.task for each in EvalSet(file, columns={"components": "rubric"}).tasks()]
    assert [component.name for component in first.components] == ["n"]
    assert (second.components, second.metadata) == ((), {})


def test_a_column_may_hold_conversations(tmp_path: Path) -> None:
    asked, said = [{"role": "user", "content": "q"}], [{"role": "assistant", "content": "a"}]
    file = lines(tmp_path / "rows.jsonl", {"prompt": asked, "answers": [said, "b"]})
    [task] = read(file, "table", columns={"x": "prompt", "candidates": "answers"})
    assert (task.x, texts(task), len(task.messages)) == ("q", ["a", "b"], 1)
