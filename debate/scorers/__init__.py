"""Scorers: functions that judge a text answer by counting, without a model (Besta et al. 2023).

    sorting_errors(original, answer)              wrong counts and inversions of a sorted list
    set_intersection_errors(set1, set2, answer)   missing and extra members of an intersection
    keyword_count_errors(text, answer)            how far keyword counts are off
    tagged_f1(reply, tags)                        F1 of two scores that a judge wrote between tags

The tasks and their scores are those of graph-of-thoughts; arguments are texts as a model writes them. `scale_of` tells
a scorer's scale: errors are lower is better, 0 perfect. An answer that cannot be read raises `ReplyError`; what it is
then worth (unscored, or a penalty) is for the caller to say.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from statistics import fmean
from typing import Any, TypeVar, cast

from debate.errors import ConfigError, ReplyError, TaskError
from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import Number, shown, unreadable
from debate.parsing.text import read_number, tagged
from debate.types import Scale

Scorer = TypeVar("Scorer", bound=Callable[..., float])

ERRORS = Scale(0.0, math.inf, higher_is_better=False)
"""Counts of errors: 0 is perfect, and there is no worst."""
F1 = Scale(0.0, 10.0)
"""The harmonic mean of two scores on 0..10."""


def scored_on(scale: Scale) -> Callable[[Scorer], Scorer]:
    """Mark a scorer with the scale of its results, for `scale_of`.

    @scored_on(ERRORS)
    def my_errors(answer: str) -> float: ...
    """

    def mark(scorer: Scorer) -> Scorer:
        setattr(scorer, "scale", scale)  # noqa: B010 - a function has no such attribute for the type checker
        return scorer

    return mark


def scale_of(scorer: Callable[..., Any]) -> Scale:
    """The scale that a scorer was marked with.

    Raises:
        ConfigError: when it was not.
    """
    scale = getattr(scorer, "scale", None)
    if not isinstance(scale, Scale):
        name = getattr(scorer, "__name__", repr(scorer))
        raise ConfigError(f"the scorer {name} does not say on which scale it scores", hint="mark it with scored_on")
    return scale


@scored_on(ERRORS)
def sorting_errors(original: str, answer: str) -> int:
    """Errors of `answer` as `original` in ascending order; 0 is perfect.

    sum over numbers of |how often in answer - how often in original|, plus the neighbors in the answer that stand in
    the wrong order. Both are texts such as `[3, 1, 2]`; the answer's list may stand among words.

    Raises:
        ReplyError: when the answer cannot be read (no_list, ambiguous, not_a_number).
        TaskError: when the original cannot.
    """
    numbers = read_list(answer)
    inversions = sum(before > after for before, after in pairwise(numbers))
    return _unlike(Counter(numbers), Counter(given_list(original, "original"))) + inversions


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
            problem = f"The count of {shown(key)} must be a whole number from 0, not {shown(count)}."
            raise unreadable("not_a_count", problem)
        counts[key] = int(count.value)
    return counts


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


@scored_on(F1)
def tagged_f1(reply: str | Sequence[str], tags: Sequence[str]) -> float:
    """F1 of the two scores between two tags, `2ab / (a + b)`, on 0..10; 10 is perfect, 0 when either is 0.

        <Redundancy>8</Redundancy> ... <Retained>6</Retained>        6.857

    reply: the judge's reply, or several samples of it; then a and b are the means over those that can be read, both
    scores of each. tags: their two names, without brackets.

    Raises:
        ReplyError: when no sample can be read; with the reason of the last (no_tag, not_a_number, out_of_range, ...).
        ConfigError: when there are not two tags.
    """
    if isinstance(tags, str) or len(tags) != 2:
        raise ConfigError(f"must be two names, got {tags!r}", field="tags")
    replies = [reply] if isinstance(reply, str) else list(reply)
    pairs: list[tuple[float, float]] = []
    fault = unreadable("empty", "There is no reply to read.")
    for text in replies:
        try:
            pairs.append((_score(text, tags[0]), _score(text, tags[1])))
        except ReplyError as error:
            fault = error
    if not pairs:
        raise fault
    a, b = (fmean(scores) for scores in zip(*pairs, strict=True))
    return 2 * a * b / (a + b) if a + b else 0.0


def _score(text: str, tag: str) -> float:
    return read_number(tagged(text, tag), F1.low, F1.high)
