"""The checks pass what keeps the contract, our own evaluators and backends first, and name the rule that is broken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from debate import (
    CallbackEvaluator,
    Candidate,
    Component,
    CrossEvaluator,
    DebateEvaluator,
    Evaluation,
    PanelEvaluator,
    Persona,
    Profile,
    Scale,
    StepEvaluator,
    Task,
    ValueEvaluator,
    VoteEvaluator,
)
from debate.backends import Ollama, OpenAICompatible, Scripted
from debate.backends.scripted import Script
from debate.errors import CallError
from debate.evaluators.base import Evaluator, Footprint
from debate.flow import Call, Completion, Flow, RunContext, generate
from debate.testing import FakeServer, check_backend, check_evaluator, reply_for
from debate.testing.fake_server import Reply, Request, failing
from debate.types import Failure, LabelDistribution, Usage
from tests.small_flows import FlowEvaluator, ask, number_in, scored

PAIR = Profile("pair", (Persona("A", "You judge."), Persona("B", "You judge.")), (Component("truth", "Is it true?"),))
TASKS = [
    Task("What is 2 + 2?", [Candidate("4", generator="one"), Candidate("5", generator="two")], id="sum"),
    Task("Name a color.", [Candidate(text, generator="two") for text in ("red", "seven", "blue")]),
]
MEMBERS: dict[str, Evaluator] = {"one": ValueEvaluator(model="m1", samples=1), "two": ValueEvaluator(model="m2")}


def by_length(text: str) -> float:
    return float(len(text))


OURS: dict[str, Evaluator] = {
    "debate": DebateEvaluator(PAIR, rounds=2, convergence=None),
    "balanced debate": DebateEvaluator(PAIR, rounds=1, candidate_order="balanced"),
    "value": ValueEvaluator(samples=2),
    "vote": VoteEvaluator(),
    "pairwise": VoteEvaluator(ballot="pairwise"),
    "panel": PanelEvaluator(members=MEMBERS),
    "cross": CrossEvaluator(judges=MEMBERS),
    "callback": CallbackEvaluator(by_length, scale=Scale(0, 100)),
    "step": StepEvaluator(),
}


@pytest.mark.parametrize("name", OURS)
def test_our_own_evaluators_keep_the_contract(name: str) -> None:
    check_evaluator(OURS[name], TASKS)


def small(change: Callable[[Evaluation], Any] = lambda evaluation: evaluation, **parts: Any) -> FlowEvaluator:
    """An evaluator that asks once, and a change to what it returns."""

    def flow(task: Task, run: RunContext) -> Flow[Any]:
        answer = yield from generate(ask(task, task.x))
        if isinstance(answer, Failure):
            lost = scored(task, np.nan, failures=(answer,))
            return replace(lost, status="failed", selected=None, probabilities=np.zeros(len(task.candidates)))
        return change(scored(task, number_in(answer)))

    return FlowEvaluator(flow, **parts)


def forgets_failures(task: Task, run: RunContext) -> Flow[Evaluation]:
    yield from generate(ask(task, task.x))
    return scored(task, 5.0)


def nothing(task: Task) -> Footprint:
    return Footprint(characters=0, replies=0, max_tokens=1)


def asks_anew() -> FlowEvaluator:
    asked: list[int] = []

    def flow(task: Task, run: RunContext) -> Flow[Evaluation]:
        asked.append(1)
        answer = yield from generate(ask(task, f"{task.x} {len(asked)}"))
        return scored(task, number_in(answer))

    return FlowEvaluator(flow)


def no_flow(task: Task, run: RunContext) -> Any:
    return 5


def raises_on_failure(task: Task, run: RunContext) -> Flow[Evaluation]:
    answer = yield from generate(ask(task, task.x))
    assert isinstance(answer, Completion)
    return scored(task, float(answer.text))


class NotPlain(FlowEvaluator):
    """Describes itself by a set."""

    def describe(self) -> dict[str, Any]:
        return {"names": {"a"}}


def test_an_evaluator_that_keeps_the_contract_passes() -> None:
    check_evaluator(small(), TASKS)


BROKEN: dict[str, tuple[Any, str]] = {
    "class": (ValueEvaluator, "is a class, not an evaluator"),
    "settings": (NotPlain(small().body), "plain data"),
    "no generator": (FlowEvaluator(no_flow), "not a generator"),
    "nothing": (small(lambda found: None), "returned NoneType"),
    "other task": (small(lambda found: replace(found, task_id="other")), "is of the task"),
    "length": (small(lambda found: replace(found, scores=np.ones(7))), r"not \(2,\)"),
    "scale": (small(lambda found: replace(found, scores=found.scores + 99)), "the score of candidate 1 is"),
    "probabilities": (small(lambda found: replace(found, probabilities=found.probabilities * 2)), "sum to 1"),
    "selected": (small(lambda found: replace(found, selected=2)), "selected"),
    "prompts": (asks_anew(), "same prompts"),
    "footprint": (small(size=nothing), "upper bound"),
    "failure": (FlowEvaluator(forgets_failures), "partial or failed, not ok"),
    "exception": (FlowEvaluator(raises_on_failure), "not an exception"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_rule_that_an_evaluator_breaks_is_named(name: str) -> None:
    evaluator, problem = BROKEN[name]
    with pytest.raises(AssertionError, match=problem):
        check_evaluator(evaluator, TASKS)


def test_what_a_flow_raises_goes_through() -> None:
    def raises(found: Evaluation) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        check_evaluator(small(raises), TASKS)


def says(call: Call) -> Completion:
    """What a model says that keeps to `max_tokens`."""
    return says_all(call) if "REFUSE" not in call.messages[0]["content"] else refusal()


def refusal() -> Completion:
    raise ValueError("no")


def says_all(call: Call) -> Completion:
    is_short = (call.sampling.max_tokens or 9) < 5
    said = reply_for(call)
    read = said if isinstance(said, Completion) else Completion(said)
    return replace(read, finish_reason="length" if is_short else "stop", usage=Usage(10, 0, 5, 1))


def test_a_backend_that_keeps_the_contract_passes() -> None:
    check_backend(Scripted(says), refused="REFUSE")


def refuses(request: Request) -> Reply | None:
    return failing(400, "too long") if "REFUSE" in request.text else None


@pytest.mark.parametrize(("backend", "path"), [(OpenAICompatible, "/v1"), (Ollama, "")])
def test_our_servers_keep_the_contract(backend: Any, path: str) -> None:
    with FakeServer(refuses) as server:
        check_backend(backend("m", server.url + path), refused="REFUSE")


def not_json(call: Call) -> Completion:
    return replace(says(call), text="hello")


def beyond(call: Call) -> Completion:
    return replace(says(call), text='{"comment": "", "score": 11}')


def read_out_anew(change: Callable[[LabelDistribution], LabelDistribution]) -> Script:
    """A script that reads labels, and a change to each distribution."""

    def script(call: Call) -> Completion:
        said = says(call)
        return replace(said, distributions=tuple(map(change, said.distributions)))

    return script


def talkative(call: Call) -> Completion:
    return replace(said, text=said.text or "7") if (said := says(call)).distributions else said


def forgetful(call: Call) -> Completion:
    is_reply = call.read_out is not None and not call.read_out.continuations
    return replace(says(call), distributions=()) if is_reply else says(call)


async def holds_on(call: Call) -> Completion:
    try:
        await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        raise CallError("cancelled", "no") from None
    return says(call)


def uncounted(call: Call) -> Completion:
    return replace(says(call), usage=Usage())


def without_tokens(call: Call) -> Completion:
    return replace(says(call), usage=Usage(calls=1))


def never_cut(call: Call) -> Completion:
    return replace(says(call), finish_reason="stop")


FAULTY: list[tuple[Script, str]] = [
    (uncounted, "counts as one call"),
    (without_tokens, "tokens are counted"),
    (not_json, "answered with JSON"),
    (beyond, "bounds"),
    (never_cut, "length"),
    (talkative, "nothing is said"),
    (forgetful, "there are 1, and 0 distributions"),
    (read_out_anew(lambda each: LabelDistribution({"x": 1.0})), "those of labels"),
    (read_out_anew(lambda each: LabelDistribution({"7": 0.5})), "sum to 1"),
    (read_out_anew(lambda each: replace(each, mass=1.5)), "the mass is a probability"),
    (holds_on, "CancelledError"),
    (says_all, "raises CallError"),
]


@pytest.mark.parametrize(("script", "problem"), FAULTY)
def test_the_rule_that_a_backend_breaks_is_named(script: Script, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        check_backend(Scripted(script), refused="REFUSE")
