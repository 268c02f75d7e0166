"""Debates by round and agent, on planted choices; habits with order and length; what is not read."""

from __future__ import annotations

import math

import numpy as np
import pytest

from debate.meta_evaluation.aggregation import Aggregation
from debate.meta_evaluation.judged import Judged
from debate.meta_evaluation.panel import DebateFigures, debate_figures, habits, missing
from debate.statistics import effective_judges
from tests.meta_evaluation.small_runs import judged, of_agents

ONE = Aggregation(np.array([1.0]), "weighted_mean", None, 3, None, "agents", 1)


def figures(tasks: list[Judged]) -> DebateFigures:
    found = debate_figures(tasks, ONE)
    assert found is not None
    return found


# ---- rounds


def test_each_round_is_aggregated_by_itself() -> None:
    tasks = [
        of_agents([[0, 0, 1], [1, 1, 0]], "lost"),
        of_agents([[1, 1, 0], [0, 0, 0]], "gained"),
        of_agents([[0, 0, 0]], "one round"),
        of_agents([[1, 1, 1], [1, 1, 1], [0, 1, 1]], "three rounds"),
    ]
    found = figures(tasks)
    assert [(each.round, each.tasks) for each in found.rounds] == [(0, 4), (1, 3), (2, 1)]
    assert [each.right.estimate for each in found.rounds if each.right] == [0.5, pytest.approx(1 / 3), 0]
    assert (found.first.estimate, found.last.estimate) == (0.5, 0.5)
    assert (found.flips.lost.estimate, found.flips.lost.n) == (1, 1)
    assert (found.flips.gained.estimate, found.flips.gained.n) == (0.5, 2)
    assert found.flips.net.n == 3


def test_a_round_without_scores_is_not_right_and_no_flip() -> None:
    unread = of_agents([[0, 0, 0], [0, 0, 0]])
    assert unread.tensor is not None
    unread.tensor[0] = np.nan
    found = figures([unread, of_agents([[0, 0, 0], [0, 0, 0]])])
    assert (found.first.estimate, found.first.n) == (0.5, 2)
    assert found.flips.net.n == 1


def test_agents_are_judged_alone_by_their_first_and_last_turns() -> None:
    tasks = [of_agents([[0, 1, 1], [0, 0, 1]], unread=2), of_agents([[0, 0, 1], [1, 0, 1]])]
    found = figures(tasks).agents
    assert [each.name for each in found] == ["agent 0", "agent 1", "agent 2"]
    assert [each.first.estimate for each in found] == [1, 0.5, 0]
    assert [each.last.estimate for each in found] == [0.5, 1, 0]
    assert [(each.unread, each.turns) for each in found] == [(1, 4), (1, 4), (0, 4)]


def test_the_best_agent_is_held_against_the_panel() -> None:
    tasks = [of_agents([[0, 1, 1], [0, 1, 1]], str(n)) for n in range(5)]
    best = figures(tasks).best_agent
    assert (best.to_best.estimate, best.to_any.estimate) == (1, 1)


def test_effective_judges_fall_when_talking_makes_errors_alike() -> None:
    draw = np.random.default_rng(5)
    tasks: list[Judged] = []
    for n in range(300):
        first = (draw.random(3) < 0.3).astype(int)
        tasks.append(of_agents([first.tolist(), [int(first[0])] * 3], str(n)))
    found = figures(tasks)
    assert found.judges_first is not None and found.judges_last is not None
    errors = np.array([task.tensor[0, :, 0, 0] < 5 for task in tasks if task.tensor is not None], dtype=float)
    assert found.judges_first.estimate == pytest.approx(effective_judges(errors, draws=0).estimate)
    assert found.judges_first.estimate > 2.6
    assert found.judges_last.estimate == pytest.approx(1)


def test_conformity_is_counted_over_all_cells_of_debates_with_two_rounds() -> None:
    task = of_agents([[0, 1], [1, 1]])
    assert task.tensor is not None
    task.tensor[:, :, :, 0] = [[[8, 2], [4, 6]], [[7, 1], [5, 6]]]  # three changed: to, from, to the mean
    found = figures([task, of_agents([[0, 1]])]).conformity
    assert (found.estimate, found.n) == (pytest.approx(2 / 3), 3)


