"""A reply is read exactly as it was said, or refused with a reason: never mended into something else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from debate.errors import ReplyError
from debate.parsing.debate_reply import ReplyForm
from debate.parsing.schema import bounded_text
from tests.replies import (
    COMPONENTS,
    GOOD,
    LABELS,
    OTHER,
    OVERALL,
    PLAIN,
    REORDERED,
    WANTED,
    A,
    B,
    assert_refused,
    changed,
    read,
    read_plain,
    refusal,
    refused,
    with_score,
)


@pytest.mark.parametrize("text", REORDERED.values(), ids=REORDERED.keys())
def test_a_reply_is_read_in_whatever_order_and_notation_it_was_said(text: str):
    assert read(text) == WANTED


@pytest.mark.parametrize(
    "inside", ["a\nb", "a\tb", "a\0b", "\u202ertl", "<b>&amp;</b>", "```json\n{}\n```", "😀", " ", ""]
)
def test_a_string_is_taken_as_said(inside: str):
    assert read_plain(PLAIN.replace("ok", inside)).overall == inside


def test_a_pair_of_escaped_surrogates_is_one_character():
    assert read_plain(PLAIN.replace("ok", "\\ud83d\\ude00")).overall == "😀"


@pytest.mark.parametrize("literal", ["0", "10", "10.0", "0.0", "-0", "1e1", "1E+1", "0.1e2", "3.14159", "1e-400"])
def test_a_number_is_taken_as_written(literal: str):
    score = read(with_score(literal)).scores[0][1]
    assert type(score) is float
    assert score == float(literal)


WRONG_SHAPE = {
    "three quotes": changed('"Fair."', '"""Fair."""'),
    "an empty object": "{}",
    "a list": "[]",
    "a list around": f"[{GOOD}]",
    "a list around two": f"[{GOOD}, {OTHER}]",
    "a number": "9",
    "a string": '"A"',
    "a string of JSON": json.dumps(GOOD),
    "null": "null",
    "true": "true",
    "not a number at all": "NaN",
    "an object around": f'{{"reply": {GOOD}}}',
    "another key": changed(OVERALL, OVERALL + ', "winner": "A"'),
    "no overall": changed(OVERALL + ", ", ""),
    "no candidates": f"{{{OVERALL}}}",
    "overall is a number": changed('"Fair."', "5"),
    "overall is null": changed('"Fair."', "null"),
    "overall is a list": changed('"Fair."', '["Fair."]'),
    "a key with a blank": changed('"overall"', '"overall "'),
    "a key in capitals": changed('"overall"', '"Overall"'),
    "candidates are a list": f'{{{OVERALL}, "candidates": [{{{A}}}, {{{B}}}]}}',
    "candidates are null": f'{{{OVERALL}, "candidates": null}}',
    "a candidate is a list": changed(A, '"A": ["Good", 9, 7.5]'),
    "a candidate is a number": changed(A, '"A": 9'),
    "no comment": changed('"comment": "Good, {terse}.", ', ""),
    "a comment is a number": changed('"Good, {terse}."', "1"),
    "no scores": changed(', "scores": {"accuracy": 9, "relevance": 7.5}', ""),
    "another key in a candidate": changed('"comment": "Good', '"rank": 1, "comment": "Good'),
    "scores are a list": changed('{"accuracy": 9, "relevance": 7.5}', "[9, 7.5]"),
    "scores are a number": changed('{"accuracy": 9, "relevance": 7.5}', "9"),
    "scores beside the comment": changed(
        '"scores": {"accuracy": 9, "relevance": 7.5}', '"accuracy": 9, "relevance": 7.5'
    ),
    "scores by component": f'{{{OVERALL}, "candidates": {{{A}, {B}}}, "accuracy": {{"A": 9}}}}',
}

NAMES = {
    "missing_candidate": {
        "none": f'{{{OVERALL}, "candidates": {{}}}}',
        "one": f'{{{OVERALL}, "candidates": {{{A}}}}}',
        "renamed": changed('"B":', '"b":'),
    },
    "unknown_candidate": {
        "one more": changed(B, B + "," + B.replace('"B"', '"C"')),
        "nested": changed(B, B + ', "candidates": {}'),
    },
    "missing_component": {
        "one": changed(', "relevance": 7.5', ""),
        "none": changed('"accuracy": 9, "relevance": 7.5', ""),
        "renamed": changed('"relevance"', '"relevancy"'),
        "said in prose only": "Relevance of A: 7.5. " + changed(', "relevance": 7.5', ""),
        "lost to a comment": changed(', "relevance": 7.5', " /* , relevance: 7.5 */ "),
    },
    "unknown_component": {
        "one more": changed('"relevance": 7.5', '"relevance": 7.5, "style": 8'),
        "a total": changed('"relevance": 7.5', '"relevance": 7.5, "": 8'),
    },
}

NOT_A_NUMBER = (
    'NaN Infinity -Infinity null true false "9" "9,5" "10/10" "high" "" [9] [] {"score":9} 10/10 nine N/A 7.5.'
)
NOT_A_NUMBER_MENDED = "nan, undefined, 0x7 7.5.5,"
OUT_OF_RANGE = "-1 11 11, 100 10.0001 -0.0001 1e999 -1e999 1e99999999999999999999 10.00000000000000000001 -1e-400"

OTHERS = {
    "out_of_range": [with_score("1" * 5000), with_score("0." + "0" * 5000 + "1e5005")],
    "not_unicode": [changed("Fair", "\\ud800"), changed("Fair", "\udfff"), changed("terse", "\\ude00\\ud83d")],
}

REFUSED = [
    *(("wrong_shape", kind, text) for kind, text in WRONG_SHAPE.items()),
    *((reason, kind, text) for reason, kinds in NAMES.items() for kind, text in kinds.items()),
    *(("not_a_number", literal, with_score(literal)) for literal in f"{NOT_A_NUMBER} {NOT_A_NUMBER_MENDED}".split()),
    *(("out_of_range", literal, with_score(literal)) for literal in OUT_OF_RANGE.split()),
    *((reason, f"{n}", text) for reason, texts in OTHERS.items() for n, text in enumerate(texts)),
]


@refused(REFUSED)
def test_a_reply_that_is_not_what_was_asked_for_is_refused_with_its_reason(reason: str, text: str):
    assert_refused(text, reason)


def test_a_message_names_what_to_mend():
    assert "'A'" in refusal(with_score("11")).message
    assert "'relevance'" in refusal(with_score("11")).message
    assert "11" in refusal(with_score("11")).message
    assert "'B'" in refusal(NAMES["missing_candidate"]["one"]).message
    assert "'style'" in refusal(NAMES["unknown_component"]["one more"]).message


def test_a_message_is_short_and_valid_unicode_whatever_the_names():
    label = "\ud800" + "long " * 1000
    with pytest.raises(ReplyError) as caught:
        ReplyForm((label,), (label,)).read('{"overall": "", "candidates": {}}')
    assert caught.value.reason == "missing_candidate"
    assert len(caught.value.message.encode()) <= 300


def keys_in_order(schema: dict[str, Any]) -> list[str]:
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])
    return schema["required"]


def test_the_schema_asks_for_text_before_numbers_and_for_nothing_else():
    schema = ReplyForm(LABELS, COMPONENTS).schema
    assert keys_in_order(schema) == ["overall", "candidates"]
    candidates = schema["properties"]["candidates"]
    assert keys_in_order(candidates) == list(LABELS)
    for label in LABELS:
        assert keys_in_order(candidates["properties"][label]) == ["comment", "scores"]
        scores = candidates["properties"][label]["properties"]["scores"]
        assert keys_in_order(scores) == list(COMPONENTS)
        assert scores["properties"]["accuracy"] == {"type": "number", "minimum": 0, "maximum": 10}


def test_the_schema_bounds_strings_by_a_pattern_that_permits_quotes_and_newlines():
    schema = ReplyForm(("A",), ("x",), comment_chars=4, overall_chars=6).schema
    overall = schema["properties"]["overall"]
    assert overall == {"type": "string", "pattern": "^[^\\u0000-\\u0009\\u000b-\\u001f]{0,6}$"}
    comment = schema["properties"]["candidates"]["properties"]["A"]["properties"]["comment"]["pattern"]
    assert re.fullmatch(comment, '"\n"é')
    assert not re.fullmatch(comment, "five!")
    assert not re.fullmatch(comment, "\t")
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize("chars", [1, 63, 64, 128, 129, 200, 400, 600, 601])
def test_a_bounded_string_has_any_length_up_to_its_bound_and_no_repetition_above_what_xgrammar_takes(chars: int):
    pattern = bounded_text(chars)["pattern"]
    assert [n for n in range(chars + 70) if re.fullmatch(pattern, "a" * n)] == list(range(chars + 1))
    assert max(int(number) for number in re.findall(r"(\d+)\}", pattern)) <= 128
