"""What labels of a sample say of a whole run, on planted judges whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate.dataset.labels import Drawn, Labels, Opinion
from debate.jobs.run_directory import RunDirectory
from debate.meta_evaluation.few_labels import CorrectedRun, Figure, corrected
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.meta_evaluation.labeling import draw
from debate.statistics import ppi_mean, rogan_gladen
from debate.types import Scale, Usage

NOTHING = Labels(Opinion(2))


def judged(name: str, choice: tuple[int, ...] = (0,), sure: float = 0.8, **more: Any) -> Judged:
    scores = np.array([7.0, 3.0] if choice == (0,) else [3.0, 7.0])
    probabilities = np.array([sure, 1 - sure] if choice == (0,) else [1 - sure, sure])
    task = Judged(
        task_id=name,
        labels=NOTHING,
        metadata={},
        generators=("a", "b"),
        lengths=np.ones(2),
        scores=scores,
        choice=choice,
        probabilities=probabilities,
        scale=Scale(0, 10),
        tensor=None,
        agents=(),
        components=(),
        cv=np.ones(0),
        turns=(),
        status="ok",
        stop_reason="",
        order_agreement=None,
        usage=Usage(),
    )
    return replace(task, **more)


def labeled(task: Judged, *, drawn: Drawn | None, **said: Any) -> Judged:
    vote = Opinion(2, by="anna", drawn=drawn, **said)
    together = Opinion(2, best=vote.best, ranking=vote.ranking, scores=vote.scores)
    return replace(task, labels=Labels(together, (vote,)))


def run_of(tasks: Sequence[Judged], unknown: tuple[str, ...] = ()) -> JudgedRun:
    return JudgedRun(RunDirectory.new(Path("run")), tasks, {}, unknown)


def sampled(tasks: Sequence[Judged], best: Sequence[int], size: int, key: str = "", seed: int = 0) -> JudgedRun:
    """A run of which a sample is labeled."""
    strata = {task.task_id: str(task.metadata.get(key, "")) for task in tasks}
    chosen = set(draw(strata, seed)[:size])
    return run_of(
        [
            labeled(task, best=(best[n],), drawn=Drawn(seed, size, len(tasks), key, strata[task.task_id]))
            if task.task_id in chosen
            else task
            for n, task in enumerate(tasks)
        ]
    )


def planted(n: int, seed: int, right: float = 0.7) -> tuple[list[Judged], list[int]]:
    """Tasks whose judge is right with a known probability, and knows it a little."""
    rng = np.random.default_rng(seed)
    best = rng.integers(0, 2, n).tolist()
    is_right = rng.random(n) < right
    sure = np.where(is_right, rng.uniform(0.6, 1, n), rng.uniform(0.5, 0.8, n))
    choices = [b if ok else 1 - b for b, ok in zip(best, is_right, strict=True)]
    return [judged(f"t{i}", (choices[i],), float(sure[i])) for i in range(n)], best


def figure(found: CorrectedRun, name: str, of: str = "") -> Figure:
    (one,) = [each for each in found.figures if (each.name, each.of) == (name, of)]
    return one


def test_accuracy_is_that_of_ppi_with_the_judges_own_probability() -> None:
    tasks, best = planted(300, 1)
    run = sampled(tasks, best, 80)
    right = [float(task.choice == task.labels.together.best) for task in run.tasks if task.labels]
    sure = [float(task.probabilities.max()) for task in run.tasks if task.labels]
    others = [float(task.probabilities.max()) for task in run.tasks if not task.labels]
    expected, found = ppi_mean(right, sure, others), figure(corrected(run), "accuracy")
    assert found.ppi.estimate == pytest.approx(expected.estimate)
    assert found.ppi.interval == pytest.approx(expected.interval)
    assert (found.ppi.n, found.ppi.n_judged) == (80, 220)
    assert found.judge == pytest.approx(np.mean([*sure, *others]))


def test_wins_are_corrected_for_the_judges_errors_by_both_methods() -> None:
    tasks, best = planted(400, 2)
    run = sampled(tasks, best, 100)
    found = figure(corrected(run), "wins", "a")
    pairs = [(0 in task.labels.together.best, task.choice == (0,)) for task in run.tasks if task.labels]
    judge = np.mean([task.choice == (0,) for task in run.tasks])
    yes, no = [j for p, j in pairs if p], [j for p, j in pairs if not p]
    expected = rogan_gladen(float(judge), 400, 1 - float(np.mean(no)), len(no), float(np.mean(yes)), len(yes))
    assert found.rogan_gladen == expected
    assert found.judge == pytest.approx(judge)
    assert found.ppi.labels_alone == pytest.approx(len(yes) / 100)


def test_the_corrected_accuracy_is_nearer_to_the_truth_than_the_labels_and_its_interval_holds_it() -> None:
    errors: list[tuple[float, float]] = []
    held = 0
    for seed in range(40):
        tasks, best = planted(150, seed)
        truth = np.mean([task.choice == (b,) for task, b in zip(tasks, best, strict=True)])
        found = figure(corrected(sampled(tasks, best, 40, seed=seed)), "accuracy").ppi
        errors.append((abs(found.estimate - float(truth)), abs(found.labels_alone - float(truth))))
        held += found.interval[0] <= truth <= found.interval[1]
    ours, alone = np.mean(np.array(errors), axis=0)
    assert ours < 0.95 * alone
    assert held >= 36


def test_a_stratified_sample_is_weighted_by_what_the_strata_are_of_the_run() -> None:
    easy = [judged(f"e{n}", metadata={"group": "easy"}) for n in range(180)]
    hard = [judged(f"h{n}", metadata={"group": "hard"}) for n in range(20)]
    best = [0] * 180 + [1] * 20  # the judge is right on all easy ones and on no hard one
    found = corrected(sampled([*easy, *hard], best, 20, "group"))
    assert [(each.name, each.tasks) for each in found.strata] == [("easy", 180), ("hard", 20)]
    assert {each.labeled for each in found.strata} == {10}
    accuracy = figure(found, "accuracy").ppi
    assert accuracy.estimate == pytest.approx(0.9)
    assert accuracy.labels_alone == pytest.approx(0.9)
    wins = figure(found, "wins", "a").rogan_gladen
    assert wins is not None
    assert math.isnan(wins.estimate)
    assert wins.reason is not None and "not stratified" in wins.reason


def test_labels_that_nobody_drew_are_counted_and_left_out() -> None:
    tasks, best = planted(60, 3)
    run = sampled(tasks, best, 40)
    first = next(n for n, task in enumerate(run.tasks) if not task.labels)
    extra = [labeled(task, best=(0,), drawn=None) if n == first else task for n, task in enumerate(run.tasks)]
    with_extra, without = corrected(run_of(extra)), corrected(run)
    assert with_extra.not_drawn == 1
    assert with_extra.figures == without.figures
    assert any("do not say how" in warning for warning in with_extra.warnings)


def test_figures_of_labels_that_are_no_random_sample_are_refused() -> None:
    tasks, _ = planted(10, 4)
    found = corrected(run_of([labeled(tasks[0], best=(0,), drawn=None), *tasks[1:]]))
    assert found.figures == ()
    assert found.reason is not None and "random sample" in found.reason


def test_a_run_whose_tasks_all_have_labels_takes_no_draw() -> None:
    tasks, best = planted(50, 5)
    found = corrected(run_of([labeled(task, best=(b,), drawn=None) for task, b in zip(tasks, best, strict=True)]))
    truth = np.mean([task.choice == (b,) for task, b in zip(tasks, best, strict=True)])
    assert figure(found, "accuracy").ppi.estimate == pytest.approx(truth)
    assert (found.not_drawn, found.warnings) == (0, ())


def test_a_run_without_labels_says_so() -> None:
    assert corrected(run_of([judged("a")])).reason == "no task has a label"


def test_samples_that_were_stratified_by_different_keys_are_refused() -> None:
    tasks, _ = planted(6, 6)
    said = [labeled(tasks[n], best=(0,), drawn=Drawn(0, 2, 6, key, "x")) for n, key in enumerate(("group", "source"))]
    found = corrected(run_of([*said, *tasks[2:]]))
    assert found.reason is not None and "group, source" in found.reason


def test_few_labels_skipped_tasks_and_a_run_that_has_grown_are_said() -> None:
    tasks, best = planted(60, 7)
    run = sampled(tasks, best, 10)
    found = corrected(run)
    assert found.skipped == 0
    assert [warning for warning in found.warnings if "below 30" in warning]
    second = draw({task.task_id: "" for task in tasks}, 0)[1]
    holes = [replace(task, labels=NOTHING) if task.task_id == second else task for task in run.tasks]
    assert corrected(run_of(holes)).skipped == 1
    grown = corrected(run_of([*run.tasks, judged("new")], unknown=("gone",)))
    assert any("drawn from 60 tasks, and the run has 61" in warning for warning in grown.warnings)
    assert any("not in the run" in warning for warning in grown.warnings)


@pytest.mark.parametrize(
    ("said", "right"),
    [({"best": (0,)}, 1.0), ({"best": (1,)}, 0.0), ({"ranking": (1.0, 1.0)}, 0.5), ({"ranking": (1.0, 2.0)}, 1.0)],
)
def test_a_tie_of_people_counts_half(said: dict[str, Any], right: float) -> None:
    found = corrected(run_of([labeled(judged(name), drawn=None, **said) for name in "abc"]))
    assert figure(found, "accuracy").ppi.estimate == right


def test_people_who_split_count_half_and_a_judge_without_a_choice_is_not_right() -> None:
    votes = tuple(Opinion(2, best=(n,), by=str(n)) for n in range(2))
    split = [replace(judged(name), labels=Labels(Opinion(2), votes)) for name in "ab"]
    assert figure(corrected(run_of(split)), "accuracy").ppi.estimate == 0.5
    for choice in ((), (0, 1)):
        unsure = [labeled(judged(name, choice), best=(0,), drawn=None) for name in "ab"]
        assert figure(corrected(run_of(unsure)), "accuracy").ppi.estimate == 0


def scored(n: int, size: int) -> JudgedRun:
    """Tasks whose judge scores two points too high on a component, and fails on every tenth."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(1, 7, (n, 2))
    chosen = set(draw({f"t{i}": "" for i in range(n)}, 0)[:size])
    tasks: list[Judged] = []
    for i in range(n):
        cells = (truth[i] + 2 + rng.normal(0, 0.1, 2))[None, None, :, None]  # (1, 1, 2, 1)
        tensor = np.full_like(cells, np.nan) if i % 10 == 0 else cells
        scores, choice = tensor[0, 0, :, 0], () if i % 10 == 0 else (int(truth[i].argmax()),)
        task = judged(f"t{i}", choice, scores=scores, tensor=tensor, components=("clarity",))
        drawn = Drawn(0, size, n)
        said = {"clarity": truth[i]}
        tasks.append(labeled(task, scores=said, drawn=drawn) if task.task_id in chosen else task)
    return run_of(tasks)


