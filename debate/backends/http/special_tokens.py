"""Escapes special tokens in untrusted text, for servers that apply a chat template themselves.

Where we assemble token ids ourselves nothing needs escaping (see `debate.backends.vllm.prompt_tokens`). A server that
gets text may turn `<|im_end|>` into a control token, so a middle dot is put into every such string, where a reader can
see it: `<·|im_end|>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from debate.flow import Block, Prompt, Segment, join

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
    escaped = [(role, *escape_blocks(blocks)) for role, blocks in prompt.said]
    return [{"role": role, "content": text} for role, text, _ in escaped], sum(count for _, _, count in escaped)


def escape_blocks(blocks: Sequence[Block]) -> tuple[str, int]:
    """The text of some blocks with special tokens in their content escaped, and how many there were."""
    joined = join(blocks)
    if not any(pattern.search(joined) for pattern in _SPECIAL):
        return joined, 0  # as nearly always: the joined text is searched once, not each of its hundreds of segments
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

    return "".join(text_of(segment) for block in blocks for segment in block), count


def _escape(match: re.Match[str]) -> str:
    return _OPENING.sub(lambda opening: opening[0] + "·", match[0], count=1)
