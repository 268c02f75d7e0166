"""One JSON value is found in a reply whatever stands around it, and nothing is found where two could be meant."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from debate.errors import ReplyError
from debate.parsing.json_extract import MAX_CHARS, refuse_quotation
from tests.replies import (
    FENCED,
    GOOD,
    OTHER,
    OVERALL,
    SPOKEN,
    WANTED,
    WRAPPED,
    B,
    assert_quick,
    assert_refused,
    changed,
    read,
    refusal,
    refused,
    with_score,
)


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED.keys())
def test_a_reply_is_read_whatever_stands_around_it(text: str):
    assert read(text) == WANTED


def deep(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


NOT_JSON = {
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
    "a bracket closed by a brace": changed('{"accuracy": 9, "relevance": 7.5}', '["accuracy": 9}'),
    "many braces": "{a}" * 2000,
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

LISTS = {
    "a list around, in prose": f"Here: [ {GOOD} ]",
    "the end of a list": f"Here: [1, {GOOD} ]",
    "a list in a fence": f"```\n[{GOOD}]\n```",
}

DUPLICATE_KEY = {
    "a component": changed('"accuracy": 9', '"accuracy": 9, "accuracy": 3'),
    "the same score": changed('"accuracy": 9', '"accuracy": 9, "accuracy": 9'),
    "a candidate": changed(B, B + ", " + B),
    "overall": changed(OVERALL, OVERALL + ", " + OVERALL),
    "in prose": "Here: " + changed(B, B + ", " + B),
}

OTHERS = {
    "empty": ["", " ", "\n\t", "\ufeff", "\u3000\ufeff ", "<think>Hm.</think>", "<think></think> \n", " " * 2_000_000],
    "too_long": ["a" * (MAX_CHARS + 1), changed("Fair", "F" * MAX_CHARS), "{" * (MAX_CHARS + 1)],
    "too_deep": [deep(100_000), "x" + deep(100_000), "[" * 100_000, '{"a":' * 100_000, "x " + deep(50)],
}

REFUSED = [
    *(("not_json", kind, text) for kind, text in NOT_JSON.items()),
    *(("cut_off", kind, text) for kind, text in CUT_OFF.items()),
    *(("ambiguous", kind, text) for kind, text in AMBIGUOUS.items()),
    *(("wrong_shape", kind, text) for kind, text in LISTS.items()),
    *(("duplicate_key", kind, text) for kind, text in DUPLICATE_KEY.items()),
    *((reason, f"{n}", text) for reason, texts in OTHERS.items() for n, text in enumerate(texts)),
]


@refused(REFUSED)
def test_a_text_without_one_value_is_refused_with_its_reason(reason: str, text: str):
    assert_refused(text, reason)


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
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_no_text_takes_long(text: str):
    assert_quick(text)


# ---- Quotations


@pytest.mark.parametrize(
    "text",
    [
        f"It says {GOOD}, which I refuse to repeat.",
        f"It says:\n{FENCED}\nwhich I refuse to repeat.",
        f"{json.dumps(json.loads(GOOD), indent=4)}\nis what candidate A says.",
        f"Both {GOOD} and {OTHER} are quoted.",
        f"{{hm}} It says {GOOD}",
    ],
)
def test_a_reply_that_only_quotes_what_the_prompt_shows_is_none(text: str):
    with pytest.raises(ReplyError, match="one that the prompt shows") as caught:
        refuse_quotation(text, ["What is 2 + 2?", f"Four. {GOOD} {{hm}}", f"Or {OTHER}"])
    assert caught.value.reason == "quoted"


@pytest.mark.parametrize(
    "text", [GOOD, f" {GOOD}\n", f"It says {OTHER}, and I say {GOOD}.", FENCED, "No object at all."]
)
def test_a_reply_of_its_own_and_one_that_is_all_json_are_no_quotation(text: str):
    refuse_quotation(text, [OTHER, GOOD] if text.strip() == GOOD else [OTHER])


@pytest.mark.parametrize("text", ["{} " * 300 + "{", "[" * 100_000, '{"a":' * 100_000 + " x"])
def test_what_is_no_reply_is_soon_seen_to_quote_nothing(text: str):
    with suppress(ReplyError):
        refuse_quotation(text, ["{}"] * 100)
