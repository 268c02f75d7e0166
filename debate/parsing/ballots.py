"""Reads a ballot from a judge's reply on several candidates: indices from 0, ready for `debate.voting`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import shown, unreadable


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
