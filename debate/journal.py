"""The interface between the runtime and a store: a run's recorded answers by address and attempt, and its evaluations.

Answers are found by the place of their call, never by the order of arrival: a run is resumed by sending them to fresh
flows. `debate.store` implements these protocols in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from debate.evaluation import Evaluation
from debate.flow import Call, Completion, Recall, RunContext
from debate.hashing import digest
from debate.types import Failure, Memory, Task

Address = tuple[int, ...]
"""The path of child positions that leads to a flow, and the call's ordinal there."""
Answer = Completion | Failure | tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class CallKey:
    """Key of a recorded answer within its task."""

    address: Address
    attempt: int = 0
    retry_generation: int = 0
    """Counts up when a failed call is asked again in a later session of the run."""


class Journal(Protocol):
    """Keeps the answers of one task. `put` returns once the answer is safe; only then does the flow go on."""

    def retry_generation(self, address: Address) -> int:
        """The retry generation whose answer counts for a call now."""
        ...

    def get(
        self, key: CallKey, prompt_hash: str, seed: int | None = None, info: Mapping[str, Any] | None = None
    ) -> Answer | None:
        """The recorded answer to that prompt under that seed, or None. A recall has no seed.

        Args:
            key: the place of the call.
            prompt_hash: of its prompt.
            seed: of the call.
            info: of the call: the round and the agent, or the candidate and the sample that it is about.

        Raises:
            RunMismatchError: when what is recorded there was asked with another prompt.
        """
        ...

    async def put(self, key: CallKey, call: Call | Recall, answer: Answer) -> None:
        """Record an answer."""
        ...


class TaskJournal(Journal, Protocol):
    """The recorded answers and evaluation of one task."""

    @property
    def finished(self) -> Evaluation | None:
        """The recorded evaluation under the evaluator's present settings, or None."""
        ...

    async def finish(self, evaluation: Evaluation) -> None:
        """Record the evaluation; returns once it is safe."""
        ...


class RunJournal(Protocol):
    """The record of a run: takes its answers and evaluations, and returns them when it is resumed."""

    @property
    def context(self) -> RunContext:
        """Seed and date, as they were when the run began."""
        ...

    async def open(self, task: Task, settings: str) -> TaskJournal:
        """The journal of a task; a new task is added to the run.

        `settings` is the digest of the evaluator's present settings.

        Raises:
            TaskError: when the task holds what the record cannot keep.
            RunMismatchError: when the run has another task of that id.
        """
        ...


def format_address(address: Address) -> str:
    """An address as text: `0.2.1`."""
    return ".".join(map(str, address))


def recall_hash(request: Recall) -> str:
    """Hash of all that shapes what is recalled, but the memories themselves. The task stands for itself by its id."""
    shaping = {spec.name: getattr(request, spec.name) for spec in fields(request) if spec.name != "task"}
    if request.task is not None:
        shaping["exclude_sources"] = (request.task.id, *request.exclude_sources)
    return digest(shaping)
