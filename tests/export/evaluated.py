"""Tasks and evaluations to export, and readers of what was exported."""

from __future__ import annotations

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from debate.evaluation import Evaluation
from debate.selection import argmax, tied_best
from debate.types import Candidate, Failure, Memory, Scale, Task, Transcript, Turn

COMPONENTS = ("truth", "style")


def task(n: int, name: str = "t") -> Task:
    return Task("Why?", [Candidate(f"answer {j}", generator=f"m{j}") for j in range(n)], name)


def debated(tensor: Any, *, name: str = "t", members: tuple[Evaluation, ...] = ()) -> Evaluation:
    """An evaluation whose turns hold the tensor, (R, I, J, K); a turn that is all NaN failed."""
    cells = np.array(tensor, dtype=np.float64)
    turns: list[Turn] = []
    for r, i in np.ndindex(*cells.shape[:2]):
        failed = bool(np.isnan(cells[r, i]).all())
        n = cells.shape[2]
        turns.append(
            Turn(
                round=r,
                agent=f"a{i}",
                labels={chr(65 + j): j for j in reversed(range(n))},
                scores=cells[r, i],
                overall="half \ud800 a pair",
                comments=() if failed else tuple(f"c{j}" for j in range(n)),
                failure=Failure("unreadable_reply", "no", r, f"a{i}") if failed else None,
                memories=(Memory("seen before", "id1", "c", 0.5, 0.4, 0.3, math.nan),),
            )
        )
    scores = np.nanmean(cells, axis=(0, 1, 3)) if not np.isnan(cells).all() else np.full(cells.shape[2], np.nan)
    return Evaluation(
        task_id=name,
        evaluator="debate",
        status="ok",
        scores=scores,
        probabilities=np.full(len(scores), 1 / len(scores)),
        selected=0,
        tensor=cells,
        components=COMPONENTS,
        transcript=Transcript(tuple(turns)),
        members=members,
    )


def scored(*scores: float, scale: Scale | None = None, name: str = "t") -> Evaluation:
    values, scale = np.array(scores, dtype=np.float64), scale or Scale()
    rising = values if scale.higher_is_better else -values  # (J,), best highest
    weights = np.where(np.isnan(values), 0.0, np.exp(np.nan_to_num(values) / 10))
    return Evaluation(
        task_id=name,
        evaluator="value",
        status="ok",
        scale=scale,
        scores=values,
        probabilities=weights / max(weights.sum(), 1e-300),
        selected=argmax(rising),
        tied=tied_best(rising),
    )


def rows_of(path: Path) -> list[dict[str, Any]]:
    parquet: Any = import_module("pyarrow.parquet")
    return parquet.read_table(path).to_pylist()


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
