"""Dialogues as one readable text, for formats whose questions or answers have several turns.

    User, turn 1:             System:
    What is 2 + 2?            Be brief.

    User, turn 2:             User:
    And doubled?              What is 2 + 2?

Turns without roles are numbered under the speaker (left), messages stand under their roles (right); one turn alone, or
one user message alone, is its text without a heading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from debate.dataset.records import Record


def turns_text(turns: Sequence[str], speaker: str) -> str:
    """One turn as it is, several under `User, turn 1:` and so on."""
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"{speaker}, turn {n}:\n{turn}" for n, turn in enumerate(turns, 1))


def messages_text(messages: Sequence[Record]) -> str:
    """A conversation: a single user message as it is, otherwise every message under its role."""
    said = [(message.optional_text("role") or "user", content_text(message)) for message in messages]
    if len(said) == 1 and said[0][0] == "user":
        return said[0][1]
    return "\n\n".join(f"{role.capitalize()}:\n{text}" for role, text in said)


def content_text(message: Record) -> str:
    """What a message says: its content, or the text parts of it.

    Raises:
        TaskError: for a part that is no text, such as an image.
    """
    content: Any = message.data.get("content")
    if not isinstance(content, list):
        return message.as_text(content, "content")
    parts = message.mappings("content") if cast("list[Any]", content) else []
    return "\n".join(part.text("text") for part in parts)
