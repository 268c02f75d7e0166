"""How the cells of a turn come by their scores: as they were written, or read from the probabilities of the labels.

An agent writes of the candidates in the order in which they are shown to it; what is read is in the task's own order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from debate.evaluators.base import Readout
from debate.flow import Block, Flow, Generate, Parsed, ReadOut, Segment, generate
from debate.parsing.debate_reply import ParsedReply, ReplyForm
from debate.scoring.distributions import LEAST_MASS, expectation_of
from debate.types import Distributions, Failure, FloatArray, LabelDistribution

_NAMED = 3
"""Cells that a message names."""


class Cells(NamedTuple):
    """What was read of a turn's cells: scores, or the failure that left all of them unscored."""

    scores: FloatArray
    """(J, K); NaN = unscored."""
    distributions: Distributions = ()
    """Of which the scores are the expectations; empty where they were not read out."""
    failure: Failure | None = None
    tokens: int = 0
    """What reading them took besides the reply, in prompt and completion tokens."""


@dataclass(frozen=True)
class Reader:
    """Reads the scores of one agent's turns."""

    readout: Readout
    form: ReplyForm
    """Of the agent's replies, with the labels in the order of the candidates."""
    order: tuple[int, ...]
    """Candidate index by place shown, (J,)."""

    @cached_property
    def shown(self) -> ReplyForm:
        """The form with the labels in the order shown, in which a reply is written."""
        return replace(self.form, labels=tuple(self.form.labels[j] for j in self.order))

    def cells(self, asked: Parsed[ParsedReply], ask: Callable[[ReadOut], Generate]) -> Flow[Cells]:
        """The cells of the turn that was asked for.

        ask: makes the call of a read-out, with the prompt of the turn.
        """
        reply = asked.value
        if reply is None or reply.is_silent:
            return self._unscored(asked.failure)
        if self.readout == "cells":
            return (yield from self.read_out(reply, ask))
        if self.readout == "expected":
            return self._read_at(reply.places, asked.distributions)
        return Cells(np.array(reply.scores, dtype=np.float64))

    def read_out(self, reply: ParsedReply | None, ask: Callable[[ReadOut], Generate]) -> Flow[Cells]:
        """All cells, read at once after the comments of a reply, or without a word."""
        answer = yield from generate(ask(ReadOut(self.form.score_labels, self._continuations(reply))))
        if isinstance(answer, Failure):
            return self._unscored(answer)
        n_components, place = len(self.form.components), {j: n for n, j in enumerate(self.order)}
        places = [[place[j] * n_components + k for k in range(n_components)] for j in range(len(place))]  # (J, K)
        return self._read_at(places, answer.distributions)._replace(tokens=answer.usage.total_tokens)

    def _continuations(self, reply: ParsedReply | None) -> tuple[tuple[Block, ...], ...]:
        """One for each cell, in the order shown, of blocks that they share, so that each is encoded once."""
        if reply is not None:
            reply = replace(reply, comments=tuple(reply.comments[j] for j in self.order))
        parts = list(self.shown.continuations(reply))
        blocks = {part: Block([Segment(part, is_content=True)]) for part in set(chain.from_iterable(parts))}
        return tuple([tuple([blocks[part] for part in said]) for said in parts])

    def _read_at(self, places: Sequence[Sequence[int]], read: Sequence[LabelDistribution]) -> Cells:
        """The cells (J, K) whose distributions stand at these places of what was read."""
        if (missing := 1 + max(map(max, places)) - len(read)) > 0:
            message = f"the backend gave no probabilities at {missing} of the places that a reply has"
            return self._unscored(Failure("no_distributions", message))
        distributions = tuple(tuple(read[n] for n in row) for row in places)
        is_lost = all(cell.mass < LEAST_MASS for row in distributions for cell in row)
        failure = low_mass(distributions, self.form.components) if is_lost else None
        return Cells(expectation_of(distributions), distributions, failure)

    def _unscored(self, failure: Failure | None) -> Cells:
        return Cells(np.full((len(self.order), len(self.form.components)), np.nan), failure=failure)


def low_mass(distributions: Distributions, components: Sequence[str]) -> Failure | None:
    """The failure that names the cells whose labels had too little of the model's probability; None without any."""
    low = [
        f"candidate {j + 1}, {component} ({cell.mass:.2g})"
        for j, row in enumerate(distributions)
        for component, cell in zip(components, row, strict=True)
        if cell.mass < LEAST_MASS
    ]
    if not low:
        return None
    more = f" and {len(low) - _NAMED} more" if len(low) > _NAMED else ""
    message = f"the labels had less than {LEAST_MASS:g} of the model's probability: {'; '.join(low[:_NAMED])}{more}"
    return Failure("label_mass", message)