def test_mean_scores_are_corrected_for_a_judge_who_is_too_generous() -> None:
    found = corrected(scored(300, 60))
    for of in ("all candidates", "a", "b"):
        mean = figure(found, "mean clarity", of)
        assert mean.ppi.estimate == pytest.approx(mean.judge - 2, abs=0.1)
        assert mean.ppi.n == 60
        assert mean.ppi.power > 0.5
    selected = figure(found, "mean clarity", "selected").ppi
    assert selected.n + selected.n_judged == 270
    assert selected.estimate > 4.5


def test_the_judges_component_is_found_in_both_debates_and_whatever_its_case() -> None:
    run = scored(60, 60)
    balanced = [replace(t, members=(t, t), tensor=None, components=(), scores=t.scores + 1) for t in run.tasks]
    capitals = [replace(t, components=("Clarity",)) for t in run.tasks]
    expected = corrected(run)
    for tasks in (balanced, capitals):
        found = corrected(run_of(tasks))
        for of in ("all candidates", "a", "b"):
            assert figure(found, "mean clarity", of).judge == pytest.approx(figure(expected, "mean clarity", of).judge)


def test_of_a_component_that_the_judge_does_not_score_it_says_nothing() -> None:
    other = [replace(task, components=("depth",)) for task in scored(60, 30).tasks]
    found = figure(corrected(run_of(other)), "mean clarity", "a")
    assert math.isnan(found.judge)
    assert found.ppi.power > 0.3
    assert not math.isnan(found.ppi.estimate)


def test_pass_rates_are_corrected_for_a_judge_who_is_too_generous() -> None:
    found = figure(corrected(scored(600, 150), passing=5), "passes", "a")
    assert found.judge == pytest.approx(0.9 * 2 / 3, abs=0.06)
    assert found.ppi.estimate == pytest.approx(1 / 3, abs=0.08)
    assert found.rogan_gladen is not None
    assert found.rogan_gladen.estimate == pytest.approx(1 / 3, abs=0.12)


def test_where_a_low_score_is_good_a_candidate_passes_below_the_threshold() -> None:
    run = scored(40, 40)
    low = run_of([replace(task, scale=Scale(0, 10, higher_is_better=False)) for task in run.tasks])
    rates = [figure(corrected(each, passing=5), "passes", "a").ppi.estimate for each in (run, low)]
    assert sum(rates) == pytest.approx(1)


def test_where_people_say_the_same_of_every_task_the_rate_has_a_reason() -> None:
    run = run_of([labeled(judged(name), best=(0,), drawn=None) for name in "abc"])
    rate = figure(corrected(run), "wins", "a").rogan_gladen
    assert rate is not None and rate.reason == "people say yes of every task"
