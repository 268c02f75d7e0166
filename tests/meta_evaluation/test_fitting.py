"""Fitted weights: planted ones are found again, and where there is nothing to gain it is said."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import DebateEvaluator, ValueEvaluator
from debate.dataset.labels import Labels, Opinion
from debate.errors import InputError
from debate.evaluation import plain
from debate.jobs.run_directory import RunDirectory
from debate.meta_evaluation.fitting import fit
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.scoring import normalize_tensor, softmax
from debate.statistics import fit_temperature
from debate.types import FloatArray, Usage
from tests.driving import panel
from tests.meta_evaluation.small_runs import scripted_run

Say = Callable[[np.random.Generator, FloatArray], Opinion]


def simulated(
    n_tasks: int,
    say: Say,
    *,
    n_candidates: int = 3,
    noise: tuple[float, ...] = (1.0, 1.0, 1.0),
    seed: int = 0,
    **settings: Any,
) -> JudgedRun:
    """A run whose agents see 3 qualities of each candidate, each agent with a noise of its own; `say` is of people."""
    random, n_agents = np.random.default_rng(seed), len(noise)
    evaluator = DebateEvaluator(panel(n_agents, 3), **settings)
    tasks: list[Judged] = []
    for n in range(n_tasks):
        qualities = random.normal(5, 1.5, (n_candidates, 3))  # (J, K)
        blur = random.normal(size=(2, n_agents, n_candidates, 3)) * np.array(noise)[None, :, None, None]
        tensor = np.clip(qualities + blur, 0, 10)  # (R, I, J, K)
        scores = normalize_tensor(tensor, evaluator.component_weights, evaluator.method)
        tasks.append(judged(f"t{n}", tensor, scores, say(random, qualities), evaluator))
    return JudgedRun(RunDirectory(Path("run"), "run"), tasks, {"evaluator": evaluator.describe()})


def judged(task_id: str, tensor: FloatArray, scores: FloatArray, said: Opinion, by: DebateEvaluator) -> Judged:
    rest: dict[str, Any] = {"metadata": {}, "generators": (), "lengths": np.zeros(0), "turns": (), "status": "ok"}
    return Judged(
        task_id=task_id, labels=Labels(said), scores=scores, choice=(int(scores.argmax()),), scale=by.scale,
        probabilities=softmax(scores), tensor=tensor, agents=tuple(each.name for each in by.personas),
        components=tuple(each.name for each in by.components), cv=np.zeros(len(tensor)), stop_reason="max_rounds",
        order_agreement=None, usage=Usage(), **rest,
    )  # fmt: skip


def choosing_by(*weights: float) -> Say:
    """People who choose by these weights and some chance, as in the model of Bradley, Terry and Luce."""

    def say(random: np.random.Generator, qualities: FloatArray) -> Opinion:
        return Opinion(len(qualities), best=(int((qualities @ weights + random.gumbel(size=len(qualities))).argmax()),))

    return say


def scoring_by(*weights: float) -> Say:
    def say(random: np.random.Generator, qualities: FloatArray) -> Opinion:
        scores = 1 + qualities @ weights / 3 + random.normal(0, 0.3, len(qualities))
        return Opinion(len(qualities), scores={"overall": scores})

    return say


def test_planted_weights_of_components_are_found_again() -> None:
    found = fit(simulated(600, choosing_by(2.0, 0.0, 1.0), noise=(0.3,) * 3))
    np.testing.assert_allclose(found.components.new, [1.0, 0.0, 0.5], atol=0.08)
    assert found.components.is_better
    assert found.components.held_out_new.estimate > found.components.held_out_old.estimate + 0.05
    assert found.settings()["weights"] == dict(zip(("c0", "c1", "c2"), found.components.new, strict=True))


def test_planted_weights_are_found_from_scores_on_a_scale_of_their_own() -> None:
    found = fit(simulated(300, scoring_by(1.0, 0.25, 0.0), noise=(0.2,) * 3))
    assert found.measure == "scores"
    np.testing.assert_allclose(found.components.new, [1.0, 0.25, 0.0], atol=0.05)
    assert found.components.is_better
    assert -found.components.held_out_new.estimate == pytest.approx(0.3 * np.sqrt(2 / np.pi), rel=0.15)


def test_scores_of_single_candidates_are_enough() -> None:
    found = fit(simulated(300, scoring_by(0.0, 1.0, 0.0), n_candidates=1, noise=(0.2,) * 3))
    np.testing.assert_allclose(found.components.new, [0.0, 1.0, 0.0], atol=0.05)
    assert found.calibration is None


def test_an_agent_that_sees_little_has_a_small_weight() -> None:
    found = fit(simulated(400, choosing_by(2.0, 2.0, 2.0), noise=(0.5, 0.5, 8.0)))
    assert found.agents is not None
    assert found.agents.new[2] < 0.15 < 0.7 < min(found.agents.new[:2])
    assert found.agents.is_better
    assert found.agents.names == ("agent0", "agent1", "agent2")


def test_one_agent_alone_has_no_weight() -> None:
    assert fit(simulated(30, choosing_by(1.0, 1.0, 1.0), noise=(1.0,))).agents is None


@pytest.mark.parametrize("n", [15, 40, 400])
def test_where_the_old_weights_are_the_true_ones_they_are_kept(n: int) -> None:
    found = fit(simulated(n, choosing_by(1.0, 1.0, 1.0)))
    assert not found.components.is_better
    assert "weights" not in found.settings()
    assert found.settings(force=True).keys() >= {"weights"}


def test_gains_are_seldom_seen_where_there_are_none() -> None:
    """An interval of 95 % lies above 0 in 2.5 % of cases; 25 of them hold at most 3 with a probability of 99.6 %."""
    runs = (simulated(40, choosing_by(1.0, 1.0, 1.0), n_candidates=2, seed=seed) for seed in range(25))
    assert sum(fit(run, folds=3).components.is_better for run in runs) <= 3


def test_people_who_choose_the_worst_leave_the_weights_as_they_are() -> None:
    found = fit(simulated(100, choosing_by(-2.0, -2.0, -2.0)))
    assert found.components.new == (1.0, 1.0, 1.0)
    assert found.components.held_out_old.estimate < 0.3
    assert not found.components.is_better


def test_the_temperature_is_the_one_that_the_outcomes_suit() -> None:
    """Of two candidates, dividing the temperature's logit is the same, so that both fits agree."""
    run = simulated(500, choosing_by(1.0, 1.0, 1.0), n_candidates=2, noise=(0.0,) * 3)
    found = fit(run).calibration
    assert found is not None
    p = np.array([task.probabilities.max() for task in run.tasks])
    right = np.array([float(task.verdict == "right") for task in run.tasks])
    count = right.sum()
    drawn = np.where(right > 0, (count + 1) / (count + 2), 1 / (right.size - count + 2))
    assert found.new == pytest.approx(fit_temperature(p, drawn).temperature, rel=0.02)
    assert found.new == pytest.approx(1 / 3, rel=0.25)  # people choose by the sum of 3, the score is their mean
    assert found.is_better
    assert found.after.estimate < found.before.estimate
    assert found.isotonic is not None
    assert fit(simulated(500, choosing_by(1, 1, 1), noise=(0.0,) * 3, softmax_temperature=1 / 3)).settings() == {}


