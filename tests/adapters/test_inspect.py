"""The scorer in inspect itself, in a task and on a log that is there already, under asyncio and trio."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from debate import Engine, Judge
from debate.backends import Call, Scripted
from tests.adapters.by_answer import ByAnswer, Late
from tests.required import required_framework
from tests.scripts_loader import REPOSITORY
from tests.small_flows import Stalling, debates

inspect_ai: Any = required_framework("inspect_ai")
inspect_dataset: Any = required_framework("inspect_ai.dataset")
inspect_model: Any = required_framework("inspect_ai.model")
inspect_solver: Any = required_framework("inspect_ai.solver")
pytestmark = pytest.mark.filterwarnings("ignore")
CONFIG = "backend: tests.adapters.test_inspect:script\nprofile: general\nrounds: 1\n"


def script(call: Call) -> str:
    """For a process of inspect's own: every score is 7, and a riddle gets no readable reply."""
    assert call.schema is not None
    if "riddle" in call.messages[-1]["content"]:
        return "I cannot say."
    names = call.schema["properties"]["candidates"]["properties"]["A"]["properties"]["scores"]["properties"]
    each = {"comment": "fine", "scores": dict.fromkeys(names, 7)}
    return json.dumps({"overall": "so it is", "candidates": dict.fromkeys(call.info["labels"], each)})


def answers() -> Any:
    """A solver that answers by what the sample's metadata say, without a model."""

    def made() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            state.output = inspect_model.ModelOutput.from_content("none", state.metadata["answer"])
            return state

        return solve

    return inspect_solver.solver(name="answers")(made)()


def evaluated(tmp_path: Path, texts: list[tuple[str, str]], scorer: Any = None, form: str = "eval") -> Any:
    """The log of a task whose samples have these inputs and answers."""
    samples = [inspect_dataset.Sample(input=x, target="4", metadata={"answer": answer}) for x, answer in texts]
    task = inspect_ai.Task(dataset=samples, solver=answers(), scorer=scorer)
    [log] = inspect_ai.eval(
        task,
        model="mockllm/model",
        log_dir=str(tmp_path),
        log_format=form,
        display="none",
        max_samples=len(samples),
    )
    assert log.status == "success", log.error
    return log


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_of_200_samples_at_once_what_is_unscored_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str
) -> None:
    monkeypatch.setenv("INSPECT_ASYNC_BACKEND", loop)
    from debate.adapters.inspect import as_scorer

    late = Late(ByAnswer().answer, 0.5)
    texts = [(f"{n} + 2?", "8") for n in range(198)] + [("a riddle", "8"), ("5 + 5?", "a secret 8")]
    with Engine(Scripted(late.answer, slots=256), max_concurrency=256) as engine:
        judge = Judge(engine, debates(retries=0, rounds=1, abstain=True))
        log = evaluated(tmp_path, texts, as_scorer(judge))
    found = {score.name: (score.scored_samples, score.unscored_samples) for score in log.results.scores}
    assert found == {"overall": (198, 2), "clarity": (199, 1), "truth": (198, 2)}
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert means == pytest.approx({"overall": 0.8, "clarity": 0.8, "truth": 0.8})
    assert late.most > 100, "samples are judged side by side"
    scores = {sample.input: next(iter(sample.scores.values())) for sample in log.samples}
    assert math.isnan(scores["a riddle"].value["overall"])
    assert scores["a riddle"].reason == "scoring_failed"
    assert "was not scored" in scores["a riddle"].explanation


def test_judges_see_the_choices_of_a_sample_in_a_task_and_in_a_log_that_was_written(tmp_path: Path) -> None:
    from debate.adapters.inspect import as_scorer

    shown: list[str] = []

    def script(call: Call) -> str:
        shown.append(call.messages[-1]["content"])
        return ByAnswer().answer(call)

    sample = inspect_dataset.Sample(input="2 + 2?", choices=["three", "four"], target="B", metadata={"answer": "8"})
    with Engine(Scripted(script)) as engine:
        scorer = as_scorer(Judge(engine, debates(retries=0, rounds=1)))
        task = inspect_ai.Task(dataset=[sample], solver=answers(), scorer=scorer)
        [log] = inspect_ai.eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
        in_task = len(shown)
        inspect_ai.score(log, scorer, display="none")
    assert in_task > 0
    assert len(shown) == in_task, "an equal sample is judged once"
    assert all("A) three\nB) four" in text for text in shown)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_sample_that_is_cancelled_cancels_its_calls(loop: str) -> None:
    from debate.adapters.inspect import as_scorer

    script, anyio = Stalling(), required_framework("anyio")
    state = SimpleNamespace(input_text="2 + 2?", output=inspect_model.ModelOutput.from_content("none", "4"))
    target = required_framework("inspect_ai.scorer").Target("4")

    async def cancelled() -> bool:
        async with anyio.create_task_group() as group:
            group.start_soon(scoring, state, target)
            await anyio.to_thread.run_sync(script.asked.wait, 20)
            group.cancel_scope.cancel()
        return script.cancelled.wait(20)

    with Engine(Scripted(script.answer)) as engine:
        scoring = as_scorer(Judge(engine, debates(retries=0, rounds=1)))
        assert anyio.run(cancelled, backend=loop)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize("form", ["eval", "json"])
def test_a_log_of_200_samples_is_scored_after_the_fact_by_the_name_of_the_scorer(
    tmp_path: Path, loop: str, form: str
) -> None:
    log = evaluated(tmp_path, [*((f"{n} + 2?", "4") for n in range(199)), ("a riddle", "4")], form=form)
    (tmp_path / "judge.yaml").write_text(CONFIG, encoding="utf-8")
    scored = tmp_path / f"scored.{form}"
    command = [sys.executable, "-m", "inspect_ai", "score", log.location, "--scorer", "debate/debate"]
    command += ["-S", f"config={tmp_path}/judge.yaml", "--action", "append", "--output-file", str(scored)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "INSPECT_ASYNC_BACKEND": loop}
    done = subprocess.run(
        [*command, "--display", "plain"], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = required_framework("inspect_ai.log").read_eval_log(str(scored)).results
    found = {score.name: score for score in results.scores}
    assert found["overall"].metrics["mean"].value == pytest.approx(0.7)
    assert {(each.scored_samples, each.unscored_samples) for each in found.values()} == {(199, 1)}
    assert len(found) > 1
