"""Label distributions: their moments, when they count as scored, and who is best, against enumeration and chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.scoring.distributions import (
    ABSTAIN,
    LEAST_MASS,
    distribution_of,
    expectation_of,
    moments,
    p_best,
    score_distributions,
    spread_of,
    why_unscored,
)
from debate.scoring.tensor import normalize_tensor
from debate.types import LabelDistribution

LABELS = tuple(str(n) for n in range(11))
Grid = list[list[LabelDistribution]]
few = settings(deadline=None, max_examples=40)  # a slow machine is not a failing test


def certain(score: int) -> LabelDistribution:
    return LabelDistribution({str(score): 1.0})


def uniform(*scores: int) -> LabelDistribution:
    return LabelDistribution({str(score): 1 / len(scores) for score in scores})


UNSURE = LabelDistribution({"3": 1.0}, mass=LEAST_MASS / 2)
SILENT = LabelDistribution({ABSTAIN: 0.75, "3": 0.25})


@st.composite
def distributions(draw: st.DrawFn, most: int = 3, abstains: bool = False) -> LabelDistribution:
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=most, unique=True))
    parts = draw(st.lists(st.integers(1, 9), min_size=len(labels), max_size=len(labels)))
    if abstains and draw(st.booleans()):
        labels, parts = [*labels, ABSTAIN], [*parts, draw(st.integers(1, 20))]
    return LabelDistribution({label: part / sum(parts) for label, part in zip(labels, parts, strict=True)})


@st.composite
def debates(draw: st.DrawFn, abstains: bool = False) -> tuple[list[Grid], list[float]]:
    """Up to 3 turns over at most 3 candidates and 2 components, and weights."""
    J, K, T = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    cell = distributions(abstains=abstains)
    turns = [[[draw(cell) for _ in range(K)] for _ in range(J)] for _ in range(T)]
    return turns, [draw(st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 1.0, 3.0])) for _ in range(K)]


def pooled(turns: Sequence[Grid], j: int, k: int) -> dict[float, float]:
    """The mean of the turns' distributions of one cell, all of them scored."""
    mean: dict[float, float] = {}
    for turn in turns:
        for label, p in turn[j][k].probabilities.items():
            mean[float(label)] = mean.get(float(label), 0.0) + p / len(turns)
    return mean


def by_enumeration(turns: Sequence[Grid], weights: Sequence[float]) -> list[float]:
    """Who is best, by every outcome of every cell."""
    J, K = len(turns[0]), len(weights)
    scores: list[dict[float, float]] = []
    for j in range(J):
        of_j: dict[float, float] = {}
        for outcome in product(*(pooled(turns, j, k).items() for k in range(K))):
            score = round(sum(w * value for w, (value, _) in zip(weights, outcome, strict=True)) / sum(weights), 9)
            of_j[score] = of_j.get(score, 0.0) + math.prod(p for _, p in outcome)
        scores.append(of_j)
    shares = [0.0] * J
    for outcome in product(*(of_j.items() for of_j in scores)):
        best = max(score for score, _ in outcome)
        winners = [j for j, (score, _) in enumerate(outcome) if score == best]
        for j in winners:
            shares[j] += math.prod(p for _, p in outcome) / len(winners)
    return shares


# Who is best.


@few
@given(debates())
def test_p_best_is_what_enumerating_all_outcomes_gives(debate: tuple[list[Grid], list[float]]) -> None:
    turns, weights = debate
    assert p_best(turns, weights).tolist() == pytest.approx(by_enumeration(turns, weights), abs=1e-9)


@few
@given(debates(abstains=True), st.permutations(range(3)))
def test_p_best_sums_to_one_and_follows_the_order_of_the_candidates(
    debate: tuple[list[Grid], list[float]], order: list[int]
) -> None:
    turns, weights = debate
    order = [j for j in order if j < len(turns[0])]
    found = p_best(turns, weights)
    shuffled = p_best([[turn[j] for j in order] for turn in turns], weights)
    assert found.sum() == pytest.approx(1.0 if found.any() else 0.0)
    assert shuffled.tolist() == pytest.approx(found[order].tolist())


