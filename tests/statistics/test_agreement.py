"""Agreement beyond chance, against the figures of statsmodels, krippendorff and irrCAC."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from debate.statistics import Agreement, cohen_kappa, fleiss_kappa, gwet_ac, krippendorff_alpha
from debate.types import FloatArray
from tests.statistics.oracles import COMPLETE, NAN, RATINGS

quick = settings(deadline=None, max_examples=30)  # a slow machine is not a failing test

ratings = arrays(
    np.float64, st.tuples(st.integers(2, 8), st.integers(2, 4)), elements=st.sampled_from([1.0, 2.0, 4.0, NAN])
)
levels = st.sampled_from(["nominal", "ordinal", "interval", "ratio"])


# ---- figures of other libraries


@pytest.mark.parametrize(("weights", "expected"), [("none", 0.85), ("linear", 0.920354), ("quadratic", 0.967033)])
def test_kappa_of_two_raters_is_that_of_statsmodels(weights: Any, expected: float) -> None:
    found = cohen_kappa(COMPLETE[:, 0], COMPLETE[:, 1], weights, draws=0)
    assert found.estimate == pytest.approx(expected, abs=5e-7)
    assert (found.n, found.left_out) == (9, 0)


def test_kappa_of_several_raters_is_that_of_statsmodels_over_the_complete_rows() -> None:
    found = fleiss_kappa(RATINGS, draws=0)
    assert found.estimate == pytest.approx(0.656364, abs=5e-7)
    assert (found.n, found.left_out) == (9, 3)


@pytest.mark.parametrize(
    ("level", "expected"), [("nominal", 0.716981), ("ordinal", 0.859181), ("interval", 0.911032), ("ratio", 0.808524)]
)
def test_alpha_is_that_of_krippendorff_on_every_level(level: Any, expected: float) -> None:
    found = krippendorff_alpha(RATINGS, level, draws=0)
    assert found.estimate == pytest.approx(expected, abs=5e-7)
    assert (found.n, found.left_out) == (11, 1)


def test_ac1_is_that_of_irrcac() -> None:
    found = gwet_ac(RATINGS, draws=0)
    assert found.estimate == pytest.approx(0.7368, abs=5e-5)
    assert (found.observed, found.expected) == pytest.approx((0.78788, 0.19406), abs=5e-6)


def test_ac2_with_quadratic_weights_is_that_of_irrcac() -> None:
    assert gwet_ac(RATINGS, "quadratic", draws=0).estimate == pytest.approx(0.93044, abs=5e-6)


# ---- what each figure is for


def test_kappa_collapses_with_skewed_labels_and_ac1_does_not() -> None:
    a = [1.0] * 95 + [0.0] * 5
    b = [1.0] * 90 + [0.0] * 5 + [1.0] * 5
    kappa, ac1 = cohen_kappa(a, b, draws=0), gwet_ac(np.stack([a, b], axis=1), draws=0)
    assert kappa.observed == ac1.observed == pytest.approx(0.9)
    assert kappa.estimate < 0 < 0.85 < ac1.estimate


def test_steps_are_smaller_on_a_scale_that_is_wider_than_what_was_used() -> None:
    a, b = [1, 1, 3, 3, 1], [1, 3, 3, 3, 1]
    assert cohen_kappa(a, b, "linear", draws=0) == cohen_kappa(a, b, draws=0)
    four = [1, 2, 3, 1, 3], [1, 1, 3, 3, 3]
    told = cohen_kappa(*four, "linear", categories=[1, 2, 3, 4, 5], draws=0)
    assert told.observed > cohen_kappa(*four, "linear", draws=0).observed


# ---- intervals


def test_the_interval_holds_the_estimate_and_comes_from_the_seed() -> None:
    found = krippendorff_alpha(RATINGS, "ordinal", draws=200, seed=3)
    assert found.interval[0] < found.estimate <= found.interval[1]
    assert found == krippendorff_alpha(RATINGS, "ordinal", draws=200, seed=3)
    assert found.interval != krippendorff_alpha(RATINGS, "ordinal", draws=200, seed=4).interval


def test_items_that_repeat_within_clusters_tell_no_more_than_the_clusters() -> None:
    a, b = np.tile(COMPLETE[:, 0], 20), np.tile(COMPLETE[:, 1], 20)
    clusters = np.tile(np.arange(9), 20)
    once = cohen_kappa(COMPLETE[:, 0], COMPLETE[:, 1], draws=200)
    clustered = cohen_kappa(a, b, clusters=clusters, draws=200)
    assert clustered.interval == pytest.approx(once.interval)
    naive = cohen_kappa(a, b, draws=200).interval
    assert naive[1] - naive[0] < (once.interval[1] - once.interval[0]) / 3


# ---- what is undefined, and what is refused


@pytest.mark.parametrize("of", [fleiss_kappa, gwet_ac, krippendorff_alpha])
def test_agreement_is_undefined_where_all_ratings_are_alike(of: Callable[[Any], Agreement]) -> None:
    found = of(np.ones((5, 3)))
    assert math.isnan(found.estimate)
    assert found.reason == "all ratings are alike"


@pytest.mark.parametrize("of", [fleiss_kappa, gwet_ac, krippendorff_alpha])
def test_agreement_is_undefined_without_an_item_that_two_rated(of: Callable[[Any], Agreement]) -> None:
    found = of([[1.0, NAN], [NAN, 2.0]])
    assert math.isnan(found.estimate)
    assert found.reason == "no item has two ratings"


def test_what_does_not_fit_is_refused() -> None:
    unknown: Any = "cubic"
    with pytest.raises(ValueError, match="two raters"):
        fleiss_kappa(np.ones((4, 1)))
    with pytest.raises(ValueError, match="one length"):
        cohen_kappa([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="among the categories"):
        cohen_kappa([1, 2], [1, 3], categories=[1, 2])
    with pytest.raises(ValueError, match="unknown weights"):
        gwet_ac(RATINGS, unknown)
    with pytest.raises(ValueError, match="not be negative"):
        krippendorff_alpha(-RATINGS, "ratio")


# ---- properties


def same(a: Agreement, b: Agreement) -> None:
    np.testing.assert_allclose([a.estimate, a.observed, a.expected], [b.estimate, b.observed, b.expected], atol=1e-9)


@quick
@given(ratings, levels)
def test_alpha_does_not_depend_on_the_order_of_items_and_raters(table: FloatArray, level: Any) -> None:
    same(krippendorff_alpha(table, level, draws=0), krippendorff_alpha(table[::-1, ::-1], level, draws=0))


@quick
@given(ratings)
def test_an_item_that_is_left_out_counts_like_one_that_is_not_there(table: FloatArray) -> None:
    whole = table[~np.isnan(table).any(axis=1)]
    same(fleiss_kappa(table, draws=0), fleiss_kappa(whole, draws=0))
    same(cohen_kappa(table[:, 0], table[:, 1], draws=0), cohen_kappa(*_both(table), draws=0))
    rated = table[~np.isnan(table).all(axis=1)]
    same(gwet_ac(table, draws=0), gwet_ac(rated, draws=0))


def _both(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    pairs = table[~np.isnan(table[:, :2]).any(axis=1)]
    return pairs[:, 0], pairs[:, 1]


@quick
@given(ratings, st.permutations([1.0, 2.0, 4.0]))
def test_unordered_labels_may_be_called_anything(table: FloatArray, names: list[float]) -> None:
    renamed = np.select([table == 1, table == 2, table == 4], names, NAN)
    for of in (fleiss_kappa, gwet_ac, krippendorff_alpha):
        same(of(table, draws=0), of(renamed, draws=0))


@quick
@given(ratings)
def test_alpha_of_ordered_labels_takes_any_rising_names(table: FloatArray) -> None:
    same(krippendorff_alpha(table, "ordinal", draws=0), krippendorff_alpha(np.exp(table), "ordinal", draws=0))


@quick
@given(ratings)
def test_agreement_is_at_most_1_and_kappa_is_the_same_from_both_sides(table: FloatArray) -> None:
    each = [fleiss_kappa(table, draws=0), gwet_ac(table, draws=0), krippendorff_alpha(table, draws=0)]
    assert all(math.isnan(found.estimate) or found.estimate <= 1 + 1e-9 for found in each)
    ahead = cohen_kappa(table[:, 0], table[:, 1], "quadratic", draws=0)
    same(ahead, cohen_kappa(table[:, 1], table[:, 0], "quadratic", draws=0))
