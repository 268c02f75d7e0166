"""Escapes special tokens in untrusted text, for servers that apply a chat template themselves.

Where we assemble token ids ourselves nothing needs escaping (see `debate.backends.vllm.prompt_tokens`). A server that
gets text may turn `<|im_end|>` into a control token, so a middle dot is put into every such string, where a reader can
see it: `<·|im_end|>`.
"""

from __future__ import annotations

import re

from debate.flow import Block, Prompt, Segment

_SPECIAL = [
    # Each pattern begins with a literal character: a search then runs over other text at the speed of memchr.
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"<(?:\|[^|<>\s]{1,40}\|"  # <|im_start|>, <|eot_id|>, <|channel|>, <|END_OF_TURN_TOKEN|>
        r"|\|\w{1,40}|\w{1,40}\|"  # <|turn>, <turn|>
        r"|｜[^｜<>\s]{1,40}｜"  # DeepSeek
        r"|/?(?:s|unk|pad|bos|eos|mask|sop|eop|think|tool_call|tool_response|start_of_turn|end_of_turn)"
        r"|<?/?SYS>?)>",
        r"\[/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|THINK|IMG|CLS|SEP|MASK|gMASK|PAD|UNK|BOS|EOS)\]",
    )
]
_OPENING = re.compile(r"<{1,2}|\[")


def escape_special_tokens(prompt: Prompt) -> tuple[list[dict[str, str]], int]:
    """The prompt as chat messages with special tokens in its content escaped, and how many there were."""
    messages = prompt.messages()
    if not any(pattern.search(message["content"]) for pattern in _SPECIAL for message in messages):
        return messages, 0  # as nearly always: the joined text is searched once, not each of its hundreds of segments
    count = 0

    def text_of(segment: Segment) -> str:
        nonlocal count
        if not segment.is_content:
            return segment.text
        text = segment.text
        for pattern in _SPECIAL:
            text, n = pattern.subn(_escape, text)
            count += n
        return text

    def joined(blocks: tuple[Block, ...]) -> str:
        return "".join(text_of(segment) for block in blocks for segment in block)

    pairs = (("system", prompt.system), ("user", prompt.user))
    return [{"role": role, "content": joined(blocks)} for role, blocks in pairs if blocks], count


def _escape(match: re.Match[str]) -> str:
    return _OPENING.sub(lambda opening: opening[0] + "·", match[0], count=1)
