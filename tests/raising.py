"""Everything of a user's that an engine runs, made to raise: one task of many meets the exception.

Run as a program, it tries every exception in every place, and prints what came of each as a line of JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from debate import CallbackEvaluator, Engine, Evaluation, PanelEvaluator, Scale, Task, ValueEvaluator, VoteEvaluator
from debate.backends import Call, Capacity, Scripted
from debate.evaluators.base import Evaluator, Footprint, RunContext
from debate.flow import Completion, Flow, Recall, recall
from debate.store import Store
from debate.testing import reply_for
from debate.types import Memory
from tests.small_flows import FlowEvaluator, asks, debates, tasks

RAISED = "t3"
"""The task that meets the exception."""


class Odd(BaseException):
    """An exception that is no `Exception`."""


FAULTS: dict[str, Callable[[], BaseException]] = {
    "CancelledError": asyncio.CancelledError,
    "StopIteration": StopIteration,
    "GeneratorExit": GeneratorExit,
    "Odd": Odd,
    "ValueError": ValueError,
}
"""What fails the task that meets it."""
EXITS: dict[str, Callable[[], BaseException]] = {
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": lambda: SystemExit(7),
}
"""What ends the batch and reaches the caller."""


@dataclass
class Place:
    """An engine's arguments and an evaluator, one of which raises for the task `RAISED`."""

    evaluator: Evaluator
    backend: Any = field(default_factory=lambda: Scripted(reply_for))
    memory: Any = None


class OwnBackend(Scripted):
    """A backend that catches nothing."""

    def __init__(self, reply: Callable[[Call], str]) -> None:
        super().__init__(reply)
        self.reply, self.capacity = reply, Capacity(8)

    async def generate(self, call: Call) -> Completion:
        await asyncio.sleep(0)
        return Completion(self.reply(call))


@dataclass(frozen=True)
class Faulty:
    """All kinds of a user's code that raise for the task `RAISED`, and serve the others."""

    error: Callable[[], BaseException]

    def meet(self, task_id: str) -> None:
        if task_id == RAISED:
            raise self.error()

    def script(self, call: Call) -> str:
        self.meet(call.info["task_id"])
        return reply_for(call)

    async def later(self, call: Call) -> str:
        await asyncio.sleep(0.001)
        return self.script(call)

    def function(self, task: Task, _: object) -> float:
        self.meet(task.id)
        return 1.0

    async def afunction(self, task: Task, _: object) -> float:
        await asyncio.sleep(0.001)
        return self.function(task, _)

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        self.meet(task.id)
        return (yield from asks(1).flow(task, run))

    def recalling(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        yield from recall(Recall(queries=(task.id,)))
        return (yield from asks(1).flow(task, run))

    async def recall(self, request: Recall) -> Sequence[Memory]:
        self.meet(request.queries[0])
        return ()

    def size(self, task: Task) -> Footprint:
        self.meet(task.id)
        return Footprint(30, 1, 10)


def places(error: Callable[[], BaseException]) -> dict[str, Place]:
    """All places, by name."""
    faulty = Faulty(error)
    one, other = asks(1), FlowEvaluator(faulty.flow, name="other")
    function = CallbackEvaluator(faulty.function, scale=Scale(0, 10), takes="task")
    afunction = CallbackEvaluator(faulty.afunction, scale=Scale(0, 10), takes="task")
    return {
        "script of a debate": Place(debates(), Scripted(faulty.script)),
        "async script of a debate": Place(debates(), Scripted(faulty.later)),
        "script of a side-by-side debate": Place(debates(mode="simultaneous"), Scripted(faulty.later)),
        "script of a vote": Place(VoteEvaluator(), Scripted(faulty.later)),
        "script of values": Place(ValueEvaluator(), Scripted(faulty.later)),
        "backend": Place(debates(), OwnBackend(faulty.script)),
        "backend of a vote": Place(VoteEvaluator(), OwnBackend(faulty.script)),
        "function": Place(function),
        "async function": Place(afunction),
        "flow": Place(other),
        "footprint": Place(FlowEvaluator(one.body, size=faulty.size)),
        "member of a panel": Place(PanelEvaluator(members={"one": one, "other": other}, formula="unscaled")),
        "function in a panel": Place(PanelEvaluator(members={"one": ValueEvaluator(), "other": afunction})),
        "memory": Place(FlowEvaluator(faulty.recalling), memory=faulty),
    }


def outcome(place: Place, store: Store | None, how: str) -> dict[str, Any]:
    """What became of five tasks: their statuses by id, and what reached the caller instead of a result."""
    found: list[Evaluation] = []
    reached = None
    with Engine(place.backend, memory=place.memory, store=store, max_concurrency=4) as engine:
        try:
            if how == "batch":
                found = engine.evaluate_batch(tasks(5), place.evaluator)
            else:
                for evaluation in engine.iter_evaluate(tasks(5), place.evaluator):
                    found.append(evaluation)
        except BaseException as error:
            reached = type(error).__name__
        after = engine.evaluate(Task("after", ["a", "b"]), place.evaluator).status
    statuses = {evaluation.task_id: evaluation.status for evaluation in found}
    assert len(statuses) == len(found), "a task came back twice"
    errors = {evaluation.task_id: evaluation.error for evaluation in found if evaluation.error}
    return {"statuses": statuses, "errors": errors, "reached": reached, "after": after}


def main() -> None:
    """Try everything, batches with a store and streams without one, and print what came of it."""
    logging.disable(logging.CRITICAL)  # the tracebacks of what is raised here
    with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/s.sqlite") as store:
        for (name, error), how in itertools.product({**FAULTS, **EXITS}.items(), ("batch", "stream")):
            for where, place in places(error).items():
                found = outcome(place, store if how == "batch" else None, how)
                print(json.dumps({"error": name, "where": where, "how": how, **found}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
