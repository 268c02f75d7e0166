"""Debate, silent panel and one judge beside each other, on planted choices and on a scripted run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from debate import DebateEvaluator
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.evaluation import plain
from debate.jobs.control import control_job
from debate.jobs.run_directory import RunDirectory
from debate.meta_evaluation.control import Control, ControlFigures, read_control
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.statistics import paired_difference, share
from debate.testing import SilentListener, reply_for
from tests.meta_evaluation.small_runs import scripted_run
from tests.small_flows import debates

N = 12
BEST = [{"metadata": {"best": n % 2}} for n in range(N)]


def held(folder: Path, labels: list[dict[str, Any]], evaluator: DebateEvaluator | None = None) -> JudgedRun:
    tasks = [{"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b"], **label} for n, label in enumerate(labels)]
    return scripted_run(folder, tasks, evaluator or debates(rounds=3, convergence=0.3))


def make_control(
    run: JudgedRun, evaluator: DebateEvaluator | None = None, script: Callable[[Call], str] = reply_for
) -> None:
    backends = {"scripted": Scripted(script)}
    job, _ = control_job(run.directory, evaluator or debates(rounds=3, convergence=0.3), backends, RunSettings())
    job.execute(backends, SilentListener())


def controlled(folder: Path, labels: list[dict[str, Any]], evaluator: DebateEvaluator | None = None) -> Control:
    run = held(folder, labels, evaluator)
    make_control(run, evaluator)
    return of(run)


def of(run: JudgedRun) -> Control:
    found = read_control(run)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Control:
    return controlled(tmp_path_factory.mktemp("run"), BEST)


def planted(control: Control, debate: Mapping[int, Any], silent: Mapping[int, Any]) -> ControlFigures:
    """The figures with other choices on some tasks; on all others, both choose what is right."""

    def chosen(tasks: Any, others: Mapping[int, Any]) -> list[Any]:
        return [replace(task, choice=others.get(n, (n % 2,))) for n, task in enumerate(tasks)]

    made = replace(control, debates=chosen(control.debates, debate), silent=chosen(control.silent, silent))
    return made.figures()


def test_a_run_without_a_control_has_none(tmp_path: Path) -> None:
    assert read_control(held(tmp_path, BEST[:2])) is None


def test_accuracies_and_the_paired_difference_are_those_of_the_planted_choices(control: Control) -> None:
    found = planted(control, {0: (1,)}, {0: (1,), 1: (0,), 2: (1,)})
    right = [[0.0, *[1.0] * 11], [0.0, 0.0, 0.0, *[1.0] * 9]]
    assert found.arms[0].accuracy == share(right[0], [*map(str, range(N))])
    assert found.arms[1].accuracy == share(right[1], [*map(str, range(N))])
    assert found.debate_minus_silent == paired_difference(*right, [*map(str, range(N))])
    assert found.debate_minus_silent.estimate == pytest.approx(2 / 12)
    assert found.other_choice.estimate == pytest.approx(2 / 12)
    assert (found.tasks, found.labeled) == (N, N)


def test_a_tie_is_as_right_as_a_draw_from_it_and_what_is_unscored_is_not_right(control: Control) -> None:
    found = planted(control, {0: (0, 1), 1: ()}, {})
    debate, silent, _ = found.arms
    assert debate.accuracy.estimate == pytest.approx(10.5 / 12)
    assert (debate.unscored, silent.unscored, silent.accuracy.estimate) == (1.0, 0.0, 1.0)


def test_one_judge_is_the_first_turn_of_each_silent_agent_on_average(control: Control) -> None:
    found = control.figures().arms[2]
    weights = control.aggregation.weights
    expected = 0.0
    for n, task in enumerate(control.silent):
        assert task.tensor is not None
        for agent in task.tensor[0]:
            scores = agent @ weights / weights.sum()
            tied = abs(scores[0] - scores[1]) < 1e-9
            expected += (0.5 if tied else float(scores.argmax() == n % 2)) / (2 * N)
    assert found.accuracy.estimate == pytest.approx(expected)


def test_turns_and_tokens_are_per_task_and_one_judge_costs_a_turn(control: Control) -> None:
    debate, silent, judge = control.figures().arms
    assert debate.turns == silent.turns == sum(len(task.turns) for task in control.debates) / N
    assert judge.turns == 1.0
    assert debate.completion_tokens == sum(task.usage.completion_tokens for task in control.debates) / N
    each = [task.usage.completion_tokens / len(task.turns) for task in control.silent]
    assert judge.completion_tokens == pytest.approx(sum(each) / N)
    assert judge.prompt_tokens < silent.prompt_tokens < debate.prompt_tokens


def test_one_judge_of_a_balanced_debate_sees_both_orders(tmp_path: Path) -> None:
    evaluator = debates(rounds=2, candidate_order="balanced", convergence=0.3)
    found = controlled(tmp_path, BEST[:4], evaluator).figures()
    assert (found.tasks, found.outdated, found.arms[2].turns) == (4, 0, 2.0)


@pytest.mark.parametrize(
    ("debate", "silent", "said"),
    [
        ({}, {n: (1 - n % 2,) for n in range(8)}, "Debating pays here: it is right more often than"),
        ({}, {}, "Debating does not pay here: it is not right more often than"),
        ({0: (1,)}, {1: (0,)}, "So many tasks would mostly show a gain of "),
        ({n: (1 - n % 2,) for n in range(8)}, {}, "Debating does not pay here: it is right less often than"),
    ],
)
def test_a_sentence_says_whether_debating_pays(
    control: Control, debate: dict[int, Any], silent: dict[int, Any], said: str
) -> None:
    sentence = planted(control, debate, silent).sentence
    assert said in sentence
    assert "decoded tokens per task" in sentence


def test_without_labels_it_says_how_many_choices_differ_and_not_whether_that_is_better(tmp_path: Path) -> None:
    found = controlled(tmp_path, [{}] * 5).figures()
    assert found.labeled == 0
    assert found.other_choice.n == 5
    assert math.isnan(found.debate_minus_silent.estimate)
    assert "not known: no label names the best of several candidates" in found.sentence


def test_a_tie_of_all_candidates_names_no_best_one(tmp_path: Path) -> None:
    labels: list[dict[str, Any]] = [{"metadata": {"ranking": [1, 1]}}, {"metadata": {"ranking": [1, 2]}}, *BEST[:1]]
    assert controlled(tmp_path, labels).figures().labeled == 2


def test_the_labels_are_those_that_the_run_was_read_with(tmp_path: Path) -> None:
    run = held(tmp_path, [{}] * 4)
    make_control(run)
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps({"task_id": f"t{n}", "best": 0}) + "\n" for n in range(3)))
    assert of(read_run(run.directory.path, file)).figures().labeled == 3


def test_what_the_control_lacks_and_what_was_debated_anew_is_counted_and_left_out(control: Control) -> None:
    run = read_run(control.folder.parent)
    more = replace(run.tasks[0], task_id="new")
    fewer = replace(run.tasks[1], turns=run.tasks[1].turns[:1])
    found = of(replace(run, tasks=[run.tasks[0], fewer, *run.tasks[2:], more])).figures()
    assert (found.tasks, found.not_covered, found.outdated) == (N - 1, 1, 1)


def test_a_panel_whose_model_failed_counts_as_unscored(tmp_path: Path) -> None:
    def script(call: Call) -> str:
        if call.info["task_id"] == "t1":
            raise RuntimeError("no reply")
        return reply_for(call)

    run = held(tmp_path, BEST[:4], debates(rounds=3))
    make_control(run, debates(rounds=3), script)
    found = of(run).figures()
    assert (found.tasks, found.outdated, found.arms[1].unscored, found.arms[2].unscored) == (4, 0, 1.0, 1.0)


def test_the_figures_are_plain_data(control: Control) -> None:
    data = json.loads(json.dumps(plain(control.figures()), allow_nan=False))
    assert [each["name"] for each in data["arms"]] == ["debate", "silent panel", "one judge"]


def test_a_control_of_another_run_is_refused(tmp_path: Path) -> None:
    run = held(tmp_path, BEST[:2])
    make_control(run)
    other = replace(run, directory=replace(RunDirectory.existing(tmp_path), name="other"))
    with pytest.raises(Exception, match="is not the control of the run 'other'"):
        read_control(other)
