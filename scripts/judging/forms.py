"""The forms of a reply: texts that follow a sample's prompt, what of each is learnt, and how much it counts.

The named reply counts most, so that it stays the likeliest where no grammar says which form is wanted; the compact
templates name none. Knows nothing of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from debate.parsing.debate_reply import ParsedReply
from judging.questions import Asked
from judging.samples import Sample

NAMED, OTHER, CELL, SILENT = 1.0, 0.35, 0.5, 0.1
"""Weights of a token of the named reply, of another reply, of a cell's score, and of one that nobody spoke before."""
OTHERS = ("compact", "comments", "cells", "silent")
"""Forms beside the named one."""


@dataclass(frozen=True)
class Text:
    """What follows a prompt: `before` is given, `learnt` is to follow."""

    before: tuple[str, ...]
    """In the parts that the engine encodes one by one."""
    learnt: str
    weight: float
    ends: bool = False
    """Whether the end of the reply is learnt as well."""


def texts(sample: Sample | Asked, forms: tuple[str, ...] = OTHERS) -> dict[str, list[Text]]:
    """The ideal reply by the name of its form, and every cell of it read out, after the comments and without a word.

    forms: those beside the named one that are wanted.
    """
    if isinstance(sample, Asked):
        return {"asked": [Text((), sample.reply, NAMED, ends=True)]}
    said, labels = sample.said, sample.labels
    if not said.comments:
        return {"abstained": [Text((), sample.reply, NAMED, ends=True)]}
    parsed = ParsedReply(said.overall, said.comments, said.scores)
    found = {"named": [Text((), said.reply(labels), NAMED, ends=True)]}
    if "compact" in forms:
        found["compact"] = [Text((), said.reply(labels, "compact"), OTHER, ends=True)]
    if "comments" in forms or "cells" in forms:
        found["comments"] = [Text((), said.reply(labels, "none"), OTHER, ends=True)]
    if "cells" in forms:
        found["cells"] = _cells(sample, parsed, CELL)
    if "silent" in forms:
        found["silent"] = silent(sample, SILENT)
    return found


def silent(sample: Sample, weight: float = 1.0) -> list[Text]:
    """Every cell read out without a word."""
    return _cells(sample, None, weight)


def _cells(sample: Sample, reply: ParsedReply | None, weight: float) -> list[Text]:
    scores = [str(score) for row in sample.said.scores for score in row]
    return [Text(before, score, weight) for before, score in zip(sample.form.continuations(reply), scores, strict=True)]
