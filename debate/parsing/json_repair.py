"""Mends a JSON object with harmless damage, or leaves it unread.

json-repair proposes a value; it counts only if it holds, token for token, what stands in the text. So a repair can drop
a comma or change a kind of quotation mark, but cannot touch a number, move a word, or open or close a container.

It does not know where the text was found; every bracket in it is closed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import cast

from debate.parsing.json_values import NonJsonToken, Number, decode, shown, unreadable

_MAX_CHARS = 8_000  # json-repair needs quadratic time for some texts

FLAGS = re.VERBOSE | re.DOTALL | re.ASCII
STRING = r""" "[^"\\]*+(?:\\.[^"\\]*+)*+" | '[^'\\]*+(?:\\.[^'\\]*+)*+' """
COMMENT = r" //[^\n]*+ | \#[^\n]*+ | /\*.*?\*/ "
"""What hides brackets in damaged JSON, as pieces of a pattern with `FLAGS`."""

_WORD = r"""(?:(?!//|/\*)[^\s"'{}\[\](),:\#])++"""
_TOKEN = re.compile(
    rf"""(?P<gap>[\s,:]++ | {COMMENT})
    | (?P<string>{STRING})
    | (?P<bracket>[{{}}\[\]])
    | (?P<number>-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?=[ \t]*+(?:[\n\r,}}\]]|//|/\*|\#)))
    | (?P<bare>{_WORD}(?:[ \t]++{_WORD})*+)
    | (?P<other>.)""",
    FLAGS,
)
"""The tokens of damaged JSON. `bare` is text without quotation marks; `other` a parenthesis, which json-repair takes
for a tuple of Python, in quadratic time."""


class _Mismatch(Exception):
    """The mended value is not what stands in the text."""


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
    if len(group) > _MAX_CHARS:
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
            yield Number.written(token[0])
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
