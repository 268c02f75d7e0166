"""Reads how likely a model held each label from the likeliest tokens that a server gives for each place of a reply.

A label's probability is that of the tokens that write it, white space before it left out of account: `7` and ` 7` add
up. Where a token begins several labels, as `1` begins 1 and 10, what comes after it tells them apart. Knows nothing of
requests.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, cast

from debate.parsing.places import value_spans
from debate.scoring.distributions import distribution_of
from debate.types import LabelDistribution

Likely = Mapping[str, float]
"""The likeliest next tokens and their probabilities."""

LEAST_UNDECIDED = 1e-3
"""What begins several labels and is less likely than this is counted to none of them: telling them apart may cost a
request."""
_GOES_ON = re.compile(r'[\w{["]')
"""What does not end a label: more of a word, or the beginning of another message."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply, and what was likely in its place, itself included."""

    text: str
    written: bytes
    """What it adds to the reply's ASCII: of other characters it may be a part, which servers show in several ways."""
    likely: Likely


@dataclass(frozen=True, slots=True)
class Place:
    """A place at which a label is due."""

    said: str
    """The reply up to there."""
    known: Mapping[str, Likely] = field(default_factory=dict[str, Likely])
    """What was likely next after each beginning of a label that the reply itself has there."""


def tokens_of(logprobs: object) -> list[Token] | None:
    """The tokens of a chat completion's `logprobs`; None where the server gives none.

    Raises:
        TypeError, ValueError: for what is not as it must be.
    """
    content: object = cast("dict[str, Any]", logprobs).get("content") if isinstance(logprobs, dict) else None
    return [_token(told) for told in cast("list[Any]", content)] if isinstance(content, list) else None


def _token(told: Mapping[str, Any]) -> Token:
    text, written = str(told["token"]), told.get("bytes")
    likely: dict[str, float] = {}
    for each in told.get("top_logprobs") or ():
        likely[each["token"]] = likely.get(each["token"], 0.0) + _probability(each)
    likely.setdefault(text, _probability(told))
    return Token(text, ascii_of(text) if written is None else bytes(each for each in written if each < 128), likely)


def ascii_of(text: str) -> bytes:
    """The text without what is not ASCII."""
    return text.encode("ascii", "ignore")


def _probability(told: Mapping[str, Any]) -> float:
    return math.exp(min(told["logprob"], 0.0))


def places_of(text: str, tokens: Sequence[Token]) -> Iterator[Place]:
    """The places of a reply's values, with what its tokens tell of them: nothing where they do not make up the text."""
    whole, ends = b"".join(token.written for token in tokens), [*accumulate(len(token.written) for token in tokens)]
    offset = whole.rfind(ascii_of(text))
    for start, end in value_spans(text):
        first, stop = (offset + len(ascii_of(text[:n])) for n in (start, end))
        k = bisect_right(ends, first)
        lead = whole[ends[k - 1] if k else 0 : first].decode()
        yield Place(text[:start], _known(tokens[k:], lead, stop - first) if offset >= 0 else {"": {}})


def _known(tokens: Sequence[Token], lead: str, size: int) -> dict[str, Likely]:
    """What was likely at each beginning of a value of `size` characters; its first token begins with `lead`."""
    known: dict[str, Likely] = {}
    said, left, mark = "", size + len(lead), lead.strip()
    for token in tokens:
        text, likely = token.text, token.likely
        if not known and mark:
            text, likely = _plain(text).removeprefix(mark), _less(likely, mark)
        known[said] = likely
        if left <= 0:
            break
        said, left = said + text, left - len(token.written)
    return known


def _less(likely: Likely, mark: str) -> Likely:
    """Those tokens that begin with a mark, without it."""
    found: dict[str, float] = {}
    for text, p in likely.items():
        if (plain := _plain(text)).startswith(mark):
            rest = plain.removeprefix(mark)
            found[rest] = found.get(rest, 0.0) + p
    return found


def _plain(text: str) -> str:
    return ascii_of(text).decode().lstrip()


def read_labels(labels: Sequence[str]) -> Generator[str, Likely, LabelDistribution]:
    """Yield what has been said since the place began; is sent what is likely next, and returns the distribution.

    The first is the empty text, and each further one begins several labels. What ends a label after it counts to that
    label, what leads on to a longer one to that, and anything else to none.
    """
    raw, undecided = dict.fromkeys(labels, 0.0), {"": 1.0}
    while undecided:
        said, p = undecided.popitem()
        for token, share in (yield said).items():
            text, q = (said + token).lstrip(), p * share
            if token and (text or not said) and any(text != label and label.startswith(text) for label in labels):
                if q >= LEAST_UNDECIDED:
                    undecided[said + token] = undecided.get(said + token, 0.0) + q
            elif (label := _ended(text, labels)) is not None:
                raw[label] += q
    return distribution_of(raw)


def _ended(text: str, labels: Sequence[str]) -> str | None:
    """The label that a text writes, with or without what ends it."""
    is_written = (label for label in labels if text.startswith(label) and not _GOES_ON.match(text, len(label)))
    return next(is_written, None)
