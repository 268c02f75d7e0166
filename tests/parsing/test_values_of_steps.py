"""Judgments of steps, read from replies in x1's format."""

from __future__ import annotations

from typing import Any

import pytest

from debate.errors import ReplyError
from debate.parsing.values import TagNumber, read_is_solved

SCORE = TagNumber("score", -100, 100)


def reason_of(read: Any, reply: str) -> str:
    with pytest.raises(ReplyError) as refused:
        read(reply)
    assert len(refused.value.message) <= 300
    return refused.value.reason


def test_a_step_is_scored_on_its_scale() -> None:
    assert SCORE("<analysis>fine</analysis>\n<score>85.5</score>") == 85.5
    assert SCORE("<analysis><score>10</score></analysis><score>90</score>") == 90
    assert reason_of(SCORE, "<score>250</score>") == "out_of_range"
    assert reason_of(SCORE, "85") == "no_tag"


@pytest.mark.parametrize(
    ("reply", "solved"),
    [
        ("<is solved>yes</is solved>", True),
        ("<is solved> Yes.\n</is solved>", True),
        ("<is_solved>YES", True),
        ("<is solved>no</is solved>", False),
        ("<is solved>no</is solved> wait <is solved>yes</is solved>", True),
    ],
)
def test_a_step_is_solved_where_the_last_tag_says_yes(reply: str, solved: bool) -> None:
    assert read_is_solved(reply) is solved


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("yes", "no_tag"),
        ("<is solved>maybe</is solved>", "unknown_label"),
        ("<is solved></is solved>", "unknown_label"),
    ],
)
def test_a_step_that_is_neither_solved_nor_not_is_refused(reply: str, reason: str) -> None:
    assert reason_of(read_is_solved, reply) == reason
