"""Tree of Thoughts: labels, votes, comparisons, duplicates, and the choices of its logs."""

from __future__ import annotations

import re
from typing import Any

from conforming import originals
from conforming.cases import Input, numbers
from conforming.verdicts import Answer
from debate.errors import ReplyError
from debate.parsing.values import LabelMap
from debate.scoring.reducers import reduce_samples
from debate.selection import keep_best, sample
from debate.voting import plurality_count

LABELS = LabelMap(originals.TOT_LABELS)


def value(given: Input, literal: bool) -> Any:
    if literal or len(given["y"].strip().split("\n")) == 4:  # the rule for four lines is the task's, not a judge's
        return originals.tot_value(given["y"], given["value_outputs"])
    return reduce_samples([_label(reply) for reply in given["value_outputs"]], "sum")


def vote(given: Input, literal: bool) -> Any:
    if literal:
        return originals.tot_votes(given["vote_outputs"], given["n_candidates"])
    return plurality_count([_choice(reply) for reply in given["vote_outputs"]], given["n_candidates"])


def comparison(given: Input, literal: bool) -> Any:
    reply: str = given["compare_output"]
    if literal:
        return originals.tot_comparison(reply)
    said = set(re.findall(r"more coherent passage is (\d+)", reply)) | set(re.findall("similarly coherent", reply))
    if len(said) != 1 or not said <= {"1", "2", "similarly coherent"}:
        raise ReplyError("ambiguous" if said else "no_choice", "The reply does not prefer one of the two.")
    return {"1": 0.0, "2": 1.0}.get(said.pop(), 0.5)


def greedy(given: Input, literal: bool) -> Any:
    return keep_best(numbers(given["values"]), given["n_select_sample"])


def sampled(given: Input, literal: bool) -> Any:
    """Indices drawn in proportion to the values; which ones depends on the seed, so only errors can be compared."""
    values: list[Any] = numbers(given["values"])
    return [sample(values, seed) for seed in range(given.get("n_select_sample", 1))]


def _label(reply: str) -> float | None:
    try:
        return LABELS(reply)
    except ReplyError:
        return None


def _choice(reply: str) -> int | None:
    """What is said last after the phrase: the whole number right behind it."""
    said = re.findall(r"best choice is[\s:*{(\[]*(\d+)(?![\w/]|[.,]\d)", reply, re.IGNORECASE)
    return int(said[-1]) - 1 if said else None


ANSWERS = {
    "Game24Task.value_outputs_unwrap": Answer(
        value, option="tot_value", why="samples of which none can be read have no sum"
    ),
    "TextTask.vote_outputs_unwrap": Answer(
        vote,
        option="tot_votes",
        why="the choice is the whole number right after the phrase, not the last digit of the reply",
    ),
    "TextTask.compare_output_unwrap": Answer(comparison, option="tot_comparison"),
    "greedy selection": Answer(greedy),
    "sample selection": Answer(sampled),
}