def test_a_single_agent_has_no_effective_number() -> None:
    found = figures([of_agents([[0], [1]])])
    assert found.judges_first is None
    assert found.conformity.reason == "no score was changed" or found.conformity.n


def test_without_labels_rounds_are_not_judged_but_conformity_is() -> None:
    tasks = [of_agents([[0, 1, 1], [1, 1, 1]], best=None)]
    found = figures(tasks)
    assert found.rounds[0].right is None
    assert found.conformity.n > 0
    assert found.judges_first is not None and math.isnan(found.judges_first.estimate)


def test_tasks_without_a_tensor_have_no_rounds() -> None:
    assert debate_figures([judged([1, 2], best=0)], ONE) is None


def test_both_orders_of_a_balanced_debate_are_one_task() -> None:
    members = [of_agents([[0, 0, 1]], orders=[(0, 1)] * 3), of_agents([[1, 1, 1]], orders=[(1, 0)] * 3)]
    both = judged([3.5, 6.5], best=0, members=members, order_agreement=False)
    found = figures([both])
    assert (found.first.estimate, found.first.n) == (0, 1)
    assert found.agents[0].turns == 2
    assert missing([both]).turns == 6


# ---- habits


def test_a_judge_who_takes_the_first_shown_is_seen() -> None:
    tasks = [of_agents([[n % 2] * 3], orders=[(n % 2, 1 - n % 2)] * 3, best=None) for n in range(10)]
    first = habits(tasks, ONE).first_shown
    assert first is not None
    assert (first.estimate, first.n, first.clusters) == (0.5, 30, 10)


def test_a_right_judge_whose_right_candidates_stand_first_has_no_preference() -> None:
    tasks = [of_agents([[0, 0, 0]], orders=[(0, 1)] * 3, best=0) for _ in range(5)]
    first = habits(tasks, ONE).first_shown
    assert first is not None
    assert first.estimate == 0


def test_each_agent_counts_in_the_order_that_it_saw() -> None:
    tasks = [of_agents([[0, 1, 0]], orders=[(0, 1), (1, 0), (0, 1)], best=None)]
    first = habits(tasks, ONE).first_shown
    assert first is not None
    assert first.estimate == 0.5


def test_consistency_is_the_share_of_balanced_debates_that_agree() -> None:
    tasks = [judged([1, 2], order_agreement=agree) for agree in (True, True, False, None)]
    consistency = habits(tasks, None).consistency
    assert consistency is not None
    assert (consistency.estimate, consistency.n) == (pytest.approx(2 / 3), 3)
    assert habits([judged([1, 2])], None).consistency is None


@pytest.mark.parametrize("is_labeled", [True, False])
def test_length_is_weighed_at_equal_labels_where_there_are_any(is_labeled: bool) -> None:
    draw = np.random.default_rng(2)
    tasks: list[Judged] = []
    for n in range(200):
        lengths, best = draw.uniform(100, 200, 2), int(draw.integers(2))
        scores = 5 + np.array([best == 0, best == 1]) + (lengths - 150) / 100
        tasks.append(judged(scores.tolist(), task_id=str(n), lengths=lengths.tolist(),
                            best=best if is_labeled else None))  # fmt: skip
    found = habits(tasks, None)
    spread = np.std([task.lengths[0] - task.lengths[1] for task in tasks])
    assert found.at_equal_labels == is_labeled
    assert found.length_slope.estimate == pytest.approx(spread / 100, rel=1e-6 if is_labeled else 0.5)


# ---- what is missing


def test_what_is_not_read_and_not_scored_is_counted() -> None:
    partial = of_agents([[0, 0], [0, 0]], status="partial", unread=1)
    assert partial.tensor is not None
    partial.tensor[0, 0] = np.nan
    found = missing([partial, judged([1, math.nan], status="failed")])
    assert found.statuses == {"partial": 1, "failed": 1}
    assert (found.turns, found.unread, found.cells, found.unscored_cells) == (4, 1, 8, 2)
    assert (found.candidates, found.unscored_candidates) == (4, 1)