def test_p_best_is_what_drawing_the_scores_gives() -> None:
    rng = np.random.default_rng(15)
    cells = rng.dirichlet(np.full(11, 0.5), size=(4, 3))  # (J, K, L)
    weights = np.array([1.0, 0.5, 0.25])  # (K,)
    turn = [[LabelDistribution(dict(zip(LABELS, row.tolist(), strict=True))) for row in rows] for rows in cells]
    n = 100_000
    drawn = np.array([[rng.choice(11, n, p=cell) for cell in rows] for rows in cells])  # (J, K, n)
    scores = np.einsum("k,jkn->jn", weights, drawn)  # (J, n), exact in binary
    best = scores == scores.max(axis=0)
    assert p_best([turn], weights).tolist() == pytest.approx((best / best.sum(axis=0)).mean(axis=1).tolist(), abs=0.01)


@given(distributions(most=6), distributions(most=6), st.integers(2, 7))
@few
def test_equal_candidates_share_to_the_last_digit(a: LabelDistribution, b: LabelDistribution, J: int) -> None:
    assert len(set(p_best([[[a, b]] * J], [0.7, 0.3]).tolist())) == 1
    assert len(set(p_best([[[a, b]] * J + [[b, a]]], [0.7, 0.3])[:J].tolist())) == 1


@pytest.mark.parametrize("J", [1, 2, 5, 60])
def test_a_candidate_that_dominates_has_all_the_probability(J: int) -> None:
    turn = [[uniform(8, 9, 10), uniform(7, 8)]] + [[uniform(0, 5, 7), uniform(3, 6)]] * (J - 1)
    assert p_best([turn], [1.0, 2.0]).tolist() == pytest.approx([1.0] + [0.0] * (J - 1))


def test_ties_are_shared_equally() -> None:
    turn = [[certain(7)], [certain(7)], [certain(7)], [certain(2)]]
    assert p_best([turn]).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.0])
    assert p_best([[[uniform(4, 6)], [certain(6)]]]).tolist() == pytest.approx([0.25, 0.75])


def test_scores_tie_that_differ_by_rounding_alone() -> None:
    turn = [[certain(1), certain(2), certain(0)], [certain(0), certain(0), certain(1)]]
    assert p_best([turn], [0.1, 0.1, 0.3]).tolist() == [0.5, 0.5]  # 0.1 + 0.2 and 0.3
    turn = [[certain(1), certain(1)], [certain(0), certain(2)], [certain(0), certain(0)], [certain(0), certain(1)]]
    assert p_best([turn], [0.1, 0.1]).tolist() == [0.5, 0.5, 0.0, 0.0]


@few
@given(distributions(), distributions(), distributions(), st.integers(0, 10), st.floats(0.01, 0.9))
def test_mass_that_moves_to_the_highest_score_never_makes_a_candidate_worse(
    first: LabelDistribution, second: LabelDistribution, other: LabelDistribution, to: int, moved: float
) -> None:
    to = max(to, *(int(label) for label in first.probabilities))
    raised = {label: p * (1 - moved) for label, p in first.probabilities.items()}
    raised[str(to)] = raised.get(str(to), 0.0) + moved
    before = p_best([[[first], [second], [other]]])
    after = p_best([[[LabelDistribution(raised)], [second], [other]]])
    assert after[0] >= before[0] - 1e-12
    assert (after[1:] <= before[1:] + 1e-12).all()


def test_doubt_does_not_shrink_with_the_number_of_turns() -> None:
    turn = [[uniform(4, 8)], [uniform(5, 6)]]
    once = p_best([turn])
    assert p_best([turn] * 9).tolist() == pytest.approx(once.tolist())
    assert once.tolist() == pytest.approx([0.5, 0.5])


# Which turns count.


