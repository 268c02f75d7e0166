"""Small runs of scripted judges, and tasks whose scores and labels are planted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from debate.backends import Scripted
from debate.dataset.evalset import EvalSet
from debate.evaluators.base import Evaluator
from debate.jobs.run import Run
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.testing import SilentListener, reply_for


def scripted_run(folder: Path, tasks: Sequence[Mapping[str, Any]], evaluator: Evaluator) -> JudgedRun:
    """A run in `folder` whose scores are drawn by the seeds of the calls."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    job = Run(evalset=EvalSet(folder / "tasks.jsonl"), folder=folder, evaluator=evaluator)
    job.execute({"scripted": Scripted(reply_for)}, SilentListener())
    return read_run(folder)
