"""The value of a trajectory in the Game of 24, as Tree of Thoughts has it judged.

It knows the judge's three labels and when a trajectory has used up its steps; not whether its arithmetic is right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from debate.compat import is_compat
from debate.errors import ReplyError
from debate.parsing.values import LabelMap
from debate.scoring.reducers import reduce_samples

GAME24_LABELS = LabelMap({"impossible": 0.001, "likely": 1.0, "sure": 20.0})
STEPS = 4


def game24_value(trajectory: str, replies: Sequence[str], *, compat: Literal["tot"] | None = None) -> float:
    """Sum of what the judge's samples are worth; NaN when none could be read.

    A trajectory that has used up its four lines without stating an answer is worth 0, whatever the judge said of it. A
    sum is smaller where samples failed; compare candidates by it only when none did.

    With `compat="tot"` a label must be all of the last line, and samples that all failed are worth 0.
    """
    if len(trajectory.strip().split("\n")) == STEPS and "answer" not in trajectory.lower():
        return 0.0
    literal = is_compat(compat, "tot")
    read = LabelMap(GAME24_LABELS.values, exact=True) if literal else GAME24_LABELS
    samples = [math.nan] * len(replies)
    for n, reply in enumerate(replies):
        with suppress(ReplyError):
            samples[n] = read(reply)
    return reduce_samples(samples, "sum", compat="tot" if literal else None)