def test_a_candidate_that_nobody_scored_is_never_the_best() -> None:
    assert p_best([[[certain(3)], [SILENT], [UNSURE], [None]]]).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert p_best([[[SILENT], [UNSURE]]]).tolist() == [0.0, 0.0]
    assert p_best([[[None], [None]]], worth={"sure": 20.0, "likely": 1.0}).tolist() == [0.0, 0.0]


def test_a_turn_counts_for_a_candidate_only_with_every_component_scored() -> None:
    whole = [[certain(3), certain(3)], [certain(4), certain(4)]]
    half = [[certain(9), SILENT], [certain(4), certain(4)]]
    assert p_best([whole, half], [1.0, 1.0]).tolist() == [0.0, 1.0]


@few
@given(st.data(), debates(abstains=True), st.integers(1, 2))
def test_the_mean_of_a_score_is_that_of_the_expectations(
    data: st.DataObject, debate: tuple[list[Grid], list[float]], quorum: int
) -> None:
    turns, weights = debate
    rounds = sorted(data.draw(st.lists(st.integers(0, 1), min_size=len(turns), max_size=len(turns))))
    J, K = len(turns[0]), len(weights)
    S = np.full((2, len(turns), J, K), np.nan)  # (R, I, J, K)
    for i, (r, turn) in enumerate(zip(rounds, turns, strict=True)):
        S[r, i] = expectation_of(turn)
    values, masses = score_distributions(turns, weights, rounds=rounds, quorum=quorum)  # (S,), (J, S)
    np.testing.assert_allclose(masses @ values, normalize_tensor(S, weights, "weighted_mean", quorum), rtol=1e-8)


def test_every_round_counts_the_same_however_many_turns_it_has() -> None:
    low, high = [[certain(2)], [certain(3)]], [[certain(9)], [certain(3)]]
    assert p_best([low, low, low, high], rounds=[0, 0, 0, 1]).tolist() == pytest.approx([0.5, 0.5])
    assert p_best([low, low, low, high]).tolist() == pytest.approx([0.25, 0.75])
    assert p_best([low, low, low, high], rounds=[0, 0, 0, 1], quorum=2).tolist() == [0.0, 1.0]


# Judges of single values.


def test_labels_count_what_they_are_worth() -> None:
    worth = {"sure": 20.0, "likely": 1.0, "impossible": 0.001}
    doubtful = LabelDistribution({"sure": 0.1, "impossible": 0.9})
    likely = LabelDistribution({"likely": 1.0})
    assert p_best([[[doubtful], [likely]]], worth=worth).tolist() == pytest.approx([0.1, 0.9])
    with pytest.raises(KeyError):
        p_best([[[likely]]], worth={"sure": 20.0})


def test_where_low_scores_are_good_the_lowest_is_the_best() -> None:
    turn = [[certain(2)], [uniform(1, 2)], [certain(10)]]
    assert p_best([turn], higher_is_better=False).tolist() == pytest.approx([0.25, 0.75, 0.0])


@pytest.mark.parametrize(
    ("turns", "weights", "rounds"),
    [
        ([[[certain(1)]]], [1.0, 1.0], []),
        ([[[certain(1)]]], [0.0], []),
        ([[[certain(1)]]], [-1.0], []),
        ([[[certain(1)]]], [math.nan], []),
        ([[[certain(1)]]], [1.0], [0, 1]),
        ([], [1.0], []),
    ],
)
def test_shapes_that_do_not_fit_are_refused(turns: list[Grid], weights: list[float], rounds: list[int]) -> None:
    with pytest.raises(ValueError, match=r"must (be|have)"):
        p_best(turns, weights, rounds=rounds)


# The lattice.


