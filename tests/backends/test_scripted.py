"""The scripted backend: what a script is shown, and what its answers become."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from debate import Engine, Sampling, Task
from debate.backends import Call, Scripted
from debate.errors import BackendUnavailableError, CallError
from debate.flow import Block, Completion, Prompt, ReadOut, Segment
from debate.testing import Recorder, reply_for
from debate.types import LabelDistribution, Usage
from tests.small_flows import debates

BLOCK = Block([Segment("You are asked: ", is_content=False), Segment("why?", is_content=True)])
CALL = Call(
    model="scripted",
    prompt=Prompt(system=(Block([Segment("Rules.", False)]),), user=(BLOCK, BLOCK)),
    sampling=Sampling(),
    seed=7,
)


def test_the_messages_are_the_joined_blocks() -> None:
    assert CALL.messages == [
        {"role": "system", "content": "Rules."},
        {"role": "user", "content": "You are asked: why?You are asked: why?"},
    ]


def test_a_prompt_without_a_system_block_has_no_system_message() -> None:
    assert Prompt(system=(), user=(BLOCK,)).messages() == [{"role": "user", "content": "You are asked: why?"}]


def test_a_text_is_counted_at_four_characters_a_token() -> None:
    completion = asyncio.run(Scripted(lambda call: "x" * 40).generate(CALL))
    assert completion == Completion("x" * 40, "stop", Usage(prompt_tokens=(6 + 38) // 4, completion_tokens=10, calls=1))


def test_a_completion_is_passed_on_as_it_is() -> None:
    completion = Completion("cut o", "length", Usage(1, 2, 3, 4))
    assert asyncio.run(Scripted(lambda call: completion).generate(CALL)) is completion


def test_a_script_may_be_async() -> None:
    async def script(call: Call) -> str:
        await asyncio.sleep(0)
        return f"seed {call.seed}"

    assert asyncio.run(Scripted(script).generate(CALL)).text == "seed 7"


def test_an_exception_in_the_script_is_a_failed_call() -> None:
    with pytest.raises(CallError, match="the script raised ZeroDivisionError: ") as caught:
        asyncio.run(Scripted(lambda call: str(1 // 0)).generate(CALL))
    assert caught.value.reason == "script_raised"


@pytest.mark.parametrize("error", [BackendUnavailableError("gone"), CallError("context_length", "too long")])
def test_a_script_may_fail_as_a_backend_does(error: Exception) -> None:
    def script(call: Call) -> str:
        raise error

    with pytest.raises(type(error)) as caught:
        asyncio.run(Scripted(script).generate(CALL))
    assert caught.value is error


def test_being_cancelled_is_no_failed_call() -> None:
    async def scene() -> None:
        asked = asyncio.ensure_future(Scripted(lambda call: asyncio.sleep(60, "late")).generate(CALL))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(scene())


def test_a_debate_tells_the_script_what_each_call_is_about() -> None:
    def unreadable_once(call: Call) -> str:
        return "what?" if (call.info["agent"], call.info["attempt"]) == ("Reader", 0) else reply_for(call)

    script = Recorder(unreadable_once)
    with Engine(Scripted(script, model="judge")) as engine:
        engine.evaluate(Task("x", ["one", "two"], id="t"), debates(rounds=1, candidate_order="fixed"))
    assert [(call.info["round"], call.info["agent"], call.info["attempt"]) for call in script.calls] == [
        (0, "Critic", 0),
        (0, "Reader", 0),
        (0, "Reader", 1),
    ]
    for call in script.calls:
        assert call.model == "judge"
        assert call.info["task_id"] == "t"
        assert list(call.info["labels"].items()) == [("A", 0), ("B", 1)]
        assert call.schema is not None
        assert list(call.schema["properties"]["candidates"]["properties"]) == ["A", "B"]
        assert [message["role"] for message in call.messages] == ["system", "user"]
    assert "You are Reader." in script.calls[1].messages[1]["content"]
    assert script.calls[0].sampling.temperature == 0.7


def test_the_labels_stand_in_the_order_in_which_the_agent_sees_the_candidates() -> None:
    script = Recorder()
    with Engine(Scripted(script)) as engine:
        engine.evaluate(Task("x", ["first", "second", "third"]), debates(rounds=1, candidate_order="rotate"))
    for call in script.calls:
        shown = call.messages[1]["content"]
        texts: list[str] = [("first", "second", "third")[j] for j in call.info["labels"].values()]
        assert texts == sorted(texts, key=shown.index)
    orders = [list(call.info["labels"].values()) for call in script.calls]
    assert orders[1] == [*orders[0][1:], orders[0][0]]


@pytest.mark.parametrize("answer", [None, b"7", 7, {"overall": "x"}])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_script_that_returns_no_text_is_named_with_what_it_returned(answer: Any, is_async: bool) -> None:
    async def later(call: Call) -> Any:
        return answer

    def forgetful(call: Call) -> Any:
        return later(call) if is_async else answer

    with pytest.raises(CallError) as caught:
        asyncio.run(Scripted(forgetful).generate(CALL))
    assert caught.value.reason == "script_returned"
    assert f"forgetful returned {answer!r}, which is neither a text nor a Completion" in str(caught.value)


SURE = LabelDistribution({"7": 1.0})
CELLS = replace(CALL, read_out=ReadOut(("7", "8"), ((BLOCK,), (BLOCK, BLOCK))))


def test_what_a_script_reads_out_is_passed_on() -> None:
    completion = Completion("", distributions=(SURE, SURE))
    assert asyncio.run(Scripted(lambda call: completion).generate(CELLS)) is completion


@pytest.mark.parametrize("answer", ["7", Completion(""), Completion("", distributions=(SURE,) * 3)])
def test_a_script_that_leaves_out_a_continuations_distribution_is_told_how_many_it_owes(answer: Any) -> None:
    def forgetful(call: Call) -> Any:
        return answer

    with pytest.raises(CallError, match="not a Completion with 2 distributions, one for each continuation") as caught:
        asyncio.run(Scripted(forgetful).generate(CELLS))
    assert caught.value.reason == "script_returned"
    assert "forgetful returned" in str(caught.value)


def test_a_bare_text_has_no_distributions_where_the_reply_itself_is_read_out() -> None:
    found = asyncio.run(Scripted(lambda call: '{"a": 7}').generate(replace(CALL, read_out=ReadOut(("7",)))))
    assert (found.text, found.distributions) == ('{"a": 7}', ())
