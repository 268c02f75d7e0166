"""Steps scored by models that are not prompted: what they are sent, and what is read in their numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from debate import StepEvaluator, Task
from debate.errors import ConfigError
from debate.evaluators.steps.reward_models import RewardModelSteps, ValueModelSteps
from debate.flow import Generate, Messages
from debate.testing import Recorder
from debate.types import Candidate, Failure, Scale
from tests.judges import judged

TASK = Task("task", [Candidate("a", metadata={"steps": ["s0", "s1"]}), "alone"], context=["before"])


def sent(call: Generate) -> list[tuple[str, str]]:
    assert isinstance(call.prompt, Messages)
    return [(message["role"], message["content"]) for message in call.prompt.messages()]


def test_a_value_model_is_sent_x1s_messages_one_step_at_a_time() -> None:
    judge = Recorder(lambda call: "0.5" if call.info["candidate"] else json.dumps(-0.25 * call.info["step"]))
    evaluation = judged(StepEvaluator(judge=ValueModelSteps(model="v")), TASK, judge)
    by_place = {(call.info["candidate"], call.info["step"]): sent(call) for call in judge.calls}
    start = [("user", "task"), ("intermediate_step", "before")]
    assert by_place == {
        (0, 0): [*start, ("intermediate_step", "s0")],
        (0, 1): [*start, ("intermediate_step", "s0"), ("last_step", "s1")],
        (1, 0): [*start, ("intermediate_step", "alone")],
    }
    assert {call.model for call in judge.calls} == {"v"}
    assert evaluation.scale == Scale(-1, 1)
    assert evaluation.details == {"steps": [[0, -0.25], [0.5]], "first_error": [1, -1]}
    assert evaluation.scores.tolist() == [-0.25, 0.5]


@pytest.mark.parametrize(("final", "role"), [(True, "last_step"), (False, "intermediate_step")])
def test_the_metadata_says_whether_a_line_ends(final: bool, role: str) -> None:
    judge = Recorder(lambda call: "0")
    for steps in (["s0"], ["s0", "s1"]):
        task = Task("task", [Candidate("a", metadata={"steps": steps, "final": final})])
        judged(StepEvaluator(judge=ValueModelSteps()), task, judge)
    assert [sent(call)[-1][0] for call in judge.calls if call.info["step"] == 1] == [role]
    assert sent(judge.calls[0])[-1][0] == role


@pytest.mark.parametrize("reply", ["high", "[0.5]", "1.5", "NaN", "", Failure("busy", "no")])
def test_what_is_no_number_on_the_scale_is_a_failure_and_not_asked_again(reply: Any) -> None:
    judge = Recorder(lambda call: reply if call.info["candidate"] else "0.5")
    evaluation = judged(StepEvaluator(judge=ValueModelSteps()), TASK, judge)
    assert len(judge.calls) == 3
    assert evaluation.statuses == ("ok", "failed")
    assert evaluation.details["first_error"] == [-1, None]
    assert evaluation.failures[0].message.startswith("candidate 2, step 1: ")


def test_a_reward_model_is_sent_whole_lines() -> None:
    judge = Recorder(lambda call: "[0.9, 0.5]" if call.info["candidate"] else "[0.1, 0.8, 0.5]")
    evaluator = StepEvaluator(judge=RewardModelSteps(model="r"), reduce="product")
    evaluation = judged(evaluator, TASK, judge)
    assert [sent(call) for call in reversed(judge.calls)] == [
        [("user", "task"), ("step", "before"), ("step", "s0"), ("step", "s1")],
        [("user", "task"), ("step", "before"), ("step", "alone")],
    ]
    assert evaluation.details == {"steps": [[0.8, 0.5], [0.5]], "first_error": [-1, -1]}
    assert evaluation.scores.tolist() == [0.4, 0.5]
    assert evaluation.scale == Scale(0, 1)
    assert evaluator.models == {"r"}


@pytest.mark.parametrize(
    "reply", ["[0.1, 0.2]", "[0.1, 0.2, 0.3, 0.4]", "0.5", '[0.1, "x", 0.2]', "[0.1, 2, 0.2]", "?"]
)
def test_a_list_of_another_shape_fails_the_whole_line_once(reply: str) -> None:
    judge = Recorder(lambda call: "[0.9, 0.5]" if call.info["candidate"] else reply)
    evaluation = judged(StepEvaluator(judge=RewardModelSteps()), TASK, judge)
    assert evaluation.statuses == ("failed", "ok")
    assert evaluation.details == {"steps": [[None, None], [0.5]], "first_error": [None, -1]}
    assert np.isnan(evaluation.scores[0])
    assert (len(evaluation.failures), evaluation.selected, evaluation.status) == (1, 1, "partial")


@pytest.mark.parametrize(("make", "limit"), [(ValueModelSteps, 0.0), (RewardModelSteps, 0.5)])
def test_the_middle_of_the_scale_is_the_threshold_unless_said(make: Any, limit: float) -> None:
    assert StepEvaluator(judge=make()).limit == limit
    assert StepEvaluator(judge=make(), threshold=0.3).limit == 0.3


def test_only_a_prompted_judge_can_say_whether_it_is_solved() -> None:
    with pytest.raises(ConfigError) as refused:
        StepEvaluator(judge=RewardModelSteps(), ask_solved=True)
    assert refused.value.field == "ask_solved"
