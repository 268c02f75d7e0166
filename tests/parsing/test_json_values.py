"""Numbers keep their literals, and nothing that JSON does not know passes for one."""

from __future__ import annotations

import pytest

from debate.parsing.json_values import NonJsonToken, Number, decode, shown


def test_a_number_keeps_its_literal_and_equals_any_other_of_its_value():
    assert decode("[1, 1.0, 1e0]") == [Number("1")] * 3
    assert decode("[1]") != decode("[2]")
    number = decode("10.00000000000000000001")
    assert isinstance(number, Number)
    assert (number.literal, number.value) == ("10.00000000000000000001", 10.0)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_what_python_takes_for_a_number_and_json_does_not_is_a_mark(literal: str):
    assert decode(literal) == NonJsonToken(literal)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *[("{}", "an object"), ("[1]", "a list"), ("null", "null"), ("true", "true"), ("NaN", "NaN")],
        *[('"it"', "'it'"), ("7.50", "7.50"), ("1" * 50, "1" * 39 + "…"), ('"' + "a" * 50 + '"', f"'{'a' * 39}…'")],
    ],
)
def test_a_value_is_shown_in_a_few_words(text: str, words: str):
    assert shown(decode(text)) == words
