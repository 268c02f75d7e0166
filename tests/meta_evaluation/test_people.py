"""The judge against people: what counts as right, as a tie, as unscored; the figures beside a direct count."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from debate import Scale
from debate.meta_evaluation.aggregation import Aggregation
from debate.meta_evaluation.judged import Judged
from debate.meta_evaluation.people import (
    among_people,
    base_rates,
    choices,
    component_figures,
    decided,
    hits,
    pairs_of,
    right_choices,
)
from debate.statistics import cohen_kappa, correlation
from tests.meta_evaluation.small_runs import judged

NAN = math.nan

# ---- what people say


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"best": 1}, (1,)),
        ({"best": [0, 1]}, (0, 1)),
        ({"ranking": [2, 1, 1]}, (1, 2)),
        ({"ranking": [1, 1, 1]}, ()),
        ({"best": [0, 1, 2]}, ()),
        ({"scores": {"a": [1, 3, 2], "b": [1, 2, 2]}}, (1,)),
        ({"votes": [{"by": "ann", "best": 0}, {"by": "bo", "best": 1}]}, ()),
        ({"votes": [{"by": "ann", "best": 0}, {"by": "bo", "best": 1}, {"by": "cy", "best": 1}]}, (1,)),
        ({}, ()),
    ],
)
def test_people_decide_where_they_prefer_some_candidates(metadata: dict[str, Any], expected: tuple[int, ...]) -> None:
    assert decided(judged([1, 2, 3], **metadata)) == expected


def test_a_choice_is_right_wrong_or_nothing_to_be_said() -> None:
    tasks = [judged([1, 2, 3], best=[1, 2]), judged([1, 2, 3], best=0), judged([1, 2, 3]), judged([NAN] * 3, best=0)]
    np.testing.assert_equal(hits(tasks, [task.choice for task in tasks]), [1, 0, NAN, 0])


def test_scores_with_gaps_are_no_votes_without_a_majority() -> None:
    rates = base_rates([judged([1, 2], scores={"clarity": [3, None]})])
    assert (rates.labeled, rates.split) == (1, 0)


def test_base_rates_count_every_kind_of_label() -> None:
    split = [{"by": "ann", "best": 0}, {"by": "bo", "best": 1}]
    tasks = [
        judged([1, 2], best=0, lengths=[5, 9]),
        judged([1, 2], best=0, lengths=[9, 5]),
        judged([1, 2, 3], best=2, lengths=[4, 1, 4]),
        judged([1, 2], ranking=[1, 1]),
        judged([1, 2], votes=split),
        judged([1], scores={"a": [4]}),
        judged([1, 2]),
    ]
    rates = base_rates(tasks)
    assert (rates.labeled, rates.decided, rates.tied, rates.split, rates.single) == (6, 3, 1, 1, 1)
    assert rates.chance == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)
    assert (rates.constant, rates.place) == (pytest.approx(2 / 3), 0)
    assert rates.longest == pytest.approx((0 + 1 + 1 / 2) / 3)  # of two that are equally long one is drawn


def test_without_labels_there_are_no_rates() -> None:
    rates = base_rates([judged([1, 2])])
    assert (rates.labeled, rates.decided) == (0, 0)
    assert math.isnan(rates.chance) and math.isnan(rates.constant) and math.isnan(rates.longest)
    assert choices([judged([1, 2])]) is None


# ---- choices and pairs

FOUR = [
    judged([3, 1], best=0),  # right
    judged([1, 3], best=0),  # wrong
    judged([2, 2], best=1),  # the judge ties
    judged([NAN, NAN], best=1),  # unscored
    judged([3, 1], ranking=[1, 1]),  # people tie
]


def test_ties_and_unscored_tasks_are_not_right_and_are_counted() -> None:
    right = right_choices(FOUR)
    assert (right.labeled, right.right, right.tied, right.unscored) == (4, 1, 1, 1)
    assert right.share.estimate == 0.25


def test_each_way_of_counting_ties_is_named() -> None:
    found = choices(FOUR)
    assert found is not None
    shares = {each.ties: (each.judge.estimate, each.judge.n, each.judge.left_out) for each in found.pairs}
    assert shares == {
        "dropped": (1 / 2, 2, 3),
        "class": (1 / 4, 4, 1),
        "half": (pytest.approx((1 + 0 + 0.5 + 0.5) / 4), 4, 1),
    }
    constants = {each.ties: each.constant for each in found.pairs}
    assert constants == {"dropped": 0.5, "class": pytest.approx(2 / 5), "half": pytest.approx(3 / 5)}


def test_kappa_is_that_of_the_choices_with_ties_as_a_label() -> None:
    found = choices(FOUR)
    assert found is not None
    expected = cohen_kappa([0, 0, 1, -1], [0, 1, -1, 0])
    assert (found.kappa.estimate, found.kappa.n, found.kappa.left_out) == (expected.estimate, 4, 1)
    assert found.ac1.n == 4


def test_of_a_named_best_only_the_pairs_with_it_are_known() -> None:
    people, judge, lengths, where = pairs_of([judged([3, 2, 1], best=1, lengths=[1, 5, 3]), judged([1, 2], best=0)])
    np.testing.assert_equal(people, [-1, NAN, 1, 1])
    np.testing.assert_equal(judge, [1, 2, 1, -1])
    np.testing.assert_equal(lengths, [-4, -2, 2, 0])
    np.testing.assert_equal(where, [0, 0, 0, 1])


def test_intervals_of_pairs_are_clustered_by_task() -> None:
    tasks = [judged([3, 2, 1] if n % 2 else [1, 2, 3], ranking=[1, 2, 3]) for n in range(40)]
    found = choices(tasks)
    assert found is not None
    low, high = found.pairs[0].judge.interval
    assert (found.pairs[0].judge.n, found.pairs[0].judge.clusters) == (120, 40)
    assert high - low == pytest.approx(2 * 0.1479, abs=1e-3)  # Wilson's interval for 20 of 40, not for 60 of 120


def test_where_lower_is_better_the_lowest_is_preferred() -> None:
    task = replace(judged([1, 3], best=0, choice=[0]), scale=Scale(0, 10, higher_is_better=False))
    assert pairs_of([task])[1].tolist() == [2]


# ---- scores


def of_scores() -> list[Judged]:
    draw = np.random.default_rng(3)
    tasks: list[Judged] = []
    for n in range(60):
        truth = draw.integers(1, 6, size=3)
        votes = [
            {"by": by, "scores": {"clarity": np.clip(truth + draw.integers(-1, 2, 3), 1, 5).tolist()}} for by in "ab"
        ]
        tensor = np.stack([truth + 2.0 + draw.uniform(-0.3, 0.3, 3), draw.uniform(0, 10, 3)], axis=1)[None, None]
        tasks.append(judged(tensor.mean(axis=(0, 1, 3)).tolist(), task_id=f"t{n}", tensor=tensor, agents=["one"],
                            components=["Clarity", "other"], votes=votes))  # fmt: skip
    return tasks


def test_scores_are_compared_on_the_component_of_the_same_name() -> None:
    tasks = of_scores()
    aggregation = Aggregation(np.array([1.0, 1.0]), "weighted_mean", None, 1, None, "agents", 1)
    [found] = component_figures(tasks, aggregation)
    people = np.concatenate([task.labels.together.scores["clarity"] for task in tasks])
    judge = np.concatenate([task.tensor[0, 0, :, 0] for task in tasks if task.tensor is not None])
    assert (found.name, found.is_whole, found.top) == ("clarity", False, 10.0)
    assert found.correlation.estimate == pytest.approx(correlation(people, judge).estimate)
    assert found.difference.estimate == pytest.approx((judge - people).mean())
    assert found.absolute.estimate == pytest.approx(np.abs(judge - people).mean())
    assert found.constant_absolute == pytest.approx(np.abs(people - np.median(people)).mean())
    assert found.difference.clusters == 60
    assert found.pairs.n == 180
    assert min(found.pairs.eps) > 0
    assert found.among_people is not None
    assert found.among_people.n == 180


def test_without_such_a_component_the_whole_score_stands_in() -> None:
    [found] = component_figures(of_scores(), None)
    assert found.is_whole
    assert found.correlation.estimate < 0.8


def test_unscored_candidates_are_left_out_of_scores_and_counted() -> None:
    tasks = [judged([1, NAN], scores={"a": [2, 3]}), judged([4, 5], scores={"a": [3, None]})]
    [found] = component_figures(tasks, None)
    assert (found.difference.n, found.difference.left_out, found.people, found.judge) == (2, 2, 2.5, 2.5)
    assert found.range == (2, 3)


# ---- people against people


def voted(*places: int, scores: tuple[float, float] = (2, 1)) -> Judged:
    return judged(scores, votes=[{"by": f"p{n}", "best": place} for n, place in enumerate(places)])


def test_two_people_and_the_judge_with_one_person_are_counted_alike() -> None:
    tasks = [voted(0, 0, 0), voted(0, 1, 1), voted(1, 1, 1)]
    found = among_people(tasks, 0.15)
    assert found is not None
    assert found.two_people.estimate == pytest.approx((1 + 1 / 3 + 1) / 3)
    assert found.judge_and_one.estimate == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert found.test is not None
    assert found.test.reason == "fewer than three people with 30 items"


def test_the_alternative_annotator_test_is_made_where_there_are_three_people() -> None:
    tasks = [voted(n % 2, n % 2, n % 2 if n % 5 else 1 - n % 2, scores=(2 - n % 2, 1 + n % 2)) for n in range(50)]
    found = among_people(tasks, 0.15)
    assert found is not None and found.test is not None
    assert found.test.passes
    assert [person.name for person in found.people] == ["p0", "p1", "p2"]
    assert found.people[2].advantage == 1.0
    assert among_people([voted(0), voted(1)], 0.15) is None
    two = among_people([voted(0, 1), voted(1, 1)], 0.15)
    assert two is not None and two.test is None and math.isnan(two.people[0].p_value)


def test_people_who_left_tasks_out_are_compared_on_the_others() -> None:
    tasks = [voted(0, 0), judged([2, 1], votes=[{"by": "p0", "best": 0}]), voted(0, 1)]
    found = among_people(tasks, 0.15)
    assert found is not None
    assert (found.two_people.estimate, found.two_people.n, found.two_people.left_out) == (0.5, 2, 1)
    assert [person.n for person in found.people] == [3, 2]
