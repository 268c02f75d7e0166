"""Brings recorded evaluations to other settings where the recorded answers are enough: no model is loaded for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from debate.backends import Call
from debate.backends.base import Capacity
from debate.errors import BackendUnavailableError
from debate.evaluators.base import Evaluator
from debate.flow import Completion
from debate.runtime.runner import Runner
from debate.store import StoredRun


class _Absent:
    """Stands for a model that is not loaded. Being asked ends the evaluation, which is left for later."""

    capacity = Capacity(slots=1)

    def __init__(self, model: str) -> None:
        self.model = model

    async def start(self) -> None: ...

    async def generate(self, call: Call) -> Completion:
        raise BackendUnavailableError("not loaded")

    async def aclose(self) -> None: ...


def rescore(record: StoredRun, evaluator: Evaluator, settings: str, models: Mapping[str, str]) -> int:
    """Evaluate anew, from the record alone, what was evaluated under other settings; returns how many that was.

    What the record is not enough for, because the debate would go on, stays as it is.

    Args:
        record: the run.
        evaluator: with the settings of now.
        settings: their digest.
        models: the names that calls ask for, and the models' own.

    Raises:
        RunMismatchError, StoreError: as the run itself would.
    """
    runner = Runner({name: _Absent(model) for name, model in models.items()}, record.context)
    return sum(asyncio.run(_all(record, runner, evaluator, settings)))


async def _all(record: StoredRun, runner: Runner, evaluator: Evaluator, settings: str) -> Iterable[bool]:
    done: list[bool] = []
    for task in record.stale(settings):
        kept = await record.open(task, settings)
        try:
            evaluation = await runner.evaluate(evaluator, task, kept, record.context)
        except BackendUnavailableError:
            done.append(False)
            continue
        await kept.finish(evaluation)
        done.append(True)
    return done