@pytest.mark.parametrize("K", [1, 2, 3, 7])
def test_the_lattice_keeps_the_mean_and_nearly_the_variance(K: int) -> None:
    rng = np.random.default_rng(K)
    cells = rng.dirichlet(np.ones(11), size=(3, K))  # (J, K, L)
    turn = [[LabelDistribution(dict(zip(LABELS, cell.tolist(), strict=True))) for cell in rows] for rows in cells]
    weights, labels = rng.uniform(0.1, 1.0, K), np.arange(11.0)  # of 7 components, there are 11**7 sums
    values, masses = score_distributions([turn], weights)  # (S,), (J, S)
    shares = weights / weights.sum()
    means = cells @ labels  # (J, K)
    variances = cells @ labels**2 - means**2  # (J, K)
    assert masses.shape == (3, min(11**K, 4096))
    np.testing.assert_allclose(masses.sum(axis=1), 1.0)
    np.testing.assert_allclose(masses @ values, means @ shares)
    np.testing.assert_allclose(masses @ values**2 - (masses @ values) ** 2, variances @ shares**2, rtol=1e-4)


# One distribution.


@given(st.dictionaries(st.sampled_from((*LABELS, ABSTAIN)), st.floats(0, 0.08)))
def test_a_distribution_sums_to_one_and_keeps_the_mass(raw: Mapping[str, float]) -> None:
    found = distribution_of(raw)
    assert found.mass == pytest.approx(math.fsum(raw.values()), abs=1e-7)
    if found.mass > 1e-6:
        assert sum(found.probabilities.values()) == pytest.approx(1.0, abs=1e-5)
    for label, p in found.probabilities.items():
        assert p >= 1e-7
        assert p == round(p, 7)
        assert p == pytest.approx(raw[label] / math.fsum(raw.values()), abs=1e-7)


def test_a_distribution_of_nothing_has_no_mass() -> None:
    assert distribution_of({}) == LabelDistribution({}, 0.0)
    assert distribution_of({"1": 0.0, "2": 0.0}) == LabelDistribution({}, 0.0)


def test_labels_of_hardly_any_probability_are_left_out() -> None:
    assert dict(distribution_of({"1": 0.9, "2": 1e-9}).probabilities) == {"1": 1.0}


def test_a_mass_that_rounding_takes_above_one_is_one() -> None:
    assert distribution_of({"1": 0.5, "2": 0.5 + 1e-9}).mass == 1.0


@given(distributions(most=11))
def test_moments_are_those_of_the_labels_as_numbers(cell: LabelDistribution) -> None:
    values = np.array([float(label) for label in cell.probabilities])
    shares = np.array(list(cell.probabilities.values()))
    mean, spread = moments(cell)
    assert mean == pytest.approx(values @ shares)
    assert spread == pytest.approx(math.sqrt(max(0.0, (values - mean) ** 2 @ shares)), abs=1e-9)


def test_moments_leave_the_label_out_by_which_a_model_abstains() -> None:
    assert moments(LabelDistribution({"2": 0.3, "4": 0.3, ABSTAIN: 0.4})) == pytest.approx((3.0, 1.0))


def test_moments_take_what_labels_are_worth() -> None:
    assert moments(LabelDistribution({"yes": 0.75, "no": 0.25}), {"yes": 1.0, "no": 0.0})[0] == 0.75


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (LabelDistribution({"3": 1.0}, LEAST_MASS), None),
        (LabelDistribution({"3": 1.0}, LEAST_MASS - 1e-7), "label_mass"),
        (LabelDistribution({}, 0.0), "label_mass"),
        (LabelDistribution({"3": 0.5, ABSTAIN: 0.5}), "abstained"),
        (LabelDistribution({"3": 0.51, ABSTAIN: 0.49}), None),
        (LabelDistribution({ABSTAIN: 1.0}, 0.1), "label_mass"),
    ],
)
def test_a_cell_without_a_score_says_why_and_has_no_moments(cell: LabelDistribution, reason: str | None) -> None:
    assert why_unscored(cell) == reason
    assert np.isnan(moments(cell)).tolist() == [reason is not None] * 2


def test_expectation_and_spread_are_arrays_of_the_cells() -> None:
    cells = [[uniform(2, 4), certain(5)], [SILENT, UNSURE], [certain(0), uniform(0, 10)]]
    np.testing.assert_allclose(expectation_of(cells), [[3, 5], [np.nan, np.nan], [0, 5]])
    np.testing.assert_allclose(spread_of(cells), [[1, 0], [np.nan, np.nan], [0, 5]])
