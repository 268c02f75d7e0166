"""Candidate orders: who sees what where, and that no order ever reaches the tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.evaluators.base import RunContext
from debate.evaluators.debate.candidate_order import arrange, base_order, label
from debate.flow import Generate
from debate.testing import drive
from tests.driving import Judge, by_text, debate, evaluator, panel, shown, task

ORDERS = ("fixed", "shuffle", "rotate", "balanced")


def orders_seen(judge: Judge) -> list[list[str]]:
    """The texts of the candidates in the order shown, one list a call."""
    return [list(shown(call).values()) for call in judge.calls]


def prefers(text: str) -> Judge:
    return Judge(lambda call, shown_text, component: 9.0 if shown_text == text else 4.0)


def prefers_place(place: int) -> Judge:
    """A judge with nothing but position bias."""

    def score(call: Generate, text: str, component: str) -> float:
        return 9.0 if list(shown(call).values())[place] == text else 4.0

    return Judge(score)


# Labels and arrangements


@pytest.mark.parametrize(
    ("place", "name"), [(0, "A"), (25, "Z"), (26, "AA"), (27, "AB"), (51, "AZ"), (52, "BA"), (701, "ZZ"), (702, "AAA")]
)
def test_labels_count_on_after_z(place: int, name: str) -> None:
    assert label(place) == name


def test_no_two_places_share_a_label() -> None:
    assert len({label(place) for place in range(2000)}) == 2000


@settings(deadline=None)
@given(st.permutations(range(5)), st.integers(1, 6), st.booleans())
def test_a_label_stands_for_the_same_candidate_in_every_agents_view(
    base: list[int], n_agents: int, rotate: bool
) -> None:
    ordering = arrange(base, n_agents, rotate=rotate)
    assert [ordering.labels[j] for j in base] == ["A", "B", "C", "D", "E"]
    for agent in range(n_agents):
        assert sorted(ordering.orders[agent]) == [0, 1, 2, 3, 4]
        assert ordering.shown(agent) == {name: j for j, name in enumerate(ordering.labels)}
        assert list(ordering.shown(agent).values()) == list(ordering.orders[agent])


@settings(deadline=None)
@given(st.integers(1, 7), st.integers(0, 2**31 - 1))
def test_with_as_many_agents_as_candidates_rotate_puts_each_in_every_place(n: int, seed: int) -> None:
    orders = np.array(arrange(base_order("rotate", n, seed), n, rotate=True).orders)  # (I, J)
    assert all(sorted(orders[:, place]) == list(range(n)) for place in range(n))


def test_only_fixed_keeps_the_tasks_own_order() -> None:
    assert base_order("fixed", 6, 1) == (0, 1, 2, 3, 4, 5)
    assert all(base_order(kind, 6, 1) != (0, 1, 2, 3, 4, 5) for kind in ("shuffle", "rotate", "balanced"))


# What the prompts show


def test_fixed_shows_every_agent_the_tasks_own_order() -> None:
    judge = Judge(by_text)
    debate(evaluator(candidate_order="fixed", rounds=2), judge)
    assert orders_seen(judge) == [["text 0", "text 1", "text 2"]] * 4


def test_shuffle_shows_every_agent_the_same_drawn_order() -> None:
    judge = Judge(by_text)
    debate(evaluator(candidate_order="shuffle", rounds=2), judge, task(8))
    seen = orders_seen(judge)
    assert seen[0] != [f"text {j}" for j in range(8)]
    assert seen == [seen[0]] * 4


def test_shuffle_follows_the_runs_seed_and_the_tasks_id() -> None:
    def drawn(seed: int, id: str) -> list[str]:  # noqa: A002 - as in Task
        judge = Judge(by_text)
        drive(evaluator(rounds=1).flow(task(8, id=id), RunContext(seed=seed)), judge)
        return orders_seen(judge)[0]

    assert drawn(1, "t1") == drawn(1, "t1")
    assert len({tuple(order) for order in (drawn(1, "t1"), drawn(1, "t2"), drawn(2, "t1"))}) == 3


def test_rotate_turns_the_order_from_agent_to_agent_and_keeps_the_labels() -> None:
    judge = Judge(by_text)
    debate(evaluator(panel(3), candidate_order="rotate", rounds=1), judge)
    views = [shown(call) for call in judge.calls]
    orders = orders_seen(judge)
    assert views[0] == views[1] == views[2]  # as mappings: same label, same candidate
    assert {tuple(order) for order in orders} == {(*orders[0][i:], *orders[0][:i]) for i in range(3)}


@pytest.mark.parametrize("order", ORDERS)
def test_the_call_tells_which_label_was_shown_for_which_candidate_in_order(order: str) -> None:
    judge = Judge(by_text)
    debate(evaluator(panel(3), candidate_order=order, rounds=2), judge)
    for call in judge.calls:
        told = [(name, f"text {j}") for name, j in call.info["labels"].items()]
        assert told == list(shown(call).items())


# What comes out


@pytest.mark.parametrize("n_candidates", [1, 4, 28])
@pytest.mark.parametrize("order", ("fixed", "shuffle", "rotate"))
def test_the_tensor_stands_in_the_tasks_order_whatever_was_shown(order: str, n_candidates: int) -> None:
    def score(call: Generate, text: str, component: str) -> float:
        return by_text(call, text, component) / 4

    evaluation = debate(evaluator(panel(3), candidate_order=order, rounds=2), Judge(score), task(n_candidates))
    r, i, j, k = np.indices((2, 3, n_candidates, 2))
    expected = (0.25 * i + 0.5 * r + j + 0.125 * k) / 4  # (R, I, J, K), by_text / 4
    assert evaluation.tensor is not None
    np.testing.assert_array_equal(evaluation.tensor, expected)
    for turn in evaluation.transcript:
        assert turn.comments == tuple(f"{turn.agent} on text {j} in {turn.round}" for j in range(n_candidates))


def test_a_transcript_keeps_the_order_shown() -> None:
    judge = Judge(by_text)
    evaluation = debate(evaluator(panel(3), candidate_order="rotate", rounds=1), judge)
    assert [list(turn.labels.items()) for turn in evaluation.transcript] == [
        list(call.info["labels"].items()) for call in judge.calls
    ]


# Balanced


def balanced(judge: Judge, **settings_: Any) -> Any:
    return debate(evaluator(candidate_order="balanced", rounds=2, **settings_), judge, task(4))


def test_balanced_holds_a_debate_in_one_order_and_one_in_its_reverse() -> None:
    evaluation = balanced(Judge(by_text))
    orders = [list(member.transcript.turns[0].labels.values()) for member in evaluation.members]
    assert orders[0] == orders[1][::-1]
    assert sorted(orders[0]) == [0, 1, 2, 3]
    assert evaluation.tensor is None
    assert [member.tensor.shape for member in evaluation.members] == [(2, 2, 4, 2)] * 2
    np.testing.assert_array_equal(evaluation.members[0].tensor, evaluation.members[1].tensor)


def test_balanced_scores_are_the_mean_of_both_orders() -> None:
    evaluation = balanced(prefers_place(0))
    first, second = (member.scores for member in evaluation.members)
    assert sorted(first) == sorted(second) == [4.0, 4.0, 4.0, 9.0]
    np.testing.assert_array_equal(evaluation.scores, (first + second) / 2)
    assert sorted(evaluation.scores) == [4.0, 4.0, 6.5, 6.5]
    assert evaluation.order_agreement is False
    assert set(evaluation.tied) == {member.selected for member in evaluation.members}


def test_both_orders_agree_when_the_judge_goes_by_the_text() -> None:
    evaluation = balanced(prefers("text 2"))
    assert (evaluation.order_agreement, evaluation.selected, evaluation.status) == (True, 2, "ok")


@pytest.mark.parametrize("liked", [0, 1])
def test_orders_of_which_one_ties_do_not_agree_whichever_the_other_prefers(liked: int) -> None:
    first_order: list[str] = []

    def answer(call: Generate) -> str:
        order = list(shown(call).values())
        first_order[:] = first_order or order
        is_tied = order == first_order
        return Judge(lambda call, text, component: 5.0 if is_tied or text != f"text {liked}" else 9.0)(call)

    assert debate(evaluator(candidate_order="balanced", rounds=1), answer).order_agreement is False


def test_a_candidate_that_one_order_left_unscored_has_no_score_and_no_agreement() -> None:
    first_order: list[str] = []

    def answer(call: Generate) -> str:
        order = list(shown(call).values())
        first_order[:] = first_order or order
        return "nonsense" if order == first_order else Judge(by_text)(call)

    evaluation = debate(evaluator(candidate_order="balanced", rounds=1, retries=0), answer)
    assert np.isnan(evaluation.scores).all()
    assert sorted(member.status for member in evaluation.members) == ["failed", "ok"]
    assert (evaluation.order_agreement, evaluation.selected, evaluation.status) == (None, None, "failed")
    assert evaluation.probabilities.tolist() == [0.0, 0.0, 0.0]
    assert evaluation.error is not None and evaluation.error.startswith("2 of 4 turns failed")


def test_balanced_is_partial_when_a_turn_of_either_order_failed() -> None:
    failed_once: list[Generate] = []

    def answer(call: Generate) -> str:
        if not failed_once:
            failed_once.append(call)
            return "nonsense"
        return Judge(by_text)(call)

    evaluation = debate(evaluator(panel(3), candidate_order="balanced", rounds=1, retries=0), answer)
    assert (evaluation.status, len(evaluation.failures)) == ("partial", 1)
    assert not np.isnan(evaluation.scores).any()
