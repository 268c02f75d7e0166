"""The batch evaluator by itself, and under `optimize_anything` of GEPA itself, with scripted models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from debate import Engine, Judge, Task
from debate.adapters.gepa import Pair, batch_evaluator, task_of
from debate.backends import Scripted
from debate.errors import ConfigError, TaskError, UnscoredError
from tests.adapters.by_answer import ByAnswer
from tests.required import required_framework
from tests.small_flows import debates

GOOD = "add the numbers one by one"


@pytest.fixture
def script() -> ByAnswer:
    return ByAnswer()


@pytest.fixture
def judge(script: ByAnswer) -> Iterator[Judge]:
    with Engine(Scripted(script.answer)) as engine:
        yield Judge(engine, debates(retries=0), on_unscored="fallback", fallback=0.0)


def obeys(pairs: Sequence[Pair]) -> list[str | None]:
    """A program whose answers are good under a good prompt; it has none to what is empty."""
    return [None if example == "" else "9" if GOOD in prompt else "1" for prompt, example in pairs]


def test_the_candidates_of_one_example_are_one_debate(judge: Judge, script: ByAnswer) -> None:
    def respond(pairs: Sequence[Pair]) -> list[str]:
        return [prompt for prompt, _ in pairs]

    found = batch_evaluator(judge, respond)([("7", "1 + 1?"), ("3", "2 + 2?"), ("5", "1 + 1?"), ("7", "1 + 1?")])
    assert [score for score, _ in found] == pytest.approx([0.7, 0.3, 0.5, 0.7])
    assert len(script.tasks) == 2
    info = found[2][1]
    assert info["scores"] == pytest.approx({"clarity": 0.5, "truth": 0.5})
    assert (info["Input"], info["Output"]) == ("1 + 1?", "5")
    assert info["Feedback"].startswith("Candidate 2 of 2: ")
    assert "Error" not in info


def test_an_anchor_stands_beside_the_responses(judge: Judge) -> None:
    evaluate = batch_evaluator(judge, lambda pairs: ["7" for _ in pairs], against=lambda example: "2")
    [(score, info)] = evaluate([("prompt", "1 + 1?")])
    assert score == pytest.approx(0.7)
    assert info["Feedback"].startswith("Candidate 1 of 2: ")
    [(_, alone)] = batch_evaluator(judge, lambda pairs: ["2"], against=lambda example: "2")([("prompt", "1 + 1?")])
    assert alone["Feedback"].startswith("Candidate 1 of 1: ")


def test_what_has_no_score_and_what_has_no_response_have_the_fallback_and_its_reason(judge: Judge) -> None:
    evaluate = batch_evaluator(judge, lambda pairs: [None if prompt == "silent" else "5" for prompt, _ in pairs])
    silent, riddle, good = evaluate([("silent", "1 + 1?"), ("p", "a riddle"), ("p", "1 + 1?")])
    assert (silent[0], riddle[0]) == (0.0, 0.0)
    assert good[0] == pytest.approx(0.5)
    assert silent[1]["Error"] == "unscored: no response"
    assert riddle[1]["Error"].startswith("unscored: ")
    assert riddle[1]["Feedback"].startswith("Candidate 1 was not scored: ")


def test_without_a_fallback_both_are_raised(script: ByAnswer) -> None:
    with Engine(Scripted(script.answer)) as engine:
        judge = Judge(engine, debates(retries=0))
        for response in (None, "5"):
            with pytest.raises(UnscoredError):
                batch_evaluator(judge, lambda pairs, it=response: [it])([("p", "a riddle")])


@pytest.mark.parametrize("texts", [["only one"], ["one", 2], []])
def test_a_function_that_does_not_answer_each_pair_is_refused(judge: Judge, texts: Any) -> None:
    with pytest.raises(ConfigError, match="respond: must return 2 texts"):
        batch_evaluator(judge, lambda pairs: texts)([("p", "a"), ("p", "b")])


def test_examples_are_texts_or_mappings_or_need_a_function(judge: Judge) -> None:
    assert task_of({"x": "2 + 2?", "reference": 4}, ["5"]).reference == "4"
    assert task_of({"x": "2 + 2?"}, ["5"]).x == "2 + 2?"
    with pytest.raises(TaskError, match="example: must be a text, or a mapping with `x`"):
        task_of(4, ["5"])
    evaluate = batch_evaluator(judge, lambda pairs: ["6"], task=lambda example, texts: Task(f"{example} + 1?", texts))
    assert evaluate([("p", 4)])[0][1]["Input"] == "4 + 1?"


def test_gepa_goes_from_a_bad_prompt_to_a_good_one_past_an_unscored_example(judge: Judge, script: ByAnswer) -> None:
    oa = required_framework("gepa.optimize_anything")
    shown: list[str] = []

    def reflect(prompt: Any) -> str:
        shown.append(str(prompt))
        return f"```\n{GOOD if 'one by one' in str(prompt) else 'answer in some other way'}\n```"

    dataset = ["1 + 1?", "2 + 2?", "3 + 3?", "a riddle"]
    config = oa.GEPAConfig(
        engine=oa.EngineConfig(max_metric_calls=40, frontier_type="hybrid", display_progress_bar=False),
        reflection=oa.ReflectionConfig(reflection_lm=reflect),
    )
    found = oa.optimize_anything(
        seed_candidate="answer somehow", batch_evaluator=batch_evaluator(judge, obeys), dataset=dataset, config=config
    )
    assert found.best_candidate == GOOD
    assert found.val_aggregate_scores[found.best_idx] == pytest.approx(0.9 * 3 / 4)
    assert len(script.tasks) <= 4 * 2, "each pair of an example and its responses is paid once"
    assert any("was not scored" in prompt for prompt in shown)
