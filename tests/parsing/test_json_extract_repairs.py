"""Damage is mended only where the mended object says, word for word and number for number, what the text says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from debate.parsing.debate_reply import ParsedReply
from tests.replies import (
    DAMAGED,
    GOOD,
    PLAIN,
    PLAIN_WANTED,
    WANTED,
    B,
    assert_quick,
    assert_refused,
    changed,
    read,
    read_plain,
    refusal,
    refused,
    with_score,
)
from tests.scripts_loader import REPOSITORY


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_reply_with_harmless_damage_is_read_as_it_was_said(text: str):
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


NOT_JSON = {
    "a percentage": with_score("7.5%"),
    "a score that is about right": with_score("~7"),
    "a long number in damaged JSON": with_score("1" * 5000 + ","),
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
    "long and damaged": GOOD.replace("Fair", "Fair " * 5000).replace("7.5", "7.5,"),
}


@refused(("not_json", kind, text) for kind, text in NOT_JSON.items())
def test_damage_that_leaves_a_doubt_is_refused(reason: str, text: str):
    assert_refused(text, reason)


def test_a_message_says_what_the_damage_is():
    assert "delimiter" in refusal(NOT_JSON["a string after a string"]).message


SLOW = {
    "parentheses in a string to mend": '{"a": "' + "(" * 7_900 + '",}',
    "parentheses to mend": '{"a": ' + "(" * 7_900 + "}",
    "members to mend": "{" + "'a':1," * 1_300 + "}",
    "empty strings to mend": "{" + "''" * 3_900 + "}",
    "quotes to mend": "{'a': '" + '"x": ' * 1_500 + "'}",
    "objects to mend": "{a:" + "{}" * 3_900 + "}",
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_no_damage_takes_long(text: str):
    assert_quick(text)


def test_the_mender_is_loaded_for_the_first_damaged_reply_and_not_before():
    script = """
import sys
from tests.replies import DAMAGED, GOOD, WANTED, read
assert read(GOOD) == WANTED and "json_repair" not in sys.modules
assert read(DAMAGED["trailing comma"]) == WANTED and "json_repair" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=REPOSITORY)
