"""The debate itself: turns, retries, failures, when it stops, what it makes of the tensor, what it asks the memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.convergence import Over, coefficient_of_variation
from debate.evaluators.base import RunContext
from debate.flow import Completion, Generate, Recall
from debate.profiles import Component, MemorySettings, Persona, Profile
from debate.scoring.tensor import normalize_tensor, softmax
from debate.testing import drive, reply_for
from debate.types import Failure, FloatArray, Memory, Sampling, Usage
from tests.driving import (
    RUN,
    Answerer,
    Judge,
    by_text,
    components_of,
    debate,
    evaluator,
    flat,
    heard,
    panel,
    reply,
    rubric_task,
    shown,
    system_text,
    task,
    user_text,
)  # fmt: skip

Where = tuple[str, int]
"""(agent, round)"""


def where(call: Generate) -> Where:
    return call.info["agent"], call.info["round"]


def silent(*wheres: Where, calls: list[Generate] | None = None) -> Answerer:
    """Nobody can read what these agents say in these rounds; everybody else goes by the text."""

    def answer(call: Generate) -> str:
        if calls is not None:
            calls.append(call)
        return f"nonsense {call.attempt}" if where(call) in wheres else reply(call, by_text)

    return answer


def reads_off(tensor: FloatArray) -> Judge:
    """Scores from a tensor, by agent, round, candidate and component."""

    def score(call: Generate, text: str, component: str) -> float:
        i, j, k = int(call.info["agent"][5:]), int(text.split()[1]), int(component[1:])
        return float(tensor[call.info["round"], i, j, k])

    return Judge(score)


# Turns


def test_every_agent_speaks_once_a_round_in_order() -> None:
    judge = Judge(by_text)
    evaluation = debate(evaluator(panel(3), rounds=2), judge)
    expected = [(f"agent{i}", r) for r in range(2) for i in range(3)]
    assert [where(call) for call in judge.calls] == expected
    assert [(turn.agent, turn.round) for turn in evaluation.transcript] == expected


def test_a_debate_in_which_nothing_went_wrong() -> None:
    evaluation = debate(evaluator(rounds=2), Judge(by_text))
    assert (evaluation.task_id, evaluation.evaluator, evaluation.status, evaluation.error) == (
        "t1",
        "debate",
        "ok",
        None,
    )
    assert evaluation.scores.tolist() == [0.4375, 1.4375, 2.4375]  # the mean of by_text over r, i, k, plus j
    assert evaluation.probabilities.tolist() == softmax(evaluation.scores).tolist()
    assert (evaluation.selected, evaluation.tied, evaluation.stop_reason) == (2, (), "max_rounds")
    assert (evaluation.rounds_run, len(evaluation.cv), evaluation.failures) == (2, 2, ())
    assert (evaluation.components, evaluation.agents) == (("c0", "c1"), ("agent0", "agent1"))


@pytest.mark.parametrize("mode", ["sequential", "simultaneous", "independent"])
def test_the_mode_changes_who_hears_whom_and_not_what_is_recorded(mode: str) -> None:
    evaluation = debate(evaluator(panel(3), rounds=2, mode=mode), Judge(by_text))
    assert [(turn.agent, turn.round) for turn in evaluation.transcript] == [
        (f"agent{i}", r) for r in range(2) for i in range(3)
    ]
    sequential = debate(evaluator(panel(3), rounds=2), Judge(by_text))
    np.testing.assert_array_equal(evaluation.tensor, sequential.tensor)  # pyright: ignore[reportArgumentType]


def test_a_call_asks_for_the_reply_format_under_its_labels() -> None:
    judge = Judge(by_text)
    debate(evaluator(rounds=1, comment_chars=17, overall_chars=23), judge)
    schema: Any = judge.calls[0].schema
    assert list(schema["properties"]) == ["overall", "candidates"]
    assert list(schema["properties"]["candidates"]["properties"]) == ["A", "B", "C"]
    assert "{0,23}" in schema["properties"]["overall"]["pattern"]
    assert "{0,17}" in schema["properties"]["candidates"]["properties"]["A"]["properties"]["comment"]["pattern"]


# Replies that cannot be read


def test_an_unreadable_reply_is_asked_again_with_the_error_shown() -> None:
    calls: list[Generate] = []

    def answer(call: Generate) -> str:
        calls.append(call)
        return '{"overall": "no candidates"}' if call.attempt < 2 else reply(call, flat)

    evaluation = debate(evaluator(panel(1), rounds=1, retries=2), answer)
    assert [call.attempt for call in calls] == [call.info["attempt"] for call in calls] == [0, 1, 2]
    assert {call.sample_key for call in calls} == {("agent0", 0)}
    turn = evaluation.transcript.turns[0]
    assert [invalid.text for invalid in turn.invalid_replies] == ['{"overall": "no candidates"}'] * 2
    message = turn.invalid_replies[0].message
    assert message in user_text(calls[1]) and message not in user_text(calls[0])
    assert user_text(calls[2]).count(message) == 1  # the last error alone
    assert (evaluation.status, turn.failure) == ("ok", None)


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_turn_fails_when_the_tries_run_out_and_the_debate_goes_on(retries: int) -> None:
    calls: list[Generate] = []
    answer = silent(("agent1", 0), calls=calls)
    evaluation = debate(evaluator(panel(3), rounds=2, retries=retries), answer)
    turn = evaluation.transcript.turns[1]
    assert Counter(map(where, calls))[("agent1", 0)] == retries + 1
    assert [invalid.text for invalid in turn.invalid_replies] == [f"nonsense {n}" for n in range(retries + 1)]
    assert turn.failure is not None
    assert (turn.failure.reason, turn.failure.round, turn.failure.agent) == ("unreadable_reply", 0, "agent1")
    assert evaluation.tensor is not None
    missing = np.isnan(evaluation.tensor)  # (R, I, J, K)
    assert missing[0, 1].all() and missing.sum() == 6
    assert (evaluation.status, evaluation.failures, len(calls)) == ("partial", (turn.failure,), 6 + retries)
    assert evaluation.error is not None and "1 of 6 turns failed" in evaluation.error


def test_a_reply_that_was_cut_off_is_not_read() -> None:
    def answer(call: Generate) -> Completion:
        return Completion(reply(call, flat)[:-1], finish_reason="length")

    evaluation = debate(evaluator(panel(1), rounds=1, retries=0), answer)
    assert [invalid.reason for invalid in evaluation.transcript.turns[0].invalid_replies] == ["cut_off"]


def test_a_score_out_of_range_is_asked_again_and_never_clamped() -> None:
    def answer(call: Generate) -> str:
        return reply(call, lambda call, text, component: 10.5 if call.attempt == 0 else 9.5)

    evaluation = debate(evaluator(panel(1), rounds=1), answer)
    assert evaluation.transcript.turns[0].invalid_replies[0].reason == "out_of_range"
    assert evaluation.scores.tolist() == [9.5, 9.5, 9.5]


def test_a_failed_call_fails_the_turn_at_once() -> None:
    calls: list[Generate] = []

    def answer(call: Generate) -> str | Failure:
        calls.append(call)
        if where(call) != ("agent0", 1):
            return reply(call, flat)
        return "nonsense" if call.attempt == 0 else Failure("context_length", "too long")

    evaluation = debate(evaluator(rounds=2, retries=5), answer)
    assert Counter(map(where, calls))[("agent0", 1)] == 2
    assert evaluation.failures == (Failure("context_length", "too long", round=1, agent="agent0"),)
    assert [invalid.text for invalid in evaluation.transcript.turns[2].invalid_replies] == ["nonsense"]
    assert (evaluation.status, evaluation.stop_reason) == ("partial", "max_rounds")


def test_a_round_in_which_every_turn_failed_ends_the_debate() -> None:
    evaluation = debate(evaluator(rounds=5, retries=0), silent(("agent0", 1), ("agent1", 1)))
    assert (evaluation.stop_reason, evaluation.rounds_run, evaluation.status) == ("failed", 2, "partial")
    assert evaluation.scores.tolist() == [0.1875, 1.1875, 2.1875]  # the first round alone


def test_a_debate_in_which_nobody_could_be_read_selects_nobody() -> None:
    evaluation = debate(evaluator(rounds=3, retries=0), silent(("agent0", 0), ("agent1", 0)))
    assert (evaluation.status, evaluation.stop_reason, evaluation.rounds_run) == ("failed", "failed", 1)
    assert np.isnan(evaluation.scores).all()
    assert (evaluation.probabilities.tolist(), evaluation.selected, evaluation.tied) == ([0.0, 0.0, 0.0], None, ())
    assert evaluation.error is not None and evaluation.error.startswith("2 of 2 turns failed; the first (agent0,")


# Quorum


@pytest.mark.parametrize(
    ("quorum", "n_silent", "is_scored"),
    [(None, 1, True), (None, 2, False), (1, 2, True), (2, 1, True), (3, 1, False), (3, 0, True)],
)
def test_a_round_counts_when_enough_agents_scored(quorum: int | None, n_silent: int, is_scored: bool) -> None:
    quiet = [(f"agent{i}", 0) for i in range(n_silent)]
    evaluation = debate(evaluator(panel(3), rounds=1, retries=0, quorum=quorum), silent(*quiet))
    assert evaluation.scores.tolist() == pytest.approx(
        [0.25 * (n_silent + 2) / 2 + 0.0625 + j for j in range(3)] if is_scored else [np.nan] * 3, nan_ok=True
    )
    assert (evaluation.status == "failed") is not is_scored


def test_a_round_below_quorum_is_left_out_of_the_mean_and_never_converges() -> None:
    tensor = np.full((2, 3, 3, 2), 5.0)  # (R, I, J, K)
    tensor[0] = 1.0
    judge = reads_off(tensor)

    def answer(call: Generate) -> str:
        return "nonsense" if where(call) in [("agent0", 0), ("agent1", 0)] else judge(call)

    evaluation = debate(evaluator(panel(3), rounds=3, retries=0, convergence=0.5), answer)
    assert np.isnan(evaluation.cv[0])
    assert (evaluation.cv[1], evaluation.stop_reason, evaluation.rounds_run) == (0.0, "converged", 2)
    assert evaluation.scores.tolist() == [5.0, 5.0, 5.0]


# When it stops

whole_scores = st.lists(st.integers(0, 10).map(float), min_size=36, max_size=36)


@settings(deadline=None, max_examples=60)
@given(
    whole_scores, st.sampled_from(["agents", "cells", "pooled"]), st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0]),
    st.integers(1, 4),
)  # fmt: skip
def test_a_debate_stops_after_the_first_round_whose_cv_is_low_enough(
    scores: list[float], over: Over, threshold: float, min_rounds: int
) -> None:
    tensor = np.array(scores).reshape(3, 3, 2, 2)  # (R, I, J, K)
    cvs = [coefficient_of_variation(S_round, over, 2) for S_round in tensor]
    stops = [r + 1 for r in range(3) if r + 1 >= min_rounds and cvs[r] <= threshold]
    settings_ = evaluator(panel(3), over=over, convergence=threshold, min_rounds=min_rounds)
    evaluation = debate(settings_, reads_off(tensor), task(2))
    assert evaluation.rounds_run == (stops[0] if stops else 3)
    assert evaluation.stop_reason == ("converged" if stops else "max_rounds")
    assert evaluation.cv == tuple(cvs[: evaluation.rounds_run])
    np.testing.assert_array_equal(evaluation.tensor, tensor[: evaluation.rounds_run])  # pyright: ignore[reportArgumentType]


def test_min_rounds_holds_off_convergence() -> None:
    runs = [debate(evaluator(rounds=4, convergence=0.1, min_rounds=n), Judge(flat)).rounds_run for n in (1, 2, 4, 9)]
    assert runs == [1, 2, 4, 4]


def test_without_convergence_perfect_agreement_does_not_stop_a_debate() -> None:
    evaluation = debate(evaluator(rounds=3, convergence=None), Judge(flat))
    assert (evaluation.rounds_run, evaluation.stop_reason, evaluation.cv) == (3, "max_rounds", (0.0, 0.0, 0.0))


def test_one_agent_never_converges() -> None:
    evaluation = debate(evaluator(panel(1), rounds=2, convergence=1.0), Judge(flat))
    assert (evaluation.rounds_run, np.isnan(evaluation.cv).all()) == (2, True)


@pytest.mark.parametrize(("budget", "rounds"), [(1, 1), (200, 1), (201, 2), (400, 2), (401, 3)])
def test_a_token_budget_stops_after_the_round_that_reaches_it(budget: int, rounds: int) -> None:
    def answer(call: Generate) -> Completion:
        return Completion(reply(call, by_text), usage=Usage(90, 80, 10, 1))

    evaluation = debate(evaluator(rounds=3, token_budget=budget), answer)
    assert evaluation.rounds_run == rounds
    assert evaluation.stop_reason == ("token_budget" if rounds < 3 else "max_rounds")


def test_tokens_of_invalid_replies_count_towards_the_budget() -> None:
    def answer(call: Generate) -> Completion:
        text = "nonsense" if call.attempt == 0 else reply(call, by_text)
        return Completion(text, usage=Usage(90, 0, 10, 1))

    assert debate(evaluator(rounds=3, token_budget=400), answer).rounds_run == 1


# Scores and selection


@pytest.mark.parametrize("method", ["article", "weighted_mean", "mk1"])
def test_scores_are_the_normalized_tensor_under_the_weights_in_force(method: Any) -> None:
    evaluation = debate(evaluator(rounds=2, method=method, weights=[0.5, 0.25]), Judge(by_text))
    assert evaluation.tensor is not None
    assert evaluation.scores.tolist() == normalize_tensor(evaluation.tensor, [0.5, 0.25], method, 2).tolist()
    assert evaluation.scale.high == {"article": 3.75, "weighted_mean": 10.0, "mk1": 7.5}[method]


# 0.1, 0.33 and 0.1 make 10.000000000000002 of three tens before it is held to the scale.
@pytest.mark.parametrize("weights", [[1, 1, 1], [1, 0.5, 0.5], [7, 7, 7], [0, 0, 0.1], [0.1, 0.33, 0.1], [1e-300] * 3])
@pytest.mark.parametrize("method", ["article", "weighted_mean", "mk1"])
@pytest.mark.parametrize("cell", [0.0, 10.0])
def test_scores_reach_the_ends_of_their_scale_and_never_leave_it(
    method: Any, weights: list[float], cell: float
) -> None:
    settings = evaluator(panel(3, 3), rounds=3, method=method, weights=weights)
    evaluation = debate(settings, Judge(lambda call, text, component: cell))
    end = evaluation.scale.high if cell else evaluation.scale.low
    assert evaluation.scores == pytest.approx([end] * 3)
    assert all(evaluation.scale.low <= score <= evaluation.scale.high for score in evaluation.scores)
    assert evaluation.status == "ok"


def test_ties_are_reported_and_broken_by_the_lowest_index() -> None:
    evaluation = debate(evaluator(rounds=1), Judge(flat))
    assert (evaluation.tied, evaluation.selected) == ((0, 1, 2), 0)


def selected(seed: int, id: str, **told: Any) -> int | None:  # noqa: A002 - as in Task
    flow = evaluator(rounds=1, **told).flow(task(id=id), RunContext(seed=seed))
    return drive(flow, Judge(flat)).selected


@pytest.mark.parametrize("told", [{"selection": "sample"}, {"ties": "seeded"}])
def test_a_draw_follows_the_runs_seed_and_the_tasks_id(told: dict[str, Any]) -> None:
    drawn = {(seed, id): selected(seed, id, **told) for seed in range(8) for id in ("t1", "t2")}  # noqa: A001
    assert drawn == {(seed, id): selected(seed, id, **told) for seed, id in drawn}  # noqa: A001
    assert len({drawn[seed, "t1"] for seed in range(8)}) > 1
    assert any(drawn[seed, "t1"] != drawn[seed, "t2"] for seed in range(8))


def test_a_low_temperature_leaves_sampling_no_choice() -> None:
    settings_ = evaluator(rounds=1, selection="sample", softmax_temperature=1e-3)
    flows = [settings_.flow(task(), RunContext(seed=seed)) for seed in range(10)]
    evaluations = [drive(flow, Judge(by_text)) for flow in flows]
    assert {evaluation.selected for evaluation in evaluations} == {2}
    assert evaluations[0].probabilities.tolist() == pytest.approx([0.0, 0.0, 1.0])


# What a persona sets for itself


def test_a_personas_model_sampling_and_agreement_reach_the_call() -> None:
    own = Persona("own", "r", model="big", sampling=Sampling(temperature=0.1, max_tokens=99), agreement=7)
    profile = Profile("p", (own, Persona("plain", "r")), (Component("c", "d"),))
    judge = Judge(flat)
    settings_ = evaluator(profile, rounds=1, sampling=Sampling(temperature=0.9, top_p=0.5))
    debate(settings_, judge)
    first, second = judge.calls
    assert settings_.models == frozenset({"big"})
    assert (first.model, second.model) == ("big", None)
    assert first.sampling == Sampling(temperature=0.1, top_p=0.5, max_tokens=99)
    assert (second.sampling.temperature, second.sampling.top_p) == (0.9, 0.5)
    assert "in about 70 of 100 cases" in user_text(first)
    assert "of 100 cases" not in user_text(second)


@pytest.mark.parametrize("n_candidates", [1, 5])
def test_without_max_tokens_there_is_room_for_the_longest_reply_the_schema_allows(n_candidates: int) -> None:
    def answer(call: Generate) -> str:
        assert call.sampling.max_tokens is not None
        longest = reply(call, lambda call, text, component: 9.25)
        longest = longest.replace("said:agent0:0", "o" * 600)
        for j in range(n_candidates):
            longest = longest.replace(f"agent0 on text {j} in 0", "c" * 400)
        assert len(longest) / 2 <= call.sampling.max_tokens
        return longest

    assert debate(evaluator(panel(1, 5), rounds=1), answer, task(n_candidates)).status == "ok"


class Notebook:
    """A memory that keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Recall] = []

    def __call__(self, request: Recall) -> Sequence[Memory]:
        self.requests.append(request)
        return [Memory(f"remembered {len(self.requests)}", id="m1", score=0.5)]


