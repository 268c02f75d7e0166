"""Calibration, against scikit-learn's figures and on probabilities with a known distortion."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.statistics import brier_score, expected_calibration_error, fit_isotonic, fit_temperature
from tests.statistics.oracles import NAN

quick = settings(deadline=None, max_examples=30)

P = [0.1, 0.2, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
O = [0, 0, 1, 0, 1, 0, 1, 1, 1, 1]  # noqa: E741
forecast = st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0]), st.sampled_from([0.0, 1.0]))
forecasts = st.lists(forecast, min_size=1)


# ---- figures of other libraries


def test_the_calibration_error_over_bins_of_equal_width_is_that_of_scikit_learn() -> None:
    found = expected_calibration_error(P, O, bins=5, binning="width", draws=0)
    assert found.estimate == pytest.approx(0.145)
    assert [each.n for each in found.bins] == [1, 2, 2, 2, 3]


def test_the_brier_score_is_that_of_scikit_learn() -> None:
    assert brier_score(P, O).estimate == pytest.approx(0.16025)


def test_the_isotonic_map_is_that_of_scikit_learn() -> None:
    assert fit_isotonic(P, O)(P) == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0.5, 0.5, 1, 1, 1, 1])


# ---- tables


def test_bins_of_equal_count_hold_equally_many_unless_probabilities_are_equal() -> None:
    found = expected_calibration_error(np.linspace(0.01, 0.99, 40), [0, 1] * 20, bins=4, draws=0)
    assert [each.n for each in found.bins] == [10, 10, 10, 10]
    one = expected_calibration_error([0.5] * 40, [0, 1] * 20, bins=4, draws=0)
    assert [(each.n, each.promised, each.observed) for each in one.bins] == [(40, 0.5, 0.5)]


@quick
@given(forecasts, st.integers(1, 5), st.sampled_from(["count", "width"]))
def test_the_table_adds_up_to_the_error(rows: list[tuple[float, float]], bins: int, binning: Any) -> None:
    p, o = np.array(rows).T
    found = expected_calibration_error(p, o, bins, binning, draws=0)
    assert sum(each.n for each in found.bins) == found.n == len(rows)
    assert len(found.bins) <= bins
    total = sum(each.n * abs(each.promised - each.observed) for each in found.bins) / found.n
    assert found.estimate == pytest.approx(total) and 0 <= found.estimate <= 1


@quick
@given(forecasts)
def test_a_forecast_that_is_missing_counts_like_one_that_is_not_there(rows: list[tuple[float, float]]) -> None:
    p, o = np.array(rows).T
    with_gaps = np.append(p, [NAN, 0.3]), np.append(o, [1.0, NAN])
    found, plain = (expected_calibration_error(*each, bins=3, draws=0) for each in (with_gaps, (p, o)))
    assert (found.estimate, found.bins, found.left_out) == (plain.estimate, plain.bins, 2)


def test_the_interval_of_an_error_is_drawn_over_clusters() -> None:
    clusters = np.repeat(np.arange(10), 4)
    p, o = np.repeat(P, 4), np.repeat(O, 4)
    wide = expected_calibration_error(p, o, 3, clusters=clusters, draws=200).interval
    narrow = expected_calibration_error(p, o, 3, draws=200).interval
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


# ---- maps


@quick
@given(forecasts)
def test_an_isotonic_map_rises_and_leaves_no_error_on_its_own_items(rows: list[tuple[float, float]]) -> None:
    p, o = np.array(rows).T
    calibrated = fit_isotonic(p, o)
    assert (np.diff(calibrated(np.linspace(0, 1, 21))) >= -1e-12).all()
    assert float(calibrated(p).sum()) == pytest.approx(float(o.sum()))
    assert brier_score(np.clip(calibrated(p), 0, 1), o).estimate <= brier_score(p, o).estimate + 1e-9


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_planted_temperature_is_found(temperature: float) -> None:
    rng = np.random.default_rng(8)
    true = 1 / (1 + np.exp(-rng.normal(size=6000)))
    said = 1 / (1 + np.exp(-np.log(true / (1 - true)) * temperature))
    found = fit_temperature(said, rng.random(6000) < true)
    assert found.temperature == pytest.approx(temperature, rel=0.12)
    np.testing.assert_allclose(found(said), true, atol=0.04)


def test_maps_keep_what_is_missing() -> None:
    for calibrated in (fit_isotonic(P, O), fit_temperature(P, O)):
        assert np.isnan(calibrated([0.5, NAN])).tolist() == [False, True]


# ---- what is undefined, and what is refused


def test_without_items_there_is_no_error_and_no_map() -> None:
    found = expected_calibration_error([NAN], [1])
    assert math.isnan(found.estimate) and found.reason == "no observations" and found.bins == ()
    with pytest.raises(ValueError, match="nothing to fit"):
        fit_isotonic([NAN], [1])


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="probabilities must lie"):
        brier_score([1.1], [1])
    with pytest.raises(ValueError, match="outcomes must lie"):
        expected_calibration_error([0.1], [2])
    with pytest.raises(ValueError, match="bins must be at least 1"):
        expected_calibration_error(P, O, bins=0)
