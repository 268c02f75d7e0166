"""The forms of a reply: texts that follow a sample's prompt, what of each is learnt, and how much it counts.

The named reply counts most, so that it stays the likeliest where no grammar says which form is wanted; the compact
templates name none. Knows nothing of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from debate.parsing.debate_reply import ParsedReply
from judging.samples import FORM, LABELS, Sample
from judging.talk import Said

NAMED, OTHER, CELL, SILENT = 1.0, 0.35, 0.5, 0.1
"""Weights of a token of the named reply, of another reply, of a cell's score, and of one that nobody spoke before."""


@dataclass(frozen=True)
class Text:
    """What follows a prompt: `before` is given, `learnt` is to follow."""

    before: tuple[str, ...]
    """In the parts that the engine encodes one by one."""
    learnt: str
    weight: float
    ends: bool = False
    """Whether the end of the reply is learnt as well."""


def texts(sample: Sample) -> dict[str, list[Text]]:
    """All forms of the ideal reply by name, and every cell of it read out, after the comments and without a word."""
    said = sample.said
    parsed = ParsedReply(said.overall, said.comments, said.scores)
    return {
        "named": [Text((), said.reply(LABELS), NAMED, ends=True)],
        "compact": [Text((), said.reply(LABELS, "compact"), OTHER, ends=True)],
        "comments": [Text((), said.reply(LABELS, "none"), OTHER, ends=True)],
        "cells": _cells(said, parsed, CELL),
        "silent": _cells(said, None, SILENT),
    }


def _cells(said: Said, reply: ParsedReply | None, weight: float) -> list[Text]:
    scores = [str(score) for row in said.scores for score in row]
    return [Text(before, score, weight) for before, score in zip(FORM.continuations(reply), scores, strict=True)]
