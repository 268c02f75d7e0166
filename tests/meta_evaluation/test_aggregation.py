"""Parts of recorded debates are aggregated as the run aggregated the whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import DebateEvaluator, ValueEvaluator
from debate.meta_evaluation.aggregation import Aggregation, choice_of, debates_of
from debate.meta_evaluation.judged import JudgedRun
from debate.scoring import normalize_tensor
from tests.meta_evaluation.small_runs import rubric, scripted_run

TASKS = [{"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b", "c", "d"][: 2 + n % 3]} for n in range(3)]
WEIGHTS = (1.0, 0.25, 0.0, 0.5, 2.0)


def debates(folder: Path, **settings: Any) -> JudgedRun:
    evaluator = DebateEvaluator("general", rounds=3, convergence=0.45, **settings)
    return scripted_run(folder, TASKS, evaluator)


def of(run: JudgedRun) -> Aggregation:
    found = Aggregation.of_run(run)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    return debates(tmp_path_factory.mktemp("run"), weights=WEIGHTS, min_rounds=2, over="cells", quorum=2)


@pytest.mark.parametrize(
    "settings",
    [{}, {"method": "mk1", "weights": WEIGHTS}, {"quorum": 3, "abstain": True}, {"candidate_order": "balanced"}],
    ids=["default", "mk1", "quorum", "balanced"],
)
def test_the_whole_tensor_has_the_scores_of_the_run(tmp_path: Path, settings: dict[str, Any]) -> None:
    run = debates(tmp_path, **settings)
    assert max(len(debate.cv) for task in run.tasks for debate in debates_of(task)) > 1
    for scores, task in zip(of(run).scores_of(run.tasks, lambda tensor: tensor), run.tasks, strict=True):
        np.testing.assert_allclose(scores, task.scores, rtol=1e-12)
        assert choice_of(scores) == task.choice


@pytest.mark.parametrize("settings", [{}, {"task_components": "instead"}, {"candidate_order": "balanced"}])
def test_tasks_with_components_of_their_own_are_aggregated_under_their_weights(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    tasks = [{**TASKS[0], "components": rubric(0)}, TASKS[1], {**TASKS[2], "components": rubric(2)}]
    evaluator = DebateEvaluator("general", rounds=2, weights=WEIGHTS, **settings)
    run = scripted_run(tmp_path, tasks, evaluator)
    is_beside = "task_components" not in settings
    assert of(run).weights_of(run.tasks[0]).tolist() == [*(WEIGHTS if is_beside else ()), 0.25, 0.5]
    assert of(run).weights_of(run.tasks[1]).tolist() == [*WEIGHTS]
    for scores, task in zip(of(run).scores_of(run.tasks, lambda tensor: tensor), run.tasks, strict=True):
        np.testing.assert_allclose(scores, task.scores, rtol=1e-12)


def test_a_part_is_aggregated_like_the_whole(run: JudgedRun) -> None:
    found = of(run).scores_of(run.tasks, lambda tensor: tensor[-1:, [1]])
    for scores, task in zip(found, run.tasks, strict=True):
        assert task.tensor is not None
        np.testing.assert_allclose(scores, normalize_tensor(task.tensor[-1:, [1]], WEIGHTS, "weighted_mean", 1))


def test_a_part_that_a_task_does_not_have_is_unscored(run: JudgedRun) -> None:
    assert np.isnan(of(run).scores_of(run.tasks[:1], lambda tensor: tensor[3:4])[0]).all()


def test_a_quorum_is_never_larger_than_the_panel(run: JudgedRun) -> None:
    assert [of(run).quorum_of(n) for n in (1, 2, 5)] == [1, 2, 2]
    assert [replace(of(run), quorum=None).quorum_of(n) for n in (1, 2, 5)] == [1, 2, 3]


def test_the_rules_that_end_a_debate_are_read_too(run: JudgedRun) -> None:
    found = of(run)
    assert (found.rounds, found.convergence, found.over, found.min_rounds) == (3, 0.45, "cells", 2)


def test_evaluators_without_a_tensor_have_no_aggregation(tmp_path: Path) -> None:
    assert Aggregation.of_run(scripted_run(tmp_path, TASKS, ValueEvaluator())) is None


def test_a_choice_names_all_that_tie() -> None:
    assert choice_of(np.array([1.0, 3.0, 3.0, np.nan])) == (1, 2)
    assert choice_of(np.array([1.0, 3.0])) == (1,)
    assert choice_of(np.full(2, np.nan)) == ()
