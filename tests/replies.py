"""What a judge may reply, and how the tests of the reply's reader read it.

Every text of `ACCEPTED` and `SPOKEN` says `WANTED`; one of `SPOKEN` that is cut off anywhere says nothing.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable
from typing import Any

import pytest

from debate.errors import ReplyError
from debate.parsing.debate_reply import ParsedReply, ReplyForm

LABELS = ("A", "B")
COMPONENTS = ("accuracy", "relevance")
FORMS = [
    ReplyForm(LABELS, COMPONENTS, style, scores, abstain)
    for style, scores, abstain in itertools.product(("named", "compact"), ("number", "label", "none"), (False, True))
]
"""A debate's replies in every form."""
WANTED = ParsedReply("Fair.", ("Good, {terse}.", 'Says "no".'), ((9.0, 7.5), (2.0, 0.0)))
OVERALL = '"overall": "Fair."'
A = '"A": {"comment": "Good, {terse}.", "scores": {"accuracy": 9, "relevance": 7.5}}'
B = '"B": {"comment": "Says \\"no\\".", "scores": {"accuracy": 2.0, "relevance": 0}}'
GOOD = f'{{{OVERALL}, "candidates": {{{A}, {B}}}}}'
OTHER = GOOD.replace("9", "3")
FENCED = f"```json\n{GOOD}\n```"
# A reply without quotation marks or braces inside its strings, for the kinds of damage that json-repair mends.
PLAIN = '{"overall": "ok", "candidates": {"A": {"comment": "a b", "scores": {"x": 9}}}}'
PLAIN_WANTED = ParsedReply("ok", ("a b",), ((9.0,),))


def read(text: str, **options: Any) -> ParsedReply:
    return ReplyForm(LABELS, COMPONENTS).read(text, **options)


def read_plain(text: str) -> ParsedReply:
    return ReplyForm(("A",), ("x",)).read(text)


def refusal(text: str, **options: Any) -> ReplyError:
    with pytest.raises(ReplyError) as caught:
        read(text, **options)
    return caught.value


def with_score(literal: str) -> str:
    return GOOD.replace("7.5", literal)


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def refused(cases: Iterable[tuple[str, str, str]]) -> pytest.MarkDecorator:
    """A test of each text, called by its kind, that is to be refused for a reason: cases are (reason, kind, text)."""
    params = [pytest.param(reason, text, id=f"{reason}: {kind!a}") for reason, kind, text in cases]
    return pytest.mark.parametrize(("reason", "text"), params)


def assert_refused(text: str, reason: str) -> None:
    error = refusal(text)
    assert error.reason == reason
    assert 10 < len(error.message) <= 300
    assert error.message.encode()


def assert_quick(text: str) -> None:
    """The text is read or refused in less than a second."""
    start = time.process_time()
    try:
        assert read(text) == WANTED
    except ReplyError as error:
        assert error.reason
    assert time.process_time() - start < 1


WRAPPED = {
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
}
REORDERED = {
    "candidates in another order": f'{{{OVERALL}, "candidates": {{{B}, {A}}}}}',
    "keys in another order": f'{{"candidates": {{{B}, {A}}}, {OVERALL}}}',
    "exponents": with_score("75E-1"),
    "escapes": changed("Fair", "F\\u0061ir"),
}
DAMAGED = {
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
ACCEPTED = WRAPPED | REORDERED | DAMAGED

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
