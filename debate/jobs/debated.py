"""The debates that a run has held so far, as the eval set of its control."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from debate.dataset.build import LocatedTask
from debate.errors import InputError
from debate.hashing import digest
from debate.jobs.run_directory import RunDirectory
from debate.store.serialization import as_task
from debate.types import Task


@dataclass(frozen=True, slots=True)
class Debated:
    """The evaluated tasks of a run, read like an `EvalSet`, and what its control takes over besides.

    Attributes:
        path: the run's folder.
        name: the run's.
        identity: what makes it the same run, with its seed.
        today: the date that its prompts state.
        started_at: the moment to which its memory counts ages.
        tasks: in their order.
        rounds_of: by task id the rounds that its debate took, one number per candidate order of it.
        n_tasks: how many tasks the run has, evaluated or not.
    """

    path: Path
    name: str
    identity: Mapping[str, Any]
    today: str
    started_at: float
    tasks: tuple[Task, ...]
    rounds_of: Mapping[str, tuple[int, ...]]
    n_tasks: int

    @classmethod
    def of(cls, run: RunDirectory) -> Self:
        """Those of a run.

        Raises:
            InputError: when nothing is evaluated yet.
            StoreError: as `RunDirectory.open_store`.
        """
        tasks: list[Task] = []
        rounds_of: dict[str, tuple[int, ...]] = {}
        with run.open_store() as store:
            record = store.read(run.name)
            for task_id, task, evaluation in record.result_data():
                tasks.append(as_task(task_id, task))
                rounds_of[task_id] = rounds_taken(json.loads(evaluation))
            n_tasks = record.n_tasks()
        if not tasks:
            hint = f"`debate resume {run.path}` goes on with the run"
            raise InputError("holds no evaluation yet", file=run.path, hint=hint)
        about = (record.identity, record.context.today, record.started_at)
        return cls(run.path, run.name, *about, tuple(tasks), rounds_of, n_tasks)

    @property
    def recorded(self) -> dict[str, str]:
        """What the control's folder says of it."""
        return {"path": str(self.path)}

    def read(self) -> Self:
        """Begin a pass over the tasks."""
        return self

    def __iter__(self) -> Iterator[LocatedTask]:
        """The tasks in order."""
        return (LocatedTask(task, str(self.path), None) for task in self.tasks)

    def digest(self) -> str:
        """Digest of which tasks these are."""
        return digest([task.id for task in self.tasks])


def rounds_taken(evaluation: Mapping[str, Any]) -> tuple[int, ...]:
    """The rounds of a debate, or of both debates that a balanced one was made from."""
    return tuple(each["rounds_run"] for each in evaluation["members"]) or (evaluation["rounds_run"],)
