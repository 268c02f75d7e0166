"""Votes: each kind of ballot and count, the order in which candidates are shown, ballots that do not count."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import Engine, Task, VoteEvaluator
from debate.backends import Call, Scripted
from debate.errors import ConfigError
from debate.evaluators.base import RunContext
from debate.flow import Generate
from debate.testing import Recorder, drive, reply_for
from debate.types import Failure, Scale
from tests.judges import judged, shown

TEXTS = ("t0", "t1", "t2", "t3")
WORTH = {"t0": 2, "t1": 4, "t2": 1, "t3": 3}


def ballot(key: str, said: object) -> str:
    return json.dumps({"reasoning": f"{key} it is", key: said})


def honest(call: Generate, worth: Mapping[str, float] = WORTH) -> str:
    """A ballot of whatever kind is asked for, by the texts alone."""
    assert call.schema is not None
    order = sorted(shown(call).items(), key=lambda item: -worth[item[1]])
    labels = [label for label, _ in order]
    if "ranking" in call.schema["properties"]:
        return ballot("ranking", labels)
    if "best" in call.schema["properties"]:
        return ballot("best", labels[0])
    alike = worth[order[0][1]] == worth[order[1][1]]
    return ballot("better", "tie" if alike else labels[0])


def rankings(*orders: Sequence[int]) -> Any:
    """A judge whose ballot number s ranks the candidates so."""

    def answer(call: Generate) -> str:
        labels: Mapping[str, int] = call.info["labels"]
        label = {j: name for name, j in labels.items()}
        return ballot("ranking", [label[j] for j in orders[int(call.info["sample"])]])

    return answer


@pytest.mark.parametrize(
    ("kind", "count", "scores", "scale"),
    [
        ("ranking", None, [5, 10, 2.5, 7.5], 10),
        ("ranking", "borda", [5, 10, 2.5, 7.5], 10),
        ("ranking", "borda_span", [10 / 3, 10, 0, 20 / 3], 10),
        ("ranking", "copeland", [10 / 3, 10, 0, 20 / 3], 10),
        ("ranking", "plurality", [0, 3, 0, 0], 3),
        ("plurality", None, [0, 3, 0, 0], 3),
        ("pairwise", None, [10 / 3, 10, 0, 20 / 3], 10),
    ],
)
def test_each_kind_of_ballot_and_count(kind: Any, count: Any, scores: list[float], scale: float) -> None:
    judge = Recorder(honest)
    evaluator = VoteEvaluator(ballots=3, ballot=kind, count=count)
    evaluation = judged(evaluator, Task("x", TEXTS), judge)
    assert evaluation.scores.tolist() == pytest.approx(scores)
    assert evaluation.scale == evaluator.scale == Scale(0, scale)
    assert (evaluation.selected, evaluation.status) == (1, "ok")
    n = 3 * 6 if kind == "pairwise" else 3
    assert evaluation.details == {"ballots": {"valid": n, "rejected": 0, "reasons": {}}}
    assert len(judge.calls) == len(evaluation.judgments) == n
    assert {call.sampling.temperature for call in judge.calls} == {0.5}


def test_the_seeds_example_of_borda() -> None:
    evaluation = judged(VoteEvaluator(ballots=3), Task("x", TEXTS[:3]), rankings([0, 1, 2], [0, 2, 1], [1, 0, 2]))
    assert evaluation.scores.tolist() == pytest.approx([80 / 9, 60 / 9, 40 / 9])
    assert [sample.ranking for sample in evaluation.judgments] == [(0, 1, 2), (0, 2, 1), (1, 0, 2)]


def test_every_pair_is_shown_and_a_tie_is_half_a_win() -> None:
    judge = Recorder(lambda call: honest(call, {"t0": 1, "t1": 1, "t2": 0}))
    evaluation = judged(VoteEvaluator(ballots=2, ballot="pairwise"), Task("x", TEXTS[:3]), judge)
    assert evaluation.scores.tolist() == [7.5, 7.5, 0]
    assert evaluation.tied == (0, 1)
    pairs = [tuple(sorted(sample.candidates)) for sample in evaluation.judgments]
    assert sorted(pairs) == [(0, 1), (0, 1), (0, 2), (0, 2), (1, 2), (1, 2)]
    assert [s.ranking for s in evaluation.judgments if set(s.candidates) == {0, 1}] == [(), ()]


def test_the_candidates_are_shown_as_the_labels_say() -> None:
    def answer(call: Generate) -> str:
        assert {label: TEXTS[j] for label, j in call.info["labels"].items()} == shown(call)
        assert list(shown(call)) == ["A", "B", "C", "D"]
        return honest(call)

    judge = Recorder(answer)
    evaluation = judged(VoteEvaluator(ballots=8), Task("x", TEXTS), judge)
    assert [sample.candidates for sample in evaluation.judgments] == [
        tuple(call.info["labels"].values()) for call in reversed(judge.calls)
    ]


def orders(seed: int, task: Task, **options: Any) -> list[tuple[int, ...]]:
    flow = VoteEvaluator(**options).flow(task, RunContext(seed=seed))
    return [sample.candidates for sample in drive(flow, honest).judgments]


def test_the_same_seed_shuffles_alike_and_different_ballots_differ() -> None:
    task = Task("x", TEXTS, id="t")
    mine = orders(1, task, ballots=12)
    assert mine == orders(1, task, ballots=12)
    assert orders(1, task, ballots=5) == mine[:5]
    assert len(set(mine)) > 5
    assert mine != orders(2, task, ballots=12)
    assert mine != orders(1, Task("x", TEXTS, id="u"), ballots=12)
    assert set(orders(1, task, ballots=3, shuffle=False)) == {(0, 1, 2, 3)}
    assert len(set(orders(1, Task("x", TEXTS[:2]), ballots=12, ballot="pairwise"))) == 2


@given(order=st.permutations(range(4)), values=st.permutations(range(4)), kind=st.sampled_from(["ranking", "pairwise"]))
@settings(max_examples=25, deadline=None)
def test_permuting_the_candidates_permutes_the_results(order: list[int], values: list[int], kind: Any) -> None:
    worth: dict[str, float] = dict(zip(TEXTS, values, strict=True))
    evaluator = VoteEvaluator(ballots=2, ballot=kind)
    plainly = judged(evaluator, Task("x", TEXTS), lambda call: honest(call, worth))
    permuted = judged(evaluator, Task("x", [TEXTS[j] for j in order]), lambda call: honest(call, worth))
    assert permuted.scores.tolist() == plainly.scores[order].tolist()
    assert order[permuted.selected or 0] == plainly.selected


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ballot("ranking", ["A", "Z", "B"]), "unknown_candidate"),
        (ballot("ranking", ["A", "A", "B"]), "duplicate"),
        (ballot("ranking", []), "no_ranking"),
        (ballot("order", ["A", "B", "C"]), "missing_key"),
        ("A is best", "not_json"),
        (Failure("busy", "no"), "busy"),
    ],
)
def test_a_ballot_that_does_not_count_is_counted_with_its_reason(reply: str | Failure, reason: str) -> None:
    good = rankings(*[[2, 0, 1]] * 5)
    judge = Recorder(lambda call: reply if call.info["sample"] in (1, 3) else good(call))
    evaluation = judged(VoteEvaluator(retries=1), Task("x", TEXTS[:3]), judge)
    alone = judged(VoteEvaluator(ballots=3), Task("x", TEXTS[:3]), good)
    assert evaluation.details == {"ballots": {"valid": 3, "rejected": 2, "reasons": {reason: 2}}}
    assert evaluation.scores.tolist() == alone.scores.tolist()
    assert (evaluation.status, len(evaluation.failures)) == ("partial", 2)
    assert len(judge.calls) == 3 + 2 * (1 if isinstance(reply, Failure) else 2)


def test_a_ballot_put_right_on_request_counts() -> None:
    judge = Recorder(lambda call: honest(call) if call.attempt else ballot("ranking", ["A", "A"]))
    evaluation = judged(VoteEvaluator(ballots=1), Task("x", TEXTS), judge)
    assert evaluation.details == {"ballots": {"valid": 1, "rejected": 0, "reasons": {}}}
    assert [invalid.reason for invalid in evaluation.judgments[0].invalid_replies] == ["duplicate"]
    assert evaluation.judgments[0].invalid_replies[0].message in judge.calls[1].prompt.messages()[-1]["content"]


@pytest.mark.parametrize("kind", ["ranking", "plurality", "pairwise"])
def test_without_a_ballot_that_counts_it_has_failed(kind: Any) -> None:
    evaluation = judged(VoteEvaluator(ballot=kind, retries=0), Task("x", TEXTS[:2]), lambda call: "no idea")
    assert (evaluation.status, evaluation.selected, evaluation.stop_reason) == ("failed", None, "failed")
    assert np.isnan(evaluation.scores).all()
    assert evaluation.details == {"ballots": {"valid": 0, "rejected": 5, "reasons": {"not_json": 5}}}
    assert "no readable reply" in (evaluation.error or "")
    assert "not scored" in evaluation.feedback(0)


@pytest.mark.parametrize(("quorum", "status"), [(2, "partial"), (3, "failed")])
def test_fewer_ballots_than_the_quorum_are_no_scores(quorum: int, status: str) -> None:
    def answer(call: Generate) -> str:
        return honest(call) if call.info["sample"] < 2 else "?"

    assert judged(VoteEvaluator(ballots=4, quorum=quorum), Task("x", TEXTS), answer).status == status


def test_a_candidate_whose_comparisons_all_failed_is_unscored_and_alone_so() -> None:
    def answer(call: Generate) -> str | Failure:
        return Failure("busy", "no") if "t3" in shown(call).values() else honest(call)

    evaluation = judged(VoteEvaluator(ballots=1, ballot="pairwise"), Task("x", TEXTS), answer)
    assert evaluation.statuses == ("ok", "ok", "ok", "failed")
    assert evaluation.scores[:3].tolist() == [5, 10, 0]
    assert (evaluation.selected, evaluation.probabilities[3]) == (1, 0)


def test_what_a_ranking_leaves_out_gets_nothing_or_a_share() -> None:
    answer = rankings([1])
    zero = judged(VoteEvaluator(ballots=1), Task("x", TEXTS[:3]), answer)
    share = judged(VoteEvaluator(ballots=1, unranked="share"), Task("x", TEXTS[:3]), answer)
    assert zero.scores.tolist() == [0, 10, 0]
    assert share.scores.tolist() == pytest.approx([5, 10, 5])


@pytest.mark.parametrize("kind", ["plurality", "pairwise"])
def test_a_choice_names_one_candidate(kind: Any) -> None:
    key = "best" if kind == "plurality" else "better"
    evaluator = VoteEvaluator(ballots=1, ballot=kind, retries=0)
    evaluation = judged(evaluator, Task("x", TEXTS[:2]), lambda call: ballot(key, ["A", "B"]))
    assert evaluation.details["ballots"]["reasons"] == {"ambiguous": 1}


def test_a_tie_is_no_vote_where_one_must_choose() -> None:
    evaluation = judged(
        VoteEvaluator(ballots=1, ballot="plurality", retries=0), Task("x", TEXTS), lambda call: ballot("best", "tie")
    )
    assert evaluation.details["ballots"]["reasons"] == {"unknown_candidate": 1}


@pytest.mark.parametrize(
    ("kind", "count"),
    [("ranking", None), ("ranking", "copeland"), ("ranking", "borda_span"), ("plurality", None), ("pairwise", None)],
)
def test_a_single_candidate_has_the_highest_score(kind: Any, count: Any) -> None:
    evaluator = VoteEvaluator(ballots=2, ballot=kind, count=count)
    evaluation = judged(evaluator, Task("x", ["t0"]), honest)
    assert evaluation.scores.tolist() == [evaluator.scale.high]
    assert (evaluation.status, evaluation.selected) == ("ok", 0)


@pytest.mark.parametrize(("n", "most"), [(4, 400), (25, 400), (60, 486), (200, 836)])
def test_a_reply_has_room_for_the_longest_ranking(n: int, most: int) -> None:
    asked: list[int | None] = []

    def answer(call: Call) -> str:
        asked.append(call.sampling.max_tokens)
        labels = call.info["labels"]
        return json.dumps({"reasoning": "r" * 600, "ranking": " > ".join(labels)})

    task = Task("x", [f"t{j}" for j in range(n)])
    with Engine(Scripted(answer)) as engine:
        evaluation = engine.evaluate(task, VoteEvaluator(ballots=1))
    assert evaluation.status == "ok"
    assert asked == [most]
    assert VoteEvaluator().footprint(task).max_tokens == most


def test_feedback_holds_what_was_said() -> None:
    evaluation = judged(VoteEvaluator(ballots=1), Task("x", TEXTS), honest)
    assert "ranking it is" in evaluation.feedback(2)
    assert "2 > 4 > 1 > 3" in evaluation.feedback(2)
    assert "2 > 4 > 1 > 3" in evaluation.chain_of_thought()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"ballots": 0}, "ballots"),
        ({"quorum": 0}, "quorum"),
        ({"ballots": 2, "quorum": 5}, "quorum"),
        ({"ballots": 2, "quorum": 5, "ballot": "plurality"}, "quorum"),
        ({"ballot": "approval"}, "ballot"),
        ({"count": "approval"}, "count"),
        ({"ballot": "plurality", "count": "borda"}, "count"),
        ({"ballot": "pairwise", "count": "plurality"}, "count"),
        ({"unranked": "drop"}, "unranked"),
    ],
)
def test_settings_that_cannot_work_are_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        VoteEvaluator(**options)
    assert refused.value.field == field


def test_a_tasks_own_components_are_shown_as_criteria() -> None:
    recorder = Recorder(reply_for)
    task = Task("Which?", ["a", "b"], components=[{"name": "cites", "description": "Names a source."}])
    evaluation = drive(VoteEvaluator().flow(task, RunContext()), recorder)
    text = recorder.calls[0].prompt.messages()[-1]["content"]
    assert "Criteria to judge by:\n- cites: Names a source.\n" in text
    assert evaluation.status == "ok"
