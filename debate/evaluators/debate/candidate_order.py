"""The order and the labels in which each agent sees the candidates.

Models favor places in a list, so the order is a parameter of the debate. Score tensors always stay in the task's own
order.
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
        """Label -> candidate index, in the order that agent `agent` (index) sees."""
        return {self.labels[j]: j for j in self.orders[agent]}


def base_order(kind: CandidateOrder, n_candidates: int, seed: int) -> tuple[int, ...]:
    """The debate's order of candidate indices: the task's own for `fixed`, otherwise drawn by the seed."""
    if kind == "fixed":
        return tuple(range(n_candidates))
    return tuple(int(j) for j in np.random.default_rng(seed).permutation(n_candidates))


def arrange(base: Sequence[int], n_agents: int, *, rotate: bool) -> Ordering:
    """Labels in the base order, and each agent's order: the base order, with `rotate` shifted by i places for agent i.

    A label belongs to its candidate throughout the debate, so that agents with different orders speak of the same
    candidates.
    """
    n = len(base)
    labels = [""] * n
    for place, j in enumerate(base):
        labels[j] = label(place)
    orders = [tuple(base[(place + (i if rotate else 0)) % n] for place in range(n)) for i in range(n_agents)]
    return Ordering(tuple(labels), tuple(orders))


def label(place: int) -> str:
    """The label of a place, from 0: A, B, ..., Z, AA, AB, ..."""
    letters = ""
    place += 1
    while place:
        place, letter = divmod(place - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters
