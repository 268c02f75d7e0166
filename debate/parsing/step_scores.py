"""Readers of a judge's reply on one step of reasoning, in the formats of x1's prompts (seed 002).

    <analysis>...</analysis><score>85</score>        a score on -100..100
    <is solved>yes</is solved>                       whether the step is the complete solution

They know nothing of the other steps: `debate.scoring.reducers` puts their scores together.
"""

from __future__ import annotations

from typing import Literal

from debate.compat import is_compat
from debate.parsing.json_values import shown, unreadable
from debate.parsing.text import read_number, tagged
from debate.scoring.reducers import STEP_SCALE

_ANSWERS = {"yes": True, "no": False}


def read_step_score(reply: str, *, finish_reason: str = "stop", compat: Literal["x1"] | None = None) -> float:
    """The score of a step, on -100..100: the number inside the last `<score>` outside the analysis.

    With `compat="x1"` it is the whole number inside the first `<score>`, be it in the analysis, of any size.

    Raises:
        ReplyError: no_tag, cut_off, not_a_number, wrong_limit or out_of_range.
    """
    if not is_compat(compat, "x1"):
        return read_number(tagged(reply, "score", finish_reason=finish_reason), STEP_SCALE.low, STEP_SCALE.high)
    said = _first(reply, "score")
    try:
        return int(said)
    except ValueError:
        raise unreadable("not_a_number", f"The score must be a whole number, not {shown(said)}.") from None


def read_is_solved(reply: str, *, finish_reason: str = "stop", compat: Literal["x1"] | None = None) -> bool:
    """Whether the step is said to be the complete solution: yes or no inside `<is solved>` or `<is_solved>`.

    Capitals, blanks and a full stop do not matter. With `compat="x1"` all but exactly `yes` inside `<is solved>` is no.

    Raises:
        ReplyError: no_tag, cut_off, or unknown_label for another answer.
    """
    if is_compat(compat, "x1"):
        return _first(reply, "is solved") == "yes"
    said = tagged(reply, "is solved", "is_solved", finish_reason=finish_reason)
    answer = said.strip(" \t\r\n.!*`\"'").casefold()
    if answer not in _ANSWERS:
        raise unreadable("unknown_label", f"Inside <is solved> stands {shown(said)}; give yes or no.")
    return _ANSWERS[answer]


def _first(reply: str, tag: str) -> str:
    """What stands between the first opening tag and the next tag, opening or closing, of the same name."""
    _, opening, rest = reply.partition(f"<{tag}>")
    if not opening:
        raise unreadable("no_tag", f"The reply holds no <{tag}>.")
    return rest.partition(f"<{tag}>")[0].partition(f"</{tag}>")[0]
