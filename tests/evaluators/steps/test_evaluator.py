"""Steps: where they come from, what each is judged with, how they are reduced, x1's prompts, unreadable replies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import Engine, StepEvaluator, Task
from debate.backends import Call, Scripted
from debate.errors import ConfigError, TaskError
from debate.evaluators.steps.prompted import PromptedSteps
from debate.evaluators.steps.reward_models import RewardModelSteps
from debate.flow import Generate
from debate.parsing.values import JsonField
from debate.testing import Recorder
from debate.types import Candidate, Failure, Scale
from tests.driving import user_text
from tests.judges import doubtful, judged
from tests.small_flows import plain

LINES = {"first": [40, 20, 80], "second": [60, -10, 90], "third": [100]}


def score(value: object) -> str:
    return json.dumps({"reasoning": f"a step worth {value}", "score": value})


def line(text: str, n: int, **metadata: Any) -> Candidate:
    return Candidate(text, metadata={"steps": [f"{text} step {k}" for k in range(n)], **metadata})


TASK = Task("the task", [line(text, len(values)) for text, values in LINES.items()], id="t")


def by_place(call: Generate | Call) -> str:
    """The score of each step in `LINES`, or that the line is solved."""
    if call.info.get("solved"):
        return json.dumps({"reasoning": "", "solved": call.info["candidate"] != 1})
    values = list(LINES.values())
    return score(values[int(call.info["candidate"])][int(call.info["step"])])


def of(values: Sequence[float | None], **options: Any) -> Any:
    """The evaluation of one line whose steps are worth so; None cannot be read."""

    def answer(call: Generate) -> str:
        value = values[int(call.info["step"])]
        return "no score" if value is None else score(value)

    judge = PromptedSteps(retries=0)
    return judged(StepEvaluator(judge=judge, **options), Task("x", [line("a", len(values))]), answer)


def steps_asked(judge: Recorder) -> list[tuple[int, int]]:
    return sorted((call.info["candidate"], call.info["step"]) for call in judge.calls)


def test_every_step_of_every_line_is_judged_at_once() -> None:
    judge, waves = Recorder(by_place), list[int]()
    evaluation = judged(StepEvaluator(), TASK, judge, waves)
    assert steps_asked(judge) == [(j, n) for j, values in enumerate(LINES.values()) for n in range(len(values))]
    assert waves == [7]
    assert evaluation.details == {"steps": [[40, 20, 80], [60, -10, 90], [100]], "first_error": [-1, 1, -1]}
    assert evaluation.scores.tolist() == [20, -10, 100]
    assert evaluation.scale == Scale(-100, 100)
    assert (evaluation.selected, evaluation.status) == (2, "ok")
    assert [(sample.candidates, sample.step, sample.value) for sample in evaluation.judgments[:2]] == [
        ((0,), 0, 40),
        ((0,), 1, 20),
    ]


@pytest.mark.parametrize(
    ("how", "scores"),
    [("min", [20, -10, 100]), ("mean", [140 / 3, 140 / 3, 100]), ("last", [80, 90, 100])],
)
def test_the_kinds_of_reduction(how: Any, scores: list[float]) -> None:
    evaluation = judged(StepEvaluator(reduce=how), TASK, by_place)
    assert evaluation.scores.tolist() == pytest.approx(scores)


def test_a_product_is_of_scores_in_0_to_1() -> None:
    judge = PromptedSteps(reader=JsonField("score", 0.0, 1.0))
    task = Task("x", [line("a", 3)])
    answers = [0.5, 0.5, 1]
    evaluation = judged(
        StepEvaluator(judge=judge, reduce="product"), task, lambda c: score(answers[int(c.info["step"])])
    )
    assert evaluation.scores.tolist() == [0.25]
    with pytest.raises(ConfigError) as refused:
        StepEvaluator(reduce="product")
    assert refused.value.field == "reduce"


@pytest.mark.parametrize(
    ("values", "threshold", "first_error"),
    [
        ([1, 2, 3], None, -1),
        ([1, -1, -2], None, 1),
        ([0, 0, 0], None, -1),
        ([30, 60, 40], 50, 0),
        ([60, 60, 49], 50, 2),
        ([-5, None, 3], None, 0),
        ([5, None, -3], None, None),
    ],
)
def test_the_first_wrong_step(values: list[float | None], threshold: float | None, first_error: int | None) -> None:
    assert of(values, threshold=threshold).details["first_error"] == [first_error]


@pytest.mark.parametrize("how", ["min", "mean", "last"])
def test_an_unreadable_step_leaves_no_score_but_where_only_the_last_counts(how: Any) -> None:
    evaluation = of([5, None, 7], reduce=how)
    assert evaluation.details == {"steps": [[5, None, 7]], "first_error": [None]}
    assert [failure.message.startswith("candidate 1, step 2: ") for failure in evaluation.failures] == [True]
    if how == "last":
        assert (evaluation.scores.tolist(), evaluation.status) == ([7], "partial")
    else:
        assert np.isnan(evaluation.scores[0])
        assert (evaluation.status, evaluation.statuses, evaluation.selected) == ("failed", ("failed",), None)


def test_a_step_that_fails_is_its_own_candidates_alone() -> None:
    def answer(call: Generate) -> str | Failure:
        is_it = (call.info["candidate"], call.info["step"]) == (2, 0)
        return Failure("busy", "no") if is_it else by_place(call)

    evaluation = judged(StepEvaluator(), TASK, answer)
    assert evaluation.statuses == ("ok", "ok", "failed")
    assert (evaluation.selected, evaluation.status) == (0, "partial")
    assert "candidate 3, step 1" in (evaluation.error or "")


@pytest.mark.parametrize(
    ("split", "text", "steps"),
    [
        (None, "one\n\ntwo", ["one\n\ntwo"]),
        (r"\n\n+", "one\n\n\n two \n\nthree\n\n", ["one", "two", "three"]),
        (r"\n", "one\n\n\ntwo", ["one", "two"]),
        (r";", " ;; ", [" ;; "]),
        (r"(?:^|\n)\d+\. ", "1. one\n2. two", ["one", "two"]),
        (r"(;)|(\n)", "one;two\nthree", ["one", "two", "three"]),
    ],
)
def test_a_text_is_cut_where_it_is_said(split: str | None, text: str, steps: list[str]) -> None:
    judge = Recorder(lambda call: score(1))
    evaluation = judged(StepEvaluator(split=split), Task("x", [text]), judge)
    assert len(evaluation.details["steps"][0]) == len(steps)
    for call in judge.calls:
        assert f"\n{steps[call.info['step']]}\n[/step" in user_text(call)


def test_given_steps_go_before_a_split() -> None:
    judge = Recorder(lambda call: score(1))
    judged(StepEvaluator(split=" "), Task("x", [line("a b c", 2), Candidate("d e f")]), judge)
    assert steps_asked(judge) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize("steps", [[], "one", 3, ["one", 2], {"one": "two"}])
def test_steps_that_are_no_list_of_texts_are_refused_by_name(steps: object) -> None:
    task = Task("x", ["a", Candidate("b", metadata={"steps": steps})])
    with pytest.raises(TaskError) as refused:
        StepEvaluator().check_task(task)
    assert refused.value.field == "candidates.1.metadata.steps"


def test_each_step_is_judged_with_those_before_it_and_the_context_in_view() -> None:
    judge = Recorder(by_place)
    task = Task("the task", TASK.candidates, context=["taken before"], reference="the answer")
    judged(StepEvaluator(), task, judge)
    for call in judge.calls:
        text, j, n = user_text(call), call.info["candidate"], call.info["step"]
        name = list(LINES)[int(j)]
        before, _, judged_step = text.partition("# Step to judge")
        assert "the task" in before
        assert before.count("taken before") == before.count("Reference answer:\nthe answer") == 1
        assert [f"{name} step {k}" in before for k in range(3)] == [k < n for k in range(3)]
        assert f"{name} step {n}" in judged_step
        assert not any(other in text for other in LINES if other != name)


def test_x1s_prompts_have_no_schema_and_no_system_message() -> None:
    def answer(call: Generate) -> str:
        if call.info.get("solved"):
            return f"<is solved>{'yes' if call.info['candidate'] == 2 else 'no'}</is solved>"
        return "<analysis>hm</analysis><score>85</score>"

    judge = Recorder(answer)
    evaluator = StepEvaluator(judge=PromptedSteps.x1(), ask_solved=True)
    task = Task("the task", TASK.candidates, context=["taken before"])
    evaluation = judged(evaluator, task, judge)
    assert evaluation.scores.tolist() == [85, 85, 85]
    assert evaluation.details["solved"] == [False, False, True]
    assert all(call.schema is None for call in judge.calls)
    assert {tuple(m["role"] for m in call.prompt.messages()) for call in judge.calls} == {("user",)}
    second = next(call for call in judge.calls if (call.info["candidate"], call.info["step"]) == (0, 1))
    assert "**Task**: the task\n" in user_text(second)
    assert "**Current Reasoning Step**: first step 1\n" in user_text(second)
    assert "**Previous Reasoning Steps**: ['taken before', 'first step 0']\n" in user_text(second)
    assert "# Input" not in user_text(second)


def test_whether_a_line_is_solved_is_asked_of_its_last_step() -> None:
    judge = Recorder(by_place)
    evaluation = judged(StepEvaluator(ask_solved=True), TASK, judge)
    assert evaluation.details["solved"] == [True, False, True]
    solved = [call for call in judge.calls if call.info.get("solved")]
    assert sorted((c.info["candidate"], c.info["step"]) for c in solved) == [(0, 2), (1, 2), (2, 0)]
    assert len(judge.calls) == 7 + 3


def test_who_does_not_say_whether_it_is_solved_leaves_it_open() -> None:
    def answer(call: Generate) -> str:
        return json.dumps({"reasoning": "", "solved": "yes"}) if call.info.get("solved") else by_place(call)

    evaluation = judged(StepEvaluator(judge=PromptedSteps(retries=1), ask_solved=True), TASK, answer)
    assert evaluation.details["solved"] == [None] * 3
    assert evaluation.scores.tolist() == [20, -10, 100]


def test_several_samples_of_a_step_are_its_mean() -> None:
    replies: Mapping[int, str] = {0: score(10), 1: "?", 2: score(20)}
    evaluator = StepEvaluator(judge=PromptedSteps(samples=3, retries=0))
    evaluation = judged(evaluator, Task("x", ["a"]), lambda call: replies[call.info["sample"]])
    assert evaluation.details["steps"] == [[15]]
    assert (evaluation.scores.tolist(), evaluation.status, len(evaluation.failures)) == ([15], "partial", 1)


@given(order=st.permutations(range(3)))
@settings(max_examples=6, deadline=None)
def test_permuting_the_candidates_permutes_the_results(order: list[int]) -> None:
    names = list(LINES)

    def answer(call: Generate) -> str:
        name = next(name for name in names if f"{name} step" in user_text(call))
        return score(LINES[name][int(call.info["step"])])

    permuted = judged(StepEvaluator(), Task("the task", [TASK.candidates[j] for j in order]), answer)
    plainly = judged(StepEvaluator(), TASK, answer)
    assert permuted.scores.tolist() == plainly.scores[order].tolist()
    for key in ("steps", "first_error"):
        assert permuted.details[key] == [plainly.details[key][j] for j in order]


def test_feedback_holds_what_was_said_of_each_step_the_worst_first() -> None:
    said = judged(StepEvaluator(), TASK, by_place).feedback(1)
    places = [said.index(f"step {n + 1}: {value}") for n, value in ((1, -10), (0, 60), (2, 90))]
    assert places == sorted(places)
    assert "a step worth -10" in said
    assert "a step worth 100" not in said


def test_the_engine_gives_the_same_as_a_flow_by_hand() -> None:
    with Engine(Scripted(by_place)) as engine:
        evaluation = engine.evaluate(TASK, StepEvaluator(ask_solved=True))
    assert evaluation.usage.calls == 10
    by_hand = plain(judged(StepEvaluator(ask_solved=True), TASK, by_place))
    assert {**plain(evaluation), "usage": None} == {**by_hand, "usage": None}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"reduce": "best"}, "reduce"),
        ({"split": "("}, "split"),
        ({"threshold": 500}, "threshold"),
        ({"threshold": 2, "judge": RewardModelSteps()}, "threshold"),
    ],
)
def test_settings_that_cannot_work_are_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        StepEvaluator(**options)
    assert refused.value.field == field


# ---- read out


def around(call: Generate | Call) -> dict[str, float]:
    """Of each step, its score in `LINES` and two beside it, of which the upper one is likelier."""
    value = list(LINES.values())[int(call.info["candidate"])][int(call.info["step"])]
    return {str(value): 0.5, str(value - 10): 0.1, str(value + 10 if value < 100 else 99): 0.3}


@pytest.mark.parametrize("readout", ["expected", "cells"])
def test_the_score_of_a_step_that_is_read_out_is_the_mean_over_its_labels(readout: Any) -> None:
    judge = Recorder(doubtful(around, written=score(5)))
    evaluation = judged(StepEvaluator(judge=PromptedSteps(readout=readout)), TASK, judge)
    up = 20 / 9
    assert evaluation.details["steps"][0] == pytest.approx([40 + up, 20 + up, 80 + up])
    assert evaluation.details["steps"][1] == pytest.approx([60 + up, -10 + up, 90 + up])
    assert evaluation.details["first_error"] == [-1, 1, -1]
    assert evaluation.scores.tolist() == pytest.approx([20 + up, -10 + up, 887 / 9])
    assert (evaluation.status, evaluation.p_best) == ("ok", None)
    read = [call for call in judge.calls if call.read_out]
    assert len(read) == 7
    assert {call.read_out.labels for call in read} == {tuple(map(str, range(-100, 101)))}


def test_a_step_whose_labels_have_too_little_of_the_probability_is_named() -> None:
    def raw(call: Generate | Call) -> dict[str, float]:
        return {"50": 0.1 if call.info["step"] == 1 else 1.0}

    judge = PromptedSteps(readout="expected")
    evaluation = judged(StepEvaluator(judge=judge), Task("x", [line("a", 3)]), doubtful(raw, written=score(5)))
    assert evaluation.details == {"steps": [[50, None, 50]], "first_error": [None]}
    assert np.isnan(evaluation.scores[0])
    [failure] = evaluation.failures
    assert failure.reason == "label_mass"
    assert failure.message.startswith("candidate 1, step 2: the labels -100 to 100 had 0.1 of the model's")


def test_whether_a_line_is_solved_is_replied_also_where_scores_are_read_out() -> None:
    told = doubtful(around, written=score(5))
    judge = Recorder(lambda call: by_place(call) if call.info.get("solved") else told(call))
    evaluation = judged(StepEvaluator(judge=PromptedSteps(readout="cells"), ask_solved=True), TASK, judge)
    assert evaluation.details["solved"] == [True, False, True]
    assert all(call.read_out is None for call in judge.calls if call.info.get("solved"))


def test_only_a_judge_that_reads_json_can_be_read_out() -> None:
    assert StepEvaluator(judge=PromptedSteps(readout="expected", model="m")).read_models == {"m"}
    assert StepEvaluator().read_models == StepEvaluator(judge=PromptedSteps.x1()).read_models == frozenset()
    with pytest.raises(ConfigError) as refused:
        PromptedSteps.x1(readout="expected")
    assert refused.value.field == "readout"
