"""What a silent round settles, and what it does not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import Engine, Evaluation, Task
from debate.backends import Call, Scripted
from debate.errors import ConfigError
from debate.evaluators.debate.settling import Pooling, SettleRule, measures
from debate.flow import Completion
from debate.scoring.distributions import distribution_of, expectation_of
from debate.testing import Recorder, reply_for
from debate.types import SilentReadout
from tests.small_flows import debates

POOLING = Pooling(np.array([1.0]), "weighted_mean", 2)


def silent(*scores: float | None, sure: float = 1.0, agent: str = "a") -> SilentReadout:
    """An agent that gives each candidate one score, with so much of its probability; None abstains."""
    cells = tuple(
        (
            distribution_of(
                {"null": 1.0} if score is None else {"5": 1 - sure} | {f"{score:g}": sure if score != 5 else 1}
            ),
        )
        for score in scores
    )
    return SilentReadout(agent=agent, scores=expectation_of(cells), distributions=cells)


def tasks(n: int = 4) -> list[Task]:
    return [Task(f"{k}?", ["a", "b"], id=f"t{k}") for k in range(n)]


def evaluated(script: Any = reply_for, backends: Any = None, n: int = 4, **settings: Any) -> list[Evaluation]:
    with Engine(backends or Scripted(script), seed=3) as engine:
        return engine.evaluate_batch(tasks(n), debates(**{"rounds": 2, "convergence": None, **settings}))


def sure(call: Call) -> Any:
    """Silent read-outs that are sure of the first candidate of every task but `t1`; turns as `reply_for` has them."""
    if call.info.get("moment") != "before":
        return reply_for(call)
    assert call.read_out is not None
    order = list(call.info["labels"].values())
    per_candidate = len(call.read_out.continuations) // len(order)
    doubt = call.info["task_id"] == "t1"
    labels = ["5" if doubt else "9" if j == 0 else "2" for j in order for _ in range(per_candidate)]
    return Completion("", distributions=tuple(distribution_of({each: 1.0}) for each in labels))


# Rules


@pytest.mark.parametrize("text", ["p_best=0.95", "margin=2", "agreement=1", "p_best=0.8,model=small", "margin=0.5"])
def test_a_rule_is_written_as_it_is_read(text: str) -> None:
    assert str(SettleRule.parse(text)) == text


def test_a_name_alone_takes_the_usual_threshold() -> None:
    assert [str(SettleRule.parse(name)) for name in ("p_best", "margin", "agreement,model=m")] == [
        "p_best=0.95",
        "margin=2",
        "agreement=1,model=m",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sure", "there is no rule 'sure'"),
        ("p_best=high", "must be a number"),
        ("p_best=1.5", "above 0 and at most 1"),
        ("margin=0", "above 0"),
        ("margin=inf", "above 0"),
        ("p_best=0.9,over=agents", "only model=NAME"),
        ("p_best=0.9,model=", "only model=NAME"),
    ],
)
def test_a_rule_of_another_form_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        debates(settle=text)
    assert caught.value.field == "settle"


def test_silent_readouts_compare_agents_with_themselves_and_so_with_no_other_model() -> None:
    with pytest.raises(ConfigError, match="names the model 'small'"):
        debates(settle="p_best,model=small", silent_readouts=True)


# Measures


def test_agents_that_are_sure_of_the_same_candidate_leave_no_doubt() -> None:
    found = measures([[silent(9, 2), silent(8, 3)]], POOLING)
    assert found["p_best"] == pytest.approx(1.0)
    assert found["agreement"] == 1.0
    assert found["margin"] > 5


def test_a_margin_is_counted_in_standard_deviations_of_the_difference() -> None:
    first, second = silent(9, 5, sure=0.5), silent(9, 5, sure=0.5)
    # Scores 9 or 5, each with one half: mean 7 and standard deviation 2, against 5 for sure.
    assert measures([[first, second]], POOLING)["margin"] == pytest.approx(1.0)


def test_agreement_is_the_share_of_agents_with_the_winner_as_their_only_best() -> None:
    found = measures([[silent(9, 2), silent(8, 3), silent(4, 5), silent(6, 6)]], POOLING)
    assert found["agreement"] == 0.5


@pytest.mark.parametrize(
    "rounds",
    [
        [],
        [[silent(9, None), silent(9, 2)]],
        [[silent(5, 5), silent(5, 5)]],
        [[silent(9, 2), SilentReadout(agent="b", scores=np.full((2, 1), np.nan))]],
        [[silent(9, 2), silent(8, 3)], [silent(2, 8), silent(3, 8)]],
        [[silent(9), silent(9)]],
    ],
    ids=["no round", "a missing score", "a tie", "a failed call", "orders with other winners", "one candidate"],
)
def test_nothing_is_settled_where_a_score_or_a_single_winner_is_missing(rounds: list[list[SilentReadout]]) -> None:
    found = measures(rounds, POOLING)
    assert all(map(math.isnan, found.values()))
    assert not any(SettleRule.parse(f"{name}=0.01").settles(found) for name in found)


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10), st.floats(0.1, 1)), min_size=2, max_size=4))
def test_measures_do_not_depend_on_the_order_of_candidates_or_agents(agents: list[tuple[int, int, float]]) -> None:
    here = measures([[silent(a, b, sure=p) for a, b, p in agents]], POOLING)
    there = measures([[silent(b, a, sure=p) for a, b, p in reversed(agents)]], POOLING)
    assert here == pytest.approx(there, nan_ok=True)


# Debates


def test_what_a_silent_round_leaves_in_no_doubt_ends_there_and_the_rest_is_debated() -> None:
    script = Recorder(sure)
    found = evaluated(script, settle="p_best=0.9")
    assert [each.stop_reason for each in found] == ["settled", "max_rounds", "settled", "settled"]
    settled, debated = found[0], found[1]
    assert (settled.selected, settled.status, settled.rounds_run, settled.tensor) == (0, "ok", 0, None)
    assert settled.scores == pytest.approx([9, 2])
    assert settled.p_best == pytest.approx([1, 0])
    assert settled.by_component == pytest.approx(np.array([[9, 9], [2, 2]]))
    n_agents = len(settled.agents)
    assert settled.usage.calls == n_agents
    assert debated.usage.calls == n_agents + 2 * n_agents
    assert len(settled.before) == len(debated.before) == n_agents
    assert debated.after == ()


def test_a_debate_that_goes_on_is_the_debate_that_is_held_without_a_rule() -> None:
    with_rule, without = evaluated(sure, settle="p_best=0.9")[1], evaluated(sure)[1]
    assert with_rule.to_dict()["transcript"] == without.to_dict()["transcript"]
    assert with_rule.scores == pytest.approx(without.scores)


def test_feedback_of_a_settled_task_tells_the_scores_and_that_nobody_spoke() -> None:
    told = evaluated(sure, settle="p_best=0.9")[0].feedback(1)
    assert "No agent said anything" in told
    assert "2.0 (" in told


def test_both_orders_of_a_balanced_debate_are_settled_or_neither() -> None:
    found = evaluated(sure, settle="p_best=0.9", candidate_order="balanced")
    assert [each.stop_reason for each in found] == ["settled", None, "settled", "settled"]
    assert [member.stop_reason for member in found[0].members] == ["settled", "settled"]
    assert [member.stop_reason for member in found[1].members] == ["max_rounds", "max_rounds"]
    assert found[0].order_agreement is True
    assert Evaluation.from_dict(found[0].to_dict()).to_dict() == found[0].to_dict()


def test_a_read_out_that_fails_settles_nothing() -> None:
    def failing(call: Call) -> Any:
        if call.info.get("moment") == "before" and call.info["agent"] == "Reader":
            return Completion("", distributions=())
        return sure(call)

    found = evaluated(failing, settle="agreement=0.1")
    assert {each.stop_reason for each in found} == {"max_rounds"}
    assert {each.status for each in found} == {"partial"}


def test_in_a_cascade_the_named_model_settles_and_the_agents_own_debate_the_rest() -> None:
    small, large = Recorder(sure), Recorder(reply_for)
    backends = {"large": Scripted(large, model="large"), "small": Scripted(small, model="small")}
    found = evaluated(backends=backends, settle="p_best=0.9,model=small")
    n_agents = len(found[0].agents)
    assert [each.stop_reason for each in found] == ["settled", "max_rounds", "settled", "settled"]
    assert [call.info["task_id"] for call in large.calls] == ["t1"] * 2 * n_agents
    assert len(small.calls) == 4 * n_agents


def test_a_model_that_settles_must_be_there() -> None:
    with pytest.raises(ConfigError, match="small"):
        evaluated(settle="p_best=0.9,model=small")
