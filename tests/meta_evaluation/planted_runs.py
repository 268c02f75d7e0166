"""Runs whose scores are planted: the judges say what they are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.jobs.control import control_job
from debate.jobs.run import Run
from debate.jobs.run_directory import RunDirectory
from debate.testing import SilentListener
from tests.small_flows import debates

Planted = Mapping[str, Sequence[float] | None]


def planted_run(folder: Path, tasks: Sequence[Mapping[str, Any]], scores: Planted, **settings: Any) -> Path:
    """A run of debates in which every cell of a task's candidate is its planted score; None fails the task."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tasks.jsonl"
    file.write_text("".join(json.dumps(task) + "\n" for task in tasks))

    evaluator = debates(**{"rounds": 1, "retries": 0, **settings})
    job = Run(evalset=EvalSet(file), folder=folder, evaluator=evaluator)
    job.execute({"s": Scripted(_script(scores))}, SilentListener())
    return folder


def planted_control(folder: Path, scores: Planted) -> None:
    """The control of such a run."""
    backends = {"s": Scripted(_script(scores))}
    job, _ = control_job(RunDirectory.existing(folder), debates(rounds=1, retries=0), backends, RunSettings())
    job.execute(backends, SilentListener())


def _script(scores: Planted) -> Callable[[Call], str]:
    def reply(call: Call) -> str:
        said = scores[call.info["task_id"]]
        return "no" if said is None else _reply(call, said)

    return reply


def _reply(call: Call, said: Sequence[float]) -> str:
    candidates: dict[str, Any] = {
        label: {"comment": f"Worth {said[j]:g}.", "scores": {"clarity": said[j], "truth": said[j]}}
        for label, j in call.info["labels"].items()
    }
    return json.dumps({"overall": "Read.", "candidates": candidates})


def tasks_of(n: int, **more: Any) -> list[dict[str, Any]]:
    """Tasks `t0`, `t1`, ... of two candidates; the first is right."""
    return [{"id": f"t{i}", "x": f"{i}?", "candidates": ["yes", "no"], "best": 0, **more} for i in range(n)]
