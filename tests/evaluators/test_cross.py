"""Cross evaluation: nobody judges what its own model wrote, and everybody's author is known."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import CallbackEvaluator, CrossEvaluator, DebateEvaluator, Engine, Task, ValueEvaluator, VoteEvaluator
from debate.backends import Call, Scripted
from debate.errors import ConfigError, TaskError
from debate.evaluation import Evaluation, abstained_cells, failed, why_unscored
from debate.evaluators.base import Evaluator
from debate.evaluators.ensemble import scatter_candidates
from debate.flow import Generate
from debate.parsing.values import NumberLine
from debate.scorers import ERRORS
from debate.scoring.distributions import expectation_of
from debate.testing import Recorder
from debate.types import Candidate, Failure, LabelDistribution, Scale, SilentReadout, Transcript, Turn
from tests.judges import judged, shown, text_of, worth

NAMES = ("a", "b", "c")
JUDGES: dict[str, Evaluator] = {name: ValueEvaluator(model=name, samples=1, retries=0) for name in NAMES}


def by(*authors: str) -> Task:
    """A task whose candidates are `0 by a`, ..."""
    return Task("x", [Candidate(f"{j} by {author}", generator=author) for j, author in enumerate(authors)], id="t")


def one_error(x: str, text: str) -> int:
    return 1


def opinion(judge: str | None, text: str) -> int:
    return (NAMES.index(judge or "") * 3 + int(text[0]) * 2) % 10


def answer(call: Generate) -> str:
    return worth(opinion(call.model, text_of(call)))


@given(authors=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None)
def test_nobody_judges_its_own_and_all_others_do(authors: list[str]) -> None:
    asked = Recorder(answer)
    evaluation = judged(CrossEvaluator(judges=JUDGES), by(*authors), asked)
    pairs = sorted((str(call.model), text_of(call)) for call in asked.calls)
    assert pairs == sorted((n, f"{j} by {a}") for j, a in enumerate(authors) for n in NAMES if n != a)
    for j, author in enumerate(authors):
        others = [opinion(name, f"{j}") for name in NAMES if name != author]
        assert evaluation.scores[j] == sum(others) / 2
    assert evaluation.status == "ok"
    assert all(each["judge"] != each["generator"] for each in evaluation.details["judgements"])
    assert len(evaluation.details["judgements"]) == 2 * len(authors)


def test_a_judge_of_some_candidates_sees_the_reference_and_no_label() -> None:
    asked = Recorder(answer)
    on = by("a", "b")
    judged(CrossEvaluator(judges=JUDGES), Task("x", on.candidates, "t", reference="the answer", best=1), asked)
    assert len(asked.calls) == 4
    assert all("Reference answer:\\nthe answer" in json.dumps(call.prompt.messages()) for call in asked.calls)


def test_each_judgment_is_in_the_details() -> None:
    evaluation = judged(CrossEvaluator(judges={name: JUDGES[name] for name in "ab"}), by("a", "b"), answer)
    assert evaluation.details["judgements"] == [
        {"candidate": 1, "generator": "b", "judge": "a", "score": 2.0},
        {"candidate": 0, "generator": "a", "judge": "b", "score": 3.0},
    ]
    assert [member.statuses for member in evaluation.members] == [("skipped", "ok"), ("ok", "skipped")]


def test_a_mapping_says_who_judges_whom() -> None:
    asked = Recorder(answer)
    rule = {"a": "b", "b": ["c", "a"], "human": ["a", "b", "c"]}
    judged(CrossEvaluator(judges=JUDGES, rule=rule), by("a", "b", "human"), asked)
    pairs = {(str(call.model), text_of(call)[0]) for call in asked.calls}
    assert pairs == {("b", "0"), ("a", "1"), ("c", "1"), ("a", "2"), ("b", "2"), ("c", "2")}


@pytest.mark.parametrize("generator", [None, "d", "A", ""])
def test_an_unknown_author_is_refused_by_the_name_of_the_field(generator: str | None) -> None:
    task = Task("x", [Candidate("0", generator="a"), Candidate("1", generator=generator)], id="t")
    cross = CrossEvaluator(judges=JUDGES)
    with pytest.raises(TaskError) as refused:
        cross.check_task(task)
    assert refused.value.field == "candidates.1.generator"
    with pytest.raises(TaskError):
        judged(cross, task)


def test_a_judge_that_fails_leaves_its_candidates_to_the_others() -> None:
    def without_b(call: Generate) -> str | Failure:
        return Failure("busy", "no") if call.model == "b" else answer(call)

    found = [
        judged(CrossEvaluator(judges={name: JUDGES[name] for name in order}), by("a", "b", "c"), without_b)
        for order in permutations(NAMES)
    ]
    assert len({each.to_json() for each in found}) == 1
    assert found[0].scores.tolist() == [
        opinion("c", "0"),
        (opinion("a", "1") + opinion("c", "1")) / 2,
        opinion("a", "2"),
    ]
    assert (found[0].status, len(found[0].failures)) == ("partial", 2)
    assert [each["score"] for each in found[0].details["judgements"] if each["judge"] == "b"] == [
        pytest.approx(np.nan, nan_ok=True)
    ] * 2


def test_a_candidate_that_no_judge_scored_is_failed_and_not_selected() -> None:
    def without_b(call: Generate) -> str | Failure:
        return Failure("busy", "no") if call.model == "b" else worth(0)

    cross = CrossEvaluator(judges={name: JUDGES[name] for name in "ab"})
    evaluation = judged(cross, by("a", "b", "a"), without_b)
    assert evaluation.statuses == ("failed", "ok", "failed")
    assert evaluation.selected == 1
    assert "was not scored" in evaluation.feedback(0)


@given(order=st.permutations(range(4)))
@settings(max_examples=15, deadline=None)
def test_permuting_the_candidates_permutes_the_results(order: list[int]) -> None:
    task = by("a", "b", "c", "a")
    plainly = judged(CrossEvaluator(judges=JUDGES), task, answer)
    permuted = judged(CrossEvaluator(judges=JUDGES), Task("x", [task.candidates[j] for j in order]), answer)
    assert permuted.scores.tolist() == plainly.scores[order].tolist()


def test_judges_on_different_scales_meet_on_0_to_10() -> None:
    judges: dict[str, Evaluator] = {
        "a": ValueEvaluator(model="a", samples=1, reader=NumberLine(-100.0, 100.0)),
        "b": CallbackEvaluator(one_error, scale=ERRORS),
    }
    evaluation = judged(CrossEvaluator(judges=judges), by("a", "b"), lambda call: "50")
    assert evaluation.scale == Scale(0, 10)
    assert evaluation.scores.tolist() == [5, 7.5]


def test_a_debate_and_a_vote_judge_what_they_may_in_the_tasks_own_places() -> None:
    def script(call: Call) -> str:
        properties = (call.schema or {})["properties"]
        if "ranking" in properties:
            return json.dumps({"reasoning": "by vote", "ranking": list(call.info["labels"])})
        said = {
            label: {"comment": f"on {label}", "scores": dict.fromkeys(part["properties"]["scores"]["properties"], 6)}
            for label, part in properties["candidates"]["properties"].items()
        }
        return json.dumps({"overall": "o", "candidates": said})

    judges: dict[str, Evaluator] = {"a": DebateEvaluator(rounds=1), "b": VoteEvaluator(ballots=3, shuffle=False)}
    with Engine(Scripted(script)) as engine:
        evaluation = engine.evaluate(by("a", "b", "a", "b"), CrossEvaluator(judges=judges))
    text = evaluation.to_json()
    again = Evaluation.from_dict(json.loads(text))
    assert again.to_json() == text
    debate, vote = again.members
    assert debate.statuses == ("skipped", "ok", "skipped", "ok")
    assert debate.tensor is not None
    assert np.isnan(debate.tensor[:, :, [0, 2]]).all()
    assert not np.isnan(debate.tensor[:, :, [1, 3]]).any()
    assert {j for turn in debate.transcript for j in turn.labels.values()} == {1, 3}
    assert [sample.ranking for sample in vote.judgments] == [(0, 2)] * 3
    assert vote.scores[[0, 2]].tolist() == [10, 5]
    assert evaluation.scores.tolist() == pytest.approx([10, 6, 5, 6])
    assert "by vote" in again.feedback(0)
    assert "by vote" not in again.feedback(1)
    assert "on A" in again.feedback(1)
    assert "on B" in again.feedback(3)


def test_the_prompt_of_a_judge_shows_nothing_of_its_own_models() -> None:
    asked = Recorder(lambda call: json.dumps({"reasoning": "", "ranking": list(shown(call))}))
    judges: dict[str, Evaluator] = {name: VoteEvaluator(model=name, ballots=2) for name in "ab"}
    judged(CrossEvaluator(judges=judges), by("a", "b", "a", "b"), asked)
    for call in asked.calls:
        assert len(shown(call)) == 2
        assert all(text[-1] != call.model for text in shown(call).values())


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"judges": {}}, "judges"),
        ({"judges": {"a": ValueEvaluator()}}, "judges"),
        ({"rule": "nobody"}, "rule"),
        ({"rule": {"a": "z"}}, "rule"),
        ({"rule": {"a": 5}}, "rule.a"),
        ({"rule": {"a": ["a", "b"]}}, "rule"),
        ({"rule": {"a": []}}, "rule"),
    ],
)
def test_settings_that_cannot_work_are_named(options: dict[str, Any], field: str) -> None:
    told: dict[str, Any] = {"judges": JUDGES, **options}
    with pytest.raises(ConfigError) as refused:
        CrossEvaluator(**told)
    assert refused.value.field == field


def test_what_was_read_out_of_some_candidates_is_none_of_the_others_doing() -> None:
    cells = ((LabelDistribution({"7": 1.0}),), (LabelDistribution({"null": 1.0}),))  # (J, K)
    scores = expectation_of(cells)
    turn = Turn(round=0, agent="a", labels={"A": 1, "B": 0}, scores=scores, distributions=cells, comments=("", ""))
    silent = (SilentReadout(agent="a", scores=scores, distributions=cells),)
    of_two = replace(
        failed("t", "debate", 2, Failure("f", "m")),
        tensor=scores[None, None],
        agents=("a",),
        components=("c",),
        p_best=np.array([1.0, 0.0]),
        before=silent,
        after=silent,
        transcript=Transcript((turn,)),
    )
    wide = scatter_candidates(of_two, [2, 0], 3)
    (said,) = wide.transcript
    assert [why_unscored(said, j, 0) for j in range(3)] == ["abstained", "not_shown", None]
    assert wide.spread is not None
    np.testing.assert_array_equal(wide.spread[0, 0, :, 0], [np.nan, np.nan, 0.0])
    assert wide.p_best is not None
    assert wide.p_best.tolist() == [0.0, 0.0, 1.0]
    for (each,) in (wide.before, wide.after):
        np.testing.assert_array_equal(each.scores[:, 0], [np.nan, np.nan, 7.0])
        assert (each.distributions[2], each.distributions[0]) == cells
    assert abstained_cells(wide) == (1, 2)
