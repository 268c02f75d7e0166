"""Scores read from the probabilities of labels: in the reply, after its comments, and without a word."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import Engine
from debate.backends import Scripted
from debate.dataset.evalset import EvalSet
from debate.evaluators.contract import check_evaluation
from debate.flow import Call, Completion, Generate
from debate.jobs.run import Run
from debate.journal import format_address
from debate.parsing.places import value_spans
from debate.runtime.runner import Runner
from debate.scoring.distributions import p_best
from debate.testing import DictJournal, Recorder, SilentListener
from debate.types import Failure, LabelDistribution, Usage
from tests.driving import (
    RUN,
    Answerer,
    Score,
    by_text,
    debate,
    evaluator,
    heard,
    panel,
    reply,
    shown,
    task,
    user_text,
)

READOUTS = ("expected", "cells")
Distribution = Callable[[float], LabelDistribution]
"""A score -> what the model holds of it."""


def around(score: float) -> LabelDistribution:
    """A distribution with this mean over the two whole numbers around it."""
    low = int(score)
    return LabelDistribution({str(low): 1 + low - score, str(low + 1): score - low}, 0.9)


def whole(call: Any, text: str, component: str) -> float:
    """A whole number that depends on who speaks of what."""
    agent, j, k = int(call.info["agent"][5:]), int(text.split()[1]), int(component[1:])
    return float((3 * agent + 2 * j + k + call.info["round"]) % 9)


def reader(score: Score, says: Distribution = around) -> Callable[[Any], Completion]:
    """Answers every kind of call by a score function; what it holds of a place is about a half more than it writes."""

    def answer(call: Any) -> Completion:
        if call.schema is None:
            cells = [_cell("".join(block.text for block in said)) for said in call.read_out.continuations]
            texts = shown(call)
            values = [score(call, texts[label], component) + 0.5 for label, component in cells]
            return Completion("", usage=Usage(50, 40, 6, 1), distributions=tuple(map(says, values)))
        text = reply(call, partial(_in_whole, score)) if _is_scored(call) else _comments(call)
        places = [float(text[slice(*span)]) + 0.5 for span in value_spans(text)] if call.read_out else []
        return Completion(text, usage=Usage(90, 80, 10, 1), distributions=tuple(map(says, places)))

    return answer


def _in_whole(score: Score, call: Generate, text: str, component: str) -> int:
    return int(score(call, text, component))


def _cell(said: str) -> tuple[str, str]:
    """The label and the component that a continuation ends with, which must begin a reply."""
    label, component = re.findall(r'"([A-Z])":\{"comment":', said)[-1], re.findall(r'"(\w+)":$', said)[0]
    json.loads(said + "7}}}}")
    return label, component


def _is_scored(call: Any) -> bool:
    [*_, candidate] = call.schema["properties"]["candidates"]["properties"].values()
    return "scores" in candidate["properties"]


def _comments(call: Any) -> str:
    speaker, r = call.info["agent"], call.info["round"]
    comments = {label: {"comment": f"{speaker} on {text} in {r}"} for label, text in shown(call).items()}
    return json.dumps({"overall": f"said:{speaker}:{r}", "candidates": comments})


def is_readout(call: Any) -> bool:
    return call.schema is None


def expected_tensor(rounds: int, n_agents: int, score: Score = whole) -> list[Any]:
    """(R, I, J, K) of what `reader` holds, of three candidates and two components."""

    def cell(r: int, i: int, j: int, k: int) -> float:
        info = {"agent": f"agent{i}", "round": r}
        return score(type("Asked", (), {"info": info})(), f"text {j}", f"c{k}") + 0.5  # pyright: ignore[reportArgumentType]

    return [[[[cell(r, i, j, k) for k in range(2)] for j in range(3)] for i in range(n_agents)] for r in range(rounds)]


# What is asked


def test_cells_are_read_in_one_call_after_the_comments_on_the_same_prompt() -> None:
    judge = Recorder(reader(whole))
    debate(evaluator(panel(2), rounds=1, readout="cells"), judge)
    assert [is_readout(call) for call in judge.calls] == [False, True, False, True]
    said, read = judge.calls[:2]
    assert read.prompt == said.prompt
    assert read.read_out.labels == tuple(map(str, range(11)))
    assert len(read.read_out.continuations) == 3 * 2
    assert said.read_out is None
    last = "".join(block.text for block in read.read_out.continuations[-1])
    assert all(f"agent0 on text {j} in 0" in last for j in range(3))


def test_what_the_model_wrote_is_content_in_a_continuation_and_its_blocks_are_shared() -> None:
    judge = Recorder(reader(whole))
    debate(evaluator(panel(1), rounds=1, readout="cells"), judge)
    continuations = judge.calls[1].read_out.continuations
    blocks = [block for said in continuations for block in said]
    assert all(segment.is_content for block in blocks for segment in block)
    assert len({id(block) for block in blocks}) == len(set(blocks)) < len(blocks)


def test_the_reply_itself_is_read_without_a_further_call() -> None:
    judge = Recorder(reader(whole))
    debate(evaluator(panel(2), rounds=1, readout="expected"), judge)
    assert [call.read_out.continuations for call in judge.calls] == [(), ()]
    [*_, candidate] = judge.calls[0].schema["properties"]["candidates"]["properties"].values()
    assert candidate["properties"]["scores"]["properties"]["c0"]["type"] == "integer"


def test_only_a_reply_that_cannot_be_read_is_asked_again() -> None:
    answer = reader(whole)
    judge = Recorder(lambda call: "nonsense" if call.attempt == 0 and not is_readout(call) else answer(call))
    evaluation = debate(evaluator(panel(1), rounds=1, readout="cells"), judge)
    assert [(is_readout(call), call.attempt) for call in judge.calls] == [(False, 0), (False, 1), (True, 0)]
    assert judge.calls[2].prompt == judge.calls[0].prompt
    assert (evaluation.status, len(evaluation.transcript.turns[0].invalid_replies)) == ("ok", 1)


# What comes of it


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("order", ["fixed", "shuffle", "rotate"])
@pytest.mark.parametrize("form", ["named", "compact"])
def test_the_tensor_holds_the_means_whatever_the_order_shown(readout: Any, order: Any, form: Any) -> None:
    if form == "compact" and readout == "expected":
        answer = _compact(reader(whole))
    else:
        answer = reader(whole)
    settings = evaluator(panel(3), rounds=2, readout=readout, candidate_order=order, reply=form)
    evaluation = debate(settings, answer)
    assert evaluation.tensor is not None and evaluation.spread is not None
    np.testing.assert_allclose(evaluation.tensor, expected_tensor(2, 3))
    np.testing.assert_allclose(evaluation.spread, np.full((2, 3, 3, 2), 0.5))
    assert (evaluation.status, evaluation.failures) == ("ok", ())


def _compact(answer: Callable[[Any], Completion]) -> Callable[[Any], Completion]:
    """The same replies with the scores in lists."""

    def compacted(call: Any) -> Completion:
        said = answer(_named(call))
        data = json.loads(said.text)
        for each in data["candidates"].values():
            each["scores"] = [*each["scores"].values()]
        return Completion(json.dumps(data), usage=said.usage, distributions=said.distributions)

    return compacted


def _named(call: Any) -> Any:
    schema = json.loads(json.dumps(call.schema))
    for each in schema["properties"]["candidates"]["properties"].values():
        each["properties"]["scores"] = {"properties": {"c0": {}, "c1": {}}}
    named = {"schema": schema, "prompt": call.prompt, "info": call.info, "read_out": call.read_out}
    return type("Named", (), named)()


@pytest.mark.parametrize("readout", READOUTS)
def test_the_best_is_told_with_its_probability_from_the_turns(readout: Any) -> None:
    evaluation = debate(evaluator(panel(2), rounds=2, readout=readout), reader(whole))
    turns = evaluation.transcript.turns
    expected = p_best([turn.distributions for turn in turns], [1, 1], rounds=[0, 0, 1, 1], quorum=2)
    assert evaluation.p_best is not None
    np.testing.assert_array_equal(evaluation.p_best, expected)
    assert evaluation.p_best.sum() == pytest.approx(1)


def test_a_balanced_debate_has_the_mean_of_both_orders() -> None:
    settings = evaluator(panel(2), rounds=1, readout="cells", candidate_order="balanced", silent_readouts=True)
    evaluation = debate(settings, reader(whole))
    assert evaluation.p_best is not None
    members: list[Any] = [member.p_best for member in evaluation.members]
    np.testing.assert_allclose(evaluation.p_best, np.stack(members).mean(axis=0))
    assert [(len(member.before), len(member.after)) for member in evaluation.members] == [(2, 2), (2, 2)]
    assert evaluation.before == evaluation.after == ()


def test_without_read_outs_there_is_neither_spread_nor_a_probability_of_the_best() -> None:
    evaluation = debate(evaluator(rounds=1), lambda call: reply(call, by_text))
    assert (evaluation.p_best, evaluation.spread) == (None, None)


def test_the_tokens_of_read_outs_count_towards_the_budget() -> None:
    def rounds(budget: int) -> int:
        settings = evaluator(panel(1), rounds=3, readout="cells", token_budget=budget)
        return debate(settings, reader(whole)).rounds_run

    assert [rounds(156), rounds(157)] == [1, 2]  # a reply of 100 tokens, a read-out of 56


# What the others hear


@pytest.mark.parametrize("readout", READOUTS)
def test_the_history_shows_means_as_whole_numbers(readout: Any) -> None:
    judge = Recorder(reader(whole, lambda score: around(score + 0.3)))
    debate(evaluator(panel(2), rounds=1, readout=readout, candidate_order="fixed"), judge)
    second = next(call for call in judge.calls if call.info["agent"] == "agent1")
    assert "agent0 on text 1 in 0 (c0 3, c1 4)" in user_text(second)  # 2.8 and 3.8


# What goes wrong


def test_a_failed_read_out_fails_its_turn_which_keeps_its_comments_and_is_not_heard() -> None:
    answer = reader(whole)

    def broken(call: Any) -> Completion | Failure:
        if is_readout(call) and (call.info["agent"], call.info["round"]) == ("agent0", 0):
            return Failure("timeout", "took too long", call="0")
        return answer(call)

    judge = Recorder(broken)
    evaluation = debate(evaluator(panel(3), rounds=2, readout="cells"), judge)
    turn = evaluation.transcript.turns[0]
    assert turn.failure == Failure("timeout", "took too long", 0, "agent0", "0")
    assert turn.comments == tuple(f"agent0 on text {j} in 0" for j in range(3))
    assert np.isnan(turn.scores).all() and turn.distributions == ()
    assert (evaluation.status, evaluation.failures) == ("partial", (turn.failure,))
    assert ("agent0", 0) not in heard(judge.calls[-1]) and ("agent1", 0) in heard(judge.calls[-1])


@pytest.mark.parametrize("readout", READOUTS)
def test_a_backend_without_probabilities_fails_the_turn(readout: Any) -> None:
    answer = reader(whole)
    evaluation = debate(evaluator(panel(2), rounds=1, readout=readout), lambda call: Completion(answer(call).text))
    assert {failure.reason for failure in evaluation.failures} == {"no_distributions"}
    assert (evaluation.status, evaluation.stop_reason) == ("failed", "failed")
    assert all(turn.comments for turn in evaluation.transcript)


@pytest.mark.parametrize("readout", READOUTS)
def test_cells_of_little_mass_are_unscored_and_one_failure_names_them(readout: Any) -> None:
    def says(score: float) -> LabelDistribution:
        return LabelDistribution({"3": 1.0}, 0.25 if score == 0.5 else 0.5)

    settings = evaluator(panel(2), rounds=1, readout=readout, quorum=1)
    evaluation = debate(settings, reader(whole, says))
    assert evaluation.tensor is not None
    assert np.isnan(evaluation.tensor).sum() == 1 and np.isnan(evaluation.tensor[0, 0, 0, 0])
    [failure] = evaluation.failures
    assert (failure.reason, failure.round, failure.agent) == ("label_mass", 0, "agent0")
    assert "candidate 1, c0 (0.25)" in failure.message
    assert all(turn.failure is None for turn in evaluation.transcript)
    assert evaluation.status == "partial"
    assert evaluation.error is not None and "turns failed" not in evaluation.error


def test_a_turn_all_of_whose_cells_have_little_mass_has_failed() -> None:
    evaluation = debate(
        evaluator(panel(2), rounds=2, readout="cells"), reader(whole, lambda score: LabelDistribution({"3": 1.0}, 0.4))
    )
    turn = evaluation.transcript.turns[0]
    assert turn.failure is not None and turn.failure.reason == "label_mass"
    assert "and 3 more" in turn.failure.message
    assert turn.distributions[0][0].mass == 0.4
    assert (evaluation.status, evaluation.stop_reason, evaluation.rounds_run) == ("failed", "failed", 1)


# Abstaining


def abstains(*labels: str, whole_turn: bool = False) -> Answerer:
    """Leaves the scores of some candidates open, or all of them."""

    def answer(call: Generate) -> str:
        named = json.loads(reply(call, whole))
        for label in labels:
            named["candidates"][label]["scores"] = dict.fromkeys(named["candidates"][label]["scores"])
        return json.dumps({**named, "candidates": None} if whole_turn else named)

    return answer


def test_a_score_that_is_left_open_is_unscored_without_a_failure_and_not_asked_again() -> None:
    judge = Recorder(abstains("B"))
    evaluation = debate(evaluator(panel(3), rounds=2, abstain=True, candidate_order="fixed"), judge)
    assert len(judge.calls) == 6
    assert evaluation.tensor is not None
    assert np.isnan(evaluation.tensor[:, :, 1]).all() and np.isnan(evaluation.tensor).sum() == 12
    assert np.isnan(evaluation.scores).tolist() == [False, True, False]
    assert (evaluation.status, evaluation.error, evaluation.failures) == ("ok", None, ())
    assert np.isnan(evaluation.cv).all()
    assert "agent0 on text 1 in 0 (c0 null, c1 null)" in user_text(judge.calls[1])


@pytest.mark.parametrize("readout", ["reply", *READOUTS])
def test_a_debate_in_which_all_abstain_is_no_failure_and_selects_nobody(readout: Any) -> None:
    judge = Recorder(lambda call: '{"overall": "I cannot tell.", "candidates": null}')
    evaluation = debate(evaluator(panel(3), rounds=2, readout=readout, abstain=True, convergence=0.1), judge)
    assert not any(is_readout(call) for call in judge.calls)
    assert (evaluation.status, evaluation.error, evaluation.selected) == ("ok", None, None)
    assert (evaluation.stop_reason, evaluation.rounds_run) == ("abstained", 1)
    assert np.isnan(evaluation.scores).all() and not evaluation.probabilities.any()
    assert evaluation.verdict([0]) == "unscored"
    assert "I cannot tell." in user_text(judge.calls[-1])
    assert check_evaluation(evaluation, task()) is evaluation
    if readout != "reply":
        assert evaluation.p_best is not None and not evaluation.p_best.any()


def test_a_debate_that_never_stops_early_goes_on_when_all_abstain() -> None:
    judge = Recorder(lambda call: '{"overall": "I cannot tell.", "candidates": null}')
    evaluation = debate(evaluator(panel(3), rounds=2, convergence=None, abstain=True), judge)
    assert (evaluation.stop_reason, evaluation.rounds_run) == ("max_rounds", 2)


def test_a_cell_whose_likeliest_label_is_null_is_unscored_without_a_failure() -> None:
    def says(score: float) -> LabelDistribution:
        return LabelDistribution({"null": 0.6, "3": 0.4} if score == 0.5 else {"null": 0.4, "3": 0.6})

    evaluation = debate(evaluator(panel(2), rounds=1, readout="cells", abstain=True), reader(whole, says))
    assert evaluation.tensor is not None
    assert np.isnan(evaluation.tensor[0, 0, 0, 0]) and np.nansum(evaluation.tensor) == 3 * 11
    assert (evaluation.status, evaluation.failures) == ("ok", ())


def test_a_debate_in_which_one_fails_and_the_others_abstain_has_failed() -> None:
    def answer(call: Generate) -> str:
        return "nonsense" if call.info["agent"] == "agent0" else '{"overall": "No.", "candidates": null}'

    evaluation = debate(evaluator(panel(2), rounds=1, retries=0, abstain=True), answer)
    assert (evaluation.status, len(evaluation.failures)) == ("failed", 1)


def test_a_run_counts_a_debate_in_which_all_abstain_as_done_and_does_not_ask_for_it_again(tmp_path: Path) -> None:
    judge = Recorder(lambda call: '{"overall": "I cannot tell.", "candidates": null}')
    (tmp_path / "tasks.jsonl").write_text('{"x": "Which?", "candidates": ["text 0", "text 1"]}\n', encoding="utf-8")
    run = Run(
        evalset=EvalSet(tmp_path / "tasks.jsonl"),
        folder=tmp_path / "out",
        evaluator=evaluator(panel(2), rounds=1, abstain=True),
    )
    for job in (run, run, replace(run, retry_failed=True)):
        _, totals = job.execute({"scripted": Scripted(judge)}, SilentListener())
        assert (totals.statuses, len(judge.calls)) == ({"ok": 1}, 2)


# Silent read-outs


@pytest.mark.parametrize("mode", ["sequential", "simultaneous", "independent"])
@pytest.mark.parametrize("readout", ["reply", *READOUTS])
def test_every_agent_is_read_out_before_the_first_turn_and_after_the_last(mode: Any, readout: Any) -> None:
    judge = Recorder(reader(lambda call, text, component: float(len(heard(call)) % 9)))
    settings = evaluator(panel(2), rounds=2, mode=mode, readout=readout, silent_readouts=True)
    evaluation = debate(settings, judge)
    silent = [call for call in judge.calls if "moment" in call.info]
    assert [call.info["moment"] for call in judge.calls[:2] + judge.calls[-2:]] == ["before"] * 2 + ["after"] * 2
    assert len(silent) == 4 and all(len(call.read_out.continuations) == 6 for call in silent)
    n_heard = 0 if mode == "independent" else 4  # an agent that hears nobody is not shown the others at the end either
    assert [len(heard(call)) for call in silent] == [0, 0, n_heard, n_heard]
    assert [[found.agent for found in read] for read in (evaluation.before, evaluation.after)] == [
        ["agent0", "agent1"]
    ] * 2
    assert [found.scores.tolist() for found in evaluation.before] == [[[0.5] * 2] * 3] * 2
    assert [found.scores.tolist() for found in evaluation.after] == [[[n_heard + 0.5] * 2] * 3] * 2
    assert evaluation.status == "ok" and len(evaluation.transcript) == 4


def test_a_silent_read_out_says_no_word_of_the_agents() -> None:
    judge = Recorder(reader(whole))
    debate(evaluator(panel(1), rounds=1, silent_readouts=True), judge)
    texts = ["".join(block.text for block in said) for said in judge.calls[0].read_out.continuations]
    assert all('"overall":""' in text for text in texts)
    assert set(re.findall(r'"comment":"(.*?)"', "".join(texts))) == {""}


def test_a_debate_that_stops_early_or_fails_is_read_out_after_it_too() -> None:
    flat = reader(lambda call, text, component: 3.0)
    early = debate(evaluator(panel(2), rounds=5, convergence=0.1, silent_readouts=True), flat)
    assert (early.rounds_run, early.stop_reason, len(early.after)) == (1, "converged", 2)

    def unreadable(call: Any) -> Completion:
        return flat(call) if is_readout(call) else Completion("nonsense")

    failed = debate(evaluator(panel(2), rounds=5, retries=0, silent_readouts=True), unreadable)
    assert (failed.status, failed.stop_reason, len(failed.after)) == ("failed", "failed", 2)


def test_a_silent_read_out_that_fails_is_told_with_its_agent_and_changes_no_score() -> None:
    answer = reader(whole)

    def broken(call: Any) -> Completion | Failure:
        return Failure("timeout", "took too long") if call.info.get("moment") == "before" else answer(call)

    evaluation = debate(evaluator(panel(2), rounds=1, silent_readouts=True), broken)
    undisturbed = debate(evaluator(panel(2), rounds=1, silent_readouts=True), answer)
    assert [(each.reason, each.round, each.agent) for each in evaluation.failures] == [
        ("timeout", None, "agent0"),
        ("timeout", None, "agent1"),
    ]
    assert all(np.isnan(found.scores).all() for found in evaluation.before)
    assert evaluation.scores.tolist() == undisturbed.scores.tolist()
    assert evaluation.status == "partial"
    assert evaluation.error is not None and "agent0" in evaluation.error


# Records, room and order


def test_a_read_out_of_cells_is_one_call_with_one_record_that_is_not_asked_again() -> None:
    settings, judge, journal = evaluator(panel(2), rounds=1, readout="cells"), Recorder(reader(whole)), DictJournal()

    def run(journal: DictJournal) -> Any:
        runner = Runner({"scripted": Scripted(judge)}, RUN)
        return asyncio.run(runner.evaluate(settings, task(), journal))

    first = run(journal)
    assert [format_address(key.address) for key in journal.entries] == ["0", "1", "2", "3"]
    assert first.usage.calls == 4
    again = run(DictJournal(journal.entries))
    assert len(judge.calls) == 4
    assert again.scores.tolist() == first.scores.tolist()


def test_read_outs_count_among_the_replies_that_are_waited_for_and_not_as_room_for_replies() -> None:
    plain = evaluator(panel(3), rounds=2).footprint(task())
    cells = evaluator(panel(3), rounds=2, readout="cells", silent_readouts=True).footprint(task())
    assert (plain.replies, plain.read_outs) == (6, 0)
    assert (cells.replies, cells.read_outs) == (6, 6 + 2)
    assert cells.max_tokens < plain.max_tokens
    assert cells.characters > plain.characters


def test_the_calls_of_a_turn_count_down_to_the_last_one() -> None:
    calls: list[Call] = []

    def answer(call: Call) -> Completion:
        calls.append(call)
        return reader(whole)(call)

    with Engine(Scripted(answer)) as engine:
        engine.evaluate(task(), evaluator(panel(2), rounds=2, readout="cells"))
    assert [call.replies_ahead for call in calls] == [8, 7, 6, 5, 4, 3, 2, 1]
