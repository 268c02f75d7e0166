"""All figures of a run as one value: its parts, groups, disagreements, and plain data."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from debate.errors import ConfigError
from debate.evaluation import plain
from debate.meta_evaluation import agree
from debate.meta_evaluation.judged import Judged
from tests.meta_evaluation.small_runs import judged, of_agents, run_of

NAN = math.nan


def debates() -> list[Judged]:
    return [of_agents([[0, n % 2, 0], [0, 1, n % 3 == 0]], f"t{n}", group="ab"[n % 2], lang="en") for n in range(12)]


def test_a_run_of_debates_has_every_part() -> None:
    found = agree(run_of(debates(), debates=True))
    assert found.tasks == 12
    assert found.choices is not None and found.debate is not None
    assert found.choices.right.labeled == 12
    assert found.choices.right.right == sum(task.choice == (0,) for task in debates())
    assert found.habits.first_shown is not None


def test_a_run_without_rounds_lacks_only_rounds_and_agents() -> None:
    found = agree(run_of([judged([1, 2], best=1, task_id="a"), judged([2, 1], best=1, task_id="b")]))
    assert found.choices is not None and found.debate is None
    assert found.choices.right.right == 1
    assert found.missing.turns == 0


def test_without_labels_what_needs_none_is_there() -> None:
    found = agree(run_of([of_agents([[0, 1, 0], [0, 0, 0]], f"t{n}", best=None) for n in range(4)], debates=True))
    assert (found.rates.labeled, found.choices, found.among_people, found.components) == (0, None, None, ())
    assert found.debate is not None and found.debate.conformity.n > 0
    assert found.n_disagreements == 0


def test_groups_are_those_in_the_metadata_with_most_tasks_first() -> None:
    tasks = [*debates(), of_agents([[1, 1, 1]], "more", group="b", lang="de")]
    found = agree(run_of(tasks, debates=True))
    assert found.by == "group"
    assert [(each.value, each.tasks) for each in found.groups] == [("b", 7), ("a", 6)]
    by_language = agree(run_of(tasks, debates=True), by="lang").groups
    assert [(each.value, each.tasks) for each in by_language] == [("en", 12), ("de", 1)]
    right = by_language[1].right
    assert right is not None
    assert (right.labeled, right.right) == (1, 0)
    only_some = agree(run_of([*tasks[:2], judged([1, 2])]), by="lang").groups
    assert [(each.value, each.tasks) for each in only_some] == [("en", 2), ("", 1)]


def test_a_key_that_no_task_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no task has 'language'.*\n.*there are best, group, lang"):
        agree(run_of(debates()), by="language")


def test_disagreements_come_with_the_surest_first_and_a_command_that_a_shell_reads() -> None:
    tasks = [
        judged([5, 6], best=0, task_id="unsure"),
        judged([1, 9], best=0, task_id="sure; rm"),
        judged([9, 1], best=0, task_id="right"),
        judged([NAN, 4], best=0, task_id="unknown"),
        judged([7, 7], best=0, task_id="tied"),
        judged([NAN, NAN], best=0, task_id="unscored"),
        judged([2, 4, 9], best=[0, 1], task_id="one of two"),
    ]
    found = agree(run_of(tasks))
    assert [(each.task_id, each.margin) for each in found.disagreements[:4]] == [
        ("sure; rm", 8), ("one of two", 5), ("unsure", 1), ("tied", 0),
    ]  # fmt: skip
    assert found.disagreements[4].task_id == "unknown"
    assert math.isnan(found.disagreements[4].margin)
    assert found.n_disagreements == 5
    assert found.disagreements[0].command == "debate show runs/first 'sure; rm'"
    assert (found.disagreements[1].judge, found.disagreements[1].people) == ((2,), (0, 1))


def test_no_more_than_twenty_disagreements_are_listed() -> None:
    found = agree(run_of([judged([1, 2 + n], best=0, task_id=str(n)) for n in range(30)]))
    assert [each.task_id for each in found.disagreements] == [str(n) for n in range(29, 9, -1)]
    assert found.n_disagreements == 30


def test_scores_furthest_apart_are_listed_beyond_the_mean_difference() -> None:
    tasks = [judged([5 + n % 2], task_id=f"t{n}", scores={"a": [3]}) for n in range(8)]
    tasks.append(judged([1], task_id="low", scores={"a": [4]}))
    worst = agree(run_of(tasks)).score_gaps
    assert (worst[0].task_id, worst[0].component, worst[0].people, worst[0].judge) == ("low", "a", 4, 1)
    assert worst[0].beyond == pytest.approx(-3 - (8 * 2.5 - 3) / 9)
    assert len(worst) == 9
    assert worst[0].command == "debate show runs/first low"


@pytest.mark.parametrize("tasks", [debates(), [judged([1, 2])], [judged([NAN], scores={"a": [2]})]])
def test_the_value_is_plain_data_with_null_for_what_is_undefined(tasks: list[Judged]) -> None:
    data = plain(agree(run_of(tasks, debates=True)))
    text = json.dumps(data, allow_nan=False)
    assert json.loads(text) == data
    assert data["run"] == str(Path("runs/first"))
    assert set(data) >= {"rates", "choices", "components", "among_people", "habits", "debate", "missing", "groups"}
