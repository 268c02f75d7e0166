"""An evaluation as JSON and back: nothing lost, NaN as null, the pinned keys in their spelling."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from debate.evaluation import Evaluation, failed
from debate.flow import Completion, Generate
from debate.profiles import MemorySettings, Persona, Profile
from debate.scorers import ERRORS
from debate.types import Failure, InvalidReply, Memory, Scale, Transcript, Turn, Usage
from tests.driving import Judge, by_text, debate, evaluator, panel, reply

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
