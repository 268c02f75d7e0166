"""Counted errors: the truth has none, whatever is wrong has some, what cannot be read is refused."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.errors import ConfigError, ReplyError, TaskError
from debate.scorers import (
    ERRORS,
    F1,
    count_keywords,
    country_names,
    frequency_errors,
    keyword_count_errors,
    scale_of,
    set_intersection_errors,
    sorting_errors,
    tagged_f1,
)

GOT = Path(__file__).resolve().parents[3] / "shared" / "data" / "got"
no_deadline = settings(deadline=None)  # a slow machine is not a failing test

integers = st.lists(st.integers(-3, 12), max_size=8)
TAGS = ("Redundancy", "Retained")


def rows(name: str) -> list[dict[str, str]]:
    if not (GOT / name).exists():
        pytest.skip("the data of graph-of-thoughts is not beside this checkout")
    with (GOT / name).open(encoding="utf-8", newline="") as lines:
        found = list(csv.DictReader(lines))
    assert len(found) == 100
    return found


# On the original data, the truth has no errors and anything else has


def test_the_sorted_lists_of_the_data_have_no_errors() -> None:
    for row in rows("sorting_032.csv"):
        assert sorting_errors(row["Unsorted"], row["Sorted"]) == 0
        assert sorting_errors(row["Unsorted"], row["Unsorted"]) > 0


def test_the_intersections_of_the_data_have_no_errors() -> None:
    for row in rows("set_intersection_032.csv"):
        assert set_intersection_errors(row["SET1"], row["SET2"], row["INTERSECTION"]) == 0
        assert set_intersection_errors(row["SET1"], row["SET2"], row["SET1"]) > 0


def test_the_counted_countries_of_the_data_have_no_errors() -> None:
    for row in rows("countries.csv"):
        counts = Counter(row["Countries"][1:-1].split(", "))
        assert keyword_count_errors(row["Text"], json.dumps(counts)) == 0
        assert keyword_count_errors(row["Text"], "{}") == counts.total()


# Sorting


@pytest.mark.parametrize(
    ("original", "answer", "errors"),
    [
        ("[3, 1, 2]", "[1, 2, 3]", 0),
        ("[3, 1, 2]", "[1, 2]", 1),
        ("[3, 1, 2]", "[1, 2, 2, 3]", 1),
        ("[3, 1, 2]", "[3, 2, 1]", 2),
        ("[3, 1, 2]", "[1, 2, 3, 42, 99]", 2),
        ("[30, -1, 2.5]", "[-1, 2.50, 30]", 0),
        ("[3, 1, 2]", " Sorted: [1, 2, 3]\n", 0),
        ("[]", "[ ]", 0),
        ("[1]", "[]", 1),
    ],
)
def test_sorting_errors_are_wrong_counts_and_neighbors_out_of_order(original: str, answer: str, errors: int) -> None:
    assert sorting_errors(original, answer) == errors


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "no_list"),
        ("1, 2, 3", "no_list"),
        ("[1, 2, 3", "no_list"),
        ("[1, 2] or [2, 1]", "ambiguous"),
        ("[1, 2,]", "not_a_number"),
        ("[1, x]", "not_a_number"),
        ("[1, nan]", "not_a_number"),
        ("[1, 1e5]", "not_a_number"),
    ],
)
def test_an_answer_that_is_no_list_is_refused(answer: str, reason: str) -> None:
    for score in (lambda: sorting_errors("[2, 1]", answer), lambda: set_intersection_errors("[2]", "[2]", answer)):
        with pytest.raises(ReplyError) as refused:
            score()
        assert refused.value.reason == reason


def test_a_list_said_twice_is_one_list() -> None:
    assert sorting_errors("[2, 1]", "It is [1, 2]. So: [1,2]") == 0


def test_a_task_that_is_no_list_is_the_tasks_fault() -> None:
    with pytest.raises(TaskError, match="original"):
        sorting_errors("none", "[1]")
    with pytest.raises(TaskError, match="set2"):
        set_intersection_errors("[1]", "none", "[1]")


@no_deadline
@given(integers, integers)
def test_only_the_sorted_list_has_no_sorting_errors(original: list[int], answer: list[int]) -> None:
    assert sorting_errors(str(original), str(sorted(original))) == 0
    assert (sorting_errors(str(original), str(answer)) == 0) == (answer == sorted(original))


# Intersection


@pytest.mark.parametrize(
    ("answer", "errors"), [("[4, 3]", 0), ("[3]", 1), ("[3, 4, 5]", 1), ("[3, 3, 4]", 1), ("[5]", 3), ("[]", 2)]
)
def test_intersection_errors_are_missing_and_extra_members(answer: str, errors: int) -> None:
    assert set_intersection_errors("[1, 2, 3, 4]", "[3, 4, 9]", answer) == errors


def test_an_empty_intersection_is_an_answer() -> None:
    assert set_intersection_errors("[1, 2]", "[5, 6]", "[]") == 0


@no_deadline
@given(integers, integers, integers)
def test_only_the_intersection_has_no_errors(a: list[int], b: list[int], answer: list[int]) -> None:
    common = sorted(set(a) & set(b))
    assert set_intersection_errors(str(a), str(b), str(common)) == 0
    assert (set_intersection_errors(str(a), str(b), str(answer)) == 0) == (sorted(answer) == common)


# Keywords


def test_keyword_errors_are_differences_of_counts() -> None:
    text = "From Peru to Chile and back to Peru."
    assert keyword_count_errors(text, '{"Peru": 2, "Chile": 1}') == 0
    assert keyword_count_errors(text, 'Counted: {"Peru": 1, "Iraq": 3}') == 5
    assert keyword_count_errors(text, '{"back": 1}', ["back", "forth"]) == 0


def test_keywords_are_whole_words_and_the_longest_that_fit() -> None:
    text = "Nigeria, Niger's South Sudan and Sudan, Guinea-Bissau, Papua New Guinea; chad."
    assert count_keywords(text) == {
        "Nigeria": 1,
        "Niger": 1,
        "South Sudan": 1,
        "Sudan": 1,
        "Guinea-Bissau": 1,
        "Papua New Guinea": 1,
    }
    assert keyword_count_errors("Nigeria", '{"Nigeria": 1}') == 0
    assert count_keywords("Niger", []) == {}


def test_each_country_is_named_once() -> None:
    assert len(set(country_names())) == len(country_names()) > 190
    assert all(count_keywords(f"in {name}.") == {name: 1} for name in country_names())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("not json", "not_json"),
        ("[1]", "wrong_shape"),
        ('{"Peru": -1}', "not_a_count"),
        ('{"Peru": 1.5}', "not_a_count"),
        ('{"Peru": "1"}', "not_a_count"),
        ('{"Peru": true}', "not_a_count"),
        ('{"Peru": 1, "Peru": 2}', "duplicate_key"),
    ],
)
def test_an_answer_that_is_no_table_of_counts_is_refused(answer: str, reason: str) -> None:
    with pytest.raises(ReplyError) as refused:
        keyword_count_errors("Peru", answer)
    assert refused.value.reason == reason


tables = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3))


@no_deadline
@given(tables, tables)
def test_frequency_errors_are_a_distance(truth: dict[str, int], answer: dict[str, int]) -> None:
    errors = sum(abs(truth.get(key, 0) - answer.get(key, 0)) for key in "abcd")
    assert frequency_errors(truth, json.dumps(answer)) == errors


# Tagged scores


def test_tagged_f1_is_the_harmonic_mean_of_the_samples_that_can_be_read() -> None:
    first, second = "<Redundancy>8</Redundancy><Retained>6</Retained>", "<redundancy>10</redundancy><Retained> 4"
    assert tagged_f1(first, TAGS) == pytest.approx(2 * 8 * 6 / 14)
    assert tagged_f1([first, second, "junk", "<Redundancy>9</Redundancy>"], TAGS) == pytest.approx(2 * 9 * 5 / 14)


def test_two_zeros_are_a_zero() -> None:
    assert tagged_f1("<Redundancy>0</Redundancy><Retained>0</Retained>", TAGS) == 0.0
    assert tagged_f1("<Redundancy>0</Redundancy><Retained>7</Retained>", TAGS) == 0.0


def test_a_score_out_of_ten_is_the_score() -> None:
    eight = "<Redundancy>8/10</Redundancy><Retained>8 out of 10</Retained>"
    assert tagged_f1(eight, TAGS) == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("junk", "no_tag"),
        ("<Redundancy>8</Redundancy><Retained>11</Retained>", "out_of_range"),
        ("<Redundancy>8</Redundancy><Retained>6 to 7</Retained>", "not_a_number"),
        ([], "empty"),
    ],
)
def test_tagged_scores_that_cannot_be_read_are_refused(reply: Any, reason: str) -> None:
    with pytest.raises(ReplyError) as refused:
        tagged_f1(reply, TAGS)
    assert refused.value.reason == reason


def test_there_are_two_tags() -> None:
    for tags in (("Redundancy",), "ab"):
        with pytest.raises(ConfigError, match="two names"):
            tagged_f1("junk", tags)


# Scales


def test_every_scorer_says_on_which_scale_it_scores() -> None:
    for scorer in (sorting_errors, set_intersection_errors, keyword_count_errors, frequency_errors):
        assert scale_of(scorer) is ERRORS
    assert scale_of(tagged_f1) is F1
    assert not ERRORS.higher_is_better
    with pytest.raises(ConfigError, match="len does not say"):
        scale_of(len)
