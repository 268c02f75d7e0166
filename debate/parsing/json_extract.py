"""Finds the one JSON value in what a model wrote.

Each step is tried when the one before it fails: the whole text as JSON, the one object that stands in a fence or in
prose, several objects that agree, and the one object with its harmless damage repaired. For a repair the library
json-repair proposes a value; it counts only if it holds, token for token, what stands in the text. So a repair can drop
a comma or change a kind of quotation mark, but cannot touch a number, move a word, or open or close a container.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import cast

from debate.parsing.json_values import NonJsonToken, Number, decode, shown, unreadable

_MAX_REPAIRED = 8_000  # json-repair needs quadratic time for some texts

_FLAGS = re.VERBOSE | re.DOTALL | re.ASCII
_STRING = r""" "[^"\\]*+(?:\\.[^"\\]*+)*+" | '[^'\\]*+(?:\\.[^'\\]*+)*+' """
_COMMENT = r" //[^\n]*+ | \#[^\n]*+ | /\*.*?\*/ "
"""What hides brackets in damaged JSON, as pieces of a pattern with `_FLAGS`."""

_WORD = r"""(?:(?!//|/\*)[^\s"'{}\[\](),:\#])++"""
_TOKEN = re.compile(
    rf"""(?P<gap>[\s,:]++ | {_COMMENT})
    | (?P<string>{_STRING})
    | (?P<bracket>[{{}}\[\]])
    | (?P<number>-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?=[ \t]*+(?:[\n\r,}}\]]|//|/\*|\#)))
    | (?P<bare>{_WORD}(?:[ \t]++{_WORD})*+)
    | (?P<other>.)""",
    _FLAGS,
)
"""The tokens of damaged JSON. `bare` is text without quotation marks; `other` a parenthesis, which json-repair takes
for a tuple of Python, in quadratic time."""
MAX_CHARS = 1_000_000
"""Longer replies are refused unread."""
_MAX_DEPTH = 32
_MAX_OBJECTS = 8
_MAX_MARKS = 1000

_THINKING = re.compile(r"<think>(.*?</think>)?", re.DOTALL)
_PROSE_MARK = re.compile(r"`{3,}|\[\s*+\{|[{}]")
_ARRAY_END = re.compile(r"\s*+\]")
_BRACKET = re.compile(
    rf"""(?:[^"'{{}}\[\]/\#]++ | {_STRING} | {_COMMENT} | /(?![/*]))*+ (?P<bracket>[{{}}\[\]])?""", _FLAGS
)
"""Up to the next bracket outside strings and comments; None when a string or a comment never ends."""


def extract_json(text: str, *, finish_reason: str = "stop") -> object:
    """The value that a reply holds, as `json_values.decode` gives it; an object, unless the text is all JSON.

    A byte order mark and one leading `<think>` block are dropped. With `finish_reason="length"` only a text that is
    JSON as a whole is read.

    Raises:
        ReplyError: empty, too_long, cut_off, not_json, ambiguous, too_deep, duplicate_key, or wrong_shape for a list
            around an object in prose.
    """
    return located_json(text, finish_reason=finish_reason)[0]


def located_json(text: str, *, finish_reason: str = "stop") -> tuple[object, int]:
    """What `extract_json` gives, and where it begins in the text; of several objects that agree, where the first does.

    Raises:
        ReplyError: as `extract_json`.
    """
    answer = _answer(text)
    start = len(text.rstrip()) - len(answer)
    try:
        return decode(answer), start
    except json.JSONDecodeError:
        if finish_reason == "length":
            raise unreadable("cut_off", "The reply was cut off at the length limit; be shorter.") from None
    # The same object said twice is one. A fence gives no precedence: it may hold the answer or an example of one.
    objects = [group for group in dict.fromkeys(_outermost(answer)) if _may_be_object(group)]
    if not objects:
        raise unreadable("not_json", "The reply holds no JSON object.")
    found = repair_json(objects[0]) if len(objects) == 1 else _agreed(objects)
    return found, start + answer.index(objects[0])


def refuse_quotation(text: str, shown: Iterable[str]) -> None:
    """Refuse a reply whose JSON objects all stand in texts that the prompt shows: it quotes them, and answers nothing.

    A reply that is nothing but JSON is taken at its word. White space does not count.

    Raises:
        ReplyError: quoted; or as `extract_json`.
    """
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return
    objects = ["".join(group.split()) for group in _outermost(_answer(text)) if _may_be_object(group)]
    texts = ["".join(each.split()) for each in shown]
    if objects and all(any(each in other for other in texts) for each in objects):
        raise unreadable("quoted", "The JSON object in the reply is one that the prompt shows; give one of your own.")


def _answer(text: str) -> str:
    """The text without what stands around or before the answer."""
    text = text.strip().lstrip("\ufeff").strip()
    if len(text) > MAX_CHARS:
        raise unreadable("too_long", f"The reply has {len(text)} characters; at most {MAX_CHARS} are read.")
    if thinking := _THINKING.match(text):
        if thinking[1] is None:
            raise unreadable("cut_off", "The reply ends inside <think>; the JSON object is missing.")
        text = text[thinking.end() :].strip()
    if not text:
        raise unreadable("empty", "The reply is empty; a JSON object was asked for.")
    return text


def _outermost(text: str) -> Iterator[str]:
    """The outermost {...} groups of the text. Raises at the first one that is not closed, and at an open fence."""
    position, marks, fenced = 0, 0, False
    while mark := _PROSE_MARK.search(text, position):
        position = mark.end()
        if mark[0] == "}":
            raise unreadable("not_json", "The reply closes an object that it never opened.")
        if mark[0] == "{":
            position = _group_end(text, mark.start())
            yield text[mark.start() : position]
        if mark[0].startswith("[") or (mark[0] == "{" and _ARRAY_END.match(text, position)):
            raise unreadable("wrong_shape", "The reply is a list; one JSON object was asked for.")
        marks += 1
        if marks > _MAX_MARKS:
            problem = "The reply is full of braces or fences; give one JSON object and nothing else."
            raise unreadable("not_json", problem)
        fenced ^= mark[0].startswith("`")
    if fenced:
        raise unreadable("cut_off", "The reply ends inside a fenced block.")


def _group_end(text: str, start: int) -> int:
    """Where the brace group that opens at `start` ends. Quotation marks of both kinds and comments hide brackets."""
    depth = {"{": 0, "[": 0}
    for part in _BRACKET.finditer(text, start):
        bracket = part["bracket"]
        if bracket is None:
            break
        depth["{" if bracket in "{}" else "["] += 1 if bracket in "{[" else -1
        if depth["{"] == 0:
            return part.end()
        if max(depth.values()) > _MAX_DEPTH:
            raise unreadable("too_deep", "The reply is nested too deeply.")
    raise unreadable("cut_off", "The reply ends inside an object: a brace or a quotation mark is not closed.")


def _may_be_object(group: str) -> bool:
    """Whether the group is an object, sound or damaged, rather than prose such as {1, 2}."""
    return any(mark in group for mark in "\"':") or not group[1:-1].strip()


def _agreed(objects: list[str]) -> object:
    """The value that all objects have. A damaged one among several is not repaired: it is unknown which is meant."""
    if len(objects) <= _MAX_OBJECTS:
        with suppress(json.JSONDecodeError):
            first, *others = map(decode, objects)
            if all(other == first for other in others):
                return first
    raise unreadable("ambiguous", "The reply holds several objects that differ; give one JSON object and nothing else.")


class _Mismatch(Exception):
    """The repaired value is not what the text says."""


def repair_json(group: str) -> object:
    """The value of one {...} group, sound or with harmless damage.

    Raises:
        ReplyError: `not_json`, with where the damage is; or as `decode`.
    """
    try:
        return decode(group)
    except json.JSONDecodeError as error:
        with suppress(_Mismatch):
            return _repaired(group)
        damage = f"{error.msg} near {shown(group[max(error.pos - 15, 0) : error.pos + 15])}"
        raise unreadable("not_json", f"The reply is not valid JSON: {damage}.") from None


def _repaired(group: str) -> object:
    if len(group) > _MAX_REPAIRED:
        raise _Mismatch
    import json_repair  # here, for few replies need it and it is slow to import

    tokens = list(_tokens(group))
    try:
        value: object = json_repair.loads(group, skip_json_loads=True)
    except Exception as error:  # whatever a third party's parser meets in arbitrary text, the text stays unreadable
        raise _Mismatch from error
    return _align(value, iter(tokens))  # the brace that closes the value is the last token of the group


def _tokens(group: str) -> Iterator[object]:
    """What the text says, in order: brackets as `NonJsonToken`, numbers as `Number`, strings decoded."""
    for token in _TOKEN.finditer(group):
        if token.lastgroup == "bracket":
            yield NonJsonToken(token[0])
        elif token.lastgroup == "number":
            yield Number(token[0])
        elif token.lastgroup == "string":
            yield _unquoted(token[0])
        elif token.lastgroup == "bare":
            yield token[0]
        elif token.lastgroup == "other":
            raise _Mismatch


def _unquoted(literal: str) -> str:
    """The text of a string in quotation marks of either kind. An escape that JSON does not know is refused."""
    body = re.sub(r"\\.|\"", lambda m: {"\\'": "'", '"': '\\"'}.get(m[0], m[0]), literal[1:-1], flags=re.DOTALL)
    try:
        return cast("str", decode(f'"{body}"'))
    except json.JSONDecodeError:
        raise _Mismatch from None


def _align(value: object, tokens: Iterator[object]) -> object:
    """The value with its numbers as they were written, if its tokens are the next of `tokens`."""
    if isinstance(value, dict):
        _expect(NonJsonToken("{"), tokens)
        members: dict[str, object] = {}
        for key, member in cast("dict[str, object]", value).items():
            _expect(key, tokens)
            members[key] = _align(member, tokens)
        _expect(NonJsonToken("}"), tokens)
        return members
    if isinstance(value, list):
        _expect(NonJsonToken("["), tokens)
        items = [_align(item, tokens) for item in cast("list[object]", value)]
        _expect(NonJsonToken("]"), tokens)
        return items
    said = next(tokens, None)
    plain = said.value if isinstance(said, Number) else said
    if isinstance(value, bool) or value is None or plain != value:
        raise _Mismatch
    return said


def _expect(wanted: object, tokens: Iterator[object]) -> None:
    if next(tokens, None) != wanted:
        raise _Mismatch
