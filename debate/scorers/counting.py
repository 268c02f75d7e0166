"""Counts errors in an answer that is a list of numbers or a table of counts: sorting, intersection, keywords.

The tasks and their scores are those of graph-of-thoughts (Besta et al. 2023). Arguments are texts as a model writes
them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, cast

from debate.errors import ReplyError, TaskError
from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import Number, shown, unreadable
from debate.scorers.scales import ERRORS, scored_on


@scored_on(ERRORS)
def sorting_errors(original: str, answer: str) -> int:
    """Errors of `answer` as `original` in ascending order; 0 is perfect.

    sum over numbers of |how often in answer - how often in original|, plus the neighbours in the answer that stand in
    the wrong order. Both are texts such as `[3, 1, 2]`; the answer's list may stand among words.

    Raises:
        ReplyError: when the answer cannot be read (no_list, ambiguous, not_a_number).
        TaskError: when the original cannot.
    """
    numbers = read_list(answer)
    return _unlike(Counter(numbers), Counter(given_list(original, "original"))) + _inversions(numbers)


@scored_on(ERRORS)
def set_intersection_errors(set1: str, set2: str, answer: str) -> int:
    """Errors of `answer` as the intersection of two sets; 0 is perfect.

    Members that are missing, plus members that do not belong, those named once too often included. All are texts such
    as `[1, 2]`, in any order; the answer's list may stand among words.

    Raises:
        ReplyError: when the answer cannot be read (no_list, ambiguous, not_a_number).
        TaskError: when a set cannot.
    """
    found = Counter(read_list(answer))
    return _unlike(found, Counter(set(given_list(set1, "set1")) & set(given_list(set2, "set2"))))


@scored_on(ERRORS)
def keyword_count_errors(text: str, answer: str, keywords: Iterable[str] | None = None) -> float:
    """Errors of `answer` as how often each keyword stands in a text; 0 is perfect.

    sum over keywords of |count in answer - count in text|. The answer is a JSON object, `{"Peru": 2}`, and may stand
    among words. The keywords are by default `country_names()`, the task of graph-of-thoughts; a key that is no keyword
    counts as an error.

    Raises:
        ReplyError: when the answer cannot be read, or a count is not a whole number from 0 (not_a_count).
    """
    return frequency_errors(count_keywords(text, keywords), answer)


@scored_on(ERRORS)
def frequency_errors(truth: Mapping[str, int], answer: str) -> float:
    """Errors of `answer` as a table of counts that is known; see `keyword_count_errors`."""
    return _unlike(Counter(_counts(answer)), Counter(truth))


def count_keywords(text: str, keywords: Iterable[str] | None = None) -> Counter[str]:
    """How often each keyword stands in a text, as whole words and in the same spelling.

    Where one keyword is part of another (Sudan, South Sudan), a place counts for the longer one alone.
    """
    return Counter(_keyword_pattern(country_names() if keywords is None else tuple(keywords)).findall(text))


@lru_cache(maxsize=1)
def country_names() -> tuple[str, ...]:
    """The names of the world's states in English, as running text uses them; not their parts, such as Scotland."""
    return tuple(files("debate.scorers").joinpath("countries.txt").read_text(encoding="utf-8").splitlines())


@lru_cache(maxsize=16)
def _keyword_pattern(keywords: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(keywords, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first)) or '(?!)'})(?!\w)")


def _counts(answer: str) -> dict[str, int]:
    value = extract_json(answer)
    if not isinstance(value, dict):
        raise unreadable("wrong_shape", f"An object of counts was asked for, not {shown(value)}.")
    counts: dict[str, int] = {}
    for key, count in cast("dict[str, object]", value).items():
        if not (isinstance(count, Number) and count.value >= 0 and count.value.is_integer()):
            raise unreadable(
                "not_a_count", f"The count of {shown(key)} must be a whole number from 0, not {shown(count)}."
            )
        counts[key] = int(count.value)
    return counts


def _inversions(numbers: list[Any]) -> int:
    return sum(before > after for before, after in pairwise(numbers))


def _unlike(found: Counter[Any], expected: Counter[Any]) -> int:
    """How many members one multiset has that the other has not, both ways."""
    return ((found - expected) + (expected - found)).total()


_LIST = re.compile(r"\[([^\[\]]*)\]")
_NUMBER = re.compile(r"[+\-]?[0-9]+(?:\.[0-9]+)?")


def read_list(answer: str) -> list[Decimal]:
    """The numbers of the one list in a text, which may stand among words; the same list twice is one.

    Raises:
        ReplyError: no_list, ambiguous when several lists differ, or not_a_number.
    """
    lists = {tuple(item.strip() for item in match[1].split(",")) for match in _LIST.finditer(answer)}
    if not lists:
        raise unreadable("no_list", f"A list such as [1, 2] was asked for, not {shown(answer.strip())}.")
    if len(lists) > 1:
        raise unreadable("ambiguous", "The answer holds several lists that differ; give one.")
    items = lists.pop()
    if items == ("",):
        return []
    if wrong := [item for item in items if not _NUMBER.fullmatch(item)]:
        raise unreadable("not_a_number", f"In the list stands {shown(wrong[0])}, which is no number.")
    return [Decimal(item) for item in items]


def given_list(text: str, field: str) -> list[Decimal]:
    """The numbers of a list that the task gives.

    Raises:
        TaskError: when they cannot be read.
    """
    try:
        return read_list(text)
    except ReplyError as error:
        raise TaskError(error.message, field=field) from None
