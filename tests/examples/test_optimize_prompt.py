"""`examples/optimize_prompt.py`: it finds the best prompt through the feedback, and not without it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from debate import Engine, Evaluations, Task
from debate.backends import Call, Scripted
from debate.errors import BackendUnavailableError
from examples import optimize_prompt as script
from tests.small_flows import debates

SEEDS = range(20)


def scripted(call: Call) -> str:
    """Program, rewriter and judge in one model."""
    return script.write(call) if call.schema is None else script.judge_answers(call)


def searches(
    seeds: Collection[int],
    answer: Any = scripted,
    *,
    examples: Any = None,
    steps: int = 7,
    engine_type: Any = Engine,
    **options: Any,
) -> list[list[Any]]:
    """The steps of searches over the scripted model, or another in its place, all side by side."""
    evaluator = debates(rounds=1, retries=0)
    with engine_type(Scripted(answer), seed=min(seeds)) as engine:
        optimizers = [script.Optimizer(engine, evaluator, seed=seed, **options) for seed in seeds]
        return asyncio.run(script.search_all(optimizers, script.START, examples or script.questions(0, each=1), steps))


def search(answer: Any = scripted, **options: Any) -> list[Any]:
    (steps,) = searches([0], answer, **options)
    return steps


def is_response(call: Call) -> bool:
    return call.schema is None and call.messages[0]["content"] != script.REWRITE


def best_of(step: Any) -> str:
    return step.prompts[step.kept[0]]


def cured(found: list[list[Any]]) -> list[int]:
    """How many of the four sentences each search's best prompt has."""
    return [sum(cure in best_of(steps[-1]) for cure in script.CURES.values()) for steps in found]


def test_the_judges_words_lead_from_a_bad_prompt_to_a_good_one_and_no_or_others_words_do_not() -> None:
    by_feedback = {feedback: searches(SEEDS, feedback=feedback, steps=6) for feedback in get_args(script.Feedback)}
    best = cured(by_feedback["judges"])
    assert sum(n == 4 for n in best) >= 17
    gain = [np.nanmax(steps[-1].scores) - np.nanmax(steps[0].scores) for steps in by_feedback["judges"]]
    assert min(gain) > 2
    for control in ("none", "shuffled"):
        worse = cured(by_feedback[control])
        assert np.mean(worse) < np.mean(best) - 0.5
        assert sum(n == 4 for n in worse) <= 10
        assert all(len({prompt for step in steps for prompt in step.prompts}) > 4 for steps in by_feedback[control])


def test_small_batches_of_many_searches_share_the_engines_batch() -> None:
    now, most, batches = 0, 0, 0

    async def answer(call: Call) -> str:
        nonlocal now, most
        now += call.schema is not None
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= call.schema is not None
        return scripted(call)

    class Counting(Engine):
        async def aevaluate_batch(self, tasks: Collection[Task], *arguments: Any, **settings: Any) -> Evaluations:
            nonlocal batches
            batches += 1
            return await super().aevaluate_batch(tasks, *arguments, **settings)

    searches(range(70), answer, engine_type=Counting, steps=2, inputs=1)
    assert batches == 210
    assert most > 35, "a search by itself has one call under way"


def test_all_debates_of_a_step_go_through_one_batch_with_every_prompt_in_each() -> None:
    batches: list[list[int]] = []

    class Counting(Engine):
        async def aevaluate_batch(self, tasks: Collection[Task], *arguments: Any, **settings: Any) -> Evaluations:
            batches.append([len(task.candidates) for task in tasks])
            return await super().aevaluate_batch(tasks, *arguments, **settings)

    steps = search(engine_type=Counting, inputs=3)
    assert batches == [[len(step.prompts)] * 3 for step in steps]


def test_the_best_of_several_searches_is_judged_beside_the_others() -> None:
    good = " ".join([script.START, *script.CURES.values()])

    async def best(prompts: list[str]) -> str | None:
        with Engine(Scripted(scripted)) as engine:
            optimizer = script.Optimizer(engine, debates(rounds=1))
            ended = [[script.Step([prompt], [], [], [0], np.array([5.0]))] for prompt in prompts]
            broken_off = [script.Step(["lost"], [], [], [], np.array([np.nan]))]
            return await script.best_of(optimizer, [*ended, broken_off], script.questions(0, each=1))

    assert asyncio.run(best([script.START, good, f"{script.START} Be brief."])) == good
    assert asyncio.run(best([script.START])) == script.START
    assert asyncio.run(best([])) is None


