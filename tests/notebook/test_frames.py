"""Data frames of one evaluation, of several, and of a run."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import debate
from debate import DebateEvaluator, Evaluation, Evaluations, ValueEvaluator
from debate.errors import ConfigError
from tests.report.pages import debated, evaluated
from tests.required import required_module

pandas = required_module("pandas")
polars = required_module("polars")
LIBRARIES: dict[Any, Any] = {"pandas": pandas, "polars": polars}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> debate.loaded.LoadedRun:
    folder = tmp_path_factory.mktemp("runs") / "debates"
    debated(folder)
    return debate.load(folder)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("which", ["tasks", "scores", "turns", "cells"])
def test_a_frame_of_a_run_holds_the_rows_of_its_table(run: Any, which: Any, library: Any) -> None:
    frame, rows = run.to_dataframe(which, library), run.table(which)
    assert isinstance(frame, LIBRARIES[library].DataFrame)
    assert frame.shape[0] == len(rows)
    assert list(frame["task"]) == [row["task"] for row in rows]
    assert set(rows[0]) <= set(frame.columns)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_cells_of_an_evaluation_are_its_tensor(run: Any, library: Any) -> None:
    evaluation = run.evaluation("t3")
    frame = evaluation.to_dataframe(library)
    assert np.array_equal(np.array(frame["score"]).reshape(evaluation.tensor.shape), evaluation.tensor)
    assert list(frame["agent"][:1]) == [evaluation.agents[0]]


def test_pandas_is_taken_first_and_polars_where_it_alone_is_there(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = run.evaluation("t0")
    assert isinstance(evaluation.to_dataframe(), pandas.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(evaluation.to_dataframe(), polars.DataFrame)


def test_without_a_library_the_error_says_what_to_install(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match="pip install pandas or polars") as caught:
        run.to_dataframe()
    assert "a data frame needs a library" in str(caught.value)
    with pytest.raises(ConfigError, match="pip install polars,"):
        run.to_dataframe(library="polars")


def test_another_library_is_refused_by_name(run: Any) -> None:
    with pytest.raises(ValueError, match="unknown library 'dask', expected one of pandas, polars"):
        run.evaluation("t0").to_dataframe("dask")


def test_several_evaluations_give_a_row_each_or_all_their_cells(run: Any) -> None:
    some = run.evaluations()[:3]
    assert list(some.to_dataframe()["task"]) == ["t0", "t1", "t2"]
    assert "right" not in some.to_dataframe().columns
    assert len(some.to_dataframe("cells")) == sum(each.tensor.size for each in some)


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_evaluations_give_an_empty_frame_with_all_columns(library: Any) -> None:
    frame = Evaluations().to_dataframe("cells", library)
    assert (frame.shape[0], list(frame.columns)[:4]) == (0, ["task", "member", "r", "i"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_a_tensor_there_is_a_row_for_each_candidate(tmp_path: Path, library: Any) -> None:
    evaluated(tmp_path / "run", ValueEvaluator())
    evaluation = debate.load(tmp_path / "run").evaluation("t0")
    frame = evaluation.to_dataframe(library)
    assert list(frame["j"]) == list(range(len(evaluation.scores)))
    assert np.array_equal(np.array(frame["score"], dtype=float), evaluation.scores, equal_nan=True)


def test_members_have_cells_in_place_of_what_they_were_made_into(tmp_path: Path) -> None:
    evaluated(tmp_path / "run", DebateEvaluator("general", rounds=1, candidate_order="balanced"))
    frame = debate.load(tmp_path / "run").evaluation("t0").to_dataframe()
    assert list(frame["member"].unique()) == ["0", "1"]


def test_what_has_no_score_is_missing_and_the_column_stays_one_of_numbers() -> None:
    failed = Evaluation(
        task_id="t",
        evaluator="value",
        status="failed",
        scores=np.array([math.nan, math.nan]),
        probabilities=np.zeros(2),
        selected=None,
    )
    frame = failed.to_dataframe("pandas")
    assert frame["score"].isna().all()
    assert frame["score"].dtype == np.float64
