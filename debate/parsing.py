"""Reads what a judge replied, and writes the JSON schema it is asked to follow.

`parse_reply` returns exactly what was said or raises `ReplyError`; it never clamps, fills in or guesses. It goes down a
ladder: the whole text as JSON, the one object that stands in a fence or in prose, and that object mended by
json-repair. A mended object counts only if it holds, token for token, what stands in the text, so a repair can drop a
comma or change a kind of quotation mark, but cannot touch a number, move a word, or open or close a container.

It knows nothing of prompts, models or retries, and of candidates and components only their names. The reply format:

    {"overall": str, "candidates": {label: {"comment": str, "scores": {component: number}}}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

import json_repair

from debate.errors import ReplyError

MAX_CHARS = 1_000_000
"""Longer replies are refused unread."""
_MAX_REPAIR_CHARS = 8_000  # json-repair needs quadratic time for some texts
_MAX_DEPTH = 32
_MAX_OBJECTS = 8
_MAX_MARKS = 1000


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply that was read whole. `comments` (J) and `scores` (J x K) follow the labels and the components."""

    overall: str
    comments: tuple[str, ...]
    scores: tuple[tuple[float, ...], ...]


def parse_reply(
    text: str,
    labels: Sequence[str],
    components: Sequence[str],
    *,
    low: float = 0.0,
    high: float = 10.0,
    finish_reason: str = "stop",
) -> ParsedReply:
    """Read a judge's reply on the candidates `labels` (J) and the score `components` (K).

    Every candidate and component must be there, and no other; each score is a number in [low, high], ends included. A
    byte order mark and one leading `<think>` block are dropped. With `finish_reason="length"` only a text that is JSON
    as a whole is read. Lengths of strings are not checked.

    Raises:
        ReplyError: with a `reason` (empty, too_long, cut_off, not_json, ambiguous, too_deep, duplicate_key,
            wrong_shape, missing_candidate, unknown_candidate, missing_component, unknown_component, not_a_number,
            out_of_range, not_unicode) and a message of at most 300 characters that a model can mend its reply by.

    """
    reply = _members(_read(_answer(text), finish_reason), ("overall", "candidates"), "the reply")
    candidates = _members(reply["candidates"], labels, "'candidates'", "candidate")
    comments: list[str] = []
    rows: list[tuple[float, ...]] = []
    for label in labels:
        place = f"candidate {_shown(label)}"
        candidate = _members(candidates[label], ("comment", "scores"), place)
        comments.append(_text(candidate["comment"], f"the comment of {place}"))
        scores = _members(candidate["scores"], components, f"the scores of {place}", "component")
        rows.append(tuple(_score(scores[name], low, high, f"{place}, {_shown(name)}") for name in components))
    return ParsedReply(_text(reply["overall"], "'overall'"), tuple(comments), tuple(rows))


def reply_schema(
    labels: Sequence[str],
    components: Sequence[str],
    *,
    low: float = 0,
    high: float = 10,
    comment_chars: int = 400,
    overall_chars: int = 600,
) -> dict[str, Any]:
    """JSON schema of a reply on the candidates `labels` and the score `components`, each in [low, high].

    Keys stand in the order in which they are to be written: text before numbers, so that a score follows from its
    comment. `comment_chars` and `overall_chars` bound the strings, in characters.
    """
    scores = _object({name: {"type": "number", "minimum": low, "maximum": high} for name in components})
    candidate = _object({"comment": _bounded(comment_chars), "scores": scores})
    return _object({"overall": _bounded(overall_chars), "candidates": _object(dict.fromkeys(labels, candidate))})


