"""Batches: replies to equal messages are candidates of one task, and no request is lost between input and output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debate.errors import TaskError
from tests.dataset.files import Row, generators, lines, read, texts


def request(name: str, *said: Any, model: str = "m") -> Row:
    messages = [{"role": "user", "content": text} for text in said]
    return {"custom_id": name, "method": "POST", "body": {"model": model, "messages": messages}}


def reply(name: str, *said: Any, model: str = "m", status: int = 200) -> Row:
    choices = [{"index": n, "message": {"role": "assistant", "content": text}} for n, text in enumerate(said)]
    body = {"model": model, "choices": choices}
    return {"custom_id": name, "response": {"status_code": status, "body": body}, "error": None}


def test_replies_to_equal_messages_are_the_candidates_of_one_task(tmp_path: Path) -> None:
    asked = lines(tmp_path / "in.jsonl", request("1", "q"), request("2", "q"), request("3", "other"))
    output = lines(tmp_path / "out.jsonl", reply("3", "c"), reply("1", "a", "b"), reply("2", "d", model="n"))
    tasks = read(output, "openai_batch", answers=(asked,))
    assert [(task.id, task.x, texts(task)) for task in tasks] == [("3", "other", ["c"]), ("1", "q", ["a", "b", "d"])]
    assert [candidate.id for candidate in tasks[1].candidates] == ["1#0", "1#1", "2#0"]
    assert generators(tasks[1]) == ["m", "m", "n"]


def test_the_batches_of_several_models_may_use_the_same_ids(tmp_path: Path) -> None:
    asked = [lines(tmp_path / f"in-{m}.jsonl", *(request(n, f"q{n}", model=m) for n in "12")) for m in "ab"]
    given = [lines(tmp_path / f"out-{m}.jsonl", *(reply(n, f"{m}{n}", model=m) for n in "21")) for m in "ab"]
    tasks = read(given[0], "openai_batch", answers=(asked[0], given[1], asked[1]))
    assert [(task.x, texts(task), generators(task)) for task in tasks] == [
        ("q2", ["a2", "b2"], ["a", "b"]),
        ("q1", ["a1", "b1"], ["a", "b"]),
    ]
    with pytest.raises(TaskError, match=r"in-a\.jsonl:1: custom_id: '1' has no reply"):
        read(given[0], "openai_batch", answers=(asked[0], asked[1]))
    lines(tmp_path / "in-b.jsonl", request("1", "something else"), request("2", "q2"))
    with pytest.raises(TaskError, match=r"in-b\.jsonl:1: custom_id: '1' asks something else than at .*in-a\.jsonl:1"):
        read(given[0], "openai_batch", answers=(asked[0], given[1], asked[1]))


def test_text_parts_are_text_and_other_parts_are_refused(tmp_path: Path) -> None:
    asked = lines(tmp_path / "in.jsonl", request("1", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]))
    output = lines(tmp_path / "out.jsonl", reply("1", "c"))
    assert read(output, "openai_batch", answers=(asked,))[0].x == "a\nb"
    lines(asked, request("1", [{"type": "image_url", "image_url": {}}]))
    with pytest.raises(TaskError, match=r"in\.jsonl:1: body\.messages\.0\.content\.0: is of the type 'image_url'"):
        read(output, "openai_batch", answers=(asked,))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"custom_id": "1", "response": None, "error": {"message": "expired"}}, "1: error: failed: .*expired"),
        (reply("1", status=429), "1: response: failed with status 429"),
        (reply("1"), r"1: response\.body\.choices: is empty"),
        (reply("1", None), r"1: response\.body\.choices\.0\.message\.content: is missing"),
        (reply("9", "a"), "1: custom_id: was not asked"),
    ],
)
def test_a_reply_that_failed_or_was_not_asked_for_is_refused(tmp_path: Path, row: Row, message: str) -> None:
    asked = lines(tmp_path / "in.jsonl", request("1", "q"))
    with pytest.raises(TaskError, match=rf"out\.jsonl:{message}"):
        read(lines(tmp_path / "out.jsonl", row), "openai_batch", answers=(asked,))


def test_a_request_that_only_the_error_file_knows_is_not_dropped(tmp_path: Path) -> None:
    asked = lines(tmp_path / "in.jsonl", request("1", "q"), request("2", "q"))
    with pytest.raises(TaskError, match=r"in\.jsonl:2: custom_id: '2' has no reply") as caught:
        read(lines(tmp_path / "out.jsonl", reply("1", "a")), "openai_batch", answers=(asked,))
    assert "error file" in str(caught.value.hint)


def test_an_output_alone_is_refused_with_the_way_to_give_its_input(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="--answers"):
        read(lines(tmp_path / "out.jsonl", reply("1", "a")), "openai_batch")


def test_calls_of_tools_are_shown_in_inputs_and_candidates(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    messages = [{"role": "user", "content": "2 + 2?"}, turn, {"role": "tool", "tool_call_id": "c", "content": "4"}]
    asked = lines(tmp_path / "in.jsonl", {"custom_id": "1", "body": {"messages": messages}})
    choices = [{"message": turn}, {"message": {"role": "assistant", "content": "4"}}]
    said = {
        "custom_id": "1",
        "response": {"status_code": 200, "body": {"model": "m", "choices": choices}},
        "error": None,
    }
    [task] = read(lines(tmp_path / "out.jsonl", said), "openai_batch", answers=(asked,))
    assert task.x.startswith("User:\n2 + 2?\n\nAssistant, call 1:\nadd({")
    assert [message["role"] for message in task.messages] == ["user", "assistant", "tool"]
    assert [candidate.text for candidate in task.candidates] == ['Assistant, call 1:\nadd({"a": 2})', "4"]
