"""Panels: what members of every kind are made of; rules, weights, ranks, scales."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import CallbackEvaluator, DebateEvaluator, Engine, PanelEvaluator, Task, ValueEvaluator, VoteEvaluator
from debate.backends import Call, Scripted
from debate.errors import ConfigError, TaskError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.evaluators.steps.evaluator import StepEvaluator
from debate.evaluators.steps.prompted import PromptedSteps
from debate.flow import Completion, Generate
from debate.parsing.values import NumberLine
from debate.scorers import ERRORS
from debate.types import Candidate, Failure, LabelDistribution, Scale
from tests.driving import evaluator as small_debate
from tests.driving import panel as small_profile
from tests.driving import reply
from tests.judges import MEMBERS, by_model, failing, judged, text_of, worth
from tests.small_flows import plain

TASK = Task("x", ["t0", "t1", "t2"], id="t")


def test_the_rules_above_and_below_the_threshold() -> None:
    values: dict[str | None, tuple[int, int]] = {"m0": (9, 2), "m1": (8, 6), "m2": (9, 3)}
    panel = PanelEvaluator(members=MEMBERS, threshold=0.85)
    evaluation = judged(
        panel,
        Task("x", ["t0", "t1"]),
        lambda call: worth(values[call.model][int(call.info["candidate"])]),
    )
    assert evaluation.details["agreement"] == pytest.approx([0.9, 0.6])
    assert evaluation.details["rules"] == ["mean", "worst"]
    assert evaluation.scores.tolist() == [pytest.approx(26 / 3), 2]


def test_weights_belong_to_names_not_to_places() -> None:
    weights = {"j0": 0.6, "j1": 0.3, "j2": 0.1}
    backwards = dict(reversed(weights.items()))
    found = [
        judged(PanelEvaluator(members=MEMBERS, weights=each, above="weighted", below="weighted"), TASK, by_model)
        for each in (weights, backwards)
    ]
    assert found[0].scores.tolist() == pytest.approx([0.6 * 9 + 0.3 * 8 + 0.1 * 9, 2.3, 5.1])
    assert found[0].to_json() == found[1].to_json()
    without = judged(
        PanelEvaluator(members=MEMBERS, weights=weights, above="weighted", below="weighted"), TASK, failing("m0")
    )
    assert without.scores[0] == pytest.approx((0.3 * 8 + 0.1 * 9) / 0.4)


def test_by_ranks_the_consensus_decides_for_all() -> None:
    panel = PanelEvaluator(members=MEMBERS, by="ranks", below="worst")
    alike = judged(panel, TASK, by_model)
    assert (alike.details["consensus"], alike.details["consensus_undefined"]) == (1.0, None)
    assert alike.details["rules"] == ["mean"] * 3
    apart = judged(
        panel, TASK, lambda call: worth(5 + (call.info["candidate"] - 1) * (-1 if call.model == "m0" else 1))
    )
    assert apart.details["rules"] == ["worst"] * 3
    assert apart.scores.tolist() == [4, 5, 4]
    flat = judged(panel, TASK, lambda call: worth(5))
    assert flat.details["consensus"] is None or np.isnan(flat.details["consensus"])
    assert flat.details["consensus_undefined"]


def test_members_on_different_scales_meet_on_0_to_10() -> None:
    def errors(x: str, answer: str) -> float:
        return {"t0": 0, "t1": 1, "t2": 9}[answer]

    members: dict[str, Evaluator] = {
        "hundred": ValueEvaluator(model="m0", samples=1, reader=NumberLine(-100.0, 100.0)),
        "errors": CallbackEvaluator(errors, scale=ERRORS),
    }
    panel = PanelEvaluator(members=members, below="mean")
    evaluation = judged(panel, TASK, lambda call: {"t0": "100", "t1": "0", "t2": "-100"}[text_of(call)])
    assert evaluation.scale == panel.scale == Scale(0, 10)
    assert evaluation.scores.tolist() == pytest.approx([10, (5 + 5) / 2, (0 + 1) / 2])
    assert evaluation.members[1].scores.tolist() == [100, 0, -100]


def test_members_that_share_a_scale_keep_it() -> None:
    def one_more(x: str, answer: str) -> int:
        return len(answer) + 1

    def two_more(x: str, answer: str) -> int:
        return len(answer) + 2

    functions = {"one": one_more, "two": two_more}
    panel = PanelEvaluator(
        members={name: CallbackEvaluator(function, scale=ERRORS) for name, function in functions.items()},
        formula="unscaled",
    )
    evaluation = judged(panel, TASK)
    assert evaluation.scale == ERRORS
    assert evaluation.scores.tolist() == [4, 4, 4]
    assert evaluation.details["rules"] == ["worst"] * 3


# 0.1, 0.33 and 0.1 make 10.000000000000002 of three tens before it is held to the scale.
@pytest.mark.parametrize("weights", [[1, 1, 1], [1, 0.5, 0.5], [7, 7, 7], [0.1, 0.33, 0.1]])
@pytest.mark.parametrize("method", ["article", "weighted_mean", "mk1"])
@pytest.mark.parametrize("cell", [0.0, 10.0])
def test_a_debate_that_works_alone_works_as_a_member_whatever_its_weights_and_method(
    method: Any, weights: list[float], cell: float
) -> None:
    alone = small_debate(small_profile(2, 3), rounds=1, method=method, weights=weights)
    other = small_debate(small_profile(3, 3), rounds=1, method=method, weights=weights)
    for members in ({"a": alone, "b": other}, {"a": alone, "value": ValueEvaluator(samples=1)}):
        outer = PanelEvaluator(members={"inner": PanelEvaluator(members=members), "alone": alone})
        for evaluator in (alone, PanelEvaluator(members=members), outer):
            found = judged(evaluator, TASK, lambda call: _all(cell, call))
            assert (found.status, found.error) == ("ok", None)
            assert all(found.scale.low <= score <= found.scale.high for score in found.scores)


def test_a_weighted_panel_of_highest_scores_stays_on_its_scale() -> None:
    weights = {"j0": 0.1, "j1": 0.1, "j2": 0.7}  # 10.000000000000002 of three tens
    inner = PanelEvaluator(members=MEMBERS, weights=weights, above="weighted", below="weighted")
    outer = PanelEvaluator(members={"inner": inner, "j0": MEMBERS["j0"]})
    for evaluator in (inner, outer):
        assert judged(evaluator, TASK, lambda call: worth(10)).scores.tolist() == [10.0] * 3


def _all(cell: float, call: Generate) -> str:
    return reply(call, lambda call, text, component: cell) if "agent" in call.info else worth(cell)


def test_any_evaluator_is_a_member_a_panel_and_a_debate_too() -> None:
    def answer(call: Call) -> str:
        properties = (call.schema or {})["properties"]
        if "value" in properties:
            return worth(7)
        if "ranking" in properties:
            return json.dumps({"reasoning": "", "ranking": list(call.info["labels"])})
        labels = properties["candidates"]["properties"]
        said = {
            label: {
                "comment": "said in a debate",
                "scores": dict.fromkeys(part["properties"]["scores"]["properties"], 7),
            }
            for label, part in labels.items()
        }
        return json.dumps({"overall": "o", "candidates": said})

    inner = PanelEvaluator(members={"v": ValueEvaluator(), "b": VoteEvaluator(ballots=2)})
    panel = PanelEvaluator(members={"p": inner, "d": DebateEvaluator(rounds=1)})
    with Engine(Scripted(answer)) as engine:
        evaluation = engine.evaluate(TASK, panel)
    text = evaluation.to_json()
    again = Evaluation.from_dict(json.loads(text))
    assert again.to_json() == text
    assert evaluation.status == "ok"
    assert evaluation.usage.calls == sum(member.usage.calls for member in evaluation.members)
    assert "because of 7" in again.feedback(0)
    assert "said in a debate" in again.feedback(0)
    assert plain(again)["details"] == plain(evaluation)["details"]


@given(
    order=st.permutations(range(3)),
    matrix=st.lists(st.lists(st.none() | st.integers(0, 10), min_size=3, max_size=3), min_size=3, max_size=3),
)
@settings(max_examples=30, deadline=None)
def test_permuting_the_candidates_permutes_the_results(order: list[int], matrix: list[list[int | None]]) -> None:
    def answer(call: Generate) -> str | Failure:
        value = matrix[int(str(call.model)[1])][int(text_of(call)[1])]
        return Failure("busy", "no") if value is None else worth(value)

    plainly = judged(PanelEvaluator(members=MEMBERS), TASK, answer)
    permuted = judged(PanelEvaluator(members=MEMBERS), Task("x", [f"t{j}" for j in order]), answer)
    np.testing.assert_array_equal(permuted.scores, plainly.scores[order])
    for name in ("votes", "agreement", "rules"):
        np.testing.assert_array_equal(permuted.details[name], [plainly.details[name][j] for j in order])
    assert {order[j] for j in permuted.tied} == set(plainly.tied)
    assert plainly.selected is None or not np.isnan(plainly.scores[plainly.selected])


def test_a_task_that_a_member_cannot_evaluate_is_refused() -> None:
    panel = PanelEvaluator(members={"s": StepEvaluator(), "v": ValueEvaluator()})
    with pytest.raises(TaskError) as refused:
        panel.check_task(Task("x", [Candidate("a", metadata={"steps": 3})]))
    assert refused.value.field == "candidates.0.metadata.steps"


def test_the_description_does_not_depend_on_the_order_of_listing() -> None:
    described = [
        json.dumps(PanelEvaluator(members={name: MEMBERS[name] for name in order}).describe())
        for order in permutations(MEMBERS)
    ]
    assert len(set(described)) == 1


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"members": {}}, "members"),
        ({"members": {"a": ValueEvaluator(), "b": ValueEvaluator()}}, "members"),
        ({"reserves": {"nobody": ValueEvaluator()}}, "reserves"),
        ({"quorum": 0}, "quorum"),
        ({"quorum": 4}, "quorum"),
        ({"below": "weighted"}, "weights"),
        ({"weights": {"j0": 1.0}}, "weights"),
        ({"weights": dict.fromkeys(MEMBERS, 1.0)}, "weights"),
        ({"members": {"a": CallbackEvaluator(len, scale=ERRORS)}}, "formula"),
    ],
)
def test_settings_that_cannot_work_are_named(options: dict[str, Any], field: str) -> None:
    told: dict[str, Any] = {"members": MEMBERS, **options}
    with pytest.raises(ConfigError) as refused:
        PanelEvaluator(**told)
    assert refused.value.field == field


def test_a_panel_is_admitted_with_its_members_side_by_side_and_not_their_reserves() -> None:
    one = ValueEvaluator()
    task = Task("x", ["a", "b"])
    alone = PanelEvaluator(members={"a": one, "b": ValueEvaluator(model="b")})
    backed = PanelEvaluator(members=alone.members, reserves={"a": ValueEvaluator(model="c")})
    assert alone.footprint(task) == backed.footprint(task)
    assert alone.footprint(task).prompts == 2


# ---- the probability of being the best

READ_OUT: dict[str, Evaluator] = {
    name: ValueEvaluator(model=name, samples=1, retries=0, readout="expected") for name in ("m0", "m1")
}


def split(call: Generate) -> Completion:
    """m0 is sure of the first candidate; m1 finds the second and the third equally good."""
    is_best = (call.info["candidate"] == 0) == (call.model == "m0")
    return Completion(worth(5), distributions=(LabelDistribution({"9" if is_best else "1": 1.0}),) * 2)


def test_the_probability_of_being_the_best_is_the_mean_of_the_members() -> None:
    found = judged(PanelEvaluator(members=READ_OUT), TASK, split).p_best
    assert found is not None
    assert found.tolist() == pytest.approx([0.5, 0.25, 0.25])


@pytest.mark.parametrize(
    "other", [ValueEvaluator(model="m1"), StepEvaluator(judge=PromptedSteps(model="m1", readout="expected"))]
)
def test_with_a_member_that_has_no_such_probability_the_panel_has_none(other: Evaluator) -> None:
    def answer(call: Generate) -> str | Completion:
        if call.read_out is None:
            return worth(5)
        return replace(split(call), text=json.dumps({"reasoning": "", "value": 5, "score": 5}))

    evaluation = judged(PanelEvaluator(members={"a": READ_OUT["m0"], "b": other}), TASK, answer)
    assert evaluation.status == "ok"
    assert evaluation.members[0].p_best is not None and evaluation.p_best is None


def test_who_takes_the_seat_of_a_failed_member_counts_and_who_failed_does_not() -> None:
    def answer(call: Generate) -> Completion | Failure:
        return Failure("busy", "no") if call.model == "m0" else split(call)

    reserve = {"m0": ValueEvaluator(model="r", samples=1, readout="expected")}
    for panel in (PanelEvaluator(members=READ_OUT, reserves=reserve), PanelEvaluator(members=READ_OUT, quorum=1)):
        found = judged(panel, TASK, answer).p_best
        assert found is not None and found.tolist() == pytest.approx([0.0, 0.5, 0.5])


def test_a_candidate_below_the_quorum_is_not_the_best() -> None:
    def answer(call: Generate) -> Completion | Failure:
        is_first = (call.model, call.info["candidate"]) == ("m0", 0)
        return split(call) if not is_first else Failure("busy", "no")

    evaluation = judged(PanelEvaluator(members=READ_OUT), TASK, answer)
    assert np.isnan(evaluation.scores[0])
    assert evaluation.p_best is not None and evaluation.p_best.tolist() == pytest.approx([0.0, 0.5, 0.5])
