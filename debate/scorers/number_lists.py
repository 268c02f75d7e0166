"""Lists of numbers as they stand in a text: `[3, 1, 2]`.

It does not know what the numbers are for.
"""

from __future__ import annotations

import re
from decimal import Decimal

from debate.errors import ReplyError, TaskError
from debate.parsing.json_values import shown, unreadable

_LIST = re.compile(r"\[([^\[\]]*)\]")
_NUMBER = re.compile(r"[+\-]?[0-9]+(?:\.[0-9]+)?")


def read_list(answer: str) -> list[Decimal]:
    """The numbers of the one list in a text, which may stand among words; the same list twice is one.

    Raises:
        ReplyError: no_list, ambiguous when several lists differ, or not_a_number.
    """
    lists = {tuple(item.strip() for item in match[1].split(",")) for match in _LIST.finditer(answer)}
    if not lists:
        raise unreadable("no_list", f"A list such as [1, 2] was asked for, not {shown(answer.strip())}.")
    if len(lists) > 1:
        raise unreadable("ambiguous", "The answer holds several lists that differ; give one.")
    items = lists.pop()
    if items == ("",):
        return []
    if wrong := [item for item in items if not _NUMBER.fullmatch(item)]:
        raise unreadable("not_a_number", f"In the list stands {shown(wrong[0])}, which is no number.")
    return [Decimal(item) for item in items]


def given_list(text: str, field: str) -> list[Decimal]:
    """The numbers of a list that the task gives.

    Raises:
        TaskError: when they cannot be read.
    """
    try:
        return read_list(text)
    except ReplyError as error:
        raise TaskError(error.message, field=field) from None


def literal_list(text: str) -> list[int]:
    """Whole numbers as graph-of-thoughts reads them: the text is a bracketed list, to the character, and not empty.

    Raises ValueError otherwise.
    """
    if text[:1] != "[" or text[-1:] != "]":
        raise ValueError("not a list")
    return [int(item) for item in text[1:-1].split(",")]
