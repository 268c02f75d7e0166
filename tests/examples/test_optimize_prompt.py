"""`examples/optimize_prompt.py`: it finds the best prompt through the feedback, and not without it."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import DebateEvaluator, Engine, Evaluation, Evaluations, Task
from debate.backends import Call, Scripted
from debate.errors import BackendUnavailableError
from examples import optimize_prompt as script

BEST_SENTENCES = sorted([script.START, *script.CURES.values()])


def search(
    answer: Any = None, *, examples: Any = None, steps: int = 6, engine_type: Any = Engine, **options: Any
) -> list[Any]:
    """The steps of a search over the scripted model, or another in its place."""
    with engine_type(Scripted(answer or script.scripted), seed=options.get("seed", 0)) as engine:
        optimizer = script.Optimizer(engine, DebateEvaluator("general", rounds=1), **options)
        return list(optimizer.search(script.START, examples or script.SUMS, steps))


def is_generator(call: Call) -> bool:
    return call.schema is None and call.messages[0]["content"] != script.REWRITE


def best_of(step: Any) -> str:
    return step.prompts[step.kept[0]]


def sentences(prompt: str) -> list[str]:
    return sorted(f"{part.strip()}." for part in prompt.split(".") if part.strip())


@pytest.mark.parametrize("seed", range(8))
def test_the_best_prompt_is_found_from_a_bad_one(seed: int) -> None:
    steps = search(seed=seed)
    assert sentences(best_of(steps[-1])) == BEST_SENTENCES
    assert np.nanmax(steps[-1].scores) > np.nanmax(steps[0].scores) + 8


@pytest.mark.parametrize("seed", range(4))
def test_without_the_feedback_the_best_prompt_is_not_found(seed: int) -> None:
    steps = search(seed=seed, with_feedback=False)
    assert all(sentences(prompt) != BEST_SENTENCES for step in steps for prompt in step.prompts)
    assert len({prompt for step in steps for prompt in step.prompts}) > 1  # it did rewrite


@pytest.mark.parametrize("seed", range(4))
def test_with_somebody_elses_feedback_the_best_prompt_is_not_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evaluation, "feedback", lambda self, j: "- Critic: the working is missing")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    steps = search(seed=seed)
    assert all(sentences(prompt) != BEST_SENTENCES for step in steps for prompt in step.prompts)


def test_all_debates_of_a_step_go_through_one_batch_with_every_prompt_in_each() -> None:
    batches: list[list[int]] = []

    class Counting(Engine):
        def evaluate_batch(self, tasks: Collection[Task], *arguments: Any, **settings: Any) -> Evaluations:
            batches.append([len(task.candidates) for task in tasks])
            return super().evaluate_batch(tasks, *arguments, **settings)

    steps = search(engine_type=Counting, inputs=3)
    assert batches == [[len(step.prompts)] * 3 for step in steps]


@pytest.mark.parametrize("references", [True, False])
def test_the_judges_see_the_reference_where_there_is_one(references: bool) -> None:
    shown: list[str] = []

    def answer(call: Call) -> str:
        if call.schema is not None:
            shown.append(call.messages[-1]["content"])
        return script.scripted(call)

    examples = [script.Example(each.x, each.reference if references else None) for each in script.SUMS]
    search(answer, examples=examples, steps=1)
    assert shown
    assert all(("Reference answer:\n" in text) == references for text in shown)


def test_a_prompt_without_responses_is_unscored_and_never_stays() -> None:
    def answer(call: Call) -> str:
        if is_generator(call) and "Give the unit." in call.messages[0]["content"]:
            raise ValueError("cannot")
        return script.scripted(call)

    steps = search(answer)
    mute = [(step, p) for step in steps for p, prompt in enumerate(step.prompts) if "Give the unit." in prompt]
    assert mute
    assert all(np.isnan(step.scores[p]) and p not in step.kept for step, p in mute)


def test_a_prompt_that_lacks_one_scored_input_has_no_score() -> None:
    def answer(call: Call) -> str:
        if is_generator(call) and "Show" in call.messages[0]["content"] and "boxes" in str(call.messages):
            raise ValueError("cannot")
        return script.scripted(call)

    steps = search(answer, inputs=4)
    lacking = [step.scores[p] for step in steps for p, prompt in enumerate(step.prompts) if "Show" in prompt]
    assert lacking
    assert np.isnan(lacking).all()


def test_an_input_nobody_could_score_does_not_count_against_any_prompt() -> None:
    def answer(call: Call) -> str:
        is_lost = call.schema is not None and "7 boxes" in call.messages[-1]["content"]
        return "no JSON" if is_lost else script.scripted(call)

    assert search(answer, inputs=4, steps=1)[0].scores == pytest.approx(search(inputs=4, steps=1)[0].scores)


def test_the_search_ends_where_nothing_was_scored() -> None:
    def answer(call: Call) -> str:
        return "no JSON" if call.schema is not None else script.scripted(call)

    (step,) = search(answer)
    assert step.kept == []
    assert np.isnan(step.scores).all()


def test_a_rewriters_reply_without_a_prompt_is_no_proposal() -> None:
    def answer(call: Call) -> str:
        return "Sure! Be better." if call.messages[0]["content"] == script.REWRITE else script.scripted(call)

    steps = search(answer, steps=2)
    assert [step.prompts for step in steps] == [[script.START]] * 3


def test_parents_are_drawn_by_the_softmax_of_their_scores() -> None:
    """Two prompts, 3 points apart: the weaker one is a parent in e**-3 / (1 + e**-3) = 4.7 % of the draws."""
    drawn: list[str] = []

    def answer(call: Call) -> str:
        if call.messages[0]["content"] == script.REWRITE:
            drawn.append(script.PROPOSAL.findall(call.messages[-1]["content"])[0])
        return script.scripted(call)

    with Engine(Scripted(answer)) as engine:
        optimizer = script.Optimizer(engine, DebateEvaluator("general", rounds=1), beam=2, inputs=1)
        step = optimizer.judge([script.START, f"{script.START} Give the unit."], script.SUMS[:1])
        for n in range(500):
            optimizer.rewrite(step, n)
    assert len(drawn) == 1000
    assert drawn.count(script.START) / 1000 == pytest.approx(0.047, abs=0.02)


def test_the_command_prints_the_best_prompt_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--seed", "1"]) == 0
    printed = capsys.readouterr()
    assert sentences(printed.out.strip()) == BEST_SENTENCES
    assert "step 6" in printed.err


def test_a_search_that_broke_off_is_exit_code_3_with_the_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "scripted", lambda call: "no JSON")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert script.main([]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "nothing was scored: 3 of 3 turns failed" in printed.err


def test_a_dead_backend_is_exit_code_4(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(call: Call) -> str:
        if call.schema is not None:
            raise BackendUnavailableError("the engine has gone")
        return "42"

    monkeypatch.setattr(script, "scripted", dying)
    assert script.main([]) == 4
    assert "the engine has gone" in capsys.readouterr().err


@pytest.mark.parametrize("line", ['{"x": 3}', '{"y": "q"}', "[]", '{"x": "q", "reference": ["a"]}', '{"x": "cut'])
def test_a_faulty_line_of_data_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text(json.dumps({"x": "Good?"}) + "\n\n" + line + "\n")
    with pytest.raises(script.TaskError, match=r"train\.jsonl:3"):
        script.read_examples(data)


def test_data_is_read_with_references_and_without(tmp_path: Path) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text('{"x": "One?"}\n{"x": "Two?", "reference": "2"}\n')
    assert script.read_examples(data) == [script.Example("One?"), script.Example("Two?", "2")]
