"""Tells thinking from replies in vLLM's token ids, by the parser that also tells vLLM where a grammar begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from debate.errors import ConfigError

MARKS = ("<think>", "</think>")
_FOR_MARKS = "deepseek_r1"
"""The parser of vLLM that knows nothing but these marks."""
END_TOKENS = 16
"""Most tokens in which thinking is ended that has used up its own."""


class ThinkingParser:
    """VLLM's reasoning parser of a name, for one tokenizer.

    name: one of vLLM's.
    template_variables: what the chat template was told; parsers of some models heed it.
    """

    def __init__(self, name: str, tokenizer: Any, template_variables: Mapping[str, Any]) -> None:
        from vllm.reasoning import ReasoningParserManager

        self.arguments: dict[str, Any] = {"chat_template_kwargs": dict(template_variables)}
        """For vLLM's own parser of each request."""
        self._parser: Any = ReasoningParserManager.get_reasoning_parser(name)(tokenizer, **self.arguments)

    def end(self, prompt: Sequence[int], tokens: Sequence[int]) -> int | None:
        """How many tokens of an answer to a prompt are thinking, with the mark at its end; None where it has no end."""
        if self._parser.is_reasoning_end(prompt):
            return 0
        if getattr(self._parser, "reasoning_end_token_ids", None):  # by one token, as vLLM asks such parsers
            found = self._parser.find_reasoning_end(tokens)
            return None if found.offset >= len(tokens) else found.offset + (not found.implicit)
        said = list(prompt)
        for n, token in enumerate(tokens, start=1):
            said.append(token)
            if self._parser.is_reasoning_end_streaming(said, [token]):
                return n
        return None

    def bare(self, thinking: str) -> str:
        """The text of the thinking without the marks around it."""
        start, end = (getattr(self._parser, f"reasoning_{side}_str") or "" for side in ("start", "end"))
        return thinking.strip().removeprefix(start).removesuffix(end).strip()


def parser_name(given: str, plugin: str, model: str, vocabulary: Mapping[str, int]) -> str:
    """The reasoning parser for a model: the one that was given, or that of the marks in its vocabulary.

    plugin: a file with parsers of your own, or nothing.

    Raises:
        ConfigError: for a name that vLLM does not have, or where none was given and the model has no such marks.
    """
    from vllm.reasoning import ReasoningParserManager

    if plugin:
        ReasoningParserManager.import_reasoning_parser(plugin)
    known = sorted(ReasoningParserManager.list_registered())
    hint = f"name vLLM's parser with --engine-arg reasoning_parser=NAME: {', '.join(known)}"
    if given and given not in known:
        raise ConfigError(f"vLLM has no parser {given!r}", field="reasoning_parser", hint=hint)
    if not given and any(mark not in vocabulary for mark in MARKS):
        problem = f"{model} has no tokens {' and '.join(MARKS)}, so where its thinking ends is not known"
        raise ConfigError(problem, field="thinking", hint=f"leave it out for a model that does not think, or {hint}")
    return given or _FOR_MARKS
