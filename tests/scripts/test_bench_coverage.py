"""Short simulations with a known truth: intervals that hold it as often as they say."""

from __future__ import annotations

import pytest
from benchmarks.coverage import KINDS, coverage, planted_judges

BY_NAME = {kind.name: kind for kind in KINDS}


@pytest.mark.parametrize(
    ("name", "size"), [("clustered mean", 50), ("paired difference", 50), ("PPI++", 100), ("pass rate", 100)]
)
def test_an_interval_of_95_percent_holds_the_truth_as_often_as_it_says(name: str, size: int) -> None:
    found = coverage(BY_NAME[name], size, repetitions=300, seed=3)
    assert 0.92 <= found.covers.estimate <= 0.98
    assert 0 < found.width < 0.35


def test_an_interval_that_ignores_clusters_holds_it_less_often() -> None:
    found = coverage(BY_NAME["ignoring clusters"], 50, repetitions=300, seed=3)
    assert found.covers.estimate < 0.88


@pytest.mark.parametrize("rho", [0.1, 0.6])
def test_a_planted_correlation_of_errors_gives_its_number_of_judges(rho: float) -> None:
    truth, mean, _ = planted_judges(rho, repetitions=40, seed=3)
    assert mean == pytest.approx(truth, rel=0.05)
