"""The questions that the bundled judge was taught; see its `MODEL_CARD.md`. They are told by their form."""

from __future__ import annotations

import re

WORLD = "sums, differences, the largest, sorting"
"""In a few words."""
_ROW = r"\d+(?: \d+)+"
_TERM = r"(?:\d+|(?:\d )?[a-z]+)"
_FORMS = (
    rf"(?:What is )?{_TERM}(?: ?\+ ?{_TERM})+\?",
    r"(?:What is )?\d+ ?- ?\d+\?",
    r"Add \d+ and \d+\.",
    r"Take \d+ from \d+\.",
    rf"Largest of {_ROW}\?",
    rf"Sort {_ROW}\.",
    rf"Common to {_ROW} and {_ROW}\?",
    r"Count [a-z]+ in [a-z]+(?: [a-z]+)+\.",
    rf"24 from {_ROW}\?",
    rf"Total of {_ROW}\?",
)
_QUESTION = re.compile("|".join(_FORMS))


def is_taught(x: str) -> bool:
    """Whether a task's input has the form of a question that the bundled judge was taught."""
    return _QUESTION.fullmatch(x.strip()) is not None
