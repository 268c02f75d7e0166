"""Stop rules: their text, and what each measures after a round."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.convergence import Over
from debate.errors import ConfigError
from debate.stop_rules import Rounds, StopRule
from debate.types import FloatArray

NAN = float("nan")
thresholds = st.floats(0, 1e6)
rules = st.one_of(
    st.sampled_from([StopRule.parse("ranking"), StopRule.parse("none")]),
    st.builds(StopRule, st.just("cv"), thresholds, st.sampled_from(get_args(Over))),
    st.builds(StopRule, st.sampled_from(["change", "spread"]), thresholds),
    st.builds(StopRule, st.just("rounds"), st.integers(1, 9).map(float)),
)


def rounds(*scores: list[list[float]], whole: bool = True, quorum: int = 1) -> Rounds:
    """Rounds of agents who score each candidate on one component."""
    tensor = np.array(scores, dtype=np.float64)[..., None]  # (R, I, J, K=1)
    return Rounds(tensor, [whole] * len(tensor), np.ones(1), quorum, 10.0)


def ends(rule: str, found: Rounds, r: int = -1) -> str | None:
    return found.stop_reason(StopRule.parse(rule), r % len(found.tensor))


@given(rules)
def test_the_text_of_a_rule_is_read_back_as_the_same_rule(rule: StopRule) -> None:
    assert StopRule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("cv", StopRule("cv", 0.1)),
        (" cv=0.3,over=cells ", StopRule("cv", 0.3, "cells")),
        ("change", StopRule("change", 0.05)),
        ("spread=.2", StopRule("spread", 0.2)),
        ("rounds=2", StopRule("rounds", 2.0)),
    ],
)
def test_a_rule_is_a_name_with_a_threshold_of_its_own_or_a_usual_one(text: str, rule: StopRule) -> None:
    assert StopRule.parse(text) == rule


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no rule ''"),
        ("boredom=2", "there is no rule 'boredom'"),
        ("ranking=1", "ranking takes no threshold"),
        ("cv=", "must be a number, got ''"),
        ("cv=nan", "must be at least 0, got nan"),
        ("change=-1", "must be at least 0, got -1"),
        ("rounds=1.5", "rounds must be a whole number"),
        ("rounds=0", "rounds must be a whole number"),
        ("change=0.1,over=cells", "'over=cells' does not belong to 'change'"),
        ("cv=0.1,over=all", "'over=all' does not belong to 'cv'"),
    ],
)
def test_a_rule_of_another_form_is_refused_under_the_name_it_was_given_by(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        StopRule.parse(text, where="--rule")
    assert caught.value.field == "--rule"
    assert problem in caught.value.problem


def test_a_ranking_holds_when_every_place_is_the_same_ties_included() -> None:
    steady = [[9.0, 5.0, 1.0]], [[6.0, 5.5, 5.0]]
    assert ends("ranking", rounds(*steady)) == "stop_rule"
    assert ends("ranking", rounds(*steady), 0) is None
    assert ends("ranking", rounds([[9.0, 5.0, 1.0]], [[9.0, 1.0, 5.0]])) is None
    assert ends("ranking", rounds([[9.0, 5.0, 1.0]], [[9.0, 5.0, 5.0]])) is None


def test_agents_may_trade_places_while_the_ranking_of_their_mean_holds() -> None:
    found = rounds([[9.0, 5.0], [1.0, 4.0]], [[1.0, 4.0], [9.0, 5.0]])
    assert ends("ranking", found) == "stop_rule"
    assert found.measure(StopRule.parse("change"), 1) == pytest.approx((8 + 1 + 8 + 1) / 4 / 10)


def test_change_is_the_mean_distance_of_the_cells_over_the_width_of_the_scale() -> None:
    found = rounds([[9.0, 5.0]], [[8.0, 5.5]])
    assert found.measure(StopRule.parse("change"), 1) == pytest.approx(0.075)
    assert ends("change=0.08", found) == "stop_rule"
    assert ends("change=0.07", found) is None


def test_spread_is_the_sample_deviation_of_the_agents_whatever_the_level() -> None:
    low, high = [[1.0, 2.0], [3.0, 2.0]], [[8.0, 9.0], [10.0, 9.0]]
    for scores in (low, high):
        assert rounds(scores).measure(StopRule.parse("spread"), 0) == pytest.approx(np.sqrt(2) / 2 / 10)
    assert ends("cv=0.2", rounds(low)) is None
    assert ends("cv=0.2", rounds(high)) == "converged"


@pytest.mark.parametrize("rule", ["cv=9", "spread=9", "change=9", "ranking"])
def test_rounds_below_quorum_end_no_debate(rule: str) -> None:
    missing: list[list[list[float]]] = [[[1.0, 2.0], [1.0, 2.0], [NAN, NAN]]] * 2
    assert ends(rule, rounds(*missing, quorum=2)) in ("converged", "stop_rule")
    assert ends(rule, rounds(*missing, quorum=3)) is None


def test_one_agent_has_neither_cv_nor_spread() -> None:
    alone = rounds([[1.0, 2.0]], [[1.0, 2.0]])
    assert [ends(rule, alone) for rule in ("cv", "spread", "change", "ranking")] == [None, None] + ["stop_rule"] * 2


@pytest.mark.parametrize("rule", ["cv", "ranking", "change", "spread", "rounds=5"])
def test_a_round_in_which_all_abstained_ends_a_debate_and_one_that_failed_does_not(rule: str) -> None:
    silent: list[list[float]] = [[NAN, NAN], [NAN, NAN]]
    assert ends(rule, rounds(silent)) == "abstained"
    assert ends(rule, rounds(silent, whole=False)) is None
    assert ends("none", rounds(silent)) is None


def test_before_min_rounds_no_rule_ends_a_debate() -> None:
    found = rounds([[5.0], [5.0]], [[5.0], [5.0]])
    assert [found.stop_reason(StopRule.parse("cv"), r, 2) for r in (0, 1)] == [None, "converged"]


@given(st.integers(0, 2**32 - 1), rules)
def test_a_rule_looks_at_no_later_round(seed: int, rule: StopRule) -> None:
    random = np.random.default_rng(seed)
    tensor: FloatArray = random.integers(0, 11, (4, 3, 3, 2)).astype(np.float64)
    tensor[random.random(tensor.shape[:2]) < 0.2] = NAN
    whole = Rounds(tensor, [True] * 4, np.ones(2), 2, 10.0)
    for r in range(4):
        so_far = Rounds(tensor[: r + 1], [True] * (r + 1), np.ones(2), 2, 10.0)
        assert whole.stop_reason(rule, r) == so_far.stop_reason(rule, r)
