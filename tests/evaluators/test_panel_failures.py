"""Panels whose members fail, in every way and order of listing: what is left, quorum, reserves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from debate import CallbackEvaluator, Engine, PanelEvaluator, Scale, Task, ValueEvaluator
from debate.backends import Call, Scripted
from debate.errors import BackendUnavailableError, CallError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator, RunContext
from debate.flow import Flow, Gather, Generate
from tests.judges import MEMBERS, OPINIONS, by_model, failing, judged, worth
from tests.small_flows import FlowEvaluator, scored

TASK = Task("x", ["t0", "t1", "t2"], id="t")
Faulty = Callable[[Generate | Call], str]


def busy(call: Generate | Call) -> str:
    raise CallError("busy", "no reply")


def broken(call: Generate | Call) -> str:
    raise ZeroDivisionError("a script with a fault")


def refuses_one(call: Generate | Call) -> str:
    return "I will not judge this." if call.info["candidate"] == 1 else by_model(call)


WAYS: dict[str, Faulty] = {
    "call error": busy,
    "exception in the script": broken,
    "unreadable": lambda call: "what?",
    "empty": lambda call: "",
    "infinite": lambda call: '{"reasoning": "", "value": 1e999}',
    "not a number": lambda call: '{"reasoning": "", "value": NaN}',
    "out of range": lambda call: worth(11),
    "null": lambda call: worth(None),
    "refuses one candidate": refuses_one,
}


def without_cost(data: dict[str, Any]) -> dict[str, Any]:
    """All but what it cost, its members too."""
    members = [without_cost(member) for member in data["members"]]
    return {key: value for key, value in data.items() if key not in ("usage", "seconds")} | {"members": members}


def run(panel: PanelEvaluator, faulty: Faulty, who: str = "m1", on: Task = TASK) -> Evaluation:
    """By an engine with three models, one of them faulty."""
    models = {name: Scripted(faulty if name == who else by_model, model=name) for name in ("m0", "m1", "m2")}
    with Engine(models) as engine:
        return engine.evaluate(on, panel)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", ["m0", "m1", "m2"])
def test_whoever_fails_in_whichever_way_the_order_of_listing_changes_nothing(way: str, who: str) -> None:
    found = [
        run(PanelEvaluator(members={name: MEMBERS[name] for name in order}), WAYS[way], who)
        for order in permutations(MEMBERS)
    ]
    results = [without_cost(each.to_dict()) for each in found]
    assert all(result == results[0] for result in results)
    expected = [3, 2, 3] if way == "refuses one candidate" else [2, 2, 2]
    assert found[0].details["votes"] == expected
    assert found[0].status == "partial"
    assert found[0].statuses == ("ok",) * 3
    assert found[0].error
    others = [OPINIONS[name][1] for name in OPINIONS if name != who]
    assert found[0].scores[1] == sum(others) / 2
    is_gone = way != "refuses one candidate"
    assert list(found[0].details["failed"]) == ([f"j{who[1]}"] if is_gone else [])
    assert len(found[0].members) == 3


def raises(task: Task, run: RunContext) -> Flow[Evaluation]:
    raise RuntimeError("before the first request")
    yield


def raises_later(task: Task, run: RunContext) -> Flow[Evaluation]:
    yield from MEMBERS["j0"].flow(task, run)
    raise KeyError("after the last")


@pytest.mark.parametrize("body", [raises, raises_later])
def test_an_exception_in_a_members_flow_is_its_own(body: Any) -> None:
    members: dict[str, Evaluator] = {"a": MEMBERS["j0"], "b": FlowEvaluator(body), "c": MEMBERS["j2"]}
    found = [
        judged(PanelEvaluator(members={name: members[name] for name in order}), TASK, by_model)
        for order in permutations(members)
    ]
    assert len({each.to_json() for each in found}) == 1
    assert found[0].scores.tolist() == [9, 2, 5.5]
    assert list(found[0].details["failed"]) == ["b"]
    assert found[0].members[1].failures[0].reason == "evaluator_error"
    assert found[0].details["members"] == {"a": 0, "b": 1, "c": 2}


def test_what_ends_a_run_ends_it_from_a_member_too() -> None:
    def dies(task: Task, run: RunContext) -> Flow[Evaluation]:
        raise BackendUnavailableError("gone")
        yield

    with pytest.raises(BackendUnavailableError):
        judged(PanelEvaluator(members={"a": MEMBERS["j0"], "b": FlowEvaluator(dies)}), TASK, by_model)


@pytest.mark.parametrize(
    ("quorum", "failed", "status"),
    [
        (None, ("m0",), "partial"),
        (None, ("m0", "m1"), "failed"),
        (1, ("m0", "m1"), "partial"),
        (3, ("m0",), "failed"),
        (3, (), "ok"),
        (1, ("m0", "m1", "m2"), "failed"),
    ],
)
def test_a_panel_never_shrinks_below_its_quorum(quorum: int | None, failed: tuple[str, ...], status: str) -> None:
    evaluation = judged(PanelEvaluator(members=MEMBERS, quorum=quorum), TASK, failing(*failed))
    assert evaluation.status == status
    assert evaluation.details["quorum"] == (quorum or 2)
    assert evaluation.details["votes"] == [3 - len(failed)] * 3
    assert set(evaluation.details["failed"]) == {f"j{name[1]}" for name in failed}
    assert np.isnan(evaluation.scores).all() == (status == "failed")


def test_the_quorum_is_of_each_candidate() -> None:
    def answer(call: Generate) -> str:
        return "?" if call.info["candidate"] == 0 and call.model != "m2" else by_model(call)

    evaluation = judged(PanelEvaluator(members=MEMBERS), TASK, answer)
    assert evaluation.statuses == ("failed", "ok", "ok")
    assert evaluation.details["votes"] == [1, 3, 3]
    assert evaluation.selected == 2


def test_a_reserve_takes_the_place_of_a_member_that_failed_and_of_no_other() -> None:
    reserves: dict[str, Evaluator] = {
        "j1": ValueEvaluator(model="m2", samples=2, retries=0),
        "j0": ValueEvaluator(model="m1", samples=2, retries=0),
    }
    panel = PanelEvaluator(members=MEMBERS, reserves=reserves)
    evaluation = judged(panel, TASK, failing("m1"))
    assert evaluation.details["replaced"] == ["j1"]
    assert evaluation.details["failed"] == {}
    assert evaluation.details["votes"] == [3, 3, 3]
    assert evaluation.scores.tolist() == [9, 2, pytest.approx(17 / 3)]
    assert evaluation.status == "partial"
    assert [member.status for member in evaluation.members] == ["ok", "ok", "ok", "failed"]
    assert evaluation.details["members"] == {"j0": 0, "j1": 1, "j2": 2}
    assert panel.models == {"m0", "m1", "m2"}


def test_a_reserve_may_fail_too() -> None:
    reserves: dict[str, Evaluator] = {"j1": ValueEvaluator(model="m1", samples=2, retries=0)}
    evaluation = judged(PanelEvaluator(members=MEMBERS, reserves=reserves), TASK, failing("m1"))
    assert evaluation.details["replaced"] == ["j1"]
    assert list(evaluation.details["failed"]) == ["j1"]
    assert evaluation.details["votes"] == [2, 2, 2]


@pytest.mark.parametrize("scores", [[np.inf, 1.0], [1.0], [1001.0, 1.0]])
def test_a_member_whose_scores_cannot_be_is_a_member_that_failed(scores: list[float]) -> None:
    def body(task: Task, run: RunContext) -> Flow[Evaluation]:
        yield Gather(())
        return replace(scored(task, 5.0), scores=np.array(scores))

    def four(x: str, answer: str) -> float:
        return 4.0

    members: dict[str, Evaluator] = {"good": CallbackEvaluator(four, scale=Scale()), "odd": FlowEvaluator(body)}
    with Engine(Scripted(lambda call: "")) as engine:
        evaluation = engine.evaluate(Task("x", ["a", "b"]), PanelEvaluator(members=members, quorum=1))
    assert evaluation.status == "partial"
    assert evaluation.scores.tolist() == [4.0, 4.0]
    assert set(evaluation.details["failed"]) == {"odd"}