def _object(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _bounded(chars: int) -> dict[str, Any]:
    # Not maxLength: under it the grammar engine xgrammar forbids quotation marks and newlines in the string. Under this
    # pattern it permits their escapes.
    return {"type": "string", "pattern": rf"^[^\u0000-\u0009\u000b-\u001f]{{0,{chars}}}$"}


# ---- reading: from text to one JSON value


@dataclass(frozen=True, slots=True)
class _Number:
    """A number as it was written. Equal to another of the same value."""

    literal: str = field(compare=False)
    value: float


@dataclass(frozen=True, slots=True)
class _Mark:
    """Neither text nor number: a bracket, or NaN and Infinity, which Python's decoder knows and JSON does not."""

    literal: str


def _number(literal: str) -> _Number:
    return _Number(literal, float(literal))  # not int(): it refuses long literals


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise _error("duplicate_key", f"The key {_shown(twice)} stands twice in one object.")
    return members


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_float=_number,
    parse_int=_number,
    parse_constant=_Mark,
    strict=False,  # a raw newline inside a string is taken as said
)
_THINKING = re.compile(r"<think>(.*?</think>)?", re.DOTALL)
_PROSE_MARK = re.compile(r"`{3,}|\[\s*+\{|[{}]")
_ARRAY_END = re.compile(r"\s*+\]")
_STRING = r""" "[^"\\]*+(?:\\.[^"\\]*+)*+" | '[^'\\]*+(?:\\.[^'\\]*+)*+' """
_COMMENT = r" //[^\n]*+ | \#[^\n]*+ | /\*.*?\*/ "
_WORD = r"""(?:(?!//|/\*)[^\s"'{}\[\](),:\#])++"""
_FLAGS = re.VERBOSE | re.DOTALL | re.ASCII
_BRACKET = re.compile(
    rf"""(?:[^"'{{}}\[\]/\#]++ | {_STRING} | {_COMMENT} | /(?![/*]))*+ (?P<bracket>[{{}}\[\]])?""", _FLAGS
)
"""Up to the next bracket outside strings and comments; None when a string or a comment never ends."""
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


def _answer(text: str) -> str:
    """The text without what stands around or before the answer."""
    text = text.strip().lstrip("\ufeff").strip()
    if len(text) > MAX_CHARS:
        raise _error("too_long", f"The reply has {len(text)} characters; at most {MAX_CHARS} are read.")
    if thinking := _THINKING.match(text):
        if thinking[1] is None:
            raise _error("cut_off", "The reply ends inside <think>; the JSON object is missing.")
        text = text[thinking.end() :].strip()
    if not text:
        raise _error("empty", "The reply is empty; a JSON object was asked for.")
    return text


def _read(text: str, finish_reason: str) -> object:
    try:
        return _decode(text)
    except json.JSONDecodeError:
        if finish_reason == "length":
            raise _error("cut_off", "The reply was cut off at the length limit; be shorter.") from None
    # The same object said twice is one. A fence gives no precedence: it may hold the answer or an example of one.
    objects = [group for group in dict.fromkeys(_outermost(text)) if _may_be_object(group)]
    if not objects:
        raise _error("not_json", "The reply holds no JSON object.")
    return _mended(objects[0]) if len(objects) == 1 else _agreed(objects)


def _decode(text: str) -> object:
    try:
        return cast("object", _DECODER.decode(text))
    except RecursionError:
        raise _error("too_deep", "The reply is nested too deeply.") from None


def _outermost(text: str) -> Iterator[str]:
    """The outermost {...} groups of the text. Raises at the first one that is not closed, and at an open fence."""
    position, marks, fenced = 0, 0, False
    while mark := _PROSE_MARK.search(text, position):
        position = mark.end()
        if mark[0] == "}":
            raise _error("not_json", "The reply closes an object that it never opened.")
        if mark[0] == "{":
            position = _group_end(text, mark.start())
            yield text[mark.start() : position]
        if mark[0].startswith("[") or (mark[0] == "{" and _ARRAY_END.match(text, position)):
            raise _error("wrong_shape", "The reply is a list; one JSON object was asked for.")
        marks += 1
        if marks > _MAX_MARKS:
            raise _error("not_json", "The reply is full of braces or fences; give one JSON object and nothing else.")
        fenced ^= mark[0].startswith("`")
    if fenced:
        raise _error("cut_off", "The reply ends inside a fenced block.")


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
            raise _error("too_deep", "The reply is nested too deeply.")
    raise _error("cut_off", "The reply ends inside an object: a brace or a quotation mark is not closed.")


def _may_be_object(group: str) -> bool:
    """Whether the group is an object, sound or damaged, rather than prose such as {1, 2}."""
    return any(mark in group for mark in "\"':") or not group[1:-1].strip()


def _agreed(objects: list[str]) -> object:
    """The value that all objects have. A damaged one among several is not mended: nobody knows which is meant."""
    if len(objects) <= _MAX_OBJECTS:
        with suppress(json.JSONDecodeError):
            first, *others = map(_decode, objects)
            if all(other == first for other in others):
                return first
    raise _error("ambiguous", "The reply holds several objects that differ; give one JSON object and nothing else.")


# ---- mending: an object with harmless damage


class _Mismatch(Exception):
    """The mended value is not what stands in the text."""


