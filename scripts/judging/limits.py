"""How often the judge abstains: from tasks outside its world, from those that look like its own, from its own ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from debate import Evaluation, Task
from debate.evaluation import abstained_cells
from judging.arms import Arms
from judging.measuring import share
from judging.outside_held_out import NEAR, OUTSIDE, draw

MOST = 200
_REASON = "every agent abstained"


def outside(arms: Arms, n: int, inside: Sequence[Evaluation]) -> dict[str, Any]:
    """The shares of foreign tasks that are told as such, and of debates in the world in which a score is missing."""
    random = Random(f"held-out-outside-{arms.seed}")
    found: dict[str, Any] = {}
    for name, families in (("outside", OUTSIDE), ("near_misses", NEAR)):
        drawn = draw(random, families, min(MOST, n))
        tasks = [Task(x, candidates, id=f"{name}-{arms.seed}-{i}") for i, (_, x, candidates) in enumerate(drawn)]
        told = [is_told(each) for each in arms.ask(name.replace("_", " "), tasks, arms.evaluator())]
        found[name] = share(told)
        found[f"{name}_by_family"] = _by_family([family for family, *_ in drawn], told)
    return found | {"inside": share([bool(np.isnan(each.scores).any()) for each in inside])}


def is_told(evaluation: Evaluation) -> bool:
    """Whether no candidate has a score because all agents abstained, and the feedback says so."""
    abstained, cells = abstained_cells(evaluation)
    return abstained == cells > 0 and all(_REASON in evaluation.feedback(j) for j in range(len(evaluation.scores)))


def _by_family(families: Sequence[str], told: Sequence[bool]) -> dict[str, float]:
    found: defaultdict[str, list[bool]] = defaultdict(list)
    for family, hit in zip(families, told, strict=True):
        found[family].append(hit)
    return {family: round(sum(hits) / len(hits), 2) for family, hits in found.items()}