def test_a_few_tasks_that_are_all_right_do_not_ask_for_certainty() -> None:
    found = fit(simulated(20, choosing_by(100.0, 100.0, 100.0), noise=(0.0,) * 3)).calibration
    assert found is not None
    assert all(row.observed == 1 for row in found.before.bins)
    assert 0.1 < found.new < 1


def test_what_is_missing_is_counted() -> None:
    run = simulated(30, choosing_by(1.0, 1.0, 1.0))
    nobody, unscored = Labels(Opinion(3)), np.array([np.nan, 5.0, 6.0])
    tasks = [replace(run.tasks[0], labels=nobody), replace(run.tasks[1], scores=unscored), *run.tasks[2:]]
    found = fit(replace(run, tasks=tasks))
    assert (found.tasks, found.labeled, found.unscored) == (30, 28, 1)
    json.dumps(plain(found), allow_nan=False)


@pytest.mark.parametrize("say", [choosing_by(2.0, 0.0, 1.0), scoring_by(2.0, 0.0, 1.0)])
def test_two_folds_are_enough(say: Say) -> None:
    found = fit(simulated(60, say), folds=2)
    assert found.folds == 2
    assert found.agents is not None
    assert not math.isnan(found.components.gain.estimate)


def test_too_few_labels_and_other_evaluators_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needs 10 scored tasks with labels .+, has 9"):
        fit(simulated(9, choosing_by(1.0, 1.0, 1.0)))
    with pytest.raises(InputError, match=r"needs 12 scored tasks with labels .+, has 11"):
        fit(simulated(11, choosing_by(1.0, 1.0, 1.0)), folds=12)
    run = scripted_run(tmp_path, [{"id": "t", "x": "?", "candidates": ["a", "b"]}], ValueEvaluator())
    with pytest.raises(InputError, match="holds no debates"):
        fit(run)
