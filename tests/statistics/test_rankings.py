"""Rankings from pairs, against choix and scikit-learn's figures, and on planted skills."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.statistics import ELO, bradley_terry, soft_pairwise_accuracy
from debate.types import FloatArray
from tests.statistics.oracles import NAN

quick = settings(deadline=None, max_examples=20)

Games = tuple[list[str], list[str], list[float]]


def games(a_b: tuple[int, int, int], a_c: tuple[int, int, int], b_c: tuple[int, int, int]) -> Games:
    """Games of three players, by wins, losses and ties of each two."""
    first: list[str] = []
    second: list[str] = []
    outcomes: list[float] = []
    for (one, other), counts in zip(("ab", "ac", "bc"), (a_b, a_c, b_c), strict=True):
        for outcome, count in zip((1.0, 0.0, 0.5), counts, strict=True):
            first += [one] * count
            second += [other] * count
            outcomes += [outcome] * count
    return first, second, outcomes


THREE = games((12, 8, 0), (7, 6, 1), (9, 5, 0))
counts = st.tuples(*[st.integers(1, 6)] * 3)


# ---- Bradley-Terry


def test_skills_are_those_of_choix_and_scikit_learn() -> None:
    found = bradley_terry(*THREE, draws=0)
    assert [skill.player for skill in found.skills] == ["a", "b", "c"]
    assert [skill.estimate for skill in found.skills] == pytest.approx([0.214185, 0.027012, -0.241197], abs=5e-7)
    assert [skill.estimate * ELO for skill in found.skills] == pytest.approx([37.21, 4.69, -41.90], abs=5e-3)
    assert (found.n, found.ridge, found.reason) == (48, 0.0, None)


def test_intervals_hold_the_skills_and_come_from_the_seed() -> None:
    found = bradley_terry(*THREE, draws=60, seed=2)
    assert all(skill.interval[0] < skill.estimate < skill.interval[1] for skill in found.skills)
    assert found == bradley_terry(*THREE, draws=60, seed=2)


def test_who_wins_everything_is_held_by_a_ridge_that_is_told() -> None:
    found = bradley_terry(["a", "a", "b"], ["b", "c", "c"], [1, 1, 1], draws=0)
    assert [skill.player for skill in found.skills] == ["a", "b", "c"]
    assert all(math.isfinite(skill.estimate) for skill in found.skills)
    assert found.ridge > 0 and found.reason is not None and found.reason.startswith("not identified")


def test_players_who_never_met_the_others_are_told_of() -> None:
    found = bradley_terry(["a", "b", "c", "d"], ["b", "a", "d", "c"], [1, 1, 1, 1], draws=0)
    assert found.ridge > 0
    assert [skill.estimate for skill in found.skills] == pytest.approx([0, 0, 0, 0], abs=1e-6)


def test_a_game_without_an_outcome_is_left_out() -> None:
    first, second, outcomes = THREE
    found = bradley_terry([*first, "a"], [*second, "c"], [*outcomes, NAN], draws=0)
    assert (found.n, found.left_out) == (48, 1)
    assert found.skills == bradley_terry(*THREE, draws=0).skills


def test_skills_at_equal_style_are_found_where_length_wins_games() -> None:
    rng = np.random.default_rng(9)
    skill, wordiness = np.array([0.5, 0.0, -0.5]), np.array([-1.0, 0.0, 1.0])
    ends = np.array([rng.permutation(3)[:2] for _ in range(3000)])
    longer = wordiness[ends[:, 0]] - wordiness[ends[:, 1]] + rng.normal(size=3000)
    odds = skill[ends[:, 0]] - skill[ends[:, 1]] + 1.2 * longer
    won = (rng.random(3000) < 1 / (1 + np.exp(-odds))).astype(float)
    sides = list(ends[:, 0]), list(ends[:, 1])
    plain = bradley_terry(*sides, won, draws=0)
    styled = bradley_terry(*sides, won, style=longer[:, None], draws=0)
    assert [each.player for each in plain.skills] == [2, 1, 0]
    assert [each.player for each in styled.skills] == [0, 1, 2]
    assert [each.estimate for each in styled.skills] == pytest.approx([0.5, 0.0, -0.5], abs=0.2)
    assert styled.style[0].estimate == pytest.approx(1.2 * longer.std(), rel=0.1)


def test_a_style_that_decides_every_game_is_held_by_a_ridge() -> None:
    first, second, outcomes = THREE
    style = np.where(np.array(outcomes) > 0.5, 1.0, -1.0)[:, None]
    found = bradley_terry(first, second, np.round(outcomes), style=style, draws=0)
    assert found.ridge > 0 and abs(found.style[0].estimate) < 20


@quick
@given(counts, counts, counts)
def test_skills_do_not_depend_on_the_order_and_the_side_of_games(
    a_b: tuple[int, int, int], a_c: tuple[int, int, int], b_c: tuple[int, int, int]
) -> None:
    first, second, outcomes = games(a_b, a_c, b_c)
    found = {skill.player: skill.estimate for skill in bradley_terry(first, second, outcomes, draws=0).skills}
    turned = bradley_terry(second[::-1], first[::-1], [1 - each for each in reversed(outcomes)], draws=0)
    assert {skill.player: skill.estimate for skill in turned.skills} == pytest.approx(found, abs=1e-7)
    assert sum(found.values()) == pytest.approx(0, abs=1e-7)


def test_games_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="against themselves"):
        bradley_terry(["a"], ["a"], [1])
    with pytest.raises(ValueError, match="one length"):
        bradley_terry(["a"], ["b", "c"], [1])
    with pytest.raises(ValueError, match="must lie in"):
        bradley_terry(["a"], ["b"], [2])


# ---- systems


def systems(seed: int, noise: float) -> tuple[FloatArray, FloatArray]:
    """Human scores of four systems on 60 items, and a judge who adds noise."""
    rng = np.random.default_rng(seed)
    human = rng.normal(size=(4, 60)) + np.array([[0.0], [0.1], [0.3], [1.0]])
    return human, human + noise * rng.normal(size=human.shape)


def test_a_judge_who_is_sure_of_the_same_has_a_soft_accuracy_of_1() -> None:
    human, _ = systems(1, 0)
    assert soft_pairwise_accuracy(human, 3 * human + 2, draws=200).estimate == 1.0


def test_a_judge_who_is_sure_of_the_reverse_has_a_low_one() -> None:
    human = np.array([[0.0], [1.0], [2.0]]) + np.random.default_rng(3).normal(size=(3, 80)) * 0.1
    found = soft_pairwise_accuracy(human, -human, draws=200)
    assert (found.estimate, found.n) == (pytest.approx(0.0, abs=0.01), 3)


def test_the_p_values_of_a_soft_accuracy_are_those_of_all_flips_of_signs() -> None:
    """Three items have eight flips; the human sum of 6 is reached by one of them, the judge's of 2 by three."""
    human, judge = np.array([[1.0, 2, 3], [0, 0, 0]]), np.array([[1.0, -2, 3], [0, 0, 0]])
    found = soft_pairwise_accuracy(human, judge, draws=20_000)
    assert found.estimate == pytest.approx(1 - (3 / 8 - 1 / 8), abs=0.02)


def test_items_that_a_system_lacks_are_left_out_of_its_pairs() -> None:
    human, judge = systems(5, 0.5)
    longer = [np.hstack([each, np.full((4, 1), NAN)]) for each in (human, judge)]
    found = soft_pairwise_accuracy(*longer, draws=3000)
    assert found.estimate == pytest.approx(soft_pairwise_accuracy(human, judge, draws=3000).estimate, abs=0.03)
    nothing = soft_pairwise_accuracy([[NAN, 1.0], [1.0, NAN]], [[1.0, 1.0], [1.0, 1.0]])
    assert (math.isnan(nothing.estimate), nothing.left_out) == (True, 1)
