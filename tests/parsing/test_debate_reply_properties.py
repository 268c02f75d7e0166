"""Whatever a model writes, it is read honestly or refused: properties, tried on made-up texts.

`DEBATE_FUZZ_EXAMPLES` sets how many a property; 300 by default.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debate.errors import ReplyError
from debate.parsing.debate_reply import ParsedReply
from tests.replies import (
    ACCEPTED,
    COMPONENTS,
    FENCED,
    GOOD,
    LABELS,
    OTHER,
    OVERALL,
    PLAIN,
    SPOKEN,
    WANTED,
    A,
    B,
    read,
    refusal,
)

EXAMPLES = int(os.environ.get("DEBATE_FUZZ_EXAMPLES", "300"))
fuzz = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
hostile = st.sampled_from(['"', "'", "{", "}", "```", GOOD, "</think>", "<think>", "\\", "// 3", "\n", "null", "[1]"])
strings = st.one_of(texts, hostile, st.lists(st.one_of(texts, hostile), max_size=4).map("".join))
numbers = st.one_of(st.integers(0, 10), st.floats(0, 10))
# Prose that holds no brace and no fence, which would make another reading possible.
prose = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}[]`<"), max_size=30)


@st.composite
def replies(draw: st.DrawFn, strings: st.SearchStrategy[str] = strings) -> tuple[dict[str, Any], ParsedReply]:
    """A reply as a dict, its candidates and components in any order, and what it must be read as."""
    rows = [tuple(float(draw(numbers)) for _ in COMPONENTS) for _ in LABELS]
    comments = [draw(strings) for _ in LABELS]
    candidates = {
        label: {"comment": comment, "scores": dict(draw(st.permutations(list(zip(COMPONENTS, row, strict=True)))))}
        for label, comment, row in draw(st.permutations(list(zip(LABELS, comments, rows, strict=True))))
    }
    overall = draw(strings)
    return {"overall": overall, "candidates": candidates}, ParsedReply(overall, tuple(comments), tuple(rows))


@fuzz
@given(
    replies(), st.booleans(), st.sampled_from([None, 0, 2, "\t"]), prose, prose, st.sampled_from(["", "```", "```json"])
)
def test_a_reply_that_is_json_is_read_as_it_was_made(
    reply: tuple[dict[str, Any], ParsedReply], ascii_only: bool, indent: Any, before: str, after: str, fence: str
):
    said, wanted = reply
    text = json.dumps(said, ensure_ascii=ascii_only, indent=indent)
    assert read(text) == wanted
    assert read(text, finish_reason="length") == wanted
    body = f"{fence}\n{text}\n{fence[:3]}"
    assert read(f"{before}\n{body}\n{after}") == wanted
    assert read(f"<think>{before} {{ {after}</think>{body}") == wanted


@fuzz
@given(replies(), st.data())
def test_no_beginning_of_any_reply_is_a_reply(reply: tuple[dict[str, Any], ParsedReply], data: st.DataObject):
    text = json.dumps(reply[0], ensure_ascii=data.draw(st.booleans()))
    fence = data.draw(st.sampled_from(["", "```json\n"]))
    whole = f"{fence}{text}" + "\n```" * bool(fence)
    assert refusal(whole[: data.draw(st.integers(0, len(whole) - 1))]).reason in {"cut_off", "not_json", "empty"}


@fuzz
@given(replies(strings=texts))
def test_a_reply_in_the_notation_of_python_is_read_as_it_was_made_or_refused(reply: tuple[dict[str, Any], ParsedReply]):
    said, wanted = reply
    try:
        assert read(repr(said)) == wanted
    except ReplyError as error:
        assert error.reason in {"not_json", "cut_off"}


LITERAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


def check_honest(text: str, finish_reason: str = "stop") -> None:
    """The reply is refused, or every score of it stands in the text and every word of it too."""
    try:
        parsed = read(text, finish_reason=finish_reason)
    except ReplyError as error:
        assert error.reason
        assert 0 < len(error.message.encode()) <= 1200
        return
    assert (len(parsed.comments), [len(row) for row in parsed.scores]) == (len(LABELS), [len(COMPONENTS)] * len(LABELS))
    literals = [float(literal) for literal in LITERAL.findall(text)]
    for score in (score for row in parsed.scores for score in row):
        assert 0 <= score <= 10
        assert score in literals
        literals.remove(score)
    for string in (parsed.overall, *parsed.comments):
        assert all(word in text for word in re.findall(r"[a-z]+", string))


SPLINTERS = "``` <think> </think> ' \\ // /* */ # NaN 1e999 9,5 10/10 {} [] null \ud800 \0 “ ("
FRAGMENTS = [*SPLINTERS.split(" "), *GOOD.split(" "), GOOD, OTHER, PLAIN, FENCED, A, B, OVERALL, "\n", "Q: "]
fragments = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=12)


@fuzz
@given(st.one_of(st.text(), st.text(alphabet="{}[]\"':,0919.e- \nab\\/`#*", max_size=40)))
def test_any_text_is_read_honestly_or_refused(text: str):
    check_honest(text)


@fuzz
@given(fragments, st.sampled_from(["stop", "length"]))
def test_any_fragments_are_read_honestly_or_refused(parts: Sequence[str], finish_reason: str):
    check_honest("".join(parts), finish_reason)


NO_ESCAPES = [text for text in ACCEPTED.values() if "\\u" not in text]


@st.composite
def mutants(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from([*SPOKEN, *NO_ESCAPES]))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        new = draw(
            st.one_of(st.sampled_from(["", text[start:end] * 2]), st.sampled_from(FRAGMENTS), st.text(max_size=2))
        )
        text = text[:start] + new + text[end:]
    return text if draw(st.integers(0, 5)) else text[draw(st.integers(0, 60)) : len(text) - draw(st.integers(0, 60))]


@fuzz
@given(mutants())
def test_a_changed_reply_is_read_honestly_or_refused(text: str):
    check_honest(text)


@fuzz
@given(st.data())
def test_one_changed_character_never_changes_another_score(data: st.DataObject):
    text = data.draw(st.sampled_from(list(ACCEPTED.values())))
    at = data.draw(st.integers(0, len(text) - 1))
    new = data.draw(st.sampled_from(["", *"{}[]\"':,0123456789.e-+/#\\` \nx", text[at] * 2]))
    try:
        parsed = read(text[:at] + new + text[at + 1 :])
    except ReplyError:
        return
    pairs = zip(WANTED.scores, parsed.scores, strict=True)
    assert sum(old != now for before, after in pairs for old, now in zip(before, after, strict=True)) <= 1
