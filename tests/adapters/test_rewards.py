"""Rewards as TRL asks for them: a list as long as the prompts, one debate for the completions of one prompt."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from debate import Engine, Judge
from debate.adapters.rewards import group_reward
from debate.backends import Scripted
from debate.errors import ConfigError
from tests.adapters.by_answer import ByAnswer
from tests.small_flows import debates


@pytest.fixture
def script() -> ByAnswer:
    return ByAnswer()


@pytest.fixture
def judge(script: ByAnswer) -> Iterator[Judge]:
    with Engine(Scripted(script.answer)) as engine:
        yield Judge(engine, debates(retries=0, abstain=True))


def test_the_completions_of_one_prompt_are_one_debate_wherever_they_stand(judge: Judge, script: ByAnswer) -> None:
    reward = group_reward(judge)
    found = reward(prompts=["p", "q", "p", "p"], completions=["2", "9", "7", "2"], completion_ids=[[1]] * 4)
    assert found == pytest.approx([0.2, 0.9, 0.7, 0.2])
    assert len(script.tasks) == 2


def test_ranks_go_from_1_to_0_and_those_that_tie_share_the_mean(judge: Judge) -> None:
    found = group_reward(judge, "ranks")(["p"] * 4, ["2", "9 a", "9 b", "5"], None)
    assert found == pytest.approx([0.0, 5 / 6, 5 / 6, 1 / 3])


def test_probabilities_sum_to_1_in_a_group(judge: Judge) -> None:
    found = group_reward(judge, "probabilities")(["p"] * 3 + ["q"] * 2, ["2", "9", "8", "1", "1 again"], None)
    assert sum(each or 0 for each in found[:3]) == pytest.approx(1)
    assert found[3:] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("kind", ["ranks", "probabilities"])
def test_what_is_alone_in_its_group_cannot_be_compared(judge: Judge, kind: Any) -> None:
    assert group_reward(judge, kind)(["p", "q", "q"], ["2", "3", "4"], None)[0] is None


@pytest.mark.parametrize("kind", ["scores", "ranks", "probabilities"])
def test_what_has_no_score_has_no_reward(judge: Judge, kind: Any) -> None:
    found = group_reward(judge, kind)(["a riddle", "p", "p", "p"], ["2", "3", "a secret 8", "6"], None)
    assert [each is None for each in found] == [True, False, True, False]


def test_a_component_has_its_own_function_and_is_paid_once(judge: Judge, script: ByAnswer) -> None:
    clarity, truth = (group_reward(judge, component=name) for name in ("clarity", "truth"))
    assert clarity(["p", "p"], ["3", "a secret 8"], None) == pytest.approx([0.3, 0.8])
    calls = script.calls
    assert truth(["p", "p"], ["3", "a secret 8"], None) == [pytest.approx(0.3), None]
    assert script.calls == calls
    assert clarity.__name__ == "debate_clarity"
    assert group_reward(judge).__name__ == "debate_scores"


def test_conversations_and_references_are_shown_to_the_judges(judge: Judge, script: ByAnswer) -> None:
    prompt = [{"role": "user", "content": "2 + 2?"}]
    said = [[{"role": "assistant", "content": text}] for text in ("4", "5")]
    reward = group_reward(judge, reference="solution")
    assert reward([prompt] * 2, said, None, solution=["4", "4"], trainer_state=None) == pytest.approx([0.4, 0.5])
    assert len(script.tasks) == 1
    reward([prompt] * 2, said, None, solution=["4", "5"])
    assert len(script.tasks) == 3, "another answer is another group"


def test_the_signature_is_that_of_trl(judge: Judge) -> None:
    """TRL calls by keywords: prompts, completions, completion_ids, each column, trainer_state and others."""
    parameters = inspect.signature(group_reward(judge)).parameters
    assert [*parameters][:3] == ["prompts", "completions", "completion_ids"]
    assert any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    assert group_reward(judge)(prompts=[], completions=[], completion_ids=[]) == []


def test_what_does_not_fit_is_refused(judge: Judge) -> None:
    with pytest.raises(ConfigError, match="completions: must be as many as the prompts, 2, got 1"):
        group_reward(judge)(["p", "q"], ["2"], None)
    with pytest.raises(ConfigError, match="reference: there is no column 'solution'"):
        group_reward(judge, reference="solution")(["p"], ["2"], None, answer=["4"])
    with pytest.raises(ConfigError, match="the column 'answer' must be as long as the prompts, 2, got 1"):
        group_reward(judge, reference="answer")(["p", "q"], ["2", "3"], None, answer=["4"])
    with pytest.raises(ConfigError, match="the evaluator has no component 'beauty'"):
        group_reward(judge, component="beauty")(["p"], ["2"], None)
    with pytest.raises(ConfigError, match="component: goes with the kind `scores` alone"):
        group_reward(judge, "ranks", component="clarity")
    wrong: Any = "medals"
    with pytest.raises(ConfigError, match="kind"):
        group_reward(judge, wrong)
