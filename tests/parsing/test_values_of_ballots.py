"""Ballots as a judge writes them in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from debate.errors import ReplyError
from debate.parsing.values import read_json_ballot

LABELS = {"A": 2, "B": 0, "C": 1}


@pytest.mark.parametrize(
    ("said", "ballot"),
    [("C > A > B", (1, 2, 0)), ("c>a", (1, 2)), (["B", "A"], (0, 2)), (" b ", (0,)), ("tie", ()), (["tie"], ())],
)
def test_a_ballot_is_an_order_a_list_a_label_or_a_tie(said: Any, ballot: tuple[int, ...]) -> None:
    reply = f"So: {json.dumps({'reasoning': '', 'ranking': said})}"
    assert read_json_ballot(reply, "ranking", LABELS, tie="tie") == ballot


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("C is best", "not_json"),
        ("[1]", "missing_key"),
        ('{"best": "A"}', "missing_key"),
        ('{"ranking": []}', "no_ranking"),
        ('{"ranking": ["A", "D"]}', "unknown_candidate"),
        ('{"ranking": [1]}', "unknown_candidate"),
        ('{"ranking": "tie"}', "unknown_candidate"),
        ('{"ranking": "A > B > A"}', "duplicate"),
    ],
)
def test_what_is_no_ballot_is_refused(reply: str, reason: str) -> None:
    with pytest.raises(ReplyError) as refused:
        read_json_ballot(reply, "ranking", LABELS)
    assert refused.value.reason == reason
