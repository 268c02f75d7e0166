"""What the originals do where we do otherwise on purpose: their rules, and where both come to the same."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from conforming import originals
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.scorers import frequency_errors, set_intersection_errors, sorting_errors
from debate.scoring.normalization import normalize_scores
from debate.voting import borda_count

no_deadline = settings(deadline=None)  # a slow machine is not a failing test
digits = st.lists(st.integers(0, 9), min_size=1, max_size=8)
integers = st.lists(st.integers(-3, 12), min_size=1, max_size=8)
tables = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3))
full_rankings = st.lists(st.permutations(range(4)), min_size=1, max_size=6)


@no_deadline
@given(digits, digits)
def test_on_digits_sorting_errors_are_counted_alike(original: list[int], answer: list[int]) -> None:
    ours = sorting_errors(str(original), str(answer))
    assert originals.got_sorting_errors(str(original), str(answer)) == ours


@no_deadline
@given(integers, integers, integers)
def test_on_sets_that_are_not_empty_errors_are_counted_alike(a: list[int], b: list[int], answer: list[int]) -> None:
    ours = set_intersection_errors(str(a), str(b), str(answer))
    assert originals.got_set_errors(str(a), str(b), str(answer)) == ours


@no_deadline
@given(tables, tables)
def test_tables_are_compared_alike(truth: dict[str, int], answer: dict[str, int]) -> None:
    assert originals.got_frequency_errors(truth, json.dumps(answer)) == frequency_errors(truth, json.dumps(answer))


@no_deadline
@given(full_rankings)
def test_complete_rankings_are_counted_alike(ballots: list[list[int]]) -> None:
    assert originals.evaluation_borda(ballots, 4) == pytest.approx(borda_count(ballots, 4).tolist())


@no_deadline
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8), st.sampled_from(["minmax", "zscore", "sigmoid"]))
def test_scored_candidates_are_normalized_alike(scores: list[int], method: Any) -> None:
    ours = normalize_scores(scores, method).tolist()
    assert originals.evaluation_normalize(scores, method) == pytest.approx(ours)


def test_tree_of_thoughts_takes_labels_to_the_letter_and_four_lines_for_failed() -> None:
    assert originals.tot_value("step", ["...\nsure", "Sure", "sure.", " sure"]) == 20
    assert originals.tot_value("a\nb\nc\nd", ["sure"]) == 0
    assert originals.tot_value("a\nb\nc\nAnswer", ["sure"]) == 20


def test_tree_of_thoughts_reads_the_last_digit_and_the_first_comparison() -> None:
    replies = ["The best choice is 12", "The best choice is 10", "The Best choice is 1", "the best choice is clear"]
    assert originals.tot_votes(replies, 2) == [0.0, 1.0]
    assert originals.tot_comparison("more coherent passage is 12") == 0
    assert originals.tot_comparison("neither") == -1


def test_graph_of_thoughts_gives_a_penalty_to_what_it_cannot_read() -> None:
    assert originals.got_sorting_errors("[3, 1, 2]", "[1, 2, 3, 42, 99]") == 0
    for unreadable in (" [1, 2, 3]", "[]", "", "[1, 2.0, 3]"):
        assert originals.got_sorting_errors("[3, 1, 2]", unreadable) == 300
    assert originals.got_set_errors("[1, 2]", "[5, 6]", "[]") == 1000
    for unreadable in ("not json", "[1]", "null", "7", '{"Peru": "1"}', ' x{"Peru": 1}'):
        assert originals.got_keyword_errors("Peru", unreadable, ["Peru"]) == 100
    assert originals.got_keyword_errors("Nigeria", '{"Nigeria": 1}', ["Niger", "Nigeria"]) == 1


def test_graph_of_thoughts_takes_the_last_number_it_sees() -> None:
    tags = ("Redundancy", "Retained")
    said = ["junk", "Output: I give 4", "9 <Redundancy>5 <Retained>5", "<Redundancy>8/10</Redundancy><Retained>8/10"]
    assert [originals.got_tagged_f1([text], tags) for text in said] == pytest.approx([0, 4, 5, 10])
    with pytest.raises(ZeroDivisionError):
        originals.got_tagged_f1(["0"], tags)


def test_x1_takes_the_first_tag_to_the_letter() -> None:
    assert originals.x1_step_score("<analysis><score>10</score></analysis><score>90</score>") == 10
    assert originals.x1_step_score("<score>250") == 250
    assert [originals.x1_is_solved(f"<is solved>{said}</is solved>") for said in ("yes", "Yes")] == [True, False]
    for reply, error in (("<score>85.5</score>", ValueError), ("85", IndexError)):
        with pytest.raises(error):
            originals.x1_step_score(reply)


def test_search_and_learn_has_a_product_of_no_steps() -> None:
    assert originals.sal_aggregate([], "prod") == 1.0
    for how, error in (("last", IndexError), ("min", ValueError)):
        with pytest.raises(error):
            originals.sal_aggregate([], how)
    assert math.isnan(originals.processbench_f1(0.0, 0.0))


def test_the_published_borda_count_checks_no_ballot() -> None:
    assert originals.evaluation_borda([[-1, 0, 1]], 3) == pytest.approx([20 / 3, 10 / 3, 10.0])
    assert originals.evaluation_borda([[0, 0, 0]], 3) == pytest.approx([20.0, 0.0, 0.0])
    for ballots, error in (([[3, 1, 2]], IndexError), ([], ZeroDivisionError)):
        with pytest.raises(error):
            originals.evaluation_borda(ballots, 3)


@pytest.mark.parametrize(
    ("samples", "stream", "scores"),
    [
        (3, [5, 5, 5, 6, 6, 6, 10, 10], [5, 6, 10]),
        (1, [9.9], [9.9, 0, 0]),
        (1, [9.4, 9.5], [9.4, 9.5, 0]),
        (3, [10, 8, 9, 10, 9], [9, 9.5, 0]),
    ],
)
def test_the_published_early_stop_leaves_the_rest_at_0(samples: int, stream: list[float], scores: list[float]) -> None:
    assert originals.evaluation_early_stop(3, iter(stream), samples, 0.95) == pytest.approx(scores)
