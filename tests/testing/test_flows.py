"""Flows driven by hand, replies that fit any schema, and fakes that keep what they saw."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from debate import DebateEvaluator, Engine, Task, ValueEvaluator, VoteEvaluator
from debate.backends import Scripted
from debate.flow import (
    Block,
    Completion,
    Flow,
    Gather,
    Generate,
    Prompt,
    ReadOut,
    Recall,
    Request,
    RunContext,
    Segment,
    call_function,
    gather,
    generate,
    recall,
)
from debate.jobs.run import RunListener
from debate.parsing.schema import bounded_text, number_in, object_of, or_null
from debate.runtime.runner import Runner
from debate.testing import DictJournal, Recorder, SilentListener, drive, reply_for
from debate.types import Failure, Memory
from tests.replies import FORMS
from tests.small_flows import FlowEvaluator, gathers, scored, tasks

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


def test_a_reply_to_a_debate_is_one_of_its_form() -> None:
    for form in FORMS:
        replies = [form.read(reply_for(call(form.schema, key))) for key in range(20)]
        assert {reply.is_silent for reply in replies} == ({False, True} if form.abstain else {False})


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


def test_what_may_be_null_seldom_is() -> None:
    schema = object_of({"a": or_null(number_in(1, 2)), "b": or_null(object_of({"c": number_in(3, 3)}))})
    values = [json.loads(reply_for(call(schema, key))) for key in range(200)]
    for name, others in (("a", [1, 2]), ("b", [{"c": 3}])):
        assert 5 < sum(value[name] is None for value in values) < 40
        assert all(value[name] in others for value in values if value[name] is not None)


LABELS = (*map(str, range(11)), "null")


def continued(*texts: str) -> ReadOut:
    return ReadOut(LABELS, tuple((Block([Segment(text, is_content=True)]),) for text in texts))


def test_a_read_out_is_answered_with_a_distribution_for_each_place_drawn_by_the_seed() -> None:
    schema = object_of({"text": bounded_text(40), "score": {"enum": [*range(11)]}, "list": {"enum": [[1, None]]}})
    for read_out, places in ((continued("a", "b"), 2), (ReadOut(LABELS), 3)):
        asked = [Generate(prompt=Prompt((), ()), schema=schema, read_out=read_out, sample_key=(n,)) for n in range(9)]
        replies: list[Completion] = [*map(reply_for, asked)]
        assert replies == [*map(reply_for, asked)]
        assert len({str(reply.distributions) for reply in replies}) == len(asked)
        for reply in replies:
            assert len(reply.distributions) == places
            assert bool(reply.text) == (places == 3)
            for each in reply.distributions:
                assert sum(each.probabilities.values()) == pytest.approx(1, abs=1e-5)
                assert set(each.probabilities) <= set(LABELS)
                assert 0.9 <= each.mass <= 1
    assert reply_for(call(None)) in list("0123456789")


def test_a_journal_keeps_what_was_read_out() -> None:
    found: list[Completion | Failure] = []

    def flow(task: Task, run: RunContext) -> Flow[Any]:
        found.append((yield from generate(Generate(prompt=Prompt((), ()), read_out=continued("a")))))
        return scored(task, 1.0)

    journal, script = DictJournal(), Recorder()
    for _ in range(2):
        runner = Runner({"scripted": Scripted(script)}, RUN)
        asyncio.run(runner.evaluate(FlowEvaluator(flow), tasks(1)[0], journal))
    assert len(script.calls) == 1
    assert found[0] == found[1]
    assert isinstance(found[1], Completion)
    assert len(found[1].distributions) == 1


def test_a_pattern_that_cannot_be_met_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"no reply is known for the pattern '\^x\{9\}\$'"):
        reply_for(call({"type": "string", "pattern": "^x{9}$"}))


def test_a_silent_listener_has_all_that_a_run_tells() -> None:
    listener: RunListener = SilentListener()
    listener.started(1, 0)
    listener.note("nothing is printed")