def remembering(memory: MemorySettings) -> Profile:
    personas = (Persona("agent0", "r", memory=memory), Persona("agent1", "r"))
    return Profile("panel", personas, (Component("c0", "d"),))


def test_an_agent_with_memory_recalls_before_every_turn() -> None:
    notebook, judge = Notebook(), Judge(flat)
    profile = remembering(MemorySettings(collections=("a", "b"), k=3, max_tokens=50))
    evaluation = debate(evaluator(profile, rounds=2), judge, recall=notebook)
    asked = notebook.requests
    assert [(r.collections, r.k, r.max_tokens) for r in asked] == [(("a", "b"), 3, 50)] * 2
    assert asked[0].queries == ("Which one?", "text 0", "text 1", "text 2")
    assert asked[1].queries == (*asked[0].queries, "said:agent0:0", "said:agent1:0")
    assert "- remembered 2\n" in user_text(judge.calls[2])
    assert "remembered" not in user_text(judge.calls[1])
    assert [[m.text for m in turn.memories] for turn in evaluation.transcript] == [
        ["remembered 1"], [], ["remembered 2"], [],
    ]  # fmt: skip


def test_an_agent_recalls_from_its_own_collection_unless_told_otherwise() -> None:
    notebook = Notebook()
    debate(evaluator(remembering(MemorySettings()), rounds=1), Judge(flat), recall=notebook)
    assert [request.collections for request in notebook.requests] == [("panel/agent0",)]


