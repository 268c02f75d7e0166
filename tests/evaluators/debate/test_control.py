"""The silent panel takes as many turns as each debate took, and nobody in it hears anybody."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from debate import DebateEvaluator, Engine, Evaluation, Task, ValueEvaluator
from debate.backends import Call, Scripted
from debate.errors import ConfigError
from debate.evaluators.debate.control import ControlEvaluator
from debate.store.identity import prompt_identity
from debate.testing import Recorder, reply_for
from tests.small_flows import debates, plain, tasks

OF = {"run": "first", "identity": "1234"}


def control(rounds_of: dict[str, tuple[int, ...]], **settings: Any) -> ControlEvaluator:
    return ControlEvaluator.of(debates(**settings), rounds_of, OF)


def evaluated(evaluator: DebateEvaluator, *given: Task) -> tuple[list[Evaluation], list[Call]]:
    judge = Recorder(reply_for)
    with Engine(Scripted(judge), seed=3) as engine:
        return engine.evaluate_batch(given, evaluator), judge.calls


def test_each_task_gets_as_many_rounds_as_its_debate_took() -> None:
    found, calls = evaluated(control({"t0": (3,), "t1": (1,), "t2": (2,)}), *tasks(3))
    assert [each.rounds_run for each in found] == [3, 1, 2]
    assert [each.stop_reason for each in found] == ["max_rounds"] * 3
    assert len(calls) == 2 * (3 + 1 + 2)


@pytest.mark.parametrize(
    "told",
    [{"convergence": 100.0, "token_budget": 1, "silent_readouts": True}, {"stop_rule": "rounds=1"}],
    ids=["budgets", "rule"],
)
def test_nothing_ends_it_before_and_nothing_is_read_out_silently(told: dict[str, Any]) -> None:
    found, calls = evaluated(control({"t0": (3,)}, **told), *tasks(1))
    assert (found[0].rounds_run, len(calls)) == (3, 6)


def test_nobody_hears_anybody_and_each_turn_is_drawn_anew() -> None:
    _, calls = evaluated(control({"t0": (3,)}), *tasks(1))
    prompts = {
        name: {call.prompt.texts for call in calls if call.info["agent"] == name} for name in ("Critic", "Reader")
    }
    assert [len(each) for each in prompts.values()] == [1, 1]
    assert len({call.seed for call in calls}) == 6


def test_it_is_what_independent_agents_of_the_same_settings_say() -> None:
    told: dict[str, Any] = {"weights": (1.0, 3.0), "candidate_order": "rotate", "method": "article"}
    (found,), _ = evaluated(control({"t0": (2,)}, **told), *tasks(1))
    (same,), _ = evaluated(debates(mode="independent", rounds=2, **told), *tasks(1))
    assert plain(found) == plain(same)


def test_a_balanced_debate_has_its_rounds_for_each_order() -> None:
    (found,), _ = evaluated(control({"t0": (3, 1)}, candidate_order="balanced"), *tasks(1))
    assert [each.rounds_run for each in found.members] == [3, 1]
    np.testing.assert_allclose(found.scores, np.mean([each.scores for each in found.members], axis=0))
    first, second = (next(iter(each.transcript)).labels for each in found.members)
    assert list(first.values()) == list(second.values())[::-1]


def test_where_the_debate_took_no_turn_the_panel_takes_none() -> None:
    (found,), calls = evaluated(control({"t0": (0,)}), *tasks(1))
    assert (found.status, calls) == ("failed", [])
    assert "took no turn" in (found.error or "")


def test_which_run_it_belongs_to_is_what_it_is_and_how_many_rounds_there_were_may_change() -> None:
    def shapes(found: ControlEvaluator) -> Any:
        return prompt_identity(found.describe())

    one, other = control({"t0": (1,)}), control({"t0": (2,)})
    assert shapes(one) == shapes(other)
    assert one.describe() != other.describe()
    assert shapes(one) != shapes(ControlEvaluator.of(debates(), {"t0": (1,)}, {**OF, "run": "second"}))


def test_another_evaluator_than_a_debate_has_no_control() -> None:
    with pytest.raises(ConfigError, match="a control is of a debate, and the evaluator is value"):
        ControlEvaluator.of(ValueEvaluator(), {}, OF)
    with pytest.raises(ConfigError, match="silent panel already"):
        ControlEvaluator.of(debates(mode="independent"), {}, OF)


def test_a_task_that_was_settled_without_a_debate_is_read_out_again() -> None:
    panel = control({"t0": (0,), "t1": (1,)}, settle="agreement=0.01")
    found, calls = evaluated(panel, *tasks(2))
    assert [each.stop_reason for each in found] == ["settled", "max_rounds"]
    assert len(calls) == 4
