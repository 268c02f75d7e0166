"""Votes and the judgement of steps, read from replies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.errors import ReplyError
from debate.parsing.ballots import read_choice, read_comparison, read_ranking
from debate.parsing.step_scores import read_is_solved, read_step_score

no_deadline = settings(deadline=None)  # a slow machine is not a failing test


def reason_of(read: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(ReplyError) as refused:
        read(*arguments, **options)
    assert len(refused.value.message) <= 300
    return refused.value.reason


# One choice


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("The best choice is 2", 1),
        ("The best choice is {2}.", 1),
        ("**The Best Choice is: Choice #12.**", 11),
        ("the best choice is candidate no. 3, as it scores 9/10", 2),
        ("The best choice is 1 because it scores 9/10", 0),
        ("First, the best choice is 1. On reflection the best choice is 4", 3),
        ("The best choice is 2.\nWhy the best choice is clear: it is short.", 1),
    ],
)
def test_the_choice_is_the_number_after_the_last_phrase(reply: str, choice: int) -> None:
    assert read_choice(reply, 12) == choice


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Choice 2 is best", "no_choice"),
        ("The best choice is the one that scores 9/10", "no_choice"),
        ("The best choice is 2.5", "no_choice"),
        ("The best choice is 1/2", "no_choice"),
        ("The best choice isn't 2", "no_choice"),
        ("The best choice is 9", "out_of_range"),
        ("The best choice is 0", "out_of_range"),
        ("The best choice is " + "9" * 5000, "out_of_range"),
    ],
)
def test_a_reply_without_a_choice_is_refused(reply: str, reason: str) -> None:
    assert reason_of(read_choice, reply, 5) == reason


def test_the_original_reads_the_last_digit() -> None:
    assert read_choice("The best choice is 12", 12, compat="tot") == 1
    assert reason_of(read_choice, "The best choice is 10", 12, compat="tot") == "out_of_range"
    assert reason_of(read_choice, "The Best choice is 1", 12, compat="tot") == "no_choice"
    assert reason_of(read_choice, "1: the best choice is clear", 12, compat="tot") == "no_choice"


# Two candidates


@pytest.mark.parametrize(
    ("reply", "preferred"),
    [
        ("The more coherent passage is 1", 0),
        ("So the More coherent passage is passage 2.", 1),
        ("The two passages are similarly coherent", 0.5),
    ],
)
def test_a_comparison_prefers_one_or_neither(reply: str, preferred: float) -> None:
    assert read_comparison(reply) == preferred


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("neither", "no_choice"),
        ("The more coherent passage is 12", "out_of_range"),
        ("The more coherent passage is 1. No, the more coherent passage is 2.", "ambiguous"),
        ("The more coherent passage is 1, yet the two passages are similarly coherent", "ambiguous"),
    ],
)
def test_a_comparison_that_decides_nothing_is_refused(reply: str, reason: str) -> None:
    assert reason_of(read_comparison, reply) == reason


def test_the_original_calls_an_unread_comparison_minus_one() -> None:
    assert read_comparison("neither", compat="tot") == -1
    assert read_comparison("more coherent passage is 12", compat="tot") == 0


def test_phrases_of_ones_own_may_be_given() -> None:
    assert read_comparison("I prefer 2!", better="I prefer", equal="a draw") == 1
    assert read_comparison("It is a draw.", better="I prefer", equal="a draw") == 0.5


# Rankings


@pytest.mark.parametrize(
    ("reply", "ranking"),
    [
        ("[C, A, B]", (2, 0, 1)),
        ('The ranking: ["c", "a", "b"]. That is [C, A, B].', (2, 0, 1)),
        ("Ranking: C > **A** > B", (2, 0, 1)),
        ("[b]", (1,)),
    ],
)
def test_a_ranking_is_a_list_or_an_order(reply: str, ranking: tuple[int, ...]) -> None:
    assert read_ranking(reply, ["A", "B", "C"]) == ranking


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("C is best", "no_ranking"),
        ("[]", "empty"),
        ("[A, D]", "unknown_candidate"),
        ("[A, A, B]", "duplicate"),
        ("[A, B] or [B, A]", "ambiguous"),
        ("A > B\nB > A", "ambiguous"),
    ],
)
def test_what_is_no_ranking_is_refused(reply: str, reason: str) -> None:
    assert reason_of(read_ranking, reply, ["A", "B", "C"]) == reason


@no_deadline
@given(st.permutations(range(6)))
def test_a_ranking_by_number_is_read_back(order: list[int]) -> None:
    assert read_ranking(f"So: {order}", [str(j) for j in range(6)]) == tuple(order)
    assert read_ranking(f"So: {[j + 1 for j in order]}", [str(j + 1) for j in range(6)]) == tuple(order)


# Steps


def test_a_step_is_scored_on_its_scale() -> None:
    assert read_step_score("<analysis>fine</analysis>\n<score>85.5</score>") == 85.5
    assert reason_of(read_step_score, "<score>250</score>") == "out_of_range"
    assert reason_of(read_step_score, "85") == "no_tag"


def test_the_original_takes_the_first_whole_number_of_any_size() -> None:
    assert read_step_score("<analysis><score>10</score></analysis><score>90</score>", compat="x1") == 10
    assert read_step_score("<score>250", compat="x1") == 250
    assert reason_of(read_step_score, "<score>85.5</score>", compat="x1") == "not_a_number"
    assert reason_of(read_step_score, "85", compat="x1") == "no_tag"


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


def test_the_original_takes_yes_to_the_letter() -> None:
    assert read_is_solved("<is solved>yes</is solved>", compat="x1") is True
    assert read_is_solved("<is solved>Yes</is solved>", compat="x1") is False
    assert reason_of(read_is_solved, "<is_solved>yes</is_solved>", compat="x1") == "no_tag"
