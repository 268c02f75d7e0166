"""Parses an agent's reply in a debate, and makes the JSON schema that it follows.

{"overall": str, "candidates": {label: {"comment": str, "scores": {component: number}}}}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import Number, shown, unreadable
from debate.parsing.schema import bounded_text, number_in, object_of
from debate.parsing.text import is_within


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
    reply = _members(extract_json(text, finish_reason=finish_reason), ("overall", "candidates"), "the reply")
    candidates = _members(reply["candidates"], labels, "'candidates'", "candidate")
    comments: list[str] = []
    rows: list[tuple[float, ...]] = []
    for label in labels:
        candidate = _members(candidates[label], ("comment", "scores"), "candidate {}", label=label)
        comments.append(_text(candidate["comment"], "the comment of candidate {}", label))
        scores = _members(candidate["scores"], components, "the scores of candidate {}", "component", label)
        rows.append(tuple(_score(scores[name], low, high, label, name) for name in components))
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
    comment. `comment_chars` and `overall_chars` bound the strings, in characters. Equal arguments give the same object,
    which is not to be changed: hashes and requests encode it once.
    """
    return _schema(tuple(labels), tuple(components), low, high, comment_chars, overall_chars)


@lru_cache(maxsize=64, typed=True)  # 0 and 0.0 are equal, and not the same JSON
def _schema(
    labels: tuple[str, ...],
    components: tuple[str, ...],
    low: float,
    high: float,
    comment_chars: int,
    overall_chars: int,
) -> dict[str, Any]:
    scores = object_of({name: number_in(low, high) for name in components})
    candidate = object_of({"comment": bounded_text(comment_chars), "scores": scores})
    candidates = object_of(dict.fromkeys(labels, candidate))
    return object_of({"overall": bounded_text(overall_chars), "candidates": candidates})


def _members(value: object, names: Sequence[str], place: str, kind: str = "key", label: str = "") -> dict[str, object]:
    """The members of an object that has exactly these keys, each standing for a `kind`.

    place: where the object stands, with `{}` for the candidate's label.
    """
    if isinstance(value, dict) and value.keys() == set(names):
        return cast("dict[str, object]", value)
    place = place.format(shown(label))
    if not isinstance(value, dict):
        raise unreadable("wrong_shape", f"Instead of an object with one member a {kind}, {place} is {shown(value)}.")
    members = cast("dict[str, object]", value)
    missing, unknown = ("wrong_shape",) * 2 if kind == "key" else (f"missing_{kind}", f"unknown_{kind}")
    for name in (*names, *members):
        if name not in members:
            raise unreadable(missing, f"The {kind} {shown(name)} is missing in {place}.")
        if name not in names:
            raise unreadable(unknown, f"The {kind} {shown(name)} was not asked for; it stands in {place}.")
    return members


def _text(value: object, place: str, label: str = "") -> str:
    if not isinstance(value, str):
        raise unreadable("wrong_shape", f"Instead of a string, {place.format(shown(label))} is {shown(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        problem = f"Half a surrogate pair stands in {place.format(shown(label))}; it is no character."
        raise unreadable("not_unicode", problem) from None
    return value


def _score(value: object, low: float, high: float, label: str, component: str) -> float:
    if isinstance(value, Number) and (low < (number := value.value) < high or is_within(value.literal, low, high)):
        return number
    place = f"candidate {shown(label)}, {shown(component)}"
    if not isinstance(value, Number):
        raise unreadable("not_a_number", f"The score of {place} must be a number, not {shown(value)}.")
    raise unreadable("out_of_range", f"The score of {place} is {shown(value)}, outside {low:g} to {high:g}.")