def test_a_turn_that_is_asked_again_does_not_recall_again() -> None:
    notebook = Notebook()
    settings_ = evaluator(remembering(MemorySettings()), rounds=1, retries=2)
    evaluation = debate(settings_, silent(("agent0", 0)), recall=notebook)
    assert len(notebook.requests) == 1
    assert [memory.id for memory in evaluation.transcript.turns[0].memories] == ["m1"]


def test_two_debates_of_one_evaluator_know_nothing_of_each_other() -> None:
    settings_, first, second = evaluator(rounds=2), Judge(by_text), Judge(by_text)
    debate(settings_, first)
    debate(settings_, second)
    assert [heard(call) for call in second.calls] == [heard(call) for call in first.calls]
    assert heard(second.calls[0]) == []


# Components of one task


def test_a_tasks_own_components_are_scored_after_the_profiles() -> None:
    judge = Judge(by_text)
    evaluation = debate(evaluator(rounds=2, weights=[1, 0.5]), judge, rubric_task("c8", "c9", weights=[0.25, 1]))
    assert evaluation.components == ("c0", "c1", "c8", "c9")
    assert evaluation.tensor is not None
    assert evaluation.tensor.shape == (2, 2, 3, 4)
    expected = normalize_tensor(evaluation.tensor, [1, 0.5, 0.25, 1], "weighted_mean", 2)
    assert evaluation.scores.tolist() == expected.tolist()
    assert (evaluation.status, evaluation.selected) == ("ok", 2)
    assert components_of(judge.calls[0]) == ["c0", "c1", "c8", "c9"]
    assert "- c9: How it is." in system_text(judge.calls[0])
    assert "c9 " in user_text(judge.calls[-1])  # the history has its scores
    assert "c9" in evaluation.feedback(0)


