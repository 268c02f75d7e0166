"""Logs that inspect itself wrote, in both of its forms, as eval sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debate.cli import app
from debate.dataset.evalset import EvalSet
from debate.errors import TaskError
from debate.types import Task
from tests.required import required_framework

inspect_ai: Any = required_framework("inspect_ai")
inspect_dataset: Any = required_framework("inspect_ai.dataset")
inspect_model: Any = required_framework("inspect_ai.model")
inspect_scorer: Any = required_framework("inspect_ai.scorer")
inspect_solver: Any = required_framework("inspect_ai.solver")
pytestmark = pytest.mark.filterwarnings("ignore")


def answering(answer: str) -> Any:
    """A solver that gives an answer of its own in each epoch, without a model; it fails on the input `fail`."""

    def made() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            if state.input_text == "fail":
                raise RuntimeError("the sandbox died")
            state.output = inspect_model.ModelOutput.from_content("none", f"{answer} in epoch {state.epoch}")
            return state

        return solve

    return inspect_solver.solver(name="answering")(made)()


LONG = "What is 2 + 2? " * 400
"""Long enough for whatever inspect keeps apart."""


def logged(
    folder: Path, form: str, answer: str = "4", *, inputs: tuple[Any, ...] = ("2 + 2?", LONG), **how: Any
) -> Path:
    """The log of a task of two epochs."""
    samples = [
        inspect_dataset.Sample(id=n, input=x, target="4", metadata={"group": "sums"}) for n, x in enumerate(inputs, 1)
    ]
    task = inspect_ai.Task(
        dataset=samples, solver=answering(answer), scorer=inspect_scorer.includes(), epochs=2, name="sums"
    )
    [log] = inspect_ai.eval(
        task, model="mockllm/model", log_dir=str(folder / answer), log_format=form, display="none", **how
    )
    return Path(log.location)


def tasks_of(file: Path, *more: Path) -> list[Task]:
    return [task for task, _, _ in EvalSet(file, answers=more).tasks()]


@pytest.mark.parametrize("form", ["eval", "json"])
def test_a_log_of_each_form_is_an_eval_set(tmp_path: Path, form: str) -> None:
    file = logged(tmp_path, form)
    found = {task.id: task for task in tasks_of(file)}
    assert {name: task.x for name, task in found.items()} == {"1": "2 + 2?", "2": LONG}
    first = found["1"]
    assert [each.text for each in first.candidates] == ["4 in epoch 1", "4 in epoch 2"]
    assert {each.generator for each in first.candidates} == {"mockllm/model"}
    assert first.reference == "4"
    assert first.metadata == {"group": "sums", "scores": {"includes": [1.0, 1.0]}}
    assert EvalSet(file).read().format_name == "inspect_log"


def test_both_forms_of_a_log_hold_the_same_tasks(tmp_path: Path) -> None:
    file = logged(tmp_path, "eval")
    log = required_framework("inspect_ai.log")
    log.write_eval_log(log.read_eval_log(str(file)), str(tmp_path / "same.json"), format="json")
    one, other = tasks_of(file), tasks_of(tmp_path / "same.json")
    assert {each.id: [c.text for c in each.candidates] for each in one} == {
        each.id: [c.text for c in each.candidates] for each in other
    }


def test_several_logs_are_joined_by_sample_across_forms(tmp_path: Path) -> None:
    tasks = tasks_of(logged(tmp_path, "eval", "4"), logged(tmp_path, "json", "five"))
    first = next(task for task in tasks if task.id == "1")
    said = ["4 in epoch 1", "4 in epoch 2", "five in epoch 1", "five in epoch 2"]
    assert [each.text for each in first.candidates] == said
    assert first.metadata["scores"] == {"includes": [1.0, 1.0, 0.0, 0.0]}


def test_a_conversation_is_kept_as_messages(tmp_path: Path) -> None:
    asked = [inspect_model.ChatMessageSystem(content="Be brief."), inspect_model.ChatMessageUser(content="2 + 2?")]
    [task] = tasks_of(logged(tmp_path, "eval", inputs=(asked,)))
    assert [message["role"] for message in task.messages] == ["system", "user"]


@pytest.mark.parametrize("first", [("2 + 2?", "fail"), ("fail", "2 + 2?")])
@pytest.mark.parametrize("form", ["eval", "json"])
def test_a_sample_that_failed_is_refused_with_what_completes_the_log(
    tmp_path: Path, form: str, first: tuple[str, str]
) -> None:
    file = logged(tmp_path, form, inputs=first, fail_on_error=False)
    with pytest.raises(TaskError, match=r"the sample '\d' failed: .*the sandbox died") as found:
        tasks_of(file)
    assert "inspect eval-retry" in str(found.value.hint)


@pytest.mark.parametrize("form", ["eval", "json"])
def test_an_evaluation_that_ended_in_an_error_is_refused(tmp_path: Path, form: str) -> None:
    file = logged(tmp_path, form, inputs=("2 + 2?", "fail"))
    with pytest.raises(TaskError, match="not complete: its status is 'error'"):
        tasks_of(file)


def test_a_log_is_run_like_any_eval_set(tmp_path: Path) -> None:
    command = ["run", str(logged(tmp_path, "eval", "4")), "--answers", str(logged(tmp_path, "json", "five"))]
    command += ["--backend", "debate.testing:reply_for", "--profile", "general", "--rounds", "1"]
    assert app([*command, "--out", str(tmp_path / "run")], standalone_mode=False) in (0, None)
    lines = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    assert sorted(len(json.loads(line)["scores"]) for line in lines) == [4, 4]
