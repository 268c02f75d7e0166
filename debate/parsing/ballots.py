"""Readers of votes: from a judge's reply on several candidates to a choice, a comparison or a ranking.

What they return are indices from 0, ready for `debate.voting`. They know nothing of samples or of adding up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from debate.compat import is_compat
from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import shown, unreadable

_FILLER = r"""(?:[\s:*_`"'(\[{\#]|(?:choice|candidate|option|number|plan|passage|response)\b|no\.)*+"""
_WHOLE = r"(?P<number>[0-9]+)(?![\w/]|[.,][0-9])"
_RANKING = re.compile(r"\[([^\[\]{}]*)\]")


def read_choice(
    reply: str, n_candidates: int, phrase: str = "best choice is", *, compat: Literal["tot"] | None = None
) -> int:
    """Index of the candidate a reply chooses: `The best choice is 2` is 1. What is said last counts.

    The number is the one right after the phrase, which may be in capitals; words such as "candidate", quotation marks
    and the like may stand between.

    With `compat="tot"` it is the last digit after the phrase, wherever and of whatever number: 12 is candidate 2.

    Raises:
        ReplyError: no_choice, or out_of_range when there is no such candidate.
    """
    if is_compat(compat, "tot"):
        found = re.search(re.escape(phrase) + r" .*(?P<number>\d)", reply, re.DOTALL)
    else:
        pattern = re.compile(re.escape(phrase) + r"(?!\w)" + _FILLER + _WHOLE, re.IGNORECASE)
        found = next(reversed(list(pattern.finditer(reply))), None)
    if found is None:
        raise unreadable("no_choice", f"The reply does not say {shown(phrase)} with a number.")
    number = found["number"]
    if len(number) > 9 or not 1 <= int(number) <= n_candidates:
        raise unreadable("out_of_range", f"There is no candidate {shown(number)}, only 1 to {n_candidates}.")
    return int(number) - 1


def read_comparison(
    reply: str,
    better: str = "more coherent passage is",
    equal: str = "two passages are similarly coherent",
    *,
    compat: Literal["tot"] | None = None,
) -> float:
    """Which of two candidates a reply prefers: 0 the first, 1 the second, 0.5 neither.

    `better` is the phrase before the number, 1 or 2, of the preferred one; `equal` says that they are alike. Capitals
    do not matter.

    With `compat="tot"` the first of 1, 2 and equal that is said counts, 12 is a 1, and a reply that says none is -1.

    Raises:
        ReplyError: no_choice, out_of_range, or ambiguous when the reply says several of them.
    """
    if is_compat(compat, "tot"):
        worth = {f"{better} 1": 0.0, f"{better} 2": 1.0, equal: 0.5}
        return next((value for phrase, value in worth.items() if phrase in reply), -1.0)
    pattern = re.compile(re.escape(better) + r"(?!\w)" + _FILLER + _WHOLE, re.IGNORECASE)
    said = {match["number"] for match in pattern.finditer(reply)}
    if equal.casefold() in reply.casefold():
        said.add("equal")
    if not said:
        raise unreadable("no_choice", f"The reply says neither {shown(better)} with a number nor {shown(equal)}.")
    if len(said) > 1:
        raise unreadable("ambiguous", "The reply prefers one candidate and then another; decide.")
    worth = {"1": 0.0, "2": 1.0, "equal": 0.5}
    (one,) = said
    if one not in worth:
        raise unreadable("out_of_range", f"There is no candidate {shown(one)}, only 1 and 2.")
    return worth[one]


def read_ranking(reply: str, labels: Sequence[str]) -> tuple[int, ...]:
    """Indices of the candidates in the order a reply ranks them, best first: `[C, A, B]` or `C > A > B`.

    labels: what each candidate is called, in index order; compared without capitals. The list may stand among words;
    an order with `>` is a line of its own. A ranking may be partial.

    Raises:
        ReplyError: no_ranking, ambiguous when several lists differ, empty, unknown_candidate or duplicate.
    """
    lists = dict.fromkeys(_items(match[1], ",") for match in _RANKING.finditer(reply))
    lines = (line.rpartition(":")[2] for line in reply.splitlines() if ">" in line and "<" not in line)
    orders = dict.fromkeys(_items(line, ">") for line in lines)
    found = list(lists or orders)
    if not found:
        raise unreadable("no_ranking", "The reply holds no list of candidates such as [B, A].")
    if len(found) > 1:
        raise unreadable("ambiguous", "The reply holds several rankings that differ; give one.")
    if found[0] == ("",):
        raise unreadable("empty", "The ranking is empty.")
    index = {label.casefold(): j for j, label in enumerate(labels)}
    if unknown := [item for item in found[0] if item not in index]:
        raise unreadable("unknown_candidate", f"There is no candidate {shown(unknown[0])}.")
    ranking = tuple(index[item] for item in found[0])
    if len(set(ranking)) < len(ranking):
        raise unreadable("duplicate", "The ranking names a candidate twice.")
    return ranking


def read_json_ballot(
    reply: str, key: str, labels: Mapping[str, int], *, finish_reason: str = "stop", tie: str | None = None
) -> tuple[int, ...]:
    """Indices of the candidates under a key of the one JSON object in a reply: `B > A`, one label, or a list of them.

    labels: {label: index}; compared without capitals. What `tie` names is a ballot that prefers none, `()`.

    Raises:
        ReplyError: as `extract_json`; missing_key, no_ranking, unknown_candidate or duplicate.
    """
    value = extract_json(reply, finish_reason=finish_reason)
    members = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if key not in members:
        raise unreadable("missing_key", f"The reply must be an object with {shown(key)}.")
    said = members[key]
    if isinstance(said, str) and ">" in said:
        said = said.split(">")
    named = cast("list[object]", said) if isinstance(said, list) else [said]
    if not named:
        raise unreadable("no_ranking", f"{shown(key)} names no candidate.")
    known = {label.casefold(): j for label, j in labels.items()}
    words = [item.strip().casefold() if isinstance(item, str) else None for item in named]
    if tie is not None and words == [tie.casefold()]:
        return ()
    for item, word in zip(named, words, strict=True):
        if word not in known:
            raise unreadable("unknown_candidate", f"There is no candidate {shown(item)}, only {', '.join(labels)}.")
    ranking = tuple(known[word] for word in words if word is not None)
    if len(set(ranking)) < len(ranking):
        raise unreadable("duplicate", f"{shown(key)} names a candidate twice; name each once.")
    return ranking


def _items(text: str, separator: str) -> tuple[str, ...]:
    return tuple(item.strip(" \t\r\n*_`\"'.").casefold() for item in text.split(separator))