def test_a_tasks_own_components_can_stand_in_place_of_the_profiles() -> None:
    judge = Judge(by_text)
    settings = evaluator(rounds=1, task_components="instead")
    evaluation = debate(settings, judge, rubric_task("c0", "c9", weights=[0, 1]))
    assert evaluation.components == ("c0", "c9")
    assert evaluation.tensor is not None
    assert evaluation.scores.tolist() == evaluation.tensor[0].mean(axis=0)[:, 1].tolist()
    assert debate(settings, Judge(by_text)).components == ("c0", "c1")


@pytest.mark.parametrize("told", [{"candidate_order": "balanced"}, {"reply": "compact"}, {"method": "article"}])
def test_a_tasks_own_components_are_scored_however_the_debate_is_held(told: dict[str, Any]) -> None:
    def answer(call: Generate) -> str:
        said = json.loads(reply(call, by_text)) if told.get("reply") != "compact" else compact(call)
        return json.dumps(said)

    def compact(call: Generate) -> dict[str, Any]:
        of = {label: {"comment": "", "scores": [1, 2, 3, 4]} for label in shown(call)}
        return {"overall": "", "candidates": of}

    evaluation = debate(evaluator(rounds=1, **told), answer, rubric_task(weights=[0.5, 0.5]))
    leaf = evaluation.members[0] if evaluation.members else evaluation
    assert (evaluation.status, leaf.components) == ("ok", ("c0", "c1", "c8", "c9"))
    assert evaluation.scale.high == (7.5 if told.get("method") == "article" else 10)


def test_a_task_without_components_is_asked_as_ever_by_an_evaluator_that_also_debates_others() -> None:
    settings, before, after = evaluator(rounds=1), Judge(by_text), Judge(by_text)
    debate(settings, before)
    debate(settings, Judge(by_text), rubric_task())
    debate(settings, after)
    assert [call.prompt for call in before.calls] == [call.prompt for call in after.calls]


@pytest.mark.parametrize("readout", ["expected", "cells"])
def test_a_tasks_own_components_are_read_out(readout: str) -> None:
    settings = evaluator(rounds=1, readout=readout, silent_readouts=True)
    evaluation = drive(settings.flow(rubric_task(), RUN), reply_for)
    assert [each.scores.shape for each in evaluation.before] == [(3, 4)] * 2
    assert evaluation.p_best is not None
    assert not np.isnan(evaluation.scores).any()
