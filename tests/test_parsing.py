"""A reply is read exactly as it was said, or refused with a reason: never mended into something else."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debate.errors import ReplyError
from debate.parsing import MAX_CHARS, ParsedReply, parse_reply, reply_schema

LABELS = ("A", "B")
COMPONENTS = ("accuracy", "relevance")
WANTED = ParsedReply("Fair.", ("Good, {terse}.", 'Says "no".'), ((9.0, 7.5), (2.0, 0.0)))
OVERALL = '"overall": "Fair."'
A = '"A": {"comment": "Good, {terse}.", "scores": {"accuracy": 9, "relevance": 7.5}}'
B = '"B": {"comment": "Says \\"no\\".", "scores": {"accuracy": 2.0, "relevance": 0}}'
GOOD = f'{{{OVERALL}, "candidates": {{{A}, {B}}}}}'
OTHER = GOOD.replace("9", "3")
FENCED = f"```json\n{GOOD}\n```"
# The same reply without quotation marks or braces inside its strings, for the kinds of damage that json-repair mends.
PLAIN = '{"overall": "ok", "candidates": {"A": {"comment": "a b", "scores": {"x": 9}}}}'
PLAIN_WANTED = ParsedReply("ok", ("a b",), ((9.0,),))

EXAMPLES = int(os.environ.get("DEBATE_FUZZ_EXAMPLES", "300"))
fuzz = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(text: str, **options: Any) -> ParsedReply:
    return parse_reply(text, LABELS, COMPONENTS, **options)


def read_plain(text: str) -> ParsedReply:
    return parse_reply(text, ["A"], ["x"])


def refusal(text: str, **options: Any) -> ReplyError:
    with pytest.raises(ReplyError) as caught:
        read(text, **options)
    return caught.value


def with_score(literal: str) -> str:
    return GOOD.replace("7.5", literal)


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


ACCEPTED = {
    "bare": GOOD,
    "fenced": FENCED,
    "fenced without a language": f"```\n{GOOD}\n```",
    "fenced on one line": f"```json {GOOD} ```",
    "fenced with four backticks": f"````json\n{GOOD}\n````",
    "fenced in prose": f"Here is my verdict.\n\n{FENCED}\nLet me know!",
    "prose before and after": f"I don't mind: {GOOD} That's all.",
    "said twice": f"{GOOD}\n{GOOD}",
    "said twice in fences": f"{FENCED}\n{FENCED}",
    "said twice with other spacing": f"{json.dumps(json.loads(GOOD), indent=4)} and again {FENCED}",
    "indented": json.dumps(json.loads(GOOD), indent=2),
    "on Windows lines": json.dumps(json.loads(GOOD), indent=2).replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + GOOD,
    "byte order mark after blanks": " \n\ufeff\n" + GOOD,
    "blanks around": f" \t\n{GOOD}\u00a0\n\n",
    "right-to-left marks around": f"\u200f{GOOD}\u200e",
    "NUL in the prose": f"\0 {GOOD} \0",
    "half a surrogate pair in the prose": f"\ud800 {GOOD}",
    "thoughts first": f"<think>Perhaps 3?</think>\n{GOOD}",
    "thoughts with another reply": f"<think>{OTHER} or {{</think>{GOOD}",
    "thoughts that are empty": f"<think></think>{FENCED}",
    "end of thoughts alone": f"Both are good.</think>{GOOD}",
    "HTML around": f"<pre>{GOOD}</pre>",
    "sets in the prose": f"Of {{1, 2}} and {{x}} and \\frac{{a}}{{b}}, this: {GOOD}",
    "scores in the prose": f"Accuracy of A: 3. Relevance 4/10.\n{GOOD}",
    "candidates in another order": f'{{{OVERALL}, "candidates": {{{B}, {A}}}}}',
    "keys in another order": f'{{"candidates": {{{B}, {A}}}, {OVERALL}}}',
    "exponents": with_score("75E-1"),
    "escapes": changed("Fair", "F\\u0061ir"),
    "trailing comma": changed('"relevance": 7.5}', '"relevance": 7.5,}'),
    "trailing commas": GOOD.replace("}", ",}").replace("{terse,}", "{terse}"),
    "missing comma": changed(f"{OVERALL},", OVERALL),
    "missing comma between lines": changed('9, "relevance"', '9\n"relevance"'),
    "line comment": changed('"B":', "// the {other} one, 3\n" + '"B":'),
    "block comment": changed('"B":', "/* the {other} one, 3 */" + '"B":'),
    "unquoted keys": GOOD.replace('"candidates":', "candidates:").replace('"accuracy":', "accuracy:"),
    "single quotes": GOOD.replace('"accuracy"', "'accuracy'").replace('"Fair."', "'Fair.'"),
    "Python's own quotes": str(json.loads(GOOD)),
    "Python's own quotes in a fence": f"```python\n{json.loads(GOOD)}\n```",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_reply_is_read_whatever_stands_around_it(text: str):
    assert read(text) == WANTED


MENDED = {
    "{'overall': 'ok', 'candidates': {'A': {'comment': 'a b', 'scores': {'x': 9}}}}": "ok",
    "{overall: ok, candidates: {A: {comment: a b, scores: {x: 9}}}}": "ok",
    PLAIN.replace('"ok"', "'don\\'t'"): "don't",
    PLAIN.replace('"ok"', "'a \"b\" c'").replace('"x"', "'x'"): 'a "b" c',
    PLAIN.replace('"ok"', '"it\'s"').replace("9}", "9,}"): "it's",
    PLAIN.replace('"ok"', '"https://a.b/#c"').replace("9}", "9,}"): "https://a.b/#c",
    PLAIN.replace('"ok"', '"{1, [2"').replace("9}", "9,}"): "{1, [2",
    PLAIN.replace('"ok"', '"é \\u00e9 \\n\\\\"').replace("9}", "9,}"): "é é \n\\",
    PLAIN.replace('"ok"', '"one\ntwo"').replace("9}", "9,}"): "one\ntwo",
}


@pytest.mark.parametrize(("text", "overall"), MENDED.items())
def test_harmless_damage_is_mended_without_a_change_to_what_was_said(text: str, overall: str):
    assert read_plain(text) == ParsedReply(overall, PLAIN_WANTED.comments, PLAIN_WANTED.scores)


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


def test_the_bounds_are_those_of_the_caller():
    assert read(with_score("-5"), low=-5, high=9).scores[0] == (9.0, -5.0)
    assert refusal(with_score("-5.001"), low=-5, high=9).reason == "out_of_range"
    assert refusal(with_score("9.001"), low=-5, high=9).reason == "out_of_range"


def deep(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


NOT_JSON = {
    "a percentage": with_score("7.5%"),
    "a score that is about right": with_score("~7"),
    "a long number in damaged JSON": with_score("1" * 5000 + ","),
    "a missing quote": changed('"overall"', '"overall'),
    "prose": "I like A best.",
    "prose with scores": "A: 9/10, B: 2/10",
    "yaml": "overall: Fair.\ncandidates:\n  A:\n    comment: Good",
    "xml": "<overall>Fair.</overall>",
    "a set": "The set {1, 2} is small.",
    "control characters": "\0\x01\x02",
    "half a surrogate pair": "\ud800",
    "one backtick": "`",
    "two backticks": "``",
    "a fence with nothing in it": "```json\n```",
    "a fence with prose in it": "```\nA is best\n```",
    "one brace too many": GOOD + "}",
    "a brace before": "}" + GOOD,
    "a tail of an object": GOOD[30:],
    "typographic quotes": GOOD.replace('"overall"', "“overall”"),
    "a score of two numbers": with_score("7 5"),
    "a decimal comma": with_score("7,5"),
    "an equation": with_score("7 = 7.5"),
    "a bare remark after a score": with_score("7 out of 10"),
    "a leading plus": with_score("+7"),
    "a leading dot": with_score(".5"),
    "a trailing dot": with_score("7."),
    "a leading zero": with_score("07"),
    "an underscore": with_score("1_0"),
    "a space after minus": with_score("- 0"),
    "no score": with_score(""),
    "quotes inside a string": changed('\\"no\\"', '"no"'),
    "a doubled apostrophe": PLAIN.replace('"ok"', "'it''s'"),
    "an unknown escape": changed("Fair", "\\q"),
    "a sum of strings": changed('"Fair."', '"Fair" + "."'),
    "a string after a string": changed('"Fair."', '"Fair" "."'),
    "a missing value": changed('"Fair."', ""),
    "an ellipsis": changed(f", {B}", ", ..."),
    "a duplicate key in damaged JSON": changed('"relevance": 7.5', '"relevance": 1, "relevance": 7.5,'),
    "a bracket closed by a brace": changed('{"accuracy": 9, "relevance": 7.5}', '["accuracy": 9}'),
    "many braces": "{a}" * 2000,
    "long and damaged": GOOD.replace("Fair", "Fair " * 5000).replace("7.5", "7.5,"),
}

CUT_OFF = {
    "half a reply, then a whole one": f"{{{OVERALL},\n{GOOD}",
    "a score with one quote": with_score('7.5"') + '"}',
    "quotes escaped once more": GOOD.replace('"', '\\"'),
    "one brace": "{",
    "an open fence": "```json\n",
    "an open thought": "<think>A is good. " + GOOD,
    "a brace in the prose before": "Use { here. " + GOOD,
    "a fence without its end": f"```json\n{GOOD}\n",
    "a fence with half its end": f"```json\n{GOOD}\n``",
    "a brace too few": GOOD[:-1],
    "two braces too few": GOOD[:-2],
    "a brace too few, then prose": GOOD[:-1] + "\nI hope this helps.",
    "a brace too few in a fence": f"```json\n{GOOD[:-1]}\n```",
    "a whole reply, then half of one": GOOD + "\n" + GOOD[:60],
    "an open comment": changed("{", "{/* "),
}

AMBIGUOUS = {
    "two objects": GOOD + OTHER,
    "two objects in prose": f"First {GOOD}, then {OTHER}.",
    "two fences": f"{FENCED}\n```json\n{OTHER}\n```",
    "a fence and an object before": f"{OTHER}\n{FENCED}",
    "a fence and an object after": f"{FENCED}\n{OTHER}",
    "a small object before": '{"note": 1} ' + GOOD,
    "an empty object before": "{} " + GOOD,
    "a damaged object before": "{'accuracy': 3} " + GOOD,
    "a damaged object after": GOOD + ' {"accuracy": 3,}',
    "the format said again": '{"overall": str, "candidates": {...}}\n' + FENCED,
    "two damaged objects": GOOD.replace("7.5", "7.5,") + OTHER.replace("7.5", "7.5,"),
    "thoughts in the middle": f"Well. <think>{OTHER}</think>{GOOD}",
    "many objects": "".join(json.dumps({"n": n}) for n in range(50)),
}

WRONG_SHAPE = {
    "three quotes": changed('"Fair."', '"""Fair."""'),
    "an empty object": "{}",
    "a list": "[]",
    "a list around": f"[{GOOD}]",
    "a list around, in prose": f"Here: [ {GOOD} ]",
    "the end of a list": f"Here: [1, {GOOD} ]",
    "a list around two": f"[{GOOD}, {OTHER}]",
    "a list in a fence": f"```\n[{GOOD}]\n```",
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
    "duplicate_key": {
        "a component": changed('"accuracy": 9', '"accuracy": 9, "accuracy": 3'),
        "the same score": changed('"accuracy": 9', '"accuracy": 9, "accuracy": 9'),
        "a candidate": changed(B, B + ", " + B),
        "overall": changed(OVERALL, OVERALL + ", " + OVERALL),
        "in prose": "Here: " + changed(B, B + ", " + B),
    },
}

NOT_A_NUMBER = (
    'NaN Infinity -Infinity null true false "9" "9,5" "10/10" "high" "" [9] [] {"score":9} 10/10 nine N/A 7.5.'
)
NOT_A_NUMBER_MENDED = "nan, undefined, 0x7 7.5.5,"
OUT_OF_RANGE = "-1 11 11, 100 10.0001 -0.0001 1e999 -1e999 1e99999999999999999999 10.00000000000000000001 -1e-400"

OTHERS = {
    "empty": ["", " ", "\n\t", "\ufeff", "\u3000\ufeff ", "<think>Hm.</think>", "<think></think> \n", " " * 2_000_000],
    "too_long": ["a" * (MAX_CHARS + 1), changed("Fair", "F" * MAX_CHARS), "{" * (MAX_CHARS + 1)],
    "out_of_range": [with_score("1" * 5000), with_score("0." + "0" * 5000 + "1e5005")],
    "too_deep": [deep(100_000), "x" + deep(100_000), "[" * 100_000, '{"a":' * 100_000, "x " + deep(50)],
    "not_unicode": [changed("Fair", "\\ud800"), changed("Fair", "\udfff"), changed("terse", "\\ude00\\ud83d")],
}

REFUSED = [
    *((reason, kind, text) for reason, kinds in NAMES.items() for kind, text in kinds.items()),
    *(("not_json", kind, text) for kind, text in NOT_JSON.items()),
    *(("cut_off", kind, text) for kind, text in CUT_OFF.items()),
    *(("ambiguous", kind, text) for kind, text in AMBIGUOUS.items()),
    *(("wrong_shape", kind, text) for kind, text in WRONG_SHAPE.items()),
    *(("not_a_number", literal, with_score(literal)) for literal in f"{NOT_A_NUMBER} {NOT_A_NUMBER_MENDED}".split()),
    *(("out_of_range", literal, with_score(literal)) for literal in OUT_OF_RANGE.split()),
    *((reason, f"{n}", text) for reason, texts in OTHERS.items() for n, text in enumerate(texts)),
]


@pytest.mark.parametrize(
    ("reason", "text"),
    [pytest.param(reason, text, id=f"{reason}: {kind!a}") for reason, kind, text in REFUSED],
)
def test_a_bad_reply_is_refused_with_its_reason(reason: str, text: str):
    error = refusal(text)
    assert error.reason == reason
    assert 10 < len(error.message) <= 300
    assert error.message.encode()


SPOKEN = [
    GOOD,
    FENCED,
    f"I weighed A and B.\n\n{FENCED}",
    f"My verdict: {GOOD}",
    f"<think>Is it {{9}}?</think>\n{GOOD}",
    json.dumps(json.loads(GOOD), indent=1),
    str(json.loads(GOOD)),
    GOOD.replace("}}", "},}"),
]


@pytest.mark.parametrize("text", SPOKEN)
@pytest.mark.parametrize("finish_reason", ["stop", "length"])
def test_no_beginning_of_a_reply_is_a_reply(text: str, finish_reason: str):
    assert read(text) == WANTED
    for end in range(len(text)):
        error = refusal(text[:end], finish_reason=finish_reason)
        assert error.reason in {"cut_off", "not_json", "empty"}, text[:end]


@pytest.mark.parametrize("text", [GOOD, f"<think>{OTHER}</think>{GOOD}\n"])
def test_at_the_length_limit_a_text_that_is_json_as_a_whole_is_read(text: str):
    assert read(text, finish_reason="length") == WANTED


@pytest.mark.parametrize("text", [FENCED, "Well: " + GOOD, GOOD + " So", GOOD.replace("7.5", "7.5,"), GOOD[:-1]])
def test_at_the_length_limit_anything_else_is_cut_off(text: str):
    assert refusal(text, finish_reason="length").reason == "cut_off"


def test_a_message_names_what_to_mend():
    assert "'A'" in refusal(with_score("11")).message
    assert "'relevance'" in refusal(with_score("11")).message
    assert "11" in refusal(with_score("11")).message
    assert "'B'" in refusal(NAMES["missing_candidate"]["one"]).message
    assert "'style'" in refusal(NAMES["unknown_component"]["one more"]).message
    assert "delimiter" in refusal(NOT_JSON["a string after a string"]).message


def test_a_message_is_short_and_valid_unicode_whatever_the_names():
    label = "\ud800" + "long " * 1000
    with pytest.raises(ReplyError) as caught:
        parse_reply('{"overall": "", "candidates": {}}', [label], [label])
    assert caught.value.reason == "missing_candidate"
    assert len(caught.value.message.encode()) <= 300


SLOW = {
    "blanks around": " " * 1_000_000 + GOOD + " " * 1_000_000,
    "groups": "{1}{2}" * 150_000,
    "empty objects": "x" + "{}" * 400_000,
    "fences": "``` " * 200_000,
    "apostrophes": "{" + "'" * 900_001,
    "quotes": "{" + '"' * 900_001,
    "comments": "{" + "/*" * 400_000,
    "lines of comments": "{" + "#\n" * 400_000,
    "brackets": "[ " * 400_000,
    "words": "x {" + "a  \n" * 200_000 + "}",
    "digits": 'x {"a": ' + "1" * 900_000 + "}",
    "parentheses in a string to mend": '{"a": "' + "(" * 7_900 + '",}',
    "parentheses to mend": '{"a": ' + "(" * 7_900 + "}",
    "members to mend": "{" + "'a':1," * 1_300 + "}",
    "empty strings to mend": "{" + "''" * 3_900 + "}",
    "quotes to mend": "{'a': '" + '"x": ' * 1_500 + "'}",
    "objects to mend": "{a:" + "{}" * 3_900 + "}",
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_no_text_takes_long(text: str):
    start = time.process_time()
    try:
        assert read(text) == WANTED
    except ReplyError as error:
        assert error.reason
    assert time.process_time() - start < 1


def keys_in_order(schema: dict[str, Any]) -> list[str]:
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])
    return schema["required"]


def test_the_schema_asks_for_text_before_numbers_and_for_nothing_else():
    schema = reply_schema(LABELS, COMPONENTS, low=1, high=5)
    assert keys_in_order(schema) == ["overall", "candidates"]
    candidates = schema["properties"]["candidates"]
    assert keys_in_order(candidates) == list(LABELS)
    for label in LABELS:
        assert keys_in_order(candidates["properties"][label]) == ["comment", "scores"]
        scores = candidates["properties"][label]["properties"]["scores"]
        assert keys_in_order(scores) == list(COMPONENTS)
        assert scores["properties"]["accuracy"] == {"type": "number", "minimum": 1, "maximum": 5}


def test_the_schema_bounds_strings_by_a_pattern_that_permits_quotes_and_newlines():
    schema = reply_schema(["A"], ["x"], comment_chars=4, overall_chars=6)
    overall = schema["properties"]["overall"]
    assert overall == {"type": "string", "pattern": "^[^\\u0000-\\u0009\\u000b-\\u001f]{0,6}$"}
    comment = schema["properties"]["candidates"]["properties"]["A"]["properties"]["comment"]["pattern"]
    assert re.fullmatch(comment, '"\n"é')
    assert not re.fullmatch(comment, "five!")
    assert not re.fullmatch(comment, "\t")
    assert json.loads(json.dumps(schema)) == schema


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
