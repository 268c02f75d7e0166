"""Rubrics of single tasks, from an eval set through a run to what is made of it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import debate
from debate import DebateEvaluator
from debate.backends import Scripted
from debate.dataset.evalset import EvalSet
from debate.errors import InputError, TaskError
from debate.jobs.run import Run
from debate.meta_evaluation.compare import compare
from debate.meta_evaluation.fitting import fit
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.meta_evaluation.labeling import blind_items, draw_sample, rating_of
from debate.meta_evaluation.stopping import try_rules
from debate.meta_evaluation.trust import agree
from debate.testing import Recorder, SilentListener, reply_for
from tests.meta_evaluation.small_runs import rubric, scripted_run

TASKS: list[dict[str, Any]] = [
    {
        "id": f"t{n}",
        "x": f"{n}?",
        "candidates": ["a", "b", "c"],
        "best": n % 3,
        "components": rubric(n) if n % 2 else [],
    }
    for n in range(8)
]
LABELED = [{**task, "metadata": {"scores": {"own": [1, 2, 3], "accuracy": [3, 2, 1]}}} for task in TASKS]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    return scripted_run(tmp_path_factory.mktemp("run"), LABELED, DebateEvaluator("general", rounds=2))


def test_every_task_keeps_the_components_that_it_was_scored_on(run: JudgedRun) -> None:
    own = [task.components[5:] for task in run.tasks]
    assert own == [("own", f"of {n}") if n % 2 else () for n in range(8)]
    task, evaluation = run.evaluation("t3")
    assert [component.name for component in task.components] == ["own", "of 3"]
    assert evaluation.components == run.tasks[3].components


def test_figures_of_components_are_grouped_by_name(run: JudgedRun) -> None:
    found = {each.name: each for each in agree(run).components}
    assert found["accuracy"].correlation.n == 24
    assert found["own"].correlation.n == 12  # of the tasks that have it
    assert not found["own"].is_whole


def test_rules_are_tried_under_the_weights_of_each_task(run: JudgedRun) -> None:
    found = try_rules(run)
    whole = next(trial for trial in found.trials if trial.rule == "rounds=1" and trial.agents == 3)
    assert (found.tasks, whole.undecided) == (8, 0)
    assert found.recorded.same_choice.estimate == 1


def test_runs_with_the_same_rubrics_are_compared(run: JudgedRun) -> None:
    found = compare(run, run)
    assert found.scores.difference.estimate == 0


def test_weights_are_not_fitted_to_tasks_that_share_none(run: JudgedRun) -> None:
    sentence = "has 4, besides 4 with components of their own, which share no weights"
    with pytest.raises(InputError, match=sentence):
        fit(run)


def test_an_export_names_the_component_of_every_score(run: JudgedRun) -> None:
    rows = [row for row in debate.load(run.directory.path).table("scores") if row["task"] == "t5"]
    assert {row["component"] for row in rows} >= {"accuracy", "own", "of 5"}
    assert not any(math.isnan(row["score"]) for row in rows)


def test_people_are_asked_about_the_components_of_the_task_alone(run: JudgedRun) -> None:
    assert rating_of(run).components == run.tasks[0].components
    items = {item.task_id: item for item in blind_items(run, draw_sample(run, 8, is_scored=True), "anna")}
    assert items["t0"].components == ()
    assert items["t3"].components == run.tasks[3].components


def job(path: Path, evaluator: DebateEvaluator) -> Run:
    return Run(evalset=EvalSet(path), folder=path.parent, evaluator=evaluator)


def test_a_run_goes_on_without_asking_again(tmp_path: Path) -> None:
    evaluator, recorder = DebateEvaluator("general", rounds=1), Recorder(reply_for)
    scripted_run(tmp_path, TASKS[:2], evaluator)
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in TASKS[:3]))
    job(path, evaluator).execute({"scripted": Scripted(recorder)}, SilentListener())
    assert {call.info["task_id"] for call in recorder.calls} == {"t2"}
    assert len(read_run(tmp_path).tasks) == 3


def test_a_changed_rubric_is_another_task(tmp_path: Path) -> None:
    scripted_run(tmp_path, TASKS[:2], evaluator := DebateEvaluator("general", rounds=1))
    path = tmp_path / "tasks.jsonl"
    path.write_text(path.read_text().replace("How it is.", "How it was."))
    with pytest.raises(TaskError, match="the run has another task of the id 't1'") as caught:
        job(path, evaluator).execute({"scripted": Scripted(reply_for)}, SilentListener())
    assert caught.value.line == 2


def test_a_name_of_the_profile_is_refused_with_its_line_before_anything_is_asked(tmp_path: Path) -> None:
    taken = {**TASKS[0], "components": [{"name": "Accuracy", "description": "d"}]}
    with pytest.raises(TaskError, match="is a component of the profile 'general', too") as caught:
        scripted_run(tmp_path, [TASKS[1], taken], DebateEvaluator("general"))
    assert (caught.value.line, caught.value.field) == (2, "components.0.name")
