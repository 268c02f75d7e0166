"""Graph of Thoughts: counted errors, tagged scores, and what is kept."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from conforming import originals
from conforming.cases import Case, Input, numbers
from conforming.verdicts import Answer
from debate.scorers import (
    frequency_errors,
    keyword_count_errors,
    set_intersection_errors,
    sorting_errors,
    tagged_f1,
)
from debate.selection import keep_best


def num_errors(case: Case) -> Answer | None:
    """The answer to a `num_errors`, by the file it stands in, or else by what it is given."""
    state = case.input.get("state", {})
    if "keyword_counting" in case.source or "all_possible_countries" in case.input:
        return _KEYWORDS
    return _SETS if "set_intersection" in case.source or "set1" in state else _SORTING


def sorting(given: Input, literal: bool) -> Any:
    state = given["state"]
    original, part = state.get("original") or "", state.get("unsorted_sublist") or ""
    # A thought may sort a part of the list; its state says which.
    truth = part if part and len(part) < len(original) - 5 else original
    return (originals.got_sorting_errors if literal else sorting_errors)(truth, state.get("current") or "")


def sets(given: Input, literal: bool) -> Any:
    state = given["state"]
    second = state.get("subset") or state.get("set2") or ""
    errors = originals.got_set_errors if literal else set_intersection_errors
    return errors(state.get("set1") or "", second, state.get("current") or "")


def keywords(given: Input, literal: bool) -> Any:
    state = given["state"]
    answer: str = state.get("current") or ""
    has_part = "sub_text" in state and (state["sub_text"] or answer == "{}")
    # A thought may count in a part of the text, if that is shorter by a quarter.
    if has_part and len(state["sub_text"]) < len(state["original"]) * 0.75:
        errors = originals.got_keyword_errors if literal else keyword_count_errors
        return errors(state["sub_text"], answer, given["all_possible_countries"])
    names = [re.sub("['\"]", "", name.strip()) for name in state["ground_truth"][1:-1].split(", ")]
    by_table = originals.got_frequency_errors if literal else frequency_errors
    return by_table(Counter(name for name in names if name or literal), answer)


def tagged(given: Input, literal: bool) -> Any:
    return [(originals.got_tagged_f1 if literal else tagged_f1)(given["texts"], ("Redundancy", "Retained"))]


def kept(given: Input, literal: bool) -> Any:
    scores = numbers(given["scores"])
    missing = "raise" if literal else "drop"
    return [[j, scores[j]] for j in keep_best(scores, given["n"], given["higher_is_better"], missing=missing)]


def valid(given: Input, literal: bool) -> Any:
    return originals.got_keep_valid(given["valid"])


_SORTING = Answer(sorting, option="got_sorting_errors", why="every number counts, not 0 to 9 alone")
_SETS = Answer(sets, option="got_set_errors", why="an empty intersection is an answer")
_KEYWORDS = Answer(keywords, option="got_keyword_errors", why="keywords are whole words, the longest where several fit")

ANSWERS = {
    "DocMergeParser.parse_score_answer": Answer(
        tagged,
        option="got_tagged_f1",
        why="a score is the number inside its tag; what cannot be read is refused, not worth 0",
    ),
    "KeepBestN.execute": Answer(
        kept,
        option='missing="raise"',
        refusals={"AssertionError": ValueError},
        why="a score that is missing or NaN costs no other candidate its place, and a whole number is a score",
    ),
    "KeepValid": Answer(valid),
}
