"""Models that think before they reply: the settings that backends share, and thinking told apart from the reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from debate.flow import Completion
from debate.settings import check_settings, documented, result_setting, setting

Thinking = Literal["auto", "on", "off", "low", "medium", "high"]
THINKING_TOKENS = 4096
"""What thinking may take where nothing is said."""
_SWITCHES = ("enable_thinking", "thinking")
"""Names that chat templates have for the switch."""
_BLOCK = re.compile(r"\s*<think>(.*?)(?:</think>|\Z)", re.DOTALL)


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingSettings:
    """Whether and how much a model thinks before it replies.

    True and False are taken for on and off, which is how YAML reads these words.

    Raises:
        ConfigError: for settings of the wrong type, or out of bounds.
    """

    thinking: Thinking = setting(
        "auto",
        "Whether the model thinks before it replies. auto: as a server does by itself, and in process where a "
        "reasoning_parser is given. low, medium and high are for models that know such an effort.",
        came_later=True,
    )
    thinking_tokens: int | None = result_setting(
        None,
        "Tokens that thinking may take, besides those of the reply. None is 4096 where thinking was asked for, and "
        "else 0.",
        came_later=True,
        ge=0,
    )
    chat_template_kwargs: Mapping[str, Any] = setting(
        dict, "Further variables for the model's chat template.", came_later=True, is_hashable=False
    )

    def __post_init__(self) -> None:
        word: Any = self.thinking
        if isinstance(word, bool):
            object.__setattr__(self, "thinking", "on" if word else "off")
        check_settings(self)
        object.__setattr__(self, "chat_template_kwargs", dict(self.chat_template_kwargs))

    @property
    def is_asked_for(self) -> bool:
        """Whether the model is told to think."""
        return self.thinking not in ("auto", "off")

    @property
    def effort(self) -> str | None:
        """How much it is to think, in a word; None where that is not said."""
        return self.thinking if self.thinking in ("low", "medium", "high") else None

    def tokens(self, *, thinks: bool) -> int:
        """Tokens to add to those of a reply; `thinks` says whether the model is known to think."""
        if self.thinking == "off":
            return 0
        return self.thinking_tokens if self.thinking_tokens is not None else THINKING_TOKENS * thinks

    def template_variables(self, *, by_effort: bool = True) -> dict[str, Any]:
        """What the chat template is told: the switch by the names that templates have for it, and what was given.

        by_effort: whether it is told the effort too; False where a server is told otherwise.
        """
        is_told = self.thinking != "auto" and (by_effort or self.effort is None)
        told: dict[str, Any] = dict.fromkeys(_SWITCHES, self.is_asked_for) if is_told else {}
        effort = {"reasoning_effort": self.effort} if by_effort and self.effort else {}
        return {**told, **effort, **self.chat_template_kwargs}

    def shaping(self) -> dict[str, Any]:
        """The settings that shape replies, as plain data; empty for those with which everything is as ever.

        The tokens are a limit, and none of them.
        """
        thinking = {} if self.thinking == "auto" else {"thinking": self.thinking}
        given = dict(self.chat_template_kwargs)
        return {**thinking, **({"chat_template_kwargs": given} if given else {})}


def thinking_settings(
    thinking: Thinking | bool, tokens: int | None, variables: Mapping[str, Any] | None
) -> ThinkingSettings:
    """The settings of a backend that was given these arguments."""
    word: Any = thinking
    return ThinkingSettings(thinking=word, thinking_tokens=tokens, chat_template_kwargs=variables or {})


def with_thinking_apart(completion: Completion) -> Completion:
    """A completion whose text begins with a `<think>` block, with that as its thinking; any other as it is.

    A block that never ends is all thinking where the reply was cut off, and else it stays in the text.
    """
    block = _BLOCK.match(completion.text)
    if block is None or not (block[0].endswith("</think>") or completion.finish_reason == "length"):
        return completion
    thinking = "\n".join(filter(None, (completion.thinking, block[1].strip())))
    return replace(completion, text=completion.text[block.end() :].lstrip(), thinking=thinking)
