"""Flows driven by hand, replies that fit any schema, and fakes that keep what they saw."""

from __future__ import annotations

import json
from typing import Any

import pytest

from debate import DebateEvaluator, Engine, Task, ValueEvaluator, VoteEvaluator
from debate.backends import Scripted
from debate.flow import Flow, Gather, Generate, Prompt, Recall, Request, RunContext, call_function, gather, recall
from debate.jobs.run import RunListener
from debate.parsing.schema import bounded_text, number_in, object_of
from debate.testing import Recorder, SilentListener, drive, reply_for
from debate.types import Failure, Memory
from tests.small_flows import gathers, tasks

RUN = RunContext(seed=1)


def test_a_flow_is_driven_to_what_it_returns_and_its_calls_are_kept() -> None:
    judge = Recorder(lambda call: "2")
    evaluation = drive(gathers(3, calls=2).flow(tasks(1)[0], RUN), judge)
    assert evaluation.scores[0] == 2 * 7
    assert len(judge.calls) == 7


def test_children_are_driven_last_first_and_answered_in_their_order() -> None:
    seen: list[int] = []

    def child(n: int) -> Flow[int]:
        seen.append((yield from call_function(lambda: n)))
        return n

    def parent() -> Flow[tuple[int, ...]]:
        return (yield from gather([child(n) for n in range(3)]))

    requests: list[Request] = []
    assert drive(parent(), reply_for, observe=requests.append) == (0, 1, 2)
    assert seen == [2, 1, 0]
    assert isinstance(requests[0], Gather)


def test_a_recall_is_answered_by_the_function_or_with_nothing() -> None:
    request = Recall(collections=("c",), queries=("q",))
    assert drive(recall(request), reply_for) == ()
    assert drive(recall(request), reply_for, lambda asked: [Memory(asked.queries[0])]) == (Memory("q"),)


def raising() -> None:
    raise KeyError("mine")


async def later() -> int:
    return 3


def test_functions_are_called_awaited_and_their_exceptions_are_failures() -> None:
    assert drive(call_function(later), reply_for) == 3
    assert drive(call_function(raising), reply_for) == Failure("raised", "KeyError: 'mine'")


@pytest.mark.parametrize(
    "evaluator", [DebateEvaluator("general"), ValueEvaluator(), VoteEvaluator(), VoteEvaluator(ballot="pairwise")]
)
@pytest.mark.parametrize("n", [2, 8])
def test_replies_are_readable_for_every_evaluator(evaluator: Any, n: int) -> None:
    with Engine(Scripted(reply_for)) as engine:
        evaluation = engine.evaluate(Task("x", [f"candidate {j}" for j in range(n)]), evaluator)
    assert evaluation.status == "ok", evaluation.error
    assert not any(judgment.invalid_replies for judgment in evaluation.judgments)


def call(schema: Any, key: int = 0) -> Generate:
    return Generate(prompt=Prompt((), ()), schema=schema, sample_key=(key,))


def test_a_reply_follows_its_schema_and_the_calls_seed() -> None:
    schema = object_of(
        {
            "text": bounded_text(12),
            "value": number_in(3, 4),
            "kind": {"enum": ["a", "b"]},
            "sure": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 2}, "minItems": 1},
        }
    )
    replies = [reply_for(call(schema, key)) for key in range(20)]
    assert replies == [reply_for(call(schema, key)) for key in range(20)]
    assert len(set(replies)) > 10
    for reply in map(json.loads, replies):
        assert list(reply) == ["text", "value", "kind", "sure", "list"]
        assert 0 < len(reply["text"]) <= 12
        assert reply["value"] in (3, 4)
        assert reply["kind"] in ("a", "b")
        assert reply["sure"] in (True, False)
        assert set(reply["list"]) <= {1, 2} and reply["list"]


def test_a_pattern_that_cannot_be_met_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"no reply is known for the pattern '\^x\{9\}\$'"):
        reply_for(call({"type": "string", "pattern": "^x{9}$"}))


def test_a_silent_listener_has_all_that_a_run_tells() -> None:
    listener: RunListener = SilentListener()
    listener.started(1, 0)
    listener.note("nothing is printed")
