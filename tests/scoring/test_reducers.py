"""Repeated samples: reduced to one value, failures left out, and how far to trust them."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean, median, pstdev
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.scoring.reducers import Reduction, confidence, reduce_samples, summarize
from debate.selection import keep_best
from debate.types import Scale

NAN = float("nan")
no_deadline = settings(deadline=None)  # a slow machine is not a failing test

values = st.floats(-100, 100)
sample_lists = st.lists(values | st.none() | st.just(NAN), max_size=8)
reductions = st.sampled_from(get_args(Reduction))


def ok(samples: list[float | None]) -> list[float]:
    return [sample for sample in samples if sample is not None and not math.isnan(sample)]


@no_deadline
@given(sample_lists)
def test_a_reduction_is_that_of_the_samples_that_did_not_fail(samples: list[float | None]) -> None:
    oracles: dict[Reduction, Callable[[list[float]], float]] = {"mean": fmean, "sum": math.fsum, "median": median}
    for how, plain in oracles.items():
        expected = plain(ok(samples)) if ok(samples) else NAN
        assert reduce_samples(samples, how) == pytest.approx(expected, nan_ok=True, abs=1e-9)
    summary = summarize(samples)
    assert (summary.n_ok, summary.n_failed) == (len(ok(samples)), len(samples) - len(ok(samples)))
    assert summary.std == pytest.approx(pstdev(ok(samples)) if ok(samples) else NAN, nan_ok=True, abs=1e-9)


@no_deadline
@given(sample_lists, reductions, st.integers(0, 8), st.sampled_from([None, NAN]))
def test_a_failed_sample_more_changes_no_value(
    samples: list[float | None], how: Reduction, at: int, failed: float | None
) -> None:
    more = [*samples[:at], failed, *samples[at:]]
    assert reduce_samples(more, how) == pytest.approx(reduce_samples(samples, how), nan_ok=True, rel=0)
    assert confidence(more) == pytest.approx(confidence(samples), nan_ok=True, rel=0)


@no_deadline
@given(st.lists(sample_lists, min_size=1, max_size=5), reductions, st.booleans())
def test_a_candidate_whose_samples_all_failed_ranks_nowhere(
    candidates: list[list[float | None]], how: Reduction, higher: bool
) -> None:
    scores = [reduce_samples(samples, how) for samples in candidates]
    kept = keep_best(scores, len(scores), higher)
    assert sorted(kept) == [j for j, samples in enumerate(candidates) if ok(samples)]


def test_equal_samples_have_exactly_their_value_and_no_spread() -> None:
    assert reduce_samples([0.1] * 3) == 0.1
    assert confidence([0.1] * 3) == 1.0


def test_what_cannot_be_reduced_is_refused() -> None:
    unknown: Any = "mode"
    with pytest.raises(ValueError, match="unknown reduction 'mode'"):
        reduce_samples([1.0], unknown)
    with pytest.raises(ValueError, match="finite"):
        reduce_samples([1.0, math.inf])


# Confidence


def test_confidence_falls_with_the_spread() -> None:
    assert confidence([1, 7]) == 0.25
    assert confidence([8.5, 8.3, 8.7]) == pytest.approx(1 / (1 + pstdev([8.5, 8.3, 8.7])))


def test_one_sample_says_nothing_of_agreement() -> None:
    assert math.isnan(confidence([5]))
    assert math.isnan(confidence([5, None, NAN]))
    assert math.isnan(confidence([]))


def test_with_a_scale_confidence_does_not_depend_on_the_unit() -> None:
    assert confidence([0.1, 0.7], Scale(0, 1)) == pytest.approx(confidence([1, 7], Scale(0, 10))) == pytest.approx(0.4)
    assert confidence([-100, 100], Scale(-100, 100)) == 0.0
    with pytest.raises(ValueError, match="without end"):
        confidence([1, 7], Scale(0, math.inf))
