"""Long tables: every cell once, null with a reason where nothing was scored."""

from __future__ import annotations

import csv
import json
import math
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.errors import ConfigError
from debate.export import export_named
from debate.types import Candidate, Failure, Judgment, LabelDistribution, Task, Transcript, Usage
from tests.export.evaluated import COMPONENTS, debated, rows_of, scored, task
from tests.required import required_module

required_module("pyarrow")
parquet: Any = import_module("pyarrow.parquet")

shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
cells = st.one_of(st.just(math.nan), st.floats(0, 10, allow_nan=False))


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_cell_of_the_tensor_is_exported_once_with_its_value(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    r, i, j = data.draw(shapes)
    values = data.draw(st.lists(cells, min_size=r * i * j * 2, max_size=r * i * j * 2))
    tensor = np.array(values).reshape(r, i, j, 2)
    path = tmp_path_factory.mktemp("x") / "scores.parquet"
    with np.testing.suppress_warnings() as quiet:
        quiet.filter(RuntimeWarning)
        evaluation = debated(tensor)
    assert export_named("scores").write([(task(j), evaluation)], path, "run").rows == tensor.size
    found = np.full(tensor.shape, -1.0)
    for row in rows_of(path):
        cell = (row["round"], int(row["agent"][1:]), row["candidate"], COMPONENTS.index(row["component"]))
        assert found[cell] == -1.0
        found[cell] = math.nan if row["score"] is None else row["score"]
        assert (row["score"] is None) == (row["reason"] is not None)
    np.testing.assert_array_equal(found, tensor)


def test_a_failed_turn_has_its_reason_in_every_cell(tmp_path: Path) -> None:
    tensor = [[[[1.0, 2.0]], [[math.nan, math.nan]]]]
    export_named("scores").write([(task(1), debated(tensor))], tmp_path / "s.parquet", "run")
    assert [(row["score"], row["reason"], row["comment"]) for row in rows_of(tmp_path / "s.parquet")] == [
        (1.0, None, "c0"),
        (2.0, None, "c0"),
        (None, "unreadable_reply", None),
        (None, "unreadable_reply", None),
    ]


def test_a_score_that_was_read_out_has_its_distribution_and_an_abstained_cell_its_reason(tmp_path: Path) -> None:
    read = (LabelDistribution({"2": 0.5, "8": 0.5}, 0.75), LabelDistribution({"null": 1.0}))
    aside = LabelDistribution({"4": 1.0}, 0.25)
    found = debated([[[[5.0, math.nan]], [[math.nan, 5.0]]]])
    turns = [
        replace(turn, distributions=(cells,))
        for turn, cells in zip(found.transcript, (read, (aside, read[0])), strict=True)
    ]
    found = replace(found, transcript=Transcript(tuple(turns)), p_best=np.array([1.0]))
    expected = [
        (5.0, 3.0, {"2": 0.5, "8": 0.5}, 0.75, None),
        (None, None, {"null": 1.0}, 1.0, "abstained"),
        (None, None, {"4": 1.0}, 0.25, "label_mass"),
        (5.0, 3.0, {"2": 0.5, "8": 0.5}, 0.75, None),
    ]
    results = [(task(1), found)]
    for name in ("s.parquet", "s.csv"):
        assert export_named("scores").write(results, tmp_path / name, "run").rows == 4
    columns = ("score", "spread", "probabilities", "mass", "reason")
    rows = [[row[name] for name in columns] for row in rows_of(tmp_path / "s.parquet")]
    assert [(*row[:2], dict(row[2]), *row[3:]) for row in rows] == expected
    with (tmp_path / "s.csv").open(newline="") as stream:
        texts = [[row[name] for name in columns] for row in csv.DictReader(stream)]
    assert [tuple(json.loads(text) if text else None for text in row[:4]) for row in texts] == [
        row[:4] for row in expected
    ]
    export_named("turns").write(results, tmp_path / "t.parquet", "run")
    assert [row["abstained"] for row in rows_of(tmp_path / "t.parquet")] == [1, 0]
    export_named("tasks").write(results, tmp_path / "tasks.parquet", "run")
    assert rows_of(tmp_path / "tasks.parquet")[0]["p_best"] == [1.0]


def test_a_judges_value_that_was_read_out_has_its_distribution(tmp_path: Path) -> None:
    read, aside = LabelDistribution({"2": 0.5, "4": 0.5}), LabelDistribution({"4": 1.0}, 0.25)
    failure = Failure("label_mass", "the labels have little of the probability")
    judgments = (
        Judgment(candidates=(0,), value=3.0, distribution=read),
        Judgment(candidates=(1,), distribution=aside, failure=failure),
    )
    found = replace(scored(3.0, math.nan), judgments=judgments, failures=(Failure("other", "m"), failure))
    export_named("scores").write([(task(2), found)], tmp_path / "s.parquet", "run")
    rows = rows_of(tmp_path / "s.parquet")
    assert [(row["score"], row["spread"], row["mass"], row["reason"]) for row in rows] == [
        (3.0, 1.0, 1.0, None),
        (None, None, 0.25, "label_mass"),
    ]


def test_members_have_rows_of_their_own(tmp_path: Path) -> None:
    one = debated([[[[1.0, 2.0]]]])
    both = replace(one, tensor=None, transcript=Transcript(), members=(one, one))
    export_named("scores").write([(task(1), both)], tmp_path / "s.parquet", "run")
    assert [row["member"] for row in rows_of(tmp_path / "s.parquet")] == ["0", "0", "1", "1"]
    export_named("turns").write([(task(1), both)], tmp_path / "t.parquet", "run")
    assert [row["member"] for row in rows_of(tmp_path / "t.parquet")] == ["0", "1"]


def test_an_evaluation_without_turns_is_a_row_a_candidate(tmp_path: Path) -> None:
    export_named("scores").write([(task(2), scored(3.0, math.nan))], tmp_path / "s.parquet", "run")
    rows = rows_of(tmp_path / "s.parquet")
    assert [(row["component"], row["score"], row["reason"], row["round"]) for row in rows] == [
        ("value", 3.0, None, None),
        ("value", None, "unscored", None),
    ]


def test_a_turn_is_exported_with_its_memories_and_the_order_shown(tmp_path: Path) -> None:
    export_named("turns").write([(task(2), debated([[[[1.0, 2.0], [3.0, 4.0]]]]))], tmp_path / "t.parquet", "run")
    (row,) = rows_of(tmp_path / "t.parquet")
    assert (row["shown"], row["comments"], row["failure_reason"]) == ([1, 0], ["c0", "c1"], None)
    assert row["memories"][0]["relevance"] == 0.4
    assert row["memories"][0]["importance"] is None
    assert row["overall"] == "half \\ud800 a pair"


def test_scores_go_to_csv_where_the_file_says_so(tmp_path: Path) -> None:
    export_named("scores").write([(task(1), debated([[[[1.5, math.nan]]]]))], tmp_path / "s.csv", "run")
    with (tmp_path / "s.csv").open(newline="") as stream:
        assert [(row["component"], row["score"]) for row in csv.DictReader(stream)] == [("truth", "1.5"), ("style", "")]


def test_lists_are_json_in_csv(tmp_path: Path) -> None:
    export_named("turns").write([(task(2), debated([[[[1.0, 2.0], [3.0, 4.0]]]]))], tmp_path / "t.csv", "run")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    assert json.loads(row["comments"]) == ["c0", "c1"]
    assert json.loads(row["memories"])[0]["importance"] is None


def test_a_task_is_a_row_with_its_label_its_choice_and_what_it_took(tmp_path: Path) -> None:
    usage = Usage(100, 50, 20, 3)
    found = replace(debated([[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]]), scores=np.array([1.5, 3.5, math.nan]))
    found = replace(found, cv=(0.5, 0.25), rounds_run=2, stop_reason="converged", selected=1, usage=usage)
    labeled = Task("Why?", ["a", "b", "c"], "t", metadata={"group": "sums"}, best=[1, 2])
    export_named("tasks").write([(labeled, found)], tmp_path / "t.parquet", "first")
    assert rows_of(tmp_path / "t.parquet") == [
        {
            "run": "first", "task": "t", "group": "sums", "evaluator": "debate", "status": "ok", "error": None,
            "best": [1, 2], "selected": 1, "right": True, "tied": [], "scores": [1.5, 3.5, None], "p_best": None,
            "scale": [0.0, 10.0], "margin": 2.0, "cv": 0.25, "rounds": 2, "stop_reason": "converged",
            "prompt_tokens": 100, "cached_tokens": 50, "completion_tokens": 20, "calls": 3,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scores", "best", "expected"),
    [
        ((3.0, 7.0), 1, {"selected": 1, "right": True, "tied": [], "margin": 4.0}),
        ((3.0, 7.0), 0, {"selected": 1, "right": False, "tied": [], "margin": 4.0}),
        ((0.3, 0.1 + 0.2), 0, {"selected": 0, "right": False, "tied": [0, 1], "margin": 0.0}),
        ((3.0, 7.0), None, {"selected": 1, "right": None, "tied": [], "margin": 4.0}),
        ((math.nan, math.nan), 0, {"selected": None, "right": False, "tied": [], "margin": None}),
        ((3.0, math.nan), 0, {"selected": 0, "right": True, "tied": [], "margin": None}),
    ],
)
def test_a_tie_and_what_was_not_scored_are_not_right_and_without_a_label_nothing_is_known(
    tmp_path: Path, scores: tuple[float, ...], best: int | None, expected: dict[str, Any]
) -> None:
    results = [(Task("Why?", ["a", "b"], "t", best=best), scored(*scores))]
    for name in ("t.parquet", "t.csv"):
        export_named("tasks").write(results, tmp_path / name, "run")
    (row,) = rows_of(tmp_path / "t.parquet")
    assert {name: row[name] for name in expected} == expected
    with (tmp_path / "t.csv").open(newline="") as stream:
        (texts,) = csv.DictReader(stream)
    assert texts["right"] == ("" if best is None else str(expected["right"]))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
@pytest.mark.parametrize("name", ["tasks", "scores", "turns"])
def test_no_text_of_a_csv_file_is_a_formula(tmp_path: Path, name: str, start: str) -> None:
    formula = f'{start}HYPERLINK("http://evil","x")'
    candidates = [Candidate("a", generator=formula), Candidate("b")]
    risky = Task("Why?", candidates, f"{start}id", metadata={"group": formula})
    found = debated([[[[-1.0, 2.0], [3.0, 4.0]]]], name=f"{start}id")
    turns = [replace(turn, overall=formula, comments=(formula, "-")) for turn in found.transcript]
    found = replace(found, error=formula, components=(formula, "-"), transcript=Transcript(tuple(turns)))
    export_named(name).write([(risky, found)], tmp_path / "t.csv", f"{start}run")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    cells = [cell for row in rows for cell in row.values()]
    assert [cell for cell in cells if cell.startswith(start) and cell != "-1.0"] == []
    assert f"'{formula}" in cells
    assert rows[0]["run"] == f"'{start}run"


@pytest.mark.parametrize("name", ["tasks", "scores", "turns"])
def test_tables_without_rows_have_the_same_columns_in_both_forms(tmp_path: Path, name: str) -> None:
    assert export_named(name).write([], tmp_path / "t.csv", "run").rows == 0
    export_named(name).write([], tmp_path / "t.parquet", "run")
    header = (tmp_path / "t.csv").read_text().rstrip().split(",")
    assert header == parquet.read_schema(tmp_path / "t.parquet").names
    assert "task" in header


def test_without_pyarrow_parquet_is_refused_and_csv_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    results = [(task(1), scored(7))]
    with pytest.raises(ConfigError, match=r"pip install 'debate-eval\[parquet\]'"):
        export_named("scores").write(results, tmp_path / "s.parquet", "run")
    assert list(tmp_path.iterdir()) == []
    assert export_named("scores").write(results, tmp_path / "s.csv", "run").rows == 1
