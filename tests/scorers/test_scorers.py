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
    COUNTRIES,
    ERRORS,
    F1,
    count_keywords,
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
digits = st.lists(st.integers(0, 9), min_size=1, max_size=8)
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
        for compat in (None, "got"):
            assert sorting_errors(row["Unsorted"], row["Sorted"], compat=compat) == 0
        assert sorting_errors(row["Unsorted"], row["Unsorted"]) > 0


def test_the_intersections_of_the_data_have_no_errors() -> None:
    for row in rows("set_intersection_032.csv"):
        for compat in (None, "got"):
            assert set_intersection_errors(row["SET1"], row["SET2"], row["INTERSECTION"], compat=compat) == 0
        assert set_intersection_errors(row["SET1"], row["SET2"], row["SET1"]) > 0


def test_the_counted_countries_of_the_data_have_no_errors() -> None:
    for row in rows("countries.csv"):
        counts = Counter(row["Countries"][1:-1].split(", "))
        assert keyword_count_errors(row["Text"], json.dumps(counts)) == 0
        assert keyword_count_errors(row["Text"], json.dumps(counts), compat="got") == 0
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
def test_sorting_errors_are_wrong_counts_and_neighbours_out_of_order(original: str, answer: str, errors: int) -> None:
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


@no_deadline
@given(digits, digits)
def test_on_digits_the_original_counts_as_we_do(original: list[int], answer: list[int]) -> None:
    ours = sorting_errors(str(original), str(answer))
    assert sorting_errors(str(original), str(answer), compat="got") == ours


def test_the_originals_sorting_is_there_under_its_name() -> None:
    assert sorting_errors("[3, 1, 2]", "[1, 2, 3, 42, 99]", compat="got") == 0
    for unreadable in (" [1, 2, 3]", "[]", "", "[1, 2.0, 3]"):
        assert sorting_errors("[3, 1, 2]", unreadable, compat="got") == 300


# Intersection


@pytest.mark.parametrize(
    ("answer", "errors"), [("[4, 3]", 0), ("[3]", 1), ("[3, 4, 5]", 1), ("[3, 3, 4]", 1), ("[5]", 3), ("[]", 2)]
)
def test_intersection_errors_are_missing_and_extra_members(answer: str, errors: int) -> None:
    assert set_intersection_errors("[1, 2, 3, 4]", "[3, 4, 9]", answer) == errors


def test_an_empty_intersection_is_an_answer_but_for_the_original() -> None:
    assert set_intersection_errors("[1, 2]", "[5, 6]", "[]") == 0
    assert set_intersection_errors("[1, 2]", "[5, 6]", "[]", compat="got") == 1000


@no_deadline
@given(integers, integers, integers)
def test_only_the_intersection_has_no_errors(a: list[int], b: list[int], answer: list[int]) -> None:
    common = sorted(set(a) & set(b))
    assert set_intersection_errors(str(a), str(b), str(common)) == 0
    assert (set_intersection_errors(str(a), str(b), str(answer)) == 0) == (sorted(answer) == common)
    if a and b and answer:
        ours = set_intersection_errors(str(a), str(b), str(answer))
        assert set_intersection_errors(str(a), str(b), str(answer), compat="got") == ours


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
    assert keyword_count_errors("Nigeria", '{"Nigeria": 1}', compat="got") == 1
    assert count_keywords("Niger", []) == {}


def test_each_country_is_named_once() -> None:
    assert len(set(COUNTRIES)) == len(COUNTRIES) > 190
    assert all(count_keywords(f"in {name}.") == {name: 1} for name in COUNTRIES)


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


@pytest.mark.parametrize("answer", ["not json", "[1]", "null", "7", '{"Peru": "1"}', ' x{"Peru": 1}'])
def test_what_the_original_cannot_read_has_a_hundred_errors(answer: str) -> None:
    assert keyword_count_errors("Peru", answer, compat="got") == 100


tables = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3))


@no_deadline
@given(tables, tables)
def test_frequency_errors_are_a_distance(truth: dict[str, int], answer: dict[str, int]) -> None:
    errors = sum(abs(truth.get(key, 0) - answer.get(key, 0)) for key in "abcd")
    assert frequency_errors(truth, json.dumps(answer)) == errors
    assert frequency_errors(truth, json.dumps(answer), compat="got") == errors


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
    assert tagged_f1(eight, TAGS, compat="got") == pytest.approx(10.0)


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


def test_the_originals_tagged_scores_are_there_under_its_name() -> None:
    assert tagged_f1("junk", TAGS, compat="got") == 0.0
    assert tagged_f1("Output: I give 4", TAGS, compat="got") == pytest.approx(4.0)
    assert tagged_f1("9 <Redundancy>5 <Retained>5", TAGS, compat="got") == pytest.approx(5.0)
    with pytest.raises(ZeroDivisionError):
        tagged_f1("0", TAGS, compat="got")


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


@pytest.mark.parametrize("scorer", [sorting_errors, keyword_count_errors, frequency_errors])
def test_another_programs_ways_are_refused(scorer: Any) -> None:
    with pytest.raises(ValueError, match="unknown compat 'tot'"):
        scorer("[1]", "[1]", compat="tot")
