"""Two runs on the same tasks, whose scores and labels are planted."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate.dataset.labels import Labels, Opinion
from debate.errors import InputError
from debate.evaluation import Evaluation, plain
from debate.meta_evaluation.compare import Comparison, compare, reason
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.statistics import mcnemar, paired_difference
from debate.types import Scale, Transcript, Turn
from tests.meta_evaluation.planted_runs import planted_control, planted_run, tasks_of

RIGHT, WRONG, TIED = (7.0, 3.0), (4.0, 6.0), (5.0, 5.0)
TASKS = [task | {"metadata": {"group": "ab"[n % 2], "text": n // 2}} for n, task in enumerate(tasks_of(8))]
IN_A = [RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, WRONG, WRONG, None]
IN_B = [RIGHT, WRONG, TIED, None, (1.0, 9.0), RIGHT, WRONG, RIGHT]
ONLY_IN = {name: {"id": name, "x": "?", "candidates": ["a", "b"]} for name in ("old", "new")}
OTHER = [{"id": "other", "x": x, "candidates": ["a", "b"]} for x in ("Before?", "After?")]


def of(scores: list[Any], **more: Any) -> dict[str, Any]:
    return {f"t{n}": each for n, each in enumerate(scores)} | more


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[JudgedRun, JudgedRun]:
    folder = tmp_path_factory.mktemp("runs")
    first = planted_run(folder / "a", [*TASKS, ONLY_IN["old"], OTHER[0]], of(IN_A, old=RIGHT, other=RIGHT))
    second = planted_run(
        folder / "b", [ONLY_IN["new"], OTHER[1], *TASKS], of(IN_B, new=RIGHT, other=RIGHT), history_scores=False
    )
    return read_run(first), read_run(second)


@pytest.fixture(scope="module")
def found(runs: tuple[JudgedRun, JudgedRun]) -> Comparison:
    return compare(*runs)


# ---- what is compared


def test_tasks_are_joined_where_both_runs_were_asked_the_same(found: Comparison) -> None:
    assert found.tasks == 8
    assert (found.only_a, found.only_b, found.other_content) == (("old",), ("new",), ("other",))


def test_settings_that_differ_are_named(found: Comparison) -> None:
    assert found.settings == ("history_scores: True -> False",)


def test_runs_without_a_common_task_are_refused(runs: tuple[JudgedRun, JudgedRun]) -> None:
    a, b = runs
    old = [task for task in a.tasks if task.task_id in ("old", "other")]
    with pytest.raises(InputError, match="no task in common") as caught:
        compare(replace(a, tasks=old), b)
    assert "the 1 ids in both name different tasks" in str(caught.value)
    with pytest.raises(InputError, match="no task id is in both"):
        compare(replace(a, tasks=old[:1]), b)


def test_a_run_is_compared_with_its_control_and_says_what_debating_is_worth(tmp_path: Path) -> None:
    scores = of(IN_A)
    planted_run(tmp_path, TASKS[:3], scores)
    planted_control(tmp_path, of(IN_B))
    run, control = read_run(tmp_path), read_run(tmp_path / "control")
    found = compare(run, control)
    assert (found.tasks, found.verdicts.lost) == (3, 2)
    assert found.control is not None
    assert found.control.debate_minus_silent.estimate == pytest.approx(2 / 3 - 1 / 6)  # half of a tie is right
    assert compare(control, run).control is None


# ---- by the labels


def test_won_and_lost_are_counted_where_a_tie_and_a_failure_are_not_right(found: Comparison) -> None:
    verdicts = found.verdicts
    assert (verdicts.labeled, verdicts.right_a, verdicts.right_b, verdicts.won, verdicts.lost) == (8, 5, 3, 2, 4)
    assert (found.a.accuracy.right, found.a.accuracy.unscored, found.a.unscored) == (5, 1, 1)
    assert (found.b.accuracy.right, found.b.accuracy.tied, found.b.accuracy.unscored) == (3, 1, 1)
    assert found.a.accuracy.chance == 0.5
    assert found.a.statuses == {"ok": 7, "failed": 1}
    assert found.a.usage.calls == 16


def test_the_difference_is_paired_and_tested_exactly(found: Comparison) -> None:
    a, b = [1, 1, 1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1, 0, 1]
    assert found.verdicts.difference == paired_difference(b, a)
    assert found.test == mcnemar(2, 4)
    assert found.verdicts.detectable == pytest.approx(2.8016 * found.verdicts.difference.standard_error, rel=1e-4)


def test_tasks_that_resemble_each_other_are_one_cluster(runs: tuple[JudgedRun, JudgedRun]) -> None:
    found = compare(*runs, cluster="text")
    a, b = [1, 1, 1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1, 0, 1]
    assert found.verdicts.difference == paired_difference(b, a, [0, 0, 1, 1, 2, 2, 3, 3])
    assert found.scores.difference.clusters == found.reselected.clusters == 4


def test_verdicts_are_shown_by_group(runs: tuple[JudgedRun, JudgedRun], found: Comparison) -> None:
    assert list(found.groups) == ["a", "b"]
    assert [(each.labeled, each.won, each.lost) for each in found.groups.values()] == [(4, 0, 2), (4, 2, 2)]
    by_text = compare(*runs, by="text", cluster="text")
    assert [each.difference.clusters for each in by_text.groups.values()] == [1, 1, 1, 1]


@pytest.mark.parametrize("setting", ["by", "cluster"])
def test_a_key_that_no_task_has_is_refused(runs: tuple[JudgedRun, JudgedRun], setting: str) -> None:
    key: dict[str, Any] = {setting: "author"}
    with pytest.raises(InputError, match="no task has 'author'") as caught:
        compare(*runs, **key)
    assert caught.value.field == f"--{setting}"
    assert "they have best, group, text" in str(caught.value)


def test_nothing_can_be_found_where_no_task_tells_the_runs_apart(runs: tuple[JudgedRun, JudgedRun]) -> None:
    a, _ = runs
    found = compare(a, a)
    assert (found.settings, found.verdicts.won, found.verdicts.lost, found.test.p_value) == ((), 0, 0, 1.0)
    assert math.isnan(found.verdicts.detectable)
    assert found.regressions == ()


def labeled(run: JudgedRun, best: dict[str, Opinion]) -> JudgedRun:
    nothing = Labels(Opinion(2))
    tasks = [
        replace(task, labels=Labels(best[task.task_id]) if task.task_id in best else nothing) for task in run.tasks
    ]
    return replace(run, tasks=tasks)


def test_labels_of_the_first_run_count_for_both(runs: tuple[JudgedRun, JudgedRun]) -> None:
    a, b = runs
    first, second = Opinion(2, best=(0,)), Opinion(2, best=(1,))
    found = compare(labeled(a, {"t0": first, "t1": first}), labeled(b, {"t0": second, "t2": first, "t1": first}))
    assert (found.relabeled, found.verdicts.labeled) == (1, 3)
    assert (found.verdicts.right_a, found.verdicts.right_b) == (3, 1)


def test_a_ranking_is_a_label_where_it_is_no_tie_of_all(runs: tuple[JudgedRun, JudgedRun]) -> None:
    a, b = runs
    found = compare(labeled(a, {"t0": Opinion(2, ranking=(1, 2)), "t1": Opinion(2, ranking=(1, 1))}), b)
    unlabeled = compare(labeled(a, {}), labeled(b, {}))
    assert (found.verdicts.labeled, unlabeled.verdicts.labeled) == (7, 0)
    assert math.isnan(unlabeled.verdicts.difference.estimate)
    assert unlabeled.groups == {}
    assert unlabeled.scores == found.scores


def test_labels_that_neither_run_knows_are_named(runs: tuple[JudgedRun, JudgedRun], tmp_path: Path) -> None:
    lines = [{"task_id": name, "best": 0} for name in ("t0", "t1", "old", "elsewhere")]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    a, b = (read_run(run.directory.path, tmp_path / "labels.jsonl") for run in runs)
    found = compare(a, b)
    assert (found.verdicts.labeled, found.unknown_labels) == (2, ("elsewhere",))


# ---- regressions


def test_the_surest_mistakes_come_first_and_what_is_unscored_last(found: Comparison) -> None:
    assert [each.task_id for each in found.regressions] == ["t4", "t1", "t2", "t3"]
    assert [each.margin for each in found.regressions[:3]] == pytest.approx([0.8, 0.2, 0.0])
    assert [each.choice_b for each in found.regressions] == [(1,), (1,), (0, 1), ()]
    assert {each.best for each in found.regressions} == {(0,)}


def test_a_regression_has_both_reasons_and_both_commands(found: Comparison, runs: tuple[JudgedRun, JudgedRun]) -> None:
    first = found.regressions[0]
    assert first.reasons == ("Critic, Reader: Worth 7.", "Critic, Reader: Worth 9.")
    assert first.show == tuple(f"debate show {run.directory.path} t4" for run in runs)
    assert "no readable reply" in found.regressions[-1].reasons[1]


def test_only_as_many_regressions_as_asked_for_are_described(runs: tuple[JudgedRun, JudgedRun]) -> None:
    assert [each.task_id for each in compare(*runs, regressions=1).regressions] == ["t4"]
    assert compare(*runs, regressions=0).regressions == ()


def evaluation(*turns: Turn, **changes: Any) -> Evaluation:
    told: dict[str, Any] = {"selected": 0, "scores": np.array([6.0, 4.0]), "agents": ("Critic",), "rounds_run": 1}
    told |= {"status": "ok", "probabilities": np.array([0.8, 0.2]), "transcript": Transcript(turns)}
    return Evaluation(task_id="t", evaluator="debate", **(told | changes))


def turn(overall: str, *comments: str) -> Turn:
    scores = np.array([[6.0], [4.0]])
    return Turn(round=0, agent="Critic", labels={"A": 0, "B": 1}, scores=scores, overall=overall, comments=comments)


def test_a_reason_is_what_was_said_of_the_choice_or_else_of_all_or_else_its_score() -> None:
    assert reason(evaluation(turn("Fair.", "Good:\n- short\n- clear", "Bad."))) == "Critic: Good: | short | clear"
    assert reason(evaluation(turn("Fair.", "", ""))) == "Critic: Fair."
    assert reason(evaluation()).startswith("Candidate 1 of 2: 6.00")
    assert reason(evaluation(selected=None, error="the model is gone")) == "the model is gone"


def test_a_long_reason_is_cut_between_words() -> None:
    said = reason(evaluation(turn("", "so " * 1000, "")), 50)
    assert said.endswith("so ...")
    assert len(said) <= 50


# ---- with or without labels


def test_scores_that_changed_are_measured_and_the_missing_counted(found: Comparison) -> None:
    scores = found.scores
    assert (scores.only_a, scores.only_b, scores.neither, scores.difference.n) == (2, 2, 0, 12)
    moved = [0, 0, -3, 3, -2, 2, -6, 6, 3, -3, 0, 0]
    assert scores.difference.estimate == pytest.approx(np.mean(moved))
    assert scores.absolute.estimate == pytest.approx(np.mean(np.abs(moved)))
    assert scores.difference.clusters == 6
    assert [(each.task_id, each.candidate) for each in scores.largest] == [
        ("t4", 0), ("t4", 1), ("t1", 0), ("t1", 1), ("t5", 0),
    ]  # fmt: skip
    assert (scores.largest[0].a, scores.largest[0].b) == (pytest.approx(7), pytest.approx(1))
    assert scores.alike.estimate == pytest.approx(2 / 6)


def test_another_selection_is_counted_where_both_select(found: Comparison) -> None:
    assert (found.reselected.estimate, found.reselected.n, found.reselected.left_out) == (4 / 6, 6, 2)


def test_scores_on_different_scales_are_compared_on_0_to_1(runs: tuple[JudgedRun, JudgedRun]) -> None:
    a, b = runs
    upside_down = [replace(task, scale=Scale(0, 20, higher_is_better=False)) for task in a.tasks]
    found = compare(replace(a, tasks=upside_down), b).scores
    assert found.scale == Scale(0, 1)
    [first, *_] = [each for each in found.largest if (each.task_id, each.candidate) == ("t4", 0)]
    assert (first.a, first.b) == (pytest.approx(1 - 7 / 20), pytest.approx(0.1))


# ---- as a value


def test_the_value_is_plain_json_without_nan(runs: tuple[JudgedRun, JudgedRun], found: Comparison) -> None:
    a, _ = runs
    assert json.loads(json.dumps(plain(found), allow_nan=False))["verdicts"]["lost"] == 4
    unlabeled = plain(compare(labeled(a, {}), labeled(a, {})))
    assert json.loads(json.dumps(unlabeled, allow_nan=False))["verdicts"]["difference"]["estimate"] is None


def test_the_reverse_comparison_says_the_reverse(runs: tuple[JudgedRun, JudgedRun], found: Comparison) -> None:
    back = compare(*reversed(runs))
    assert (back.verdicts.won, back.verdicts.lost) == (4, 2)
    assert back.verdicts.difference.estimate == -found.verdicts.difference.estimate
    assert back.test.p_value == found.test.p_value
    assert (back.only_a, back.only_b) == (found.only_b, found.only_a)
    assert [each.task_id for each in back.regressions] == ["t5", "t7"]
