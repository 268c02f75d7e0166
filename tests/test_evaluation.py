"""An evaluation as JSON and back, and in words: feedback on one candidate, and the transcript for another prompt."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from debate.evaluation import Evaluation, failed, share_right
from debate.flow import Completion, Generate
from debate.profiles import Component, MemorySettings, Persona, Profile
from debate.scorers import ERRORS
from debate.scoring.distributions import distribution_of, expectation_of
from debate.scoring.tensor import normalize_tensor
from debate.testing import drive
from debate.types import (
    Failure,
    FloatArray,
    InvalidReply,
    Judgment,
    LabelDistribution,
    Memory,
    Scale,
    SilentReadout,
    Task,
    Transcript,
    Turn,
    Usage,
)
from tests.driving import RUN, Judge, by_text, debate, evaluator, panel, reply, task

PINNED = {
    "task_id", "evaluator", "status", "error", "scale", "scores", "probabilities", "selected", "tied", "tensor",
    "cv", "rounds_run", "stop_reason", "failures", "members", "transcript", "usage", "seconds",
}  # fmt: skip
NAN = math.nan

texts = st.text(st.characters(codec="utf-8"), max_size=8)
scores = st.floats(0, 10) | st.just(NAN)
failures = st.builds(Failure, texts, texts, st.none() | st.integers(0, 9), st.none() | texts)
memories = st.builds(Memory, texts, texts, texts, scores, scores, scores, scores)


@st.composite
def evaluations(draw: st.DrawFn, depth: int = 1) -> Evaluation:
    """Any evaluation of two candidates by two agents on three components, with members of its own."""
    n_rounds = draw(st.integers(1, 2))
    turns = [
        Turn(
            round=r,
            agent=draw(texts),
            labels=draw(st.sampled_from([{"A": 0, "B": 1}, {"B": 1, "A": 0}])),
            scores=draw(arrays(np.float64, (2, 3), elements=scores)),  # (J, K)
            overall=draw(texts),
            comments=draw(st.sampled_from([(), ("one", "two")])),
            failure=draw(st.none() | failures),
            invalid_replies=tuple(draw(st.lists(st.builds(InvalidReply, texts, texts, texts), max_size=2))),
            memories=tuple(draw(st.lists(memories, max_size=2))),
        )
        for r in range(n_rounds)
    ]
    return Evaluation(
        task_id=draw(texts),
        evaluator="debate",
        status=draw(st.sampled_from(["ok", "partial", "failed"])),
        error=draw(st.none() | texts),
        scale=draw(st.sampled_from([Scale(), Scale(0, 1, False)])),
        scores=draw(arrays(np.float64, 2, elements=scores)),  # (J,)
        probabilities=draw(arrays(np.float64, 2, elements=st.floats(0, 1))),  # (J,)
        selected=draw(st.none() | st.integers(0, 1)),
        tied=draw(st.sampled_from([(), (0, 1)])),
        tensor=draw(st.none() | arrays(np.float64, (n_rounds, 2, 2, 3), elements=scores)),
        components=("c0", "c1", "c2"),
        agents=("a", "b"),
        cv=tuple(draw(st.lists(scores, max_size=2))),
        rounds_run=n_rounds,
        stop_reason=draw(st.sampled_from([None, "converged", "max_rounds", "token_budget", "failed"])),
        failures=tuple(draw(st.lists(failures, max_size=2))),
        members=tuple(draw(st.lists(evaluations(depth - 1), max_size=2))) if depth else (),
        order_agreement=draw(st.none() | st.booleans()),
        transcript=Transcript(tuple(turns)),
        usage=Usage(*draw(st.tuples(*[st.integers(0, 99)] * 4))),
        seconds=draw(st.floats(0, 1e6)),
    )


def there_and_back(evaluation: Evaluation) -> Evaluation:
    return Evaluation.from_dict(json.loads(evaluation.to_json()))


@settings(deadline=None, max_examples=80)
@given(evaluations())
def test_every_evaluation_survives_json(evaluation: Evaluation) -> None:
    back = there_and_back(evaluation)
    assert back.to_json() == evaluation.to_json()
    np.testing.assert_array_equal(back.scores, evaluation.scores)
    assert (back.tensor is None) is (evaluation.tensor is None)
    if evaluation.tensor is not None and back.tensor is not None:
        np.testing.assert_array_equal(back.tensor, evaluation.tensor)
    assert [list(turn.labels.items()) for turn in back.transcript] == [
        list(turn.labels.items()) for turn in evaluation.transcript
    ]
    assert (back.failures, back.usage, back.scale, back.tied) == (
        evaluation.failures, evaluation.usage, evaluation.scale, evaluation.tied,
    )  # fmt: skip
    assert [turn.invalid_replies for turn in back.transcript] == [
        turn.invalid_replies for turn in evaluation.transcript
    ]


def eventful(order: str) -> Evaluation:
    """A debate with an unreadable reply, a failed turn and memories."""
    personas = (Persona("agent0", "r", memory=MemorySettings()), *panel(3).personas[1:])

    def answer(call: Generate) -> str | Completion | Failure:
        if call.info["agent"] == "agent1":
            return Failure("context_length", "too long") if call.info["round"] else "nonsense"
        return reply(call, by_text)

    settings_ = evaluator(Profile("p", personas, panel().components), rounds=2, retries=1, candidate_order=order)
    return debate(settings_, answer, recall=lambda request: [Memory("m", relevance=0.5)])


@pytest.mark.parametrize("order", ["fixed", "shuffle", "rotate", "balanced"])
def test_a_real_debate_survives_json(order: str) -> None:
    evaluation = eventful(order)
    back = there_and_back(evaluation)
    assert (evaluation.status, len(evaluation.failures)) == ("partial", 4 if order == "balanced" else 2)
    assert back.to_json() == evaluation.to_json()
    assert [back.feedback(j) for j in range(3)] == [evaluation.feedback(j) for j in range(3)]
    assert back.chain_of_thought() == evaluation.chain_of_thought() != ""


def test_the_pinned_keys_are_there_in_their_spelling() -> None:
    data = json.loads(eventful("balanced").to_json())
    for each in (data, *data["members"]):
        assert set(each) >= PINNED
        assert list(each["scale"]) == ["low", "high", "higher_is_better"]
        assert set(each["usage"]) >= {"prompt_tokens", "cached_tokens", "completion_tokens", "calls"}


def test_unscored_is_null_in_json_and_nan_again_after_it() -> None:
    data: Any = json.loads(eventful("fixed").to_json())
    assert data["tensor"][0][1] == [[None, None]] * 3
    assert data["transcript"][1]["scores"] == [[None, None]] * 3
    assert data["transcript"][0]["memories"][0]["score"] is None
    back = Evaluation.from_dict(data)
    assert back.tensor is not None and np.isnan(back.tensor[0, 1]).all()
    assert back.tensor.dtype == np.float64


def test_json_is_one_line_of_valid_unicode_whatever_a_model_wrote() -> None:
    broken = 'half \ud83d a pair\nand "a line" \u2028 é'
    evaluation = debate(evaluator(panel(1), rounds=1, retries=0), lambda call: broken)
    line = evaluation.to_json()
    assert "\n" not in line
    assert "é" in line
    line.encode("utf-8")
    assert there_and_back(evaluation).transcript.turns[0].invalid_replies[0].text == broken


def test_an_unknown_key_is_an_error() -> None:
    data = debate(evaluator(rounds=1), Judge(by_text)).to_dict()
    with pytest.raises(ValueError, match="colour"):
        Evaluation.from_dict({**data, "colour": "red"})


def test_plain_data_holds_no_arrays_or_objects() -> None:
    def check(value: Any) -> None:
        assert type(value) in (dict, list, str, int, float, bool, type(None)), type(value)
        for item in [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []:  # pyright: ignore[reportUnknownVariableType]
            check(item)

    check(eventful("balanced").to_dict())


def test_a_failed_evaluation_scores_nobody() -> None:
    evaluation = failed("t", "value", 2, Failure("dead", "no backend"), Scale(1, 5))
    assert (evaluation.status, evaluation.error, evaluation.selected) == ("failed", "no backend", None)
    assert (np.isnan(evaluation.scores).all(), evaluation.probabilities.tolist()) == (True, [0.0, 0.0])
    assert (evaluation.scale, evaluation.stop_reason) == (Scale(1, 5), "failed")
    assert there_and_back(evaluation).to_json() == evaluation.to_json()


def test_the_best_are_kept_in_the_direction_of_the_scale_and_ties_at_the_cut_are_told() -> None:
    def sorted_on(scale: Scale) -> Evaluation:
        failure = Failure("unscored", "no reply")
        return replace(failed("t", "callback", 4, failure, scale), scores=np.array([2.0, np.nan, 0.0, 2.0]))

    errors, value = sorted_on(ERRORS), sorted_on(Scale())
    assert errors.keep_best(2) == [2, 0]
    assert value.keep_best(2) == [0, 3]
    assert errors.tied_at_cut(2) == [0, 3]
    assert value.tied_at_cut(2) == []


# ---- in words

SCORES = {"tone": 8.0, "truth": 2.0, "detail": 5.0}
PROFILE = Profile("p", (Persona("agent0", "r"), Persona("agent1", "r")), tuple(Component(name, "d") for name in SCORES))


def judged(**told: Any) -> Evaluation:
    """agent1 scores everything half a point higher than agent0, and text 1 a quarter higher than text 0."""

    def score(call: Generate, text: str, component: str) -> float:
        return SCORES[component] + (call.info["agent"] == "agent1") * 0.5 + (text == "text 1") * 0.25

    return debate(evaluator(PROFILE, **{"rounds": 1, **told}), Judge(score), task(2))


def spoken(*turns: dict[str, Any], n_candidates: int = 2) -> Evaluation:
    """An evaluation of these turns, all of 5 points a candidate on one component."""
    taken = [
        Turn(
            round=turn.get("round", 0),
            agent=turn.get("agent", "a"),
            labels=turn.get("labels", {"A": 0, "B": 1}),
            scores=np.full((n_candidates, 1), turn.get("score", 5.0)),  # (J, K)
            overall=turn.get("overall", ""),
            comments=turn.get("comments", ("",) * n_candidates),
            failure=turn.get("failure"),
        )
        for turn in turns
    ]
    return Evaluation(
        task_id="t", evaluator="debate", status="ok", scores=np.full(n_candidates, 5.0),
        probabilities=np.full(n_candidates, 1 / n_candidates), selected=0, components=("c",), agents=("a",),
        rounds_run=1 + max(turn.round for turn in taken), transcript=Transcript(tuple(taken)),
    )  # fmt: skip


# Feedback


def test_feedback_names_the_worst_component_first_with_every_agents_score() -> None:
    lines = judged().feedback(0).splitlines()
    assert lines[1:4] == [
        "truth 2.2 (agent0 2, agent1 2.5)",
        "detail 5.2 (agent0 5, agent1 5.5)",
        "tone 8.2 (agent0 8, agent1 8.5)",
    ]


def test_feedback_begins_with_the_score_and_the_rank() -> None:
    evaluation = judged()
    assert evaluation.feedback(0).splitlines()[0] == "Candidate 1 of 2: 5.25 on a scale of 0 to 10, rank 2."
    assert evaluation.feedback(1).splitlines()[0] == "Candidate 2 of 2: 5.50 on a scale of 0 to 10, rank 1."


def test_feedback_states_the_highest_score_that_there_can_be() -> None:
    article = judged(method="article", weights=[1, 0.5, 0.5])
    assert article.feedback(1).splitlines()[0] == "Candidate 2 of 2: 4.17 on a scale of 0 to 6.67, rank 1."
    mk1 = judged(method="mk1", weights=[1, 0.5, 0.5])
    assert mk1.feedback(1).splitlines()[0] == "Candidate 2 of 2: 12.50 on a scale of 0 to 20, rank 1."


def test_feedback_ranks_as_the_selection_does_where_scores_tie_within_rounding() -> None:
    evaluation = replace(spoken({}), scores=np.array([0.3, 0.1 + 0.2]))
    assert evaluation.ranks() == [1, 1]
    assert [evaluation.feedback(j).splitlines()[0][-7:] for j in (0, 1)] == ["rank 1."] * 2


def test_where_less_is_better_the_lowest_score_ranks_first() -> None:
    evaluation = replace(judged(), scale=Scale(0, 10, higher_is_better=False))
    assert [evaluation.feedback(j).splitlines()[0][-7:] for j in (0, 1)] == ["rank 1.", "rank 2."]


def test_feedback_ends_with_each_agents_newest_comment_the_severest_first() -> None:
    lines = judged(rounds=3).feedback(1).splitlines()
    assert lines[4:] == ["- agent0: agent0 on text 1 in 2", "- agent1: agent1 on text 1 in 2"]
    severe = spoken(
        {"agent": "kind", "score": 9.0, "comments": ("good", "")},
        {"agent": "stern", "score": 1.0, "comments": ("bad", "")},
    )
    assert severe.feedback(0).splitlines()[1:] == ["- stern: bad", "- kind: good"]


def test_a_candidate_that_was_not_scored_is_told_so_and_why() -> None:
    evaluation = debate(evaluator(rounds=1, retries=0), lambda call: "nonsense")
    assert evaluation.feedback(0).startswith(
        "Candidate 1 was not scored: 2 of 2 turns failed; the first (agent0, round 1)"
    )
    assert (
        failed("t", "value", 3, Failure("dead", "no backend")).feedback(2) == "Candidate 3 was not scored: no backend."
    )


def test_feedback_leaves_out_a_turn_that_failed() -> None:
    def answer(call: Generate) -> str:
        return "nonsense" if call.info["agent"] == "agent1" else reply(call, by_text)

    told = debate(evaluator(panel(3), rounds=1, retries=0), answer).feedback(1)
    assert "agent1" not in told
    assert "c0 1.2 (agent0 1, agent2 1.5)" in told


@pytest.mark.parametrize("j", [-1, 2, 99])
def test_there_is_no_feedback_on_a_candidate_that_is_not_there(j: int) -> None:
    with pytest.raises(IndexError, match=f"no candidate {j}: the task has 2"):
        judged().feedback(j)


def test_balanced_feedback_holds_what_both_orders_said() -> None:
    told = judged(candidate_order="balanced").feedback(0)
    assert told.count("tone 8.2 (agent0 8, agent1 8.5)") == 2
    assert told.count("- agent0: agent0 on text 0 in 0") == 1
    assert told.count("Candidate 1 of 2") == 1


def test_feedback_without_scores_is_the_words_alone() -> None:
    assert judged().feedback(1, scores=False) == "- agent0: agent0 on text 1 in 0\n- agent1: agent1 on text 1 in 0"
    nobody = debate(evaluator(rounds=1, retries=0), lambda call: "nonsense").feedback(0, scores=False)
    assert nobody.startswith("Candidate 1 was not scored: ")
    with pytest.raises(IndexError, match="no candidate 2"):
        judged().feedback(2, scores=False)


def test_feedback_says_what_agents_said_alike_once_with_all_names() -> None:
    said = [("stern", 1.0, "dull"), ("fair", 4.0, "long"), ("kind", 9.0, "dull"), ("calm", 9.5, "")]
    told = spoken(*[{"agent": who, "score": score, "comments": (text, "")} for who, score, text in said])
    assert told.feedback(0, scores=False).splitlines() == ["- stern, kind: dull", "- fair: long"]


def test_feedback_says_equal_replies_of_a_judge_once() -> None:
    replies = [(2.0, "dull"), (7.0, "lively"), (3.0, "dull"), (3.0, "dull")]
    samples = [Judgment(candidates=(0,), sample=n, value=value, text=text) for n, (value, text) in enumerate(replies)]
    told = replace(failed("t", "value", 1, Failure("f", "m")), judgments=tuple(samples), scores=np.array([3.75]))
    assert told.feedback(0).splitlines()[1:] == [
        "- value, candidate 1: 2, value, candidate 1: 3", "  dull", "- value, candidate 1: 7", "  lively",
    ]  # fmt: skip
    assert told.feedback(0, scores=False) == "- value, candidate 1\n  dull\n- value, candidate 1\n  lively"
    assert told.chain_of_thought(scores=False).split("\n\n") == [
        "value, candidate 1\n  dull", "value, candidate 1\n  lively", *["value, candidate 1\n  the same as before"] * 2,
    ]  # fmt: skip


@pytest.mark.parametrize("order", ["shuffle", "balanced"])
def test_the_means_by_component_come_to_the_scores(order: str) -> None:
    weights = [1.0, 0.5, 0.25]
    evaluation = judged(rounds=2, candidate_order=order, weights=weights)
    means = evaluation.by_component
    assert means is not None
    assert means.shape == (2, 3)
    np.testing.assert_allclose(means @ weights / sum(weights), evaluation.scores)


@settings(deadline=None, max_examples=60)
@given(
    arrays(np.float64, (2, 3, 2, 2), elements=st.integers(0, 10).map(float) | st.just(NAN)),
    st.integers(1, 3),
)
def test_the_means_by_component_are_missing_where_the_scores_are(tensor: FloatArray, quorum: int) -> None:
    weights = np.array([1.0, 0.5])
    counted = normalize_tensor(tensor, weights, "weighted_mean", quorum)
    means = replace(judged(), tensor=tensor, scores=counted).by_component
    assert means is not None
    np.testing.assert_array_equal(np.isnan(means), np.isnan(counted)[:, None] | np.zeros((1, 2), dtype=bool))
    if quorum == 2:  # more than half
        np.testing.assert_allclose(means @ weights / weights.sum(), counted)


def test_evaluators_without_components_have_no_means_by_component() -> None:
    alone = failed("t", "value", 2, Failure("f", "m"))
    assert alone.by_component is None
    assert replace(alone, evaluator="panel", members=(judged(), alone)).by_component is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Candidate A beats candidate B.", "Candidate 2 beats candidate 1."),
        ("response A, answer B", "response 2, answer 1"),
        ("A is a letter; so is candidate C", "A is a letter; so is candidate C"),
        ("Candidate AB", "Candidate AB"),
    ],
)
def test_labels_become_numbers_because_they_mean_nothing_outside_the_debate(said: str, told: str) -> None:
    evaluation = spoken({"labels": {"A": 1, "B": 0}, "comments": (said, ""), "overall": said})
    assert f"- a: {told}" in evaluation.feedback(0).splitlines()
    assert evaluation.chain_of_thought().startswith(f"a (round 1): {told}\n- Candidate 1: {told}")


def test_feedback_on_a_candidate_does_not_depend_on_the_order_shown() -> None:
    told = {judged(candidate_order=order).feedback(1) for order in ("fixed", "shuffle", "rotate")}
    assert len(told) == 1


# Feedback and chain of thought on scores that were read out, and on those that nobody gave

SURE, UNSURE = LabelDistribution({"6": 1.0}), LabelDistribution({"2": 0.5, "8": 0.5})
ABSTAINED = LabelDistribution({"null": 0.75, "3": 0.25})


def read_out(*cells: Sequence[LabelDistribution], **told: Any) -> Evaluation:
    """A round of one turn per entry on one component, of as many candidates as an entry has cells."""
    n = len(cells[0])
    turns = [
        Turn(
            round=0,
            agent=f"agent{i}",
            labels={"A": 0, "B": 1},
            scores=expectation_of([[cell] for cell in its]),
            distributions=tuple((cell,) for cell in its),
            overall=f"overall {i}",
            comments=tuple(f"comment {i}" for _ in its),
        )
        for i, its in enumerate(cells)
    ]
    tensor = np.array([[turn.scores for turn in turns]])  # (R, I, J, K)
    scored = ~np.isnan(tensor)
    with np.errstate(invalid="ignore"):
        scores = np.where(scored, tensor, 0).sum(axis=(0, 1, 3)) / scored.sum(axis=(0, 1, 3))
    return replace(
        spoken({}, n_candidates=n),
        scores=scores,
        tensor=tensor,
        agents=tuple(turn.agent for turn in turns),
        transcript=Transcript(tuple(turns)),
        **told,
    )


def test_feedback_says_how_unsure_the_agents_are_and_how_far_apart() -> None:
    evaluation = read_out((SURE, UNSURE), (UNSURE, UNSURE))
    assert evaluation.feedback(1).splitlines()[1] == "c 5.0 ± 3.0 (agent0 5.0, agent1 5.0)"
    pooled = np.std([6.0, 6.0, 2.0, 8.0])
    assert evaluation.feedback(0).splitlines()[1] == f"c 5.5 ± {pooled:.1f} (agent0 6.0, agent1 5.0)"


@given(st.lists(st.dictionaries(st.integers(0, 10).map(str), st.floats(0.1, 1), min_size=1), min_size=1, max_size=4))
def test_the_doubt_in_feedback_is_the_standard_deviation_of_the_pooled_distributions(
    raw: list[dict[str, float]],
) -> None:
    cells = [distribution_of({label: p / sum(each.values()) for label, p in each.items()}) for each in raw]
    labels = [float(label) for cell in cells for label in cell.probabilities]
    weights = [p / len(cells) for cell in cells for p in cell.probabilities.values()]
    mean = np.average(labels, weights=weights)
    pooled = math.sqrt(np.average((np.array(labels) - mean) ** 2, weights=weights))
    told = read_out(*[(cell,) for cell in cells]).feedback(0).splitlines()[1]
    found = re.match(r"c (\S+) ± (\S+) ", told)
    assert found is not None
    assert [float(number) for number in found.groups()] == pytest.approx([mean, pooled], abs=0.0501)


def test_feedback_says_how_likely_a_candidate_is_the_best() -> None:
    told = read_out((SURE, UNSURE), p_best=np.array([0.826, 0.174])).feedback(0).splitlines()[0]
    assert told == "Candidate 1 of 2: 6.00 on a scale of 0 to 10, rank 1, the best with probability 0.83."


def test_who_abstained_is_told_and_their_comments_come_last() -> None:
    lines = read_out((ABSTAINED, SURE), (SURE, SURE)).feedback(0).splitlines()
    assert lines[1:] == ["c 6.0 ± 0.0 (agent0 abstained, agent1 6.0)", "- agent1: comment 1", "- agent0: comment 0"]


def test_a_candidate_from_which_everybody_abstained_is_told_so_with_what_they_said() -> None:
    evaluation = read_out((ABSTAINED, SURE), (ABSTAINED, ABSTAINED))
    assert evaluation.feedback(0).splitlines() == [
        "Candidate 1 was not scored: every agent abstained.",
        "c has no score (agent0 abstained, agent1 abstained)",
        "- agent0: comment 0",
        "- agent1: comment 1",
    ]
    too_few = replace(evaluation, scores=np.full(2, NAN)).feedback(1)
    assert too_few.startswith("Candidate 2 was not scored: too many agents abstained.")


def test_an_agent_that_abstained_from_all_is_heard_by_what_it_said_of_all() -> None:
    evaluation = read_out((ABSTAINED, ABSTAINED), (SURE, SURE))
    silent = replace(evaluation.transcript.turns[0], comments=("", ""))
    told = replace(evaluation, transcript=Transcript((silent, *evaluation.transcript.turns[1:])))
    assert told.feedback(1).splitlines()[-2:] == ["- agent1: comment 1", "- agent0: overall 0"]


def test_what_talking_changed_is_told_over_the_cells_that_were_read_both_times() -> None:
    before = (SilentReadout(agent="agent0", scores=np.array([[4.0], [NAN]])),)
    after = (SilentReadout(agent="agent0", scores=np.array([[7.0], [8.0]])),)
    evaluation = read_out((SURE, SURE), before=before, after=after)
    assert "mean score without a comment: 4.0 before the debate, 7.0 after it" in evaluation.feedback(0).splitlines()
    assert "without a comment" not in evaluation.feedback(1)


def test_nothing_is_told_as_nan() -> None:
    evaluation = read_out((ABSTAINED, SURE), (UNSURE, ABSTAINED))
    text = evaluation.chain_of_thought()
    assert text.splitlines()[1:3] == ["- Candidate 1: comment 0 (c no score)", "- Candidate 2: comment 0 (c 6.0)"]
    assert "nan" not in text + evaluation.feedback(0) + evaluation.feedback(1)


# Chain of thought


@pytest.mark.parametrize(
    ("selected", "tied", "best", "verdict"),
    [
        (1, (), [1], "right"),
        (1, (), [0, 1], "right"),
        (1, (), [0], "wrong"),
        (0, (0, 1), [0], "tied"),
        (0, (0, 1), [1], "tied"),
        (0, (0, 1), [2], "tied"),
        (0, (0, 1), [0, 1], "right"),
        (0, (0, 1), [0, 1, 2], "right"),
        (2, (0, 1), [2], "right"),  # drawn by its probability, outside the tie for the best score
        (2, (0, 1), [0], "wrong"),
        (None, (), [0], "unscored"),
        (0, (), [], None),
        (None, (), [], None),
    ],
)
def test_a_choice_is_right_when_all_of_it_is(
    selected: int | None, tied: tuple[int, ...], best: list[int], verdict: str | None
) -> None:
    found = replace(judged(), selected=selected, tied=tied)
    assert found.verdict(best) == verdict
    assert found.choice == (() if selected is None else tied if selected in tied else (selected,))


def test_of_a_tie_each_candidate_has_its_share() -> None:
    assert share_right((2,), (2,)) == 1
    assert share_right((0, 1, 2, 3), (2,)) == 0.25
    assert share_right((0, 1), (2,)) == share_right((), (2,)) == 0
    assert math.isnan(share_right((1,), ()))


def test_a_chain_of_thought_is_every_turn_in_order() -> None:
    parts = judged(rounds=2).chain_of_thought().split("\n\n")
    assert [part.splitlines()[0] for part in parts] == [
        "agent0 (round 1): said:agent0:0",
        "agent1 (round 1): said:agent1:0",
        "agent0 (round 2): said:agent0:1",
        "agent1 (round 2): said:agent1:1",
    ]
    assert parts[3].splitlines()[1:] == [
        "- Candidate 1: agent1 on text 0 in 1 (tone 8.5, truth 2.5, detail 5.5)",
        "- Candidate 2: agent1 on text 1 in 1 (tone 8.75, truth 2.75, detail 5.75)",
    ]


@pytest.mark.parametrize(("rounds", "first"), [(None, 0), (1, 2), (2, 1), (3, 0), (9, 0)])
def test_only_the_last_rounds_can_be_asked_for(rounds: int | None, first: int) -> None:
    text = judged(rounds=3).chain_of_thought(rounds=rounds)
    assert [f"said:agent0:{r}" in text for r in range(3)] == [r >= first for r in range(3)]
    assert judged(rounds=3).chain_of_thought(rounds=0) == ""


def test_the_scores_can_be_left_out() -> None:
    text = judged().chain_of_thought(scores=False)
    assert "- Candidate 1: agent0 on text 0 in 0\n" in text
    assert "(tone" not in text


def test_the_oldest_turns_are_dropped_until_the_text_fits() -> None:
    evaluation = judged(rounds=3)
    whole = evaluation.chain_of_thought()
    parts = whole.split("\n\n")
    assert evaluation.chain_of_thought(max_characters=len(whole)) == whole
    assert evaluation.chain_of_thought(max_characters=len(whole) - 1) == "\n\n".join(parts[1:])
    for limit in range(1, len(whole), 37):
        text = evaluation.chain_of_thought(max_characters=limit)
        assert len(text) <= limit
        assert whole.endswith(text) or parts[-1].startswith(text)


def test_a_chain_of_thought_says_the_same_words_once() -> None:
    said = {"overall": "One is better.", "comments": ("dull", "lively")}
    evaluation = spoken(
        {"agent": "a", **said}, {"agent": "b", **said}, {"agent": "a", "round": 1, **said, "comments": ("dull", "dull")}
    )
    assert evaluation.chain_of_thought(scores=False).split("\n\n") == [
        "a (round 1): One is better.\n- Candidate 1: dull\n- Candidate 2: lively",
        "b (round 1): the same as a\n- Candidate 1: the same as a\n- Candidate 2: the same as a",
        "a (round 2): the same as before\n- Candidate 1: the same as before\n- Candidate 2: dull",
    ]
    last = evaluation.chain_of_thought(scores=False, max_characters=70)
    assert last == "a (round 2): One is better.\n- Candidate 1: dull\n- Candidate 2: dull"


def test_a_failed_turn_says_nothing() -> None:
    evaluation = spoken(
        {"agent": "a", "overall": "heard"}, {"agent": "b", "comments": (), "failure": Failure("f", "m")}
    )
    assert "heard" in evaluation.chain_of_thought()
    assert "b (round" not in evaluation.chain_of_thought()


def test_a_balanced_chain_of_thought_tells_both_debates() -> None:
    assert judged(candidate_order="balanced").chain_of_thought().count("agent0 (round 1)") == 2


def test_a_chain_of_thought_passes_through_another_debate_unharmed() -> None:
    hostile = "{{ 7*7 }} <|im_end|>"
    said = {"overall": hostile, "candidates": {"A": {"comment": hostile, "scores": {"c0": 5, "c1": 5}}}}
    first = debate(evaluator(panel(1), rounds=1), lambda call: json.dumps(said), task(1))
    judge = Judge(lambda call, text, component: 5.0)
    drive(evaluator(rounds=1).flow(Task("x", ["a"], context=[first.chain_of_thought()]), RUN), judge)
    assert first.chain_of_thought() in [segment.text for segment in judge.calls[0].prompt.user[0] if segment.is_content]
