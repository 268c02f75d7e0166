"""Reads a judge's reply on one step of reasoning, in the formats of x1's prompts.

<analysis>...</analysis><score>85</score>        a score on -100..100
<is solved>yes</is solved>                       whether the step is the complete solution
"""

from __future__ import annotations

from debate.parsing.json_values import shown, unreadable
from debate.parsing.text import read_number, tagged
from debate.scoring.reducers import STEP_SCALE

_ANSWERS = {"yes": True, "no": False}


def read_step_score(reply: str, *, finish_reason: str = "stop") -> float:
    """The score of a step, on -100..100: the number inside the last `<score>` outside the analysis.

    Raises:
        ReplyError: no_tag, cut_off, not_a_number, wrong_limit or out_of_range.
    """
    return read_number(tagged(reply, "score", finish_reason=finish_reason), STEP_SCALE.low, STEP_SCALE.high)


def read_is_solved(reply: str, *, finish_reason: str = "stop") -> bool:
    """Whether the step is said to be the complete solution: yes or no inside `<is solved>` or `<is_solved>`.

    Capitals, blanks and a full stop do not matter.

    Raises:
        ReplyError: no_tag, cut_off, or unknown_label for another answer.
    """
    said = tagged(reply, "is solved", "is_solved", finish_reason=finish_reason)
    answer = said.strip(" \t\r\n.!*`\"'").casefold()
    if answer not in _ANSWERS:
        raise unreadable("unknown_label", f"Inside <is solved> stands {shown(said)}; give yes or no.")
    return _ANSWERS[answer]
