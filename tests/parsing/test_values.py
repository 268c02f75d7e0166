"""Values read from replies: exactly what was said, or an error that says why not."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.errors import ConfigError, ReplyError
from debate.parsing.text import tagged
from debate.parsing.values import JsonField, LabelMap, NumberLine, TagNumber, ValueReader
from debate.types import Scale

no_deadline = settings(deadline=None)  # a slow machine is not a failing test

LABELS = LabelMap({"sure": 20, "likely": 1, "impossible": 0.001})
LINE = NumberLine(0, 10)
TAG = TagNumber("score", -100, 100)
FIELD = JsonField("value", 0, 20)


@pytest.mark.parametrize(
    ("read", "reply", "value"),
    [
        (LABELS, "10 + 14 = 24\nsure", 20),
        (LABELS, "Sure!\n\n", 20),
        (LABELS, "**Judgement: Impossible.**", 0.001),
        (LINE, "7", 7),
        (LINE, "It has 3 flaws.\nScore: **7.5/10**", 7.5),
        (LINE, "Thus the coherency score is 8.", 8),
        (LINE, "8 out of 10", 8),
        (LINE, "(.5)", 0.5),
        (LINE, "0", 0),
        (TAG, "<analysis>ok</analysis>\n<score>85</score>", 85),
        (TAG, "<score> -100 </score>", -100),
        (TAG, "<score>\u221212.5</score>", -12.5),
        (TAG, "<score>85/100</score>", 85),
        (TAG, "<SCORE>90", 90),
        (TAG, "<analysis>I would say <score>10</score> at first</analysis><score>90</score>", 90),
        (TAG, "<think><score>10</score></think><score>20</score> no: <score>30</score>", 30),
        (FIELD, '{"why": "good", "value": 12.5}', 12.5),
        (FIELD, 'Here:\n```json\n{"value": 20}\n```', 20),
    ],
)
def test_a_value_is_what_was_said(read: ValueReader, reply: str, value: float) -> None:
    assert read(reply) == value


@pytest.mark.parametrize(
    ("read", "reply", "reason"),
    [
        (LABELS, "", "empty"),
        (LABELS, "sure\nI hope", "unknown_label"),
        (LABELS, "not likely", "unknown_label"),
        (LABELS, "Judgement: not sure", "unknown_label"),
        (LABELS, "sure/likely/impossible", "unknown_label"),
        (LINE, "", "empty"),
        (LINE, "good", "not_a_number"),
        (LINE, "between 7 and 8", "ambiguous"),
        (LINE, "7-8", "ambiguous"),
        (LINE, "75%", "not_a_number"),
        (LINE, "7,5", "not_a_number"),
        (LINE, "1e1", "not_a_number"),
        (LINE, "\u0667", "not_a_number"),
        (LINE, "7/5", "wrong_limit"),
        (LINE, "8 out of 100", "wrong_limit"),
        (LINE, "11", "out_of_range"),
        (LINE, "-1", "out_of_range"),
        (LINE, "10.00000000000000001", "out_of_range"),
        (TAG, "The score is 85", "no_tag"),
        (TAG, "<score>about 85</score>", "not_a_number"),
        (TAG, "<score><5</score>", "not_a_number"),
        (TAG, "<score></score>", "not_a_number"),
        (TAG, "<score>250</score>", "out_of_range"),
        (TAG, "<analysis><score>10</score></analysis>", "no_tag"),
        (TAG, "<think>so <score>10</score>", "cut_off"),
        (FIELD, '{"score": 5}', "missing_key"),
        (FIELD, '{"value": "5"}', "not_a_number"),
        (FIELD, '{"value": true}', "not_a_number"),
        (FIELD, '{"value": 21}', "out_of_range"),
        (FIELD, '{"value": 20.00000000000000001}', "out_of_range"),
        (FIELD, '{"value": 1e99999999999999999999}', "out_of_range"),
        (FIELD, "5", "wrong_shape"),
        (FIELD, "value: 5", "not_json"),
    ],
)
def test_what_states_no_value_is_refused_with_a_reason(read: ValueReader, reply: str, reason: str) -> None:
    with pytest.raises(ReplyError) as refused:
        read(reply)
    assert refused.value.reason == reason
    assert len(refused.value.message) <= 300


@pytest.mark.parametrize(("read", "reply"), [(LABELS, "sure"), (LINE, "1"), (TAG, "<score>9"), (FIELD, '{"value": 1')])
def test_a_reply_that_was_cut_off_is_not_guessed_at(read: ValueReader, reply: str) -> None:
    with pytest.raises(ReplyError) as refused:
        read(reply, finish_reason="length")
    assert refused.value.reason == "cut_off"


def test_a_closed_tag_was_said_whole_though_the_rest_was_cut_off() -> None:
    assert TAG("<score>90</score> because", finish_reason="length") == 90


@pytest.mark.parametrize(
    ("read", "scale"),
    [(LABELS, Scale(0.001, 20)), (LINE, Scale(0, 10)), (TAG, Scale(-100, 100)), (FIELD, Scale(0, 20))],
)
def test_a_reader_knows_its_scale(read: ValueReader, scale: Scale) -> None:
    assert read.scale == scale


@pytest.mark.parametrize("labels", [{}, {"sure": 20.0}, {"sure": 20.0, "Sure.": 1.0}])
def test_labels_must_differ(labels: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="two labels"):
        LabelMap(labels)


@no_deadline
@given(st.decimals(-100, 100, places=3))
def test_every_number_on_the_scale_is_read_as_it_is_written(number: Any) -> None:
    assert TAG(f"<score>{number}</score>") == float(number)


@no_deadline
@given(st.text(max_size=60))
def test_no_text_is_read_as_a_value_off_the_scale(text: str) -> None:
    for read in (LABELS, LINE, TAG, FIELD):
        for reply in (text, f"<score>{text}</score>", f'{{"value": {text}}}'):
            try:
                value = read(reply)
            except ReplyError:
                continue
            assert read.scale.low <= value <= read.scale.high


def test_the_name_of_a_tag_is_no_pattern() -> None:
    assert tagged("<axb>1</axb><a.b>2</a.b>", "a.b") == "2"


# ---- read out


@pytest.mark.parametrize(
    ("low", "high", "first", "last", "n"),
    [(0, 10, "0", "10", 11), (-100.0, 100.0, "-100", "100", 201), (0.0, 1.0, "0", "1", 2), (-3, -1, "-3", "-1", 3)],
)
def test_the_labels_of_a_field_are_the_whole_numbers_of_its_scale(
    low: float, high: float, first: str, last: str, n: int
) -> None:
    labels = JsonField("value", low, high).labels
    assert (labels[0], labels[-1], len(labels)) == (first, last, n)
    schema = JsonField("value", low, high).label_schema(100)["properties"]["value"]
    assert schema == {"type": "integer", "minimum": int(first), "maximum": int(last)}


@pytest.mark.parametrize(("low", "high"), [(0.5, 10), (0, 9.5), (0, 201), (0, float("inf"))])
def test_a_scale_that_is_not_of_a_few_whole_numbers_has_no_labels(low: float, high: float) -> None:
    with pytest.raises(ConfigError) as refused:
        _ = JsonField("value", low, high).labels
    assert refused.value.field == "readout"
    assert "readout='reply'" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("reply", "place"),
    [
        ('{"reasoning": "7 or 8", "value": 7}', 0),
        ('{"value": 7, "parts": [1, null, 7]}', 0),
        ('{"parts": [1, null, 7], "value": 7}', 3),
        ('{"parts": {"value": 7}, "x": 3, "value": 7}', 2),
        ('{"\\"value\\": 2": 1, "value": 7}', 1),
        ('<think>{"value": 1}</think>Here it is:\n```json\n{"a": 2, "value": 7}\n```', 1),
        ('{"a": 2, "value": 7,}', 1),
    ],
)
def test_a_field_knows_where_in_a_reply_its_number_stands(reply: str, place: int) -> None:
    assert FIELD.place(reply) == place


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=4), st.integers(0, 20), st.integers(0, 4)
)
@no_deadline
def test_the_place_of_a_number_depends_on_its_key_alone(
    others: list[tuple[str, int]], value: int, position: int
) -> None:
    members: list[tuple[str, object]] = [(f"{name}{n}", {"value": other}) for n, (name, other) in enumerate(others)]
    members.insert(position, ("value", value))
    place = min(position, len(others))
    assert FIELD.place(json.dumps(dict(members))) == place


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"score": 5}', "missing_key"),
        ('{"value": null}', "not_a_number"),
        ('{"value": 21}', "out_of_range"),
        ("value: 5", "not_json"),
        ("{'a\"': 1, 'value': 7, 'b\"': 2}", "not_json"),
    ],
)
def test_a_reply_without_the_number_has_no_place_for_it(reply: str, reason: str) -> None:
    with pytest.raises(ReplyError) as refused:
        FIELD.place(reply)
    assert refused.value.reason == reason


@given(st.text(max_size=50))
@no_deadline
def test_a_continuation_is_a_reply_up_to_its_number(reasoning: str) -> None:
    said = FIELD.continuation(reasoning)
    assert json.loads(f"{said}13}}") == {"reasoning": reasoning, "value": 13}
    assert re.fullmatch(r'\{"reasoning":".*","value":', said, re.DOTALL)
    assert FIELD.reasoning(f"{said}13}}") == reasoning
    assert FIELD.place(f"{said}13}}") == 0


def test_half_a_surrogate_pair_in_a_reasoning_is_continued_with_its_escape() -> None:
    said = FIELD.continuation("cut \ud83d")
    assert said.encode().decode() == '{"reasoning":"cut \\ud83d","value":'


@pytest.mark.parametrize(
    ("reply", "reason"),
    [("", "empty"), ('{"value": 3}', "missing_key"), ('{"reasoning": 3}', "missing_key"), ("[]", "wrong_shape")],
)
def test_a_reply_without_reasoning_is_refused_with_a_reason(reply: str, reason: str) -> None:
    with pytest.raises(ReplyError) as refused:
        FIELD.reasoning(reply)
    assert refused.value.reason == reason


@pytest.mark.parametrize("dash", "-−‐‑‒–—―")
@pytest.mark.parametrize("reply", ["{}50", "Score: {}50", "The score is **{}50**."])
def test_any_dash_directly_before_the_digits_is_a_minus_on_a_scale_with_negative_numbers(reply: str, dash: str) -> None:
    assert NumberLine(-100, 100)(reply.format(dash)) == -50


@pytest.mark.parametrize("reply", ["Score: - 50", "Score – 50", "minus 50", "Negative **50**", "Score-50"])
def test_a_number_that_may_be_negative_is_refused_where_the_scale_has_such(reply: str) -> None:
    with pytest.raises(ReplyError, match="write -50") as caught:
        NumberLine(-100, 100)(reply)
    assert caught.value.reason == "ambiguous"
    assert NumberLine(0, 100)(reply) == 50


def test_a_plain_number_is_positive_where_the_scale_has_negative_ones() -> None:
    assert [NumberLine(-100, 100)(reply) for reply in ("50", "Score: +50", "low-key, so: 50")] == [50, 50, 50]
