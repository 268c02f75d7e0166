"""Prompts as token ids, in which content can never be a control token.

The model's chat template is rendered once, around two place holders. Its text and our templates' own words are
tokenized as usual; content is tokenized by a copy of the tokenizer that has no added tokens at all, so that a
candidate holding `<|im_end|>` arrives as those characters. Then the ids are put together. Every block is
tokenized once: consecutive prompts of a debate share their leading blocks, and therefore their leading ids.

The tokenizer must be a fast one of Hugging Face's.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from debate.errors import ConfigError
from debate.flow import Block, Prompt, Segment, join

MEMO_CHARACTERS = 64_000_000
"""How many characters of blocks are remembered with their ids; the oldest go first."""


class PromptTokenizer:
    """Turns a `Prompt` into token ids for one tokenizer.

    template_variables: what the chat template is told besides the messages.

    Raises:
        ConfigError: when the tokenizer is not a fast one, or its chat template cannot take our two messages.
    """

    def __init__(self, tokenizer: Any, template_variables: Mapping[str, Any] | None = None) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            kind, hint = type(tokenizer).__name__, "use a model that has a tokenizer.json"
            problem = f"the tokenizer {kind} is not a fast one, so content cannot be kept apart from control tokens"
            raise ConfigError(problem, hint=hint)
        self.encode_text: Callable[[str], list[int]] = lambda text: tokenizer.encode(text, add_special_tokens=False)
        """The ids of a text of ours, in which control tokens are what they are."""
        self._tokenizer = backend
        self._plain = _without_added_tokens(backend)
        self.control_ids = frozenset(tokenizer.get_added_vocab().values())
        self._control_text = _any_of(tokenizer.get_added_vocab())
        self._frame = _chat_frame(tokenizer, template_variables or {})
        self._frame_ids = [self.encode_text(part) for part in self._frame.parts]
        self._memo: OrderedDict[Block, list[int]] = OrderedDict()
        self._memo_characters = 0

    def encode(self, prompt: Prompt) -> list[int]:
        """The ids of a whole prompt, ready for generation."""
        system, user = self.encode_blocks(prompt.system), self.encode_blocks(prompt.user)
        if self._frame.has_system:
            before, between, after = self._frame_ids
            return [*before, *system, *between, *user, *after]
        before, after = self._frame_ids
        gap = self.encode_text("\n\n") if system else []
        return [*before, *system, *gap, *user, *after]

    def encode_blocks(self, blocks: Sequence[Block]) -> list[int]:
        """The ids of a part of a message, the model's own turn included: of each block as they stand alone."""
        return [token for block in blocks for token in self._block_ids(block)]

    def decode(self, tokens: Sequence[int], before: Sequence[int] = ()) -> tuple[str, list[int]]:
        """The text of a reply, and where in it each token ends, in characters.

        before: the tokens that came before it; their last few tell a decoder whether a blank belongs to the text.
        """
        from tokenizers.decoders import DecodeStream

        stream = DecodeStream(ids=list(before[-16:]), skip_special_tokens=True)
        text, ends = "", list[int]()
        for token in tokens:
            try:
                piece = stream.step(self._tokenizer, token)
            except Exception:  # a plain one, for bytes that are no text: begin anew after them, as vLLM does
                stream = DecodeStream(skip_special_tokens=True)
                piece = stream.step(self._tokenizer, token)
            text += piece or ""
            ends.append(len(text))
        return text, ends

    def _block_ids(self, block: Block) -> list[int]:
        ids = self._memo.get(block)
        if ids is None:
            ids = [token for segment in block for token in self._segment_ids(segment)]
            self._remember(block, ids)
        else:
            self._memo.move_to_end(block)
        return ids

    def _remember(self, block: Block, ids: list[int]) -> None:
        self._memo[block] = ids
        self._memo_characters += len(join([block]))
        while self._memo_characters > MEMO_CHARACTERS and len(self._memo) > 1:
            oldest, _ = self._memo.popitem(last=False)
            self._memo_characters -= len(join([oldest]))

    def _segment_ids(self, segment: Segment) -> list[int]:
        if not segment.is_content:
            return self.encode_text(segment.text)
        ids = self._encode_content(segment.text)
        if self.control_ids.isdisjoint(ids):
            return ids
        # A vocabulary may hold a control token as an ordinary entry too: break such strings up.
        pieces = [piece for piece in self._control_text.split(segment.text) if piece]
        broken = [part for piece in pieces for part in (piece if self._control_text.fullmatch(piece) else [piece])]
        return [token for part in broken for token in self._encode_content(part) if token not in self.control_ids]

    def _encode_content(self, text: str) -> list[int]:
        return self._plain.encode(text, add_special_tokens=False).ids


class _Frame(NamedTuple):
    """The chat template's own text: before the system message, between the two, after the user message."""

    parts: Sequence[str]
    has_system: bool


def _chat_frame(tokenizer: Any, variables: Mapping[str, Any]) -> _Frame:
    system, user = (f"{name}{secrets.token_hex(8)}" for name in ("System", "User"))
    if getattr(tokenizer, "chat_template", None) is None:
        bos = tokenizer.bos_token or ""
        return _Frame([bos, "\n\n", "\n\n"], has_system=True)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    for attempt, has_system in ((messages, True), (messages[1:], False)):
        try:
            text: str = tokenizer.apply_chat_template(attempt, tokenize=False, add_generation_prompt=True, **variables)
        except Exception:  # templates raise what they like when they refuse a system message
            continue
        parts = re.split("|".join((system, user)), text)
        if len(parts) == len(attempt) + 1:
            return _Frame(parts, has_system=has_system)
    problem = "the model's chat template takes neither a system and a user message nor a user message alone"
    hint = "give one that does, with a tokenizer_config.json or chat_template.jinja of your own"
    raise ConfigError(problem, hint=hint)


def _without_added_tokens(backend: Any) -> Any:
    """A copy of a fast tokenizer to which `<|im_end|>` is nothing but characters."""
    from tokenizers import Tokenizer

    spec = json.loads(backend.to_str())
    spec["added_tokens"] = []
    spec["post_processor"] = None
    spec["truncation"] = spec["padding"] = None
    return Tokenizer.from_str(json.dumps(spec))


def _any_of(added: dict[str, int]) -> re.Pattern[str]:
    longest_first = sorted(added, key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, longest_first)) + ")" if longest_first else r"(?!)")
