"""Few labels and many judged items, against ppi-python, the papers' formulae, and cases with a known answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.statistics import alternative_annotator_test, ppi_mean, ppi_mean_by_strata, rogan_gladen
from tests.statistics.oracles import NAN

quick = settings(deadline=None, max_examples=30)

LABELS, JUDGED = [1, 0, 1, 1, 0, 1, 0, 1, 1, 1], [1, 0, 1, 1, 1, 1, 0, 1, 0, 1]
OTHERS = [1] * 130 + [0] * 70
shares = st.floats(0, 1)


# ---- means


@pytest.mark.parametrize(
    ("power", "estimate", "low", "high"),
    [(0, 0.7, 0.415974, 0.984026), (1, 0.65, 0.365046, 0.934954), (None, 0.674458, 0.430142, 0.918774)],
)
def test_a_mean_by_ppi_is_that_of_ppi_python(power: float | None, estimate: float, low: float, high: float) -> None:
    found = ppi_mean(LABELS, JUDGED, OTHERS, power)
    assert found.estimate == pytest.approx(estimate, abs=5e-7)
    assert found.interval == pytest.approx((low, high), abs=5e-7)
    assert found.power == pytest.approx(0.510838 if power is None else power, abs=5e-7)


def test_the_parts_of_a_mean_by_ppi_are_counted() -> None:
    found = ppi_mean([*LABELS, NAN, 1], [*JUDGED, 1, NAN], [*OTHERS, NAN])
    assert (found.n, found.n_judged, found.left_out) == (10, 200, 3)
    assert found.estimate == ppi_mean(LABELS, JUDGED, OTHERS).estimate
    assert found.labels_alone == 0.7


def test_a_judge_who_tells_nothing_or_the_reverse_is_not_trusted() -> None:
    for judged in ([1] * 10, [1 - label for label in LABELS]):
        found = ppi_mean(LABELS, judged, OTHERS)
        assert (found.power, found.estimate) == (0.0, 0.7)


def test_a_judge_who_is_always_right_makes_the_interval_that_of_all_items() -> None:
    found = ppi_mean(LABELS, LABELS, OTHERS)
    half = 1.959964 * math.sqrt(0.65 * 0.35 / 200)
    assert found.power == pytest.approx(1.0, abs=0.05)
    assert found.interval[1] - found.interval[0] < 2.6 * half


@pytest.mark.parametrize("power", [None, 0.0, 0.5, 1.0])
def test_where_every_item_has_a_label_the_judge_has_no_power(power: float | None) -> None:
    found = ppi_mean(LABELS, LABELS, [], power)
    assert found == ppi_mean(LABELS, LABELS, [], 0.0)
    assert found.interval[0] < found.estimate < found.interval[1]


def test_one_label_is_too_few() -> None:
    found = ppi_mean([1], [1], OTHERS)
    assert math.isnan(found.estimate)
    assert found.reason == "fewer than two labels"


def test_a_power_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="power must lie"):
        ppi_mean(LABELS, JUDGED, OTHERS, 1.5)


@quick
@given(st.floats(-100, 100), st.floats(0.1, 10))
def test_a_mean_by_ppi_moves_with_the_scale(shift: float, factor: float) -> None:
    plain = ppi_mean(LABELS, JUDGED, OTHERS)
    labels, judged, others = (np.array(each) * factor + shift for each in (LABELS, JUDGED, OTHERS))
    moved = ppi_mean(labels, judged, others)
    assert moved.estimate == pytest.approx(plain.estimate * factor + shift)
    assert moved.interval == pytest.approx([end * factor + shift for end in plain.interval])


# ---- pass rates


def test_a_pass_rate_is_corrected_as_the_paper_has_it() -> None:
    found = rogan_gladen(0.72, 1000, 0.85, 100, 0.90, 100)
    assert found.estimate == pytest.approx(0.76)
    assert found.interval == pytest.approx((0.691377, 0.844463), abs=5e-7)


@pytest.mark.parametrize(("specificity", "sensitivity"), [(0.5, 0.5), (0.2, 0.7), (0.0, 1.0)])
def test_a_judge_no_better_than_chance_tells_no_pass_rate(specificity: float, sensitivity: float) -> None:
    found = rogan_gladen(0.7, 100, specificity, 50, sensitivity, 50)
    assert math.isnan(found.estimate)
    assert found.reason == "the judge is no better than chance"


def test_with_a_handful_of_labels_there_may_be_no_interval() -> None:
    found = rogan_gladen(0.5, 100, 1.0, 1, 0.1, 1000)
    assert found.estimate == 1.0 and math.isnan(found.interval[0])
    assert found.reason == "too few labels to tell the judge from chance"


@quick
@given(shares, shares, shares, st.integers(1, 200), st.integers(1, 200))
def test_a_corrected_pass_rate_is_a_share(passed: float, q0: float, q1: float, m0: int, m1: int) -> None:
    found = rogan_gladen(passed, 300, q0, m0, q1, m1)
    assert math.isnan(found.estimate) == (q0 + q1 <= 1)
    assert all(math.isnan(each) or 0 <= each <= 1 for each in (found.estimate, *found.interval))


@quick
@given(shares, st.floats(0.6, 1), st.floats(0.6, 1))
def test_passing_and_failing_may_change_places(passed: float, q0: float, q1: float) -> None:
    found = rogan_gladen(passed, 300, q0, 40, q1, 60)
    other = rogan_gladen(1 - passed, 300, q1, 60, q0, 40)
    assert [1 - other.estimate, 1 - other.interval[1]] == pytest.approx([found.estimate, found.interval[0]], abs=1e-9)


def test_shares_outside_0_to_1_are_refused() -> None:
    with pytest.raises(ValueError, match="shares must lie"):
        rogan_gladen(1.2, 100, 0.9, 10, 0.9, 10)
    with pytest.raises(ValueError, match="at least 1"):
        rogan_gladen(0.2, 100, 0.9, 0, 0.9, 10)


# ---- may the judge replace a person?


def people(n: int = 60, noise: float = 0.3) -> tuple[Any, Any]:
    """The true labels, and those of four people who are each wrong in some."""
    rng = np.random.default_rng(11)
    truth = rng.integers(0, 2, n)
    flipped = rng.random((n, 4)) < noise
    return truth, np.where(flipped, 1 - truth[:, None], truth[:, None]).astype(float)


@pytest.mark.parametrize("likeness", ["accuracy", "rmse"])
def test_a_judge_who_is_right_replaces_people_who_often_are_not(likeness: Any) -> None:
    truth, rated = people()
    found = alternative_annotator_test(truth, rated, 0.2, likeness)
    assert found.passes and found.replaceable == 1.0 and found.estimate > 0.75


@pytest.mark.parametrize("likeness", ["accuracy", "rmse"])
def test_a_judge_who_is_always_wrong_replaces_nobody(likeness: Any) -> None:
    truth, rated = people(noise=0.1)
    found = alternative_annotator_test(1 - truth, rated, 0.2, likeness)
    assert not found.passes and found.replaceable == 0.0 and found.estimate < 0.3


def test_the_advantage_is_the_share_of_items_where_the_judge_is_at_least_as_near() -> None:
    rated = [[1, 1, 1], [0, 0, 1], [1, 0, 0], [1, 1, NAN], [NAN, 1, 1], [1, NAN, NAN]]
    found = alternative_annotator_test([1, 1, 1, 0, 0, 1], rated, 0.2, min_items=2)
    # the judge is as near in the first three, and contradicts two who agree in the next two
    assert found.advantages == pytest.approx((3 / 4, 3 / 5, 3 / 4))
    assert (found.n, found.estimate) == (5, pytest.approx(0.7))


def test_an_identical_copy_of_the_judge_among_people_is_replaceable() -> None:
    truth, rated = people()
    rated[:, 0] = truth
    found = alternative_annotator_test(truth, rated, 0.1)
    assert found.p_values[0] == 0.0 and found.advantages[0] == 1.0


def test_people_with_too_few_items_do_not_count() -> None:
    truth, rated = people()
    rated[20:, 0] = NAN
    found = alternative_annotator_test(truth, rated, 0.2)
    assert math.isnan(found.p_values[0]) and not any(math.isnan(p) for p in found.p_values[1:])
    rated[20:, 1] = NAN
    few = alternative_annotator_test(truth, rated, 0.2)
    assert math.isnan(few.estimate) and not few.passes
    assert few.reason == "fewer than three people with 30 items"


def test_two_people_are_too_few_to_ask() -> None:
    with pytest.raises(ValueError, match="three at least"):
        alternative_annotator_test([1, 0], [[1, 0], [0, 1]], 0.2)


def test_what_the_judge_left_out_counts_like_an_item_that_is_not_there() -> None:
    truth, rated = people()
    judge = truth.astype(float)
    judge[:5] = NAN
    found, shorter = (alternative_annotator_test(*each, 0.2) for each in ((judge, rated), (truth[5:], rated[5:])))
    assert (found.p_values, found.estimate, found.left_out) == (shorter.p_values, shorter.estimate, 5)


# ---- means by strata


def test_a_mean_by_one_stratum_is_that_of_all_items() -> None:
    labels, judged = [*LABELS, *[NAN] * 200], [*JUDGED, *OTHERS]
    assert ppi_mean_by_strata(labels, judged, ["all"] * 210) == ppi_mean(LABELS, JUDGED, OTHERS)


def test_strata_are_weighted_by_their_items_and_their_variances_add_up() -> None:
    parts = ppi_mean(LABELS, JUDGED, OTHERS), ppi_mean([2, 3, 4], [1, 3, 3], [2] * 27)
    labels = [*LABELS, *[NAN] * 200, 2, 3, 4, *[NAN] * 27]
    judged = [*JUDGED, *OTHERS, 1, 3, 3, *[2] * 27]
    found = ppi_mean_by_strata(labels, judged, ["a"] * 210 + ["b"] * 30)
    assert found.estimate == pytest.approx(7 / 8 * parts[0].estimate + 1 / 8 * parts[1].estimate)
    halves = [(part.interval[1] - part.interval[0]) / 2 for part in parts]
    assert found.interval[1] - found.estimate == pytest.approx(math.hypot(7 / 8 * halves[0], 1 / 8 * halves[1]))
    assert (found.n, found.n_judged, found.reason) == (13, 227, None)


def test_a_stratum_with_one_label_leaves_the_mean_undefined_and_is_named() -> None:
    found = ppi_mean_by_strata([1, 0, 1, NAN], [1, 0, 1, 1], ["a", "a", "b", "b"])
    assert math.isnan(found.estimate)
    assert found.reason == "fewer than two labels in 'b'"


def test_a_stratum_of_which_the_judge_scored_nothing_has_no_part() -> None:
    labels, judged = [*LABELS, *[NAN] * 200], [*JUDGED, *OTHERS]
    found = ppi_mean_by_strata([*labels, 1, NAN], [*judged, NAN, NAN], ["a"] * 210 + ["b"] * 2)
    alone = ppi_mean(LABELS, JUDGED, OTHERS)
    assert (found.estimate, found.reason, found.left_out) == (pytest.approx(alone.estimate), None, 2)
    assert found.interval == pytest.approx(alone.interval)
    nothing = ppi_mean_by_strata([1, NAN], [NAN, NAN], ["a", "b"])
    assert math.isnan(nothing.estimate) and nothing.reason == "no observations"


def test_a_mean_by_strata_of_unequal_samples_holds_the_truth_where_the_plain_one_does_not() -> None:
    rng = np.random.default_rng(0)
    held, plain = 0, 0
    for _ in range(200):
        truth = np.concatenate([rng.normal(0, 1, 450), rng.normal(3, 1, 50)])
        labels = np.where(np.isin(np.arange(500), [*range(25), *range(450, 475)]), truth, np.nan)
        judged, strata = truth + rng.normal(0, 1, 500), [0] * 450 + [1] * 50
        known = ~np.isnan(labels)
        both = ppi_mean_by_strata(labels, judged, strata), ppi_mean(labels[known], judged[known], judged[~known], 0.0)
        ours, naive = (each.interval[0] <= 0.3 <= each.interval[1] for each in both)
        held, plain = held + ours, plain + naive
    assert held >= 180
    assert plain < 20


def test_strata_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        ppi_mean_by_strata([1, 0], [1, 0], ["a"])
