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

from debate import Budget, Component, Engine, Evaluation, Task
from debate.backends import Call, Scripted
from debate.errors import ConfigError, TaskError
from debate.flow import Completion
from debate.runtime.pools import Pool
from debate.scoring.distributions import distribution_of
from debate.testing import reply_for
from tests.small_flows import debates, plain


def texts(n: int) -> list[str]:
    """Candidates in a mixed order; `worth 7` is the better the higher the number."""
    return [f"worth {j * 7 % n}" for j in range(n)]


class Biased:
    """Scores candidates by their worth, more strictly in some groups than in others, and counts its calls.

    `worths` has those of each task's candidates, n of them in all; other tasks' are all alike.
    """

    calls: int

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


class Reader(Biased):
    """Reads candidates out by their worth, a little unsure, and debates them the other way round among the best."""

    def __call__(self, call: Call) -> Any:
        if call.info.get("moment") is None:
            return super().__call__(call)
        self.calls += 1
        assert call.read_out is not None
        worth, order = self.worths[str(call.info["task_id"])], [int(j) for j in call.info["labels"].values()]
        each = len(call.read_out.continuations) // len(order)
        found = [self._shares(worth[j]) for j in order for _ in range(each)]
        return Completion("", distributions=tuple(distribution_of(shares) for shares in found))

    def _shares(self, worth: int) -> dict[str, float]:
        score = 10 * worth / self.n
        low = int(score)
        return {str(low): 1 - (score - low), str(low + 1): score - low}


def screened(n: int, final: Mapping[str, Sequence[int]] | None = None, **more: Any) -> tuple[Evaluation, Reader]:
    task = Task("Which is worth most?", texts(n), id="pool")
    planned = Pool.plan(task, 8, 2, 0)
    script = Reader(n, {**{each.id: worths(each) for each in planned.tasks}, **(final or {})})
    with Engine(Scripted(script), seed=0) as engine:
        return engine.evaluate_pool(task, evaluator=debates(), silent=True, **more), script


def test_a_silent_screening_ranks_all_and_only_those_that_may_be_best_are_debated() -> None:
    found, script = screened(40)
    planted = [int(text.split()[1]) for text in texts(40)]
    finalists = found.details["finalists"]
    assert 2 <= len(finalists) <= 8
    assert {planted[j] for j in finalists} == set(range(40 - len(finalists), 40))
    assert [member.stop_reason for member in found.members[:-1]] == ["silent"] * 7
    assert found.members[-1].rounds_run == 2
    assert script.calls == found.usage.calls == 7 * 2 + 4
    rest = [j for j in range(40) if j not in finalists]
    assert found.scores[rest].max() <= found.scores[finalists].min()
    assert found.status == "ok"


def test_the_final_decides_among_those_that_may_be_best() -> None:
    first, _ = screened(40)
    finalists = first.details["finalists"]
    upset = finalists[0]
    found, _ = screened(40, {"pool/final": [9 * (j == upset) for j in finalists]})
    assert found.selected == upset
    assert found.details["finalists"] == finalists


def test_a_pool_that_fits_into_a_group_is_debated_without_a_screening() -> None:
    task = Task("Which is worth most?", texts(5), id="pool")
    with Engine(Scripted(Biased(5, {"pool": worths(task)}))) as engine:
        assert engine.evaluate_pool(task, evaluator=debates(), silent=True).rounds_run == 2


def test_a_screened_pool_is_recorded_and_asked_once(tmp_path: Path) -> None:
    task, planned = Task("Which?", texts(20), id="pool"), Pool.plan(Task("Which?", texts(20), id="pool"), 8, 2, 0)
    script = Reader(20, {each.id: worths(each) for each in planned.tasks})
    found: list[dict[str, Any]] = []
    calls = list[int]()
    for _ in range(2):
        with Engine(Scripted(script), store=f"sqlite:///{tmp_path / 'store.sqlite'}") as engine:
            found.append(plain(engine.evaluate_pool(task, evaluator=debates(), run="pool", silent=True)))
        calls.append(script.calls)
    assert found[0] == found[1]
    assert calls[0] == calls[1]


def test_an_agent_that_cannot_be_read_out_has_no_say_in_the_screening() -> None:
    task = Task("Which is worth most?", texts(20), id="pool")
    reader = Reader(20, {each.id: worths(each) for each in Pool.plan(task, 8, 2, 0).tasks})

    def script(call: Call) -> Any:
        is_lost = call.info.get("moment") is not None and call.info["agent"] == "Reader"
        return Completion("", distributions=()) if is_lost else reader(call)

    with Engine(Scripted(script), seed=0) as engine:
        found = engine.evaluate_pool(task, evaluator=debates(quorum=1), silent=True)
        none = engine.evaluate_pool(task, evaluator=debates(quorum=2), silent=True)
    groups = [each for each in found.members if each.stop_reason == "silent"]
    assert {each.status for each in groups} == {"partial"}
    assert {failure.agent for each in groups for failure in each.failures} == {"Reader"}
    assert not np.isnan(found.scores).any()
    assert {failure.reason for failure in none.failures} == {failure.reason for failure in found.failures}
    assert np.isnan(none.scores).all()


def test_groups_are_asked_what_the_whole_task_asks() -> None:
    asked: list[Call] = []

    def script(call: Call) -> str:
        asked.append(call)
        return reply_for(call)

    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which?"}]
    task = Task(messages, texts(12), id="pool", components=[Component("own", "Is its own.")])
    with Engine(Scripted(script)) as engine:
        found = engine.evaluate_pool(task, evaluator=debates(task_components="instead", rounds=1))
    assert {each.components for each in found.members} == {("own",)}
    planned = Pool.plan(task, 8, 2, 0)
    assert all(each.messages == task.messages and each.components == task.components for each in planned.tasks)
    assert asked


def test_candidates_beside_a_task_are_refused_and_so_is_an_evaluator_in_their_place() -> None:
    task, misplaced = Task("Which?", texts(20)), list[Any]([["another"], debates()])
    with Engine(Scripted(Biased(20))) as engine:
        for beside in misplaced:
            with pytest.raises(TaskError, match="candidates: must be left out where a task is given"):
                engine.evaluate_pool(task, beside)


def test_only_agents_of_a_debate_are_read_out_silently() -> None:
    with Engine(Scripted(Biased(20))) as engine, pytest.raises(ConfigError, match="the evaluator is value"):
        engine.evaluate_pool("Which?", texts(20), "value", silent=True)
