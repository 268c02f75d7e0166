"""The models of an eval set in the order of a run's scores."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from debate.errors import InputError
from debate.evaluation import plain
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.meta_evaluation.models import ModelRanking, rank_models
from debate.types import Scale
from tests.meta_evaluation.planted_runs import planted_run

Game = tuple[Sequence[str], Sequence[float], Sequence[float]]
NAN = float("nan")
TASK = {"id": "t0", "x": "?", "candidates": [{"text": "long", "generator": "m"}, {"text": "word", "generator": "n"}]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    return read_run(planted_run(tmp_path_factory.mktemp("run"), [TASK], {"t0": (6.0, 4.0)}))


def judged(run: JudgedRun, *tasks: Game) -> JudgedRun:
    """A run of such tasks: models, scores, lengths."""
    [template] = run.tasks
    made = [
        replace(template, task_id=f"t{n}", generators=tuple(models), scores=np.array(scores), lengths=np.array(lengths))
        for n, (models, scores, lengths) in enumerate(tasks)
    ]
    return replace(run, tasks=made)


def elo(found: ModelRanking) -> dict[str, float]:
    return {each.model: each.elo.estimate for each in found.models}


def test_a_run_is_ranked_by_the_generators_of_its_candidates(run: JudgedRun) -> None:
    found = rank_models(run)
    assert [(each.model, each.won, each.elo.n, each.characters) for each in found.models] == [
        ("m", 1.0, 1, 4.0), ("n", 0.0, 1, 4.0),
    ]  # fmt: skip
    assert found.reason is not None  # one game identifies no skill
    assert json.loads(json.dumps(plain(found), allow_nan=False))["models"][0]["elo"]["interval"] == [None, None]


def test_skills_are_those_of_a_table_of_wins_with_ties_as_half(run: JudgedRun) -> None:
    wins = [("a", "b", 12), ("b", "a", 8), ("a", "c", 7), ("c", "a", 6), ("b", "c", 9), ("c", "b", 5)]
    games = [((x, y), (8.0, 2.0), (9, 9)) for x, y, n in wins for _ in range(n)] + [(("c", "a"), (5.0, 5.0), (9, 9))]
    found = rank_models(judged(run, *games))
    assert elo(found) == pytest.approx({"a": 37.21, "b": 4.69, "c": -41.90}, abs=0.005)
    assert [each.won for each in found.models] == pytest.approx([19.5 / 34, 17 / 34, 11.5 / 28])
    assert (found.games, found.tasks, found.unscored, found.reason) == (48, 48, 0, None)
    [best, *_] = found.models
    assert best.elo.interval[0] < best.elo.estimate < best.elo.interval[1]


def test_every_pair_within_a_task_is_a_game_and_equal_models_play_none(run: JudgedRun) -> None:
    found = rank_models(judged(run, (("a", "b", "c", "a", ""), (1.0, 2.0, NAN, 4.0, 5.0), (1,) * 5)))
    assert (found.games, found.unscored, found.unnamed, found.tasks) == (2, 3, 1, 1)


def test_where_the_lowest_score_is_best_it_wins(run: JudgedRun) -> None:
    reverse = [replace(task, scale=Scale(0, 10, higher_is_better=False)) for task in run.tasks]
    assert [each.model for each in rank_models(replace(run, tasks=reverse)).models] == ["n", "m"]


def test_length_control_takes_away_what_length_alone_brings(run: JudgedRun) -> None:
    """Model a writes longer, and the judge prefers what is longer, whoever wrote it."""
    drawn, games = random.Random(0), list[Game]()
    for _ in range(400):
        lengths = (drawn.randint(60, 200), drawn.randint(20, 160))
        longer_wins = drawn.random() < 0.8
        scores = (8.0, 2.0) if (lengths[0] > lengths[1]) == longer_wins else (2.0, 8.0)
        games.append((("a", "b"), scores, lengths))
    found = rank_models(judged(run, *games))
    [first] = [each for each in found.models if each.model == "a"]
    assert first.elo.estimate > 60
    assert abs(first.elo_at_equal_length.estimate) < first.elo.estimate / 3
    assert found.length.interval[0] > 0


def test_intervals_draw_whole_tasks(run: JudgedRun) -> None:
    drawn = random.Random(1)
    games = [(("a", "b"), drawn.choice([(8.0, 2.0), (2.0, 8.0)]), (5, 5)) for _ in range(40)]
    alone = rank_models(judged(run, *games)).models[0].elo.interval
    four_times = [((*models, *models), (*scores, *scores), (5,) * 4) for models, scores, _ in games]
    together = rank_models(judged(run, *four_times)).models[0].elo.interval
    assert together[1] - together[0] == pytest.approx(alone[1] - alone[0], rel=0.05)


@pytest.mark.parametrize(
    ("models", "why"),
    [(("", ""), "have no `generator`"), (("a", "a"), "all of them are of 'a'"), (("a",), "all of them are of 'a'")],
)
def test_a_run_without_two_models_in_a_task_is_refused(run: JudgedRun, models: tuple[str, ...], why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        rank_models(judged(run, (models, (1.0,) * len(models), (1,) * len(models))))
    assert "generator" in str(caught.value.hint)


def test_models_that_never_meet_are_refused(run: JudgedRun) -> None:
    with pytest.raises(InputError, match="no two stand in one task"):
        rank_models(judged(run, (("a", "a"), (1.0, 2.0), (1, 1)), (("b", "b"), (1.0, 2.0), (1, 1))))
