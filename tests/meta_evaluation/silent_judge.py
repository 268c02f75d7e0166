"""A scripted judge whose silent rounds are sure of the first candidate of most tasks, and in doubt on every fifth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from debate.backends import Call, Scripted
from debate.dataset.evalset import EvalSet
from debate.evaluators.base import Evaluator
from debate.flow import Completion
from debate.jobs.run import Run
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.scoring.distributions import distribution_of
from debate.testing import SilentListener, reply_for

DOUBT = 5


def tasks(n: int, *, is_labeled: bool = True) -> list[dict[str, Any]]:
    """Tasks `t0`, `t1`, ...; people prefer the first candidate."""
    label: dict[str, Any] = {"metadata": {"best": 0}} if is_labeled else {}
    return [{"id": f"t{k}", "x": f"{k}?", "candidates": ["good", "bad"], **label} for k in range(n)]


def judge(call: Call) -> Any:
    """A silent read-out; turns as `reply_for` has them."""
    if call.info.get("moment") is None:
        return reply_for(call)
    assert call.read_out is not None
    order = list(call.info["labels"].values())
    number, each = int(str(call.info["task_id"])[1:]), len(call.read_out.continuations) // len(order)
    sure = 0.5 if number % DOUBT == 0 else 0.9 + 0.001 * (number % 50)
    found = [{"9": sure, "3": 1 - sure} if j == 0 else {"9": 1 - sure, "3": sure} for j in order for _ in range(each)]
    return Completion("", distributions=tuple(distribution_of(shares) for shares in found))


def silent_run(
    folder: Path,
    given: Sequence[Mapping[str, Any]],
    evaluator: Evaluator,
    script: Callable[[Call], Any] = judge,
    backends: Mapping[str, Scripted] | None = None,
) -> JudgedRun:
    """A run of that judge."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in given))
    job = Run(evalset=EvalSet(folder / "tasks.jsonl"), folder=folder, evaluator=evaluator)
    job.execute(backends or {"scripted": Scripted(script)}, SilentListener())
    return read_run(folder)