@pytest.mark.parametrize("references", [True, False])
def test_the_judges_see_the_reference_where_there_is_one(references: bool) -> None:
    shown: list[str] = []

    def answer(call: Call) -> str:
        if call.schema is not None:
            shown.append(call.messages[-1]["content"])
        return scripted(call)

    examples = [script.Example(each.x, "42" if references else None) for each in script.questions(0, each=1)]
    search(answer, examples=examples, steps=1)
    assert shown
    assert all(("Reference answer:\n" in text) == references for text in shown)


def test_a_prompt_without_responses_is_unscored_and_never_stays() -> None:
    def answer(call: Call) -> str:
        if is_response(call) and script.CURES["sums"] in call.messages[0]["content"]:
            raise ValueError("cannot")
        return scripted(call)

    steps = search(answer)
    mute = [(step, p) for step in steps for p, prompt in enumerate(step.prompts) if script.CURES["sums"] in prompt]
    assert mute
    assert all(np.isnan(step.scores[p]) and p not in step.kept for step, p in mute)


def test_a_prompt_that_lacks_one_scored_input_has_no_score() -> None:
    def answer(call: Call) -> str:
        if is_response(call) and script.CURES["sums"] in str(call.messages) and "Sort" in str(call.messages):
            raise ValueError("cannot")
        return scripted(call)

    steps = search(answer, inputs=4)
    cure = script.CURES["sums"]
    lacking = [step.scores[p] for step in steps for p, prompt in enumerate(step.prompts) if cure in prompt]
    assert lacking
    assert np.isnan(lacking).all()


def test_an_input_nobody_could_score_does_not_count_against_any_prompt() -> None:
    def answer(call: Call) -> str:
        is_lost = call.schema is not None and "Sort" in call.messages[-1]["content"]
        return "no JSON" if is_lost else scripted(call)

    others = [each for each in script.questions(0, each=1) if "Sort" not in each.x]
    every = search(answer, inputs=4, steps=1)[0].scores
    assert every == pytest.approx(search(examples=others, inputs=4, steps=1)[0].scores)


def test_the_search_ends_where_nothing_was_scored() -> None:
    def answer(call: Call) -> str:
        return "no JSON" if call.schema is not None else scripted(call)

    (step,) = search(answer)
    assert step.kept == []
    assert np.isnan(step.scores).all()


def test_a_rewriters_reply_without_a_prompt_is_no_proposal() -> None:
    def answer(call: Call) -> str:
        return "Sure! Be better." if call.messages[0]["content"] == script.REWRITE else scripted(call)

    steps = search(answer, steps=2)
    assert [step.prompts for step in steps] == [[script.START]] * 3


def test_parents_are_drawn_by_the_softmax_of_their_scores() -> None:
    """The weaker one of two prompts that are d apart is a parent in e**-d / (1 + e**-d) of the draws."""
    drawn: list[str] = []

    def answer(call: Call) -> str:
        if call.messages[0]["content"] == script.REWRITE:
            drawn.append(script.PROPOSAL.findall(call.messages[-1]["content"])[0])
        return scripted(call)

    async def draw() -> float:
        with Engine(Scripted(answer)) as engine:
            optimizer = script.Optimizer(engine, debates(rounds=1), beam=2, inputs=1)
            good = f"{script.START} {script.CURES['sums']}"
            step = await optimizer.judge([script.START, good], script.questions(0, each=1)[:1])
            for n in range(500):
                await optimizer.rewrite(step, n)
            return float(step.scores[1] - step.scores[0])

    apart = asyncio.run(draw())
    assert len(drawn) == 1000
    assert drawn.count(script.START) / 1000 == pytest.approx(1 / (1 + np.exp(apart)), abs=0.02)


def test_the_command_prints_the_best_prompt_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--backend", "scripted", "--seed", "1", "--steps", "5", "--searches", "2"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(script.START)
    assert printed.out.count("For ") >= 3
    assert printed.out.count("\n") == 1
    assert "the program and its rewriter are scripted; the judgments are scripted, too" in printed.err
    assert "search 1, step 5" in printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "train.jsonl"], "give a --model"),
        (["--with", "gepa", "--model", "m", "--data", "train.jsonl"], "a scripted student alone"),
        (["--searches", "0"], "must be at least 1"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_search_that_broke_off_is_exit_code_3_with_the_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "judge_answers", lambda call: "no JSON")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert script.main([]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "nothing was scored: 3 of 3 turns failed" in printed.err


def test_a_dead_backend_is_exit_code_4(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(call: Call) -> str:
        raise BackendUnavailableError("the engine has gone")

    monkeypatch.setattr(script, "judge_answers", dying)
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
