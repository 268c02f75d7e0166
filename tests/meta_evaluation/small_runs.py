"""Small runs of scripted judges, and tasks whose scores and labels are planted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from debate import Scale
from debate.backends import Call, Scripted
from debate.dataset.evalset import EvalSet
from debate.dataset.labels import labels_of
from debate.evaluators.base import Evaluator
from debate.jobs.run import Run
from debate.jobs.run_directory import RunDirectory
from debate.meta_evaluation.aggregation import choice_of
from debate.meta_evaluation.judged import Judged, JudgedRun, Shown, read_run
from debate.scoring import softmax
from debate.testing import SilentListener, reply_for
from debate.types import Usage


def scripted_run(
    folder: Path, tasks: Sequence[Mapping[str, Any]], evaluator: Evaluator, reply: Callable[[Call], str] = reply_for
) -> JudgedRun:
    """A run in `folder` whose scores are drawn by the seeds of the calls, or are as `reply` has them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    job = Run(evalset=EvalSet(folder / "tasks.jsonl"), folder=folder, evaluator=evaluator)
    job.execute({"scripted": Scripted(reply)}, SilentListener())
    return read_run(folder)


def rubric(n: int) -> list[dict[str, Any]]:
    """Components of one task: `own`, and another that no other task has."""
    names = {"own": 0.25, f"of {n}": 0.5}
    return [{"name": name, "description": "How it is.", "weight": weight} for name, weight in names.items()]


def judged(
    scores: Sequence[float],
    /,
    *,
    task_id: str = "t",
    choice: Sequence[int] | None = None,
    tensor: ArrayLike | None = None,
    agents: Sequence[str] = (),
    components: Sequence[str] = (),
    orders: Sequence[Sequence[int]] = (),
    lengths: Sequence[float] | None = None,
    order_agreement: bool | None = None,
    status: str = "ok",
    unread: int = 0,
    members: Sequence[Judged] = (),
    **metadata: Any,
) -> Judged:
    """An evaluated task with these scores, and what people say of it in its metadata.

    orders: of each agent, in every round. unread: how many of the first turns could not be read.
    """
    given = np.array(scores, dtype=float)  # (J,)
    cells = None if tensor is None else np.array(tensor, dtype=float)  # (R, I, J, K)
    rounds = 0 if cells is None else len(cells)
    turns = [(r, i, tuple(order)) for r in range(rounds) for i, order in enumerate(orders)]
    return Judged(
        task_id=task_id,
        labels=labels_of(metadata, [("", "")] * given.size, task_id),
        metadata=metadata,
        generators=("",) * given.size,
        lengths=np.array(lengths or [1.0] * given.size),
        scores=given,
        choice=choice_of(given) if choice is None else tuple(choice),
        probabilities=softmax(given),
        scale=Scale(),
        tensor=cells,
        agents=tuple(agents),
        components=tuple(components),
        cv=np.zeros(rounds),
        turns=tuple(Shown(r, i, order, n < unread) for n, (r, i, order) in enumerate(turns)),
        status=status,
        stop_reason="",
        order_agreement=order_agreement,
        usage=Usage(),
        members=tuple(members),
    )


def of_agents(right: Sequence[Sequence[int]], task_id: str = "t", best: int | None = 0, **more: Any) -> Judged:
    """A debate about two candidates in which each agent chooses in each round, (R, I), with one component."""
    tensor = np.array([[[[8.0 if j == chosen else 2.0] for j in range(2)] for chosen in row] for row in right])
    names = [f"agent {i}" for i in range(tensor.shape[1])]
    scores = tensor.mean(axis=(0, 1))[:, 0]
    orders = more.pop("orders", [(0, 1)] * len(names))
    return judged(scores.tolist(), task_id=task_id, tensor=tensor, agents=names, components=["c"], orders=orders,
                  best=best, **more)  # fmt: skip


def run_of(tasks: Sequence[Judged], *, debates: bool = False) -> JudgedRun:
    """A run that holds these tasks; of debates with one component, or of an evaluator without a tensor."""
    rules = {"method": "weighted_mean", "quorum": None, "rounds": 3, "convergence": None, "over": "agents"}
    debate = {"evaluator": "debate", "aggregation": {"weights": [1.0], "min_rounds": 1, **rules}}
    identity = {"evaluator": debate if debates else {"evaluator": "value"}}
    return JudgedRun(RunDirectory(Path("runs/first"), "first"), tasks, identity)
