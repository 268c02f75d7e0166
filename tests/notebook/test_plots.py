"""Figures of evaluations and runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import debate
from debate import DebateEvaluator, Scale, ValueEvaluator
from debate.errors import ConfigError
from debate.notebook import plots
from tests.notebook.test_cards import evaluation
from tests.report.pages import debated, evaluated
from tests.required import required_module

required_module("matplotlib")
PNG = b"\x89PNG"


def texts(figure: Any) -> list[str]:
    return [each.get_text() for each in figure.findobj() if hasattr(each, "get_text")]


def test_a_tensor_is_a_heat_map_for_each_candidate_and_component(tmp_path: Path) -> None:
    found = evaluation()
    figure: Any = found.plot()
    maps = [each for each in figure.findobj() if getattr(each, "get_images", list[Any])()]
    assert found.tensor is not None
    drawn = [np.asarray(axes.get_images()[0].get_array()) for axes in maps]
    assert len(drawn) == 2
    for j, each in enumerate(drawn):
        assert np.array_equal(each, found.tensor[:, :, j, 0])
    assert "t fine\nCV by round: 0.40, 0.10" in texts(figure)
    assert figure._repr_png_().startswith(PNG)


def test_cells_have_the_colors_of_their_own_scale_whatever_the_scores_are_on() -> None:
    figure: Any = evaluation(scale=Scale(0, 30)).plot()
    maps = [image for axes in figure.findobj() for image in getattr(axes, "get_images", list[Any])()]
    assert {image.get_clim() for image in maps} == {(0.0, 10.0)}


def test_a_cell_without_a_score_has_no_number() -> None:
    found = evaluation(tensor=np.array([[[[np.nan], [4.5]]]]))
    assert [each for each in texts(found.plot()) if each in ("4.5", "nan")] == ["4.5"]


def test_texts_in_a_figure_are_no_formulas_and_have_no_invisible_characters() -> None:
    assert evaluation("$\\frac{$ \u202e\x00").plot()._repr_png_().startswith(PNG)  # pyright: ignore


def test_without_a_tensor_the_scores_are_bars() -> None:
    figure = evaluation(tensor=None, scores=np.array([8.0, np.nan])).plot()
    assert {"8", "no score"} <= set(texts(figure))


def test_both_orders_of_a_balanced_debate_are_drawn(tmp_path: Path) -> None:
    evaluated(tmp_path / "run", DebateEvaluator("general", rounds=1, candidate_order="balanced"))
    figure = debate.load(tmp_path / "run").evaluation("t0").plot()
    assert [n for n in (1, 2) if any(f"member {n}" in each for each in texts(figure))] == [1, 2]


def test_a_run_is_drawn_with_its_scores_and_cv_by_round(tmp_path: Path) -> None:
    debated(tmp_path / "debates", convergence=None)
    figure: Any = debate.load(tmp_path / "debates").plot()
    assert {"Scores", "Agreement of the agents, 12 debates", "chosen (12)", "others (24)"} <= set(texts(figure))
    assert figure._repr_png_().startswith(PNG)


def test_a_run_without_debates_has_its_scores_alone(tmp_path: Path) -> None:
    evaluated(tmp_path / "values", ValueEvaluator())
    figure = debate.load(tmp_path / "values").plot()
    assert len(figure.axes) == 1


def test_a_figure_is_none_of_pyplots(tmp_path: Path) -> None:
    evaluation().plot()
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    plots._class_of_figure.cache_clear()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match=r"pip install 'debate-eval\[plots\]'"):
        evaluation().plot()
