"""The forms of a reply: texts that follow a sample's prompt, what of each is learnt, and how much it counts.

The named reply counts most, so that it stays the likeliest where no grammar says which form is wanted; the compact
templates name none. Knows nothing of tokens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from judging.samples import LABELS, Sample
from judging.talk import COMPONENTS, Said

NAMED, OTHER, CELL, SILENT = 1.0, 0.35, 0.5, 0.1
"""Weights of a token of the named reply, of another reply, of a cell's score, and of one that nobody spoke before."""


@dataclass(frozen=True)
class Text:
    """What follows a prompt: `before` is given, `learnt` is to follow."""

    before: str
    learnt: str
    weight: float
    ends: bool = False
    """Whether the end of the reply is learnt as well."""


def texts(sample: Sample) -> dict[str, list[Text]]:
    """All forms of the ideal reply by name, and every cell of it read out, after the comments and without a word."""
    said = sample.said
    cells = [(j, k, str(score)) for j, row in enumerate(said.scores) for k, score in enumerate(row)]
    return {
        "named": [Text("", said.reply(LABELS), NAMED, ends=True)],
        "compact": [Text("", said.reply(LABELS, "compact"), OTHER, ends=True)],
        "comments": [Text("", said.reply(LABELS, "none"), OTHER, ends=True)],
        "cells": [Text(continuation(said, j, k), score, CELL) for j, k, score in cells],
        "silent": [Text(continuation(None, j, k), score, SILENT) for j, k, score in cells],
    }


def continuation(said: Said | None, j: int, k: int, labels: Sequence[str] = LABELS) -> str:
    comments = said.comments if said else ("",) * len(labels)
    overall = said.overall if said else ""
    parts = [f'"{label}":{{"comment":{json.dumps(comments[i])}' for i, label in enumerate(labels[: j + 1])]
    return (
        '{"overall":' + json.dumps(overall) + ',"candidates":{' + "},".join(parts) + f',"scores":{{"{COMPONENTS[k]}":'
    )
