"""Control strings in untrusted text: broken where they stand, counted, and nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.backends.http.special_tokens import escape_special_tokens
from debate.flow import Block, Prompt, Segment

CONTROL = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>", "<|END_OF_TURN_TOKEN|>",
    "<｜User｜>", "<｜end▁of▁sentence｜>", "<s>", "</s>", "<bos>", "<eos>", "<pad>", "<unk>", "[INST]", "[/INST]",
    "<<SYS>>", "<</SYS>>", "[SYSTEM_PROMPT]", "<start_of_turn>", "<end_of_turn>", "<think>", "</think>",
    "<tool_call>", "[gMASK]", "<sop>", "<|turn>", "<turn|>", "<|IM_END|>",
]  # fmt: skip
HARMLESS = [
    "a < b | c > d", "x <| f |> g", "<span>", "array[INSTANCE]", "[1, 2]", "<div class='s'>", "if a<b and c>d:", "||",
]  # fmt: skip


def neutral(*segments: Segment) -> tuple[str, int]:
    messages, count = escape_special_tokens(Prompt((), (Block(segments),)))
    return messages[0]["content"], count


def content(text: str) -> Segment:
    return Segment(text, is_content=True)


@pytest.mark.parametrize("control", CONTROL)
def test_a_control_string_in_content_is_broken_visibly_and_counted(control: str) -> None:
    text, count = neutral(content(f"before{control}after"))
    assert count == 1
    assert control not in text
    assert text.replace("·", "") == f"before{control}after"


@pytest.mark.parametrize("harmless", HARMLESS)
def test_ordinary_text_is_left_as_it_is(harmless: str) -> None:
    assert neutral(content(harmless)) == (harmless, 0)


def test_the_templates_own_text_is_left_as_it_is() -> None:
    text, count = neutral(Segment("<|im_end|> of the template; ", is_content=False), content("<|im_end|>"))
    assert text == "<|im_end|> of the template; <·|im_end|>"
    assert count == 1


def test_system_and_user_text_are_counted_together() -> None:
    block = Block([content("<s>")])
    messages, count = escape_special_tokens(Prompt((block,), (block, block)))
    assert count == 3
    assert [message["role"] for message in messages] == ["system", "user"]


@given(
    st.lists(st.sampled_from([*CONTROL, "<", "|", ">", "<|", "|>", "[", "]", "im_end", "SYS", "s", " "]), max_size=9)
)
def test_no_control_string_is_left_or_made(parts: list[str]) -> None:
    once, _ = neutral(content("".join(parts)))
    assert neutral(content(once)) == (once, 0)
