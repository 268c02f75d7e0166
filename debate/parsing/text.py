"""Reads parts of a reply: a number in a range, the text inside a tag, the last line."""

from __future__ import annotations

import re
from decimal import Decimal

from debate.parsing.json_values import shown, unreadable

NUMBER = r"[+\-−]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_WITH_LIMIT = re.compile(rf"(?P<number>{NUMBER})(?:\s*(?:/|out of)\s*(?P<limit>{NUMBER}))?")
_ALONE = re.compile(rf"(?<![\w.,/]){_WITH_LIMIT.pattern}(?![\w/%]|[.,][0-9])")
_DASH = r"[\-−‐‑‒–—―﹣-]"
_NEGATIVE = re.compile(rf"(?:^|[^\w\-−‐‑‒–—―﹣-]){_DASH}$")
_MAYBE_NEGATIVE = re.compile(rf"(?:{_DASH}|\b(?:minus|negative))[\s*_`\"'“”‘’(\[{{:]*$", re.IGNORECASE)
_BEFORE = " \t\r\n*_`\"'“”‘’([{:"
_AFTER = " \t\r\n*_`\"'“”‘’)]}.,;:!"


def read_number(text: str, low: float, high: float) -> float:
    """The number that a text is, in [low, high], ends included; `N/HIGH` and `N out of HIGH` are N.

    Marks of emphasis, quotation and punctuation around it are dropped.

    Raises:
        ReplyError: not_a_number, wrong_limit (a fraction of something else than `high`), or out_of_range.
    """
    match = _WITH_LIMIT.fullmatch(text.lstrip(_BEFORE).rstrip(_AFTER))
    if match is None:
        raise unreadable("not_a_number", f"A number from {low:g} to {high:g} was asked for, not {shown(text.strip())}.")
    number, limit = (part and part.replace("−", "-") for part in match.groups())
    if limit is not None and Decimal(limit) != Decimal(high):
        raise unreadable("wrong_limit", f"The score {shown(match[0])} is not out of {high:g}.")
    return in_range(number, low, high)


def in_range(literal: str, low: float, high: float) -> float:
    """The number that a literal writes, in [low, high] as written: 10.00000000000000001 is not in 0..10.

    Raises:
        ReplyError: out_of_range.
    """
    if not is_within(literal, low, high):
        raise unreadable("out_of_range", f"The score {shown(literal)} is outside {low:g} to {high:g}.")
    return float(literal)


def is_within(literal: str, low: float, high: float) -> bool:
    """Whether the number is inside as written: 10.00000000000000001 becomes 10.0, which was not said."""
    try:
        return low < float(literal) < high or Decimal(low) <= Decimal(literal) <= Decimal(high)
    except ArithmeticError:  # an exponent of twenty digits
        return False


def only_number(text: str, low: float, high: float) -> float:
    """The one number that stands in a text among words, as `read_number` reads it.

    On a scale with negative numbers, any dash directly before the digits is a minus.

    Raises:
        ReplyError: those of `read_number`, or ambiguous where several stand there, or where on a scale with negative
            numbers a word or a dash farther off leaves open whether the number is negative.
    """
    found = list(_ALONE.finditer(text))
    if len(found) > 1:
        raise unreadable("ambiguous", f"Several numbers stand in {shown(text.strip())}; give one.")
    if not found:
        return read_number(text, low, high)
    return read_number(_signed(text, found[0]) if low < 0 else found[0][0], low, high)


def _signed(text: str, found: re.Match[str]) -> str:
    """The number with the minus that stands before it, if any."""
    number, before = found[0], text[: found.start()]
    if number[0] in "+-−":
        return number
    if _NEGATIVE.search(before):
        return f"-{number}"
    if _MAYBE_NEGATIVE.search(before):
        hint = f"for a negative number, write -{found['number']}, with the sign directly before the digits"
        raise unreadable("ambiguous", f"Whether {shown(text.strip())} is negative is not clear; {hint}.")
    return number


def tagged(reply: str, *names: str, finish_reason: str = "stop") -> str:
    """The text inside the last `<name>...</name>` of a reply, for any of the names, in capitals or not.

    Tags inside `<think>` and `<analysis>` are not answers. A missing end tag is no fault (a stop string may have taken
    it) unless the reply was cut off.

    Raises:
        ReplyError: cut_off or no_tag.
    """
    text = _THOUGHTS.sub("", reply)
    if _OPEN_THINKING.match(text):
        raise unreadable("cut_off", f"The reply ends inside <think>; <{names[0]}> is missing.")
    name = "|".join(map(re.escape, names))
    openings = list(re.finditer(rf"<\s*(?:{name})\s*>", text, re.IGNORECASE))
    if not openings:
        raise unreadable("no_tag", f"The reply holds no <{names[0]}>.")
    inside = text[openings[-1].end() :]
    if closing := re.search(rf"<\s*/\s*(?:{name})\s*>", inside, re.IGNORECASE):
        return inside[: closing.start()].strip()
    if finish_reason == "length":
        raise unreadable("cut_off", f"The reply was cut off inside <{names[0]}>; be shorter.")
    return inside.strip()


def last_line(reply: str, *, finish_reason: str = "stop") -> str:
    """The last line of a reply that is not blank.

    Raises:
        ReplyError: empty, or cut_off, for then the last line is not what was to be the last.
    """
    if finish_reason == "length":
        raise unreadable("cut_off", "The reply was cut off at the length limit; be shorter.")
    if not (text := reply.strip()):
        raise unreadable("empty", "The reply is empty.")
    return text.splitlines()[-1].strip()


_THOUGHTS = re.compile(r"<(think|analysis)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THINKING = re.compile(r"\s*<think>", re.IGNORECASE)
