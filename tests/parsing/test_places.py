from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from debate.parsing.places import value_spans, with_ordinals

TEXTS = st.text(max_size=20)
NUMBERS = st.integers(-100, 100) | st.none() | st.floats(-1e3, 1e3)


@given(st.lists(st.tuples(TEXTS, NUMBERS), max_size=6), st.booleans())
def test_every_number_and_null_outside_strings_is_found_in_the_order_of_the_text(
    members: list[tuple[str, float | None]], spaced: bool
) -> None:
    data = [{"comment": text, "scores": [value]} for text, value in members]
    text = json.dumps({"candidates": data}, separators=None if spaced else (",", ":"))
    found = [json.loads(text[start:end]) for start, end in value_spans(text)]
    assert found == [value for _, value in members]


def test_thoughts_and_prose_before_the_object_are_passed_over() -> None:
    text = '<think>{"a": 3}</think> Here are 2 scores: {"a": 7, "b": "8", "c": null}'
    assert [text[start:end] for start, end in value_spans(text)] == ["7", "null"]


def test_a_text_without_an_object_has_no_places() -> None:
    assert value_spans("7 of 10") == []
    assert with_ordinals("7 of 10") == "7 of 10"


@given(st.lists(st.tuples(TEXTS, NUMBERS), max_size=12))
def test_with_ordinals_each_value_is_its_own_place_and_texts_are_as_they_were(
    members: list[tuple[str, float | None]],
) -> None:
    text = json.dumps([{"comment": text, "scores": {"a": value}} for text, value in members])
    assert json.loads(with_ordinals(text)) == [
        {"comment": said, "scores": {"a": n}} for n, (said, _) in enumerate(members)
    ]
