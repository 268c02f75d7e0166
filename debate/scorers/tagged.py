"""F1 of two scores that a judge wrote between tags, as graph-of-thoughts judges merged documents.

It does not know what the two scores stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from debate.errors import ConfigError, ReplyError
from debate.parsing.json_values import unreadable
from debate.parsing.text import read_number, tagged
from debate.scorers.scales import F1, scored_on


@scored_on(F1)
def tagged_f1(reply: str | Sequence[str], tags: Sequence[str]) -> float:
    """F1 of the two scores between two tags, `2ab / (a + b)`, on 0..10; 10 is perfect, 0 when either is 0.

        <Redundancy>8</Redundancy> ... <Retained>6</Retained>        6.857

    reply: the judge's reply, or several samples of it; then a and b are the means over those that can be read, both
    scores of each. tags: their two names, without brackets.

    Raises:
        ReplyError: when no sample can be read; with the reason of the last (no_tag, not_a_number, out_of_range, ...).
        ConfigError: when there are not two tags.
    """
    if isinstance(tags, str) or len(tags) != 2:
        raise ConfigError(f"must be two names, got {tags!r}", field="tags")
    replies = [reply] if isinstance(reply, str) else list(reply)
    pairs: list[tuple[float, float]] = []
    fault = unreadable("empty", "There is no reply to read.")
    for text in replies:
        try:
            pairs.append((_score(text, tags[0]), _score(text, tags[1])))
        except ReplyError as error:
            fault = error
    if not pairs:
        raise fault
    a, b = (fmean(scores) for scores in zip(*pairs, strict=True))
    return 2 * a * b / (a + b) if a + b else 0.0


def _score(text: str, tag: str) -> float:
    return read_number(tagged(text, tag), F1.low, F1.high)
