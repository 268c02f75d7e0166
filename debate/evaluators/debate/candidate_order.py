"""In which order, and under which labels, each agent sees the candidates.

Judges favour places in a list, so the order is a parameter of the debate. Whatever is shown, score tensors stay in
the task's own order. Pure: a seed decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

CandidateOrder = Literal["shuffle", "fixed", "rotate", "balanced"]


@dataclass(frozen=True, slots=True)
class Ordering:
    """Labels by candidate index, and each agent's order of candidate indices."""

    labels: tuple[str, ...]
    """(J,)"""
    orders: tuple[tuple[int, ...], ...]
    """(I, J)"""

    def shown(self, agent: int) -> dict[str, int]:
        """Label -> candidate index, in the order that agent `agent` sees."""
        return {self.labels[j]: j for j in self.orders[agent]}


def base_order(kind: CandidateOrder, n_candidates: int, seed: int) -> tuple[int, ...]:
    """The order a debate starts from: the task's own when `fixed`, otherwise drawn by the seed."""
    if kind == "fixed":
        return tuple(range(n_candidates))
    return tuple(int(j) for j in np.random.default_rng(seed).permutation(n_candidates))


def arrange(base: Sequence[int], n_agents: int, *, rotate: bool) -> Ordering:
    """Labels go by the base order; with `rotate`, agent i sees it turned by i places.

    A label belongs to its candidate throughout the debate, so agents may show different orders and still speak of
    the same candidates.
    """
    n = len(base)
    labels = [""] * n
    for place, j in enumerate(base):
        labels[j] = label(place)
    orders = [tuple(base[(place + (i if rotate else 0)) % n] for place in range(n)) for i in range(n_agents)]
    return Ordering(tuple(labels), tuple(orders))


def label(place: int) -> str:
    """A, B, ..., Z, AA, AB, ...: the label of the candidate at a place, from 0."""
    letters = ""
    place += 1
    while place:
        place, letter = divmod(place - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters
