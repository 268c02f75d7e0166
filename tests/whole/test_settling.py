"""Silent rounds of the bundled judge on vLLM: what they settle, and what they cost beside a debate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from debate import DebateEvaluator, Engine, Task, bundled_judge

TASKS = [
    Task("16+24?", ["40", "42", "28", "39"], id="sum"),
    Task("Take 4 from 30.", ["26", "34", "24"], id="difference"),
    Task("Largest of 60 70 89?", ["70", "89", "60"], id="largest"),
    Task("Add 44 and 81.", ["125", "124", "115"], id="another sum"),
]


def evaluator(**settings: Any) -> DebateEvaluator:
    return replace(bundled_judge.evaluator(), rounds=1, **settings)


def test_a_rule_that_everything_passes_settles_all_and_decodes_little(judge_engine: Engine) -> None:
    settled = judge_engine.evaluate_batch(TASKS, evaluator(settle="p_best=0.01"))
    debated = judge_engine.evaluate_batch(TASKS, evaluator())
    ended = [each for each in settled if each.stop_reason == "settled"]
    assert ended, "where two candidates share the best score, a task is debated"
    for each in ended:
        other = debated[[task.id for task in TASKS].index(each.task_id)]
        assert each.selected == int(each.scores.argmax())
        assert each.p_best is not None
        assert abs(each.p_best.sum() - 1) < 1e-9
        assert each.usage.calls == len(each.agents)
        assert each.usage.completion_tokens < other.usage.completion_tokens


def test_what_a_silent_round_leaves_in_doubt_is_debated_as_without_a_rule(judge_engine: Engine) -> None:
    strict = judge_engine.evaluate_batch(TASKS, evaluator(settle="p_best=1"))
    debated = judge_engine.evaluate_batch(TASKS, evaluator())
    assert "settled" not in {each.stop_reason for each in strict}
    assert [each.selected for each in strict] == [each.selected for each in debated]
    assert all(each.before for each in strict)
