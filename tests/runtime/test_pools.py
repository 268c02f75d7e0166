"""Pools of many candidates through the engine: one ranking, each group a task of its own."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import Budget, Engine, Evaluation, Task
from debate.backends import Call, Scripted
from debate.errors import ConfigError
from debate.runtime.pools import Pool
from tests.small_flows import debates, plain


def texts(n: int) -> list[str]:
    """Candidates in a mixed order; `worth 7` is the better the higher the number."""
    return [f"worth {j * 7 % n}" for j in range(n)]


class Biased:
    """Scores candidates by their worth, more strictly in some groups than in others, and counts its calls.

    `worths` has those of each task's candidates, n of them in all; other tasks' are all alike.
    """

    def __init__(self, n: int, worths: Mapping[str, Sequence[int]] | None = None) -> None:
        self.n, self.worths = n, worths or {}
        self.calls = 0

    def __call__(self, call: Call) -> str:
        self.calls += 1
        assert call.schema is not None
        task_id, labels = call.info["task_id"], call.info["labels"]
        bias = sum(map(ord, str(task_id))) % 5 / 2
        shown = call.schema["properties"]["candidates"]["properties"]
        names = next(iter(shown.values()))["properties"]["scores"]["properties"]
        worth = self.worths.get(str(task_id), [0] * len(labels))
        said = {
            label: {"comment": "Said.", "scores": dict.fromkeys(names, round(bias + 6 * worth[int(j)] / self.n, 6))}
            for label, j in labels.items()
        }
        return json.dumps({"overall": "Said.", "candidates": said})


def worths(task: Task) -> list[int]:
    return [int(candidate.text.split()[1]) for candidate in task.candidates]


def ranked(n: int, seed: int = 0, group: int = 8, anchors: int = 2) -> tuple[Evaluation, Biased]:
    """The evaluation of a pool of n, and who judged it."""
    task = Task("Which is worth most?", texts(n), id="pool")
    planned = Pool.plan(task, group, anchors, seed)
    script = Biased(n, {each.id: worths(each) for each in planned.tasks})
    with Engine(Scripted(script), seed=seed) as engine:
        return engine.evaluate_pool(task, evaluator=debates(), group=group, anchors=anchors), script


@pytest.mark.parametrize(("n", "group", "anchors"), [(9, 8, 2), (25, 8, 2), (41, 6, 1), (30, 8, 3)])
def test_the_planted_order_comes_back_whatever_each_groups_bias(n: int, group: int, anchors: int) -> None:
    found, script = ranked(n, group=group, anchors=anchors)
    planted = [int(text.split()[1]) for text in texts(n)]
    assert found.evaluator == "pool"
    assert np.argsort(-found.scores).tolist() == np.argsort(-np.array(planted)).tolist()
    assert found.selected == planted.index(n - 1)
    assert found.scale.low <= found.scores.min() <= found.scores.max() <= found.scale.high
    groups = math.ceil((n - anchors) / (group - anchors))
    assert (len(found.members), len(found.details["groups"])) == (groups, groups)
    assert script.calls == found.usage.calls == 4 * groups
    assert "nan" not in found.chain_of_thought()
    assert found.feedback(0).splitlines()[0].startswith(f"Candidate 1 of {n}: ")


def test_a_pool_that_fits_into_a_group_is_a_single_debate() -> None:
    task = Task("Which is worth most?", texts(8), id="one")
    with Engine(Scripted(Biased(8, {"one": worths(task)}))) as engine:
        pool, alone = engine.evaluate_pool(task, evaluator=debates()), engine.evaluate(task, debates())
    assert plain(pool) == plain(alone)


def test_the_seed_alone_draws_the_groups() -> None:
    first, second, other = (ranked(25, seed=seed)[0] for seed in (1, 1, 2))
    assert plain(first) == plain(second)
    assert first.details["groups"] != other.details["groups"]
    np.testing.assert_allclose(first.scores - first.scores.mean(), other.scores - other.scores.mean(), atol=1e-4)


def test_groups_are_recorded_as_tasks_of_the_run_and_asked_once(tmp_path: Path) -> None:
    script = Biased(1)
    address = f"sqlite:///{tmp_path}/runs.sqlite"
    with Engine(Scripted(script), store=address) as engine:
        first = engine.evaluate_pool("Which?", texts(20), debates(), run="pool")
        asked = script.calls
        second = asyncio.run(engine.aevaluate_pool("Which?", texts(20), debates(), run="pool"))
    assert script.calls == asked == 4 * 3
    np.testing.assert_array_equal(first.scores, second.scores)
    assert [each.task_id for each in first.members] == [f"{first.task_id}/group-{n}" for n in (1, 2, 3)]


def test_candidates_of_groups_that_the_budget_left_undone_are_unscored() -> None:
    script = Biased(1)
    with Engine(Scripted(script), max_concurrency=1) as engine:
        whole = engine.evaluate_pool("Which?", texts(20), debates())
        budget = Budget(tokens=whole.members[0].usage.total_tokens + 1)
        part = engine.evaluate_pool("Which?", texts(20), debates(), budget=budget)
    scored = ~np.isnan(part.scores)
    assert part.status == "partial"
    assert sorted(np.flatnonzero(scored).tolist()) == sorted(part.details["groups"][0])
    assert {failure.reason for failure in part.failures} == {"budget"}


@pytest.mark.parametrize("wrong", [{"group": 1}, {"anchors": 0}, {"group": 4, "anchors": 4}])
def test_groups_without_room_are_refused_before_anything_is_asked(wrong: dict[str, Any]) -> None:
    with Engine(Scripted(lambda call: "")) as engine, pytest.raises(ConfigError, match=r"group|anchors"):
        engine.evaluate_pool("Which?", texts(20), debates(), **wrong)
