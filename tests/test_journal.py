"""Recorded recalls are found again by what shaped them."""

from __future__ import annotations

from debate import Task
from debate.flow import Recall
from debate.journal import recall_hash


def test_a_recall_for_a_task_has_the_hash_that_it_was_recorded_under_by_the_first_version() -> None:
    task = Task("q", ["one"], id="t1", context=["more"])
    request = Recall(queries=("q", "one"), collections=("general/Critic",), exclude_sources=("x",), k=3, task=task)
    assert recall_hash(request) == "2aea86618eafbb7c591c1d1fd25688aa"
    same = Recall(queries=("q", "one"), collections=("general/Critic",), exclude_sources=("t1", "x"), k=3)
    assert recall_hash(same) == "2aea86618eafbb7c591c1d1fd25688aa"
