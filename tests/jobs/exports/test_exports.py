"""Exports: every cell once, null with a reason where nothing was scored, whole files or none."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.errors import StoreError
from debate.evaluation import Evaluation
from debate.jobs.exports import EXPORTS
from debate.jobs.exports.pairs import write_preferences
from debate.types import Candidate, Failure, Memory, Scale, Task, Transcript, Turn

pytest.importorskip("pyarrow")
parquet: Any = import_module("pyarrow.parquet")
COMPONENTS = ("truth", "style")


def task(n: int, name: str = "t") -> Task:
    return Task("Why?", [Candidate(f"answer {j}", generator=f"m{j}") for j in range(n)], name)


def debated(tensor: Any, *, name: str = "t", members: tuple[Evaluation, ...] = ()) -> Evaluation:
    """An evaluation whose turns hold the tensor, (R, I, J, K); a turn that is all NaN failed."""
    cells = np.array(tensor, dtype=np.float64)
    turns: list[Turn] = []
    for r, i in np.ndindex(*cells.shape[:2]):
        failed = bool(np.isnan(cells[r, i]).all())
        n = cells.shape[2]
        turns.append(
            Turn(
                round=r,
                agent=f"a{i}",
                labels={chr(65 + j): j for j in reversed(range(n))},
                scores=cells[r, i],
                overall="half \ud800 a pair",
                comments=() if failed else tuple(f"c{j}" for j in range(n)),
                failure=Failure("unreadable_reply", "no", r, f"a{i}") if failed else None,
                memories=(Memory("seen before", "id1", "c", 0.5, 0.4, 0.3, math.nan),),
            )
        )
    scores = np.nanmean(cells, axis=(0, 1, 3)) if not np.isnan(cells).all() else np.full(cells.shape[2], np.nan)
    return Evaluation(
        task_id=name,
        evaluator="debate",
        status="ok",
        scores=scores,
        probabilities=np.full(len(scores), 1 / len(scores)),
        selected=0,
        tensor=cells,
        components=COMPONENTS,
        transcript=Transcript(tuple(turns)),
        members=members,
    )


def scored(*scores: float, scale: Scale | None = None, name: str = "t") -> Evaluation:
    values = np.array(scores, dtype=np.float64)
    weights = np.where(np.isnan(values), 0.0, np.exp(np.nan_to_num(values) / 10))
    return Evaluation(
        task_id=name,
        evaluator="value",
        status="ok",
        scale=scale or Scale(),
        scores=values,
        probabilities=weights / weights.sum(),
        selected=int(np.nanargmax(values)),
    )


def rows_of(path: Path) -> list[dict[str, Any]]:
    return parquet.read_table(path).to_pylist()


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


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
    assert EXPORTS["scores"].write([(task(j), evaluation)], path, "run").rows == tensor.size
    found = np.full(tensor.shape, -1.0)
    for row in rows_of(path):
        cell = (row["round"], int(row["agent"][1:]), row["candidate"], COMPONENTS.index(row["component"]))
        assert found[cell] == -1.0
        found[cell] = math.nan if row["score"] is None else row["score"]
        assert (row["score"] is None) == (row["reason"] is not None)
    np.testing.assert_array_equal(found, tensor)


def test_a_failed_turn_has_its_reason_in_every_cell(tmp_path: Path) -> None:
    tensor = [[[[1.0, 2.0]], [[math.nan, math.nan]]]]
    EXPORTS["scores"].write([(task(1), debated(tensor))], tmp_path / "s.parquet", "run")
    assert [(row["score"], row["reason"], row["comment"]) for row in rows_of(tmp_path / "s.parquet")] == [
        (1.0, None, "c0"),
        (2.0, None, "c0"),
        (None, "unreadable_reply", None),
        (None, "unreadable_reply", None),
    ]


def test_members_have_rows_of_their_own(tmp_path: Path) -> None:
    one = debated([[[[1.0, 2.0]]]])
    both = replace(one, tensor=None, transcript=Transcript(), members=(one, one))
    EXPORTS["scores"].write([(task(1), both)], tmp_path / "s.parquet", "run")
    assert [row["member"] for row in rows_of(tmp_path / "s.parquet")] == ["0", "0", "1", "1"]
    EXPORTS["turns"].write([(task(1), both)], tmp_path / "t.parquet", "run")
    assert [row["member"] for row in rows_of(tmp_path / "t.parquet")] == ["0", "1"]


def test_an_evaluation_without_turns_is_a_row_a_candidate(tmp_path: Path) -> None:
    EXPORTS["scores"].write([(task(2), scored(3.0, math.nan))], tmp_path / "s.parquet", "run")
    rows = rows_of(tmp_path / "s.parquet")
    assert [(row["component"], row["score"], row["reason"], row["round"]) for row in rows] == [
        ("value", 3.0, None, None),
        ("value", None, "unscored", None),
    ]


def test_a_turn_is_exported_with_its_memories_and_the_order_shown(tmp_path: Path) -> None:
    EXPORTS["turns"].write([(task(2), debated([[[[1.0, 2.0], [3.0, 4.0]]]]))], tmp_path / "t.parquet", "run")
    (row,) = rows_of(tmp_path / "t.parquet")
    assert (row["shown"], row["comments"], row["failure_reason"]) == ([1, 0], ["c0", "c1"], None)
    assert row["memories"][0]["relevance"] == 0.4
    assert row["memories"][0]["importance"] is None
    assert row["overall"] == "half \\ud800 a pair"


def test_scores_go_to_csv_where_the_file_says_so(tmp_path: Path) -> None:
    EXPORTS["scores"].write([(task(1), debated([[[[1.5, math.nan]]]]))], tmp_path / "s.csv", "run")
    with (tmp_path / "s.csv").open(newline="") as stream:
        assert [(row["component"], row["score"]) for row in csv.DictReader(stream)] == [("truth", "1.5"), ("style", "")]


def test_preferences_pair_the_best_with_every_worse_one(tmp_path: Path) -> None:
    results = [
        (task(4, "a"), scored(5, 8, math.nan, 8)),
        (task(2, "b"), scored(1, 1)),
        (task(2, "c"), scored(2, 7, scale=Scale(0, 10, False))),
    ]
    written = EXPORTS["preferences"].write(results, tmp_path / "p.jsonl", "run")
    rows = lines_of(tmp_path / "p.jsonl")
    assert [(row["task_id"], row["chosen"], row["rejected"], row["margin"]) for row in rows] == [
        ("a", "answer 1", "answer 0", 3.0),
        ("c", "answer 0", "answer 1", 5.0),
    ]
    assert dict(written.skipped) == {"no candidate is better than another by the margin": 1}
    assert write_preferences(results, tmp_path / "p.jsonl", "run", min_margin=4).rows == 1


def test_alpaca_annotations_hold_pairs_alone_and_say_how_many_were_left_out(tmp_path: Path) -> None:
    results = [(task(2), scored(5, 5)), (task(3), scored(1, 2, 3)), (task(2), scored(0, 9))]
    written = EXPORTS["alpaca_eval"].write(results, tmp_path / "a.json", "run")
    first, second = json.loads((tmp_path / "a.json").read_text())
    assert (first["preference"], written.skipped.total()) == (1.5, 1)
    assert 1.5 < second["preference"] <= 2
    assert (second["generator_2"], second["output_2"]) == ("m1", "answer 1")


def test_inspect_scores_leave_out_what_was_not_scored_and_say_so(tmp_path: Path) -> None:
    results = [
        (task(1, "a"), scored(7)),
        (task(2, "b"), scored(3, math.nan)),
        (task(1, "c"), debated([[[[math.nan, math.nan]]]])),
    ]
    written = EXPORTS["inspect"].write(results, tmp_path / "i.jsonl", "run")
    first, second = lines_of(tmp_path / "i.jsonl")
    assert (first["id"], first["value"], second["value"]) == ("a", 7.0, {"m0": 3.0})
    assert second["metadata"]["unscored"] == ["m1"]
    assert dict(written.skipped) == {"no candidate has a score": 1}


def test_mt_bench_judgments_are_on_one_to_ten(tmp_path: Path) -> None:
    EXPORTS["mt_bench"].write([(task(2, "81"), scored(0, 10))], tmp_path / "j.jsonl", "run")
    rows = lines_of(tmp_path / "j.jsonl")
    assert [(row["question_id"], row["model"], row["score"]) for row in rows] == [(81, "m0", 1.0), (81, "m1", 10.0)]


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_that_fails_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    def breaking() -> Iterator[tuple[Task, Evaluation]]:
        yield task(2), scored(1, 2)
        raise RuntimeError("the store is gone")

    path = tmp_path / EXPORTS[name].file
    path.write_text("before")
    with pytest.raises(RuntimeError):
        EXPORTS[name].write(breaking(), path, "run")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/p\.jsonl"):
        EXPORTS["preferences"].write([], tmp_path / "file" / "p.jsonl", "run")


def test_a_killed_export_leaves_no_half_file_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "i.jsonl"
    program = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.jobs.exports.test_exports import *
def slow():
    while True:
        yield task(1), scored(7)
        time.sleep(0.001)
EXPORTS["inspect"].write(slow(), Path({str(path)!r}), "run")
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not any(entry.stat().st_size for entry in tmp_path.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not path.exists()
