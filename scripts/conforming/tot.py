"""Tree of Thoughts: labels, votes, comparisons, and the greedy choice of its logs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from conforming.cases import Input, numbers
from conforming.verdicts import Answer
from debate.errors import ReplyError
from debate.parsing.ballots import read_choice, read_comparison
from debate.parsing.game24 import game24_value
from debate.selection import keep_best
from debate.voting import plurality_count


def value(given: Input, literal: bool) -> Any:
    return game24_value(given["y"], given["value_outputs"], compat="tot" if literal else None)


def vote(given: Input, literal: bool) -> Any:
    compat = "tot" if literal else None
    n: int = given["n_candidates"]
    choices: list[int | None] = []
    for reply in given["vote_outputs"]:
        choices.append(None)
        with suppress(ReplyError):
            choices[-1] = read_choice(reply, n, compat=compat)
    return plurality_count(choices, n, compat=compat)


def comparison(given: Input, literal: bool) -> Any:
    return read_comparison(given["compare_output"], compat="tot" if literal else None)


def greedy(given: Input, literal: bool) -> Any:
    return keep_best(numbers(given["values"]), given["n_select_sample"])


_TOT = 'compat="tot"'

ANSWERS = {
    "Game24Task.value_outputs_unwrap": Answer(value, option=_TOT),
    "TextTask.vote_outputs_unwrap": Answer(
        vote, option=_TOT, why="the choice is the whole number right after the phrase, not the last digit of the reply"
    ),
    "TextTask.compare_output_unwrap": Answer(comparison, option=_TOT),
    "greedy selection": Answer(greedy),
}