def _mended(group: str) -> object:
    try:
        return _decode(group)
    except json.JSONDecodeError as error:
        with suppress(_Mismatch):
            return _repaired(group)
        damage = f"{error.msg} near {_shown(group[max(error.pos - 15, 0) : error.pos + 15])}"
        raise _error("not_json", f"The reply is not valid JSON: {damage}.") from None


def _repaired(group: str) -> object:
    if len(group) > _MAX_REPAIR_CHARS:
        raise _Mismatch
    tokens = list(_tokens(group))
    try:
        value: object = json_repair.loads(group, skip_json_loads=True)
    except Exception as error:  # whatever a third party's parser meets in arbitrary text, the text stays unreadable
        raise _Mismatch from error
    return _align(value, iter(tokens))  # the brace that closes the value is the last token of the group


def _tokens(group: str) -> Iterator[object]:
    """What the text says, in order: brackets as `_Mark`, numbers as `_Number`, strings decoded."""
    for token in _TOKEN.finditer(group):
        if token.lastgroup == "bracket":
            yield _Mark(token[0])
        elif token.lastgroup == "number":
            yield _number(token[0])
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
        return cast("str", _DECODER.decode(f'"{body}"'))
    except json.JSONDecodeError:
        raise _Mismatch from None


def _align(value: object, tokens: Iterator[object]) -> object:
    """The value with its numbers as they were written, if its tokens are the next of `tokens`."""
    if isinstance(value, dict):
        _expect(_Mark("{"), tokens)
        members: dict[str, object] = {}
        for key, member in cast("dict[str, object]", value).items():
            _expect(key, tokens)
            members[key] = _align(member, tokens)
        _expect(_Mark("}"), tokens)
        return members
    if isinstance(value, list):
        _expect(_Mark("["), tokens)
        items = [_align(item, tokens) for item in cast("list[object]", value)]
        _expect(_Mark("]"), tokens)
        return items
    said = next(tokens, None)
    plain = said.value if isinstance(said, _Number) else said
    if isinstance(value, bool) or value is None or plain != value:
        raise _Mismatch
    return said


def _expect(wanted: object, tokens: Iterator[object]) -> None:
    if next(tokens, None) != wanted:
        raise _Mismatch


# ---- checking: from a JSON value to what was asked for


def _members(value: object, names: Sequence[str], place: str, kind: str = "key") -> dict[str, object]:
    """The members of an object that has exactly these keys, each standing for a `kind`."""
    if not isinstance(value, dict):
        raise _error("wrong_shape", f"Instead of an object with one member a {kind}, {place} is {_shown(value)}.")
    members = cast("dict[str, object]", value)
    missing, unknown = ("wrong_shape",) * 2 if kind == "key" else (f"missing_{kind}", f"unknown_{kind}")
    for name in (*names, *members):
        if name not in members:
            raise _error(missing, f"The {kind} {_shown(name)} is missing in {place}.")
        if name not in names:
            raise _error(unknown, f"The {kind} {_shown(name)} was not asked for; it stands in {place}.")
    return members


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise _error("wrong_shape", f"Instead of a string, {place} is {_shown(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _error("not_unicode", f"Half a surrogate pair stands in {place}; it is no character.") from None
    return value


def _score(value: object, low: float, high: float, place: str) -> float:
    if not isinstance(value, _Number):
        raise _error("not_a_number", f"The score of {place} must be a number, not {_shown(value)}.")
    if not _is_within(value, low, high):
        raise _error("out_of_range", f"The score of {place} is {_shown(value)}, outside {low:g} to {high:g}.")
    return value.value


def _is_within(number: _Number, low: float, high: float) -> bool:
    """Whether the number is inside as written: 10.00000000000000001 becomes 10.0, which was not said."""
    if low < number.value < high:
        return True
    try:
        return Decimal(low) <= Decimal(number.literal) <= Decimal(high)
    except ArithmeticError:  # an exponent of twenty digits
        return False


def _shown(value: object) -> str:
    """A value in a few words, for a message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:39] + "…")
    literal = value.literal if isinstance(value, _Number | _Mark) else json.dumps(value)
    return literal if len(literal) <= 40 else literal[:39] + "…"


def _error(reason: str, message: str) -> ReplyError:
    # Names of candidates and components are the caller's and may be long, or hold half a surrogate pair.
    return ReplyError(reason, message.encode(errors="replace").decode()[:300])
