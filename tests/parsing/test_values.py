"""Values read from replies: exactly what was said, or an error that says why not."""

from __future__ import annotations

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
