"""The tasks of the shards that this process claims: the source of what its engine evaluates."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence

from debate.store import StoredRun
from debate.store.shards import Shard
from debate.types import Task

_log = logging.getLogger("debate")
_SHORTEST_WAIT, _LONGEST_WAIT = 0.2, 2.0
"""Seconds between two looks whether another worker's shards have come free."""


class ClaimedTasks:
    """What an engine is to evaluate, until nothing is left of the run's plan. Iterated in a thread of the engine's.

    The next shard is claimed when the engine asks for more. Where none is free, but some are not done, the iteration
    waits: they come free when the worker dies that has them.

    Args:
        record: a run that was joined and planned.
        settings: digest of the evaluator's.
        waiting: is called now and then while nothing can be claimed, with how many shards are under way here.
    """

    def __init__(self, record: StoredRun, settings: str, waiting: Callable[[int], None]) -> None:
        self._record = record
        self._settings = settings
        self._waiting = waiting
        self._claimed: dict[int, Shard] = {}
        self._left: dict[int, set[str]] = {}
        """Ids of the tasks of each claimed shard that have no result yet."""
        self._shard_of: dict[str, int] = {}
        self._best: dict[str, Sequence[int]] = {}
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._iteration = 0

    def __iter__(self) -> Iterator[Task]:
        """All tasks that are pending; of an engine that died, those that it left come again."""
        self._iteration += 1
        this, begun, wait = self._iteration, set[int](), _SHORTEST_WAIT
        while this == self._iteration:
            self._changed.clear()
            with self._lock:
                shard = self._next(begun)
                tasks = [] if shard is None else self._tasks(shard)
            if shard is not None:
                begun.add(shard.number)
                yield from tasks
                wait = _SHORTEST_WAIT
            elif not self._record.n_undone():
                return
            else:
                self._waiting(len(self._left))
                self._changed.wait(wait)
                wait = min(2 * wait, _LONGEST_WAIT)

    def best(self, task_id: str) -> Sequence[int]:
        """The label of a task that is not finished: the indices of the right candidates."""
        return self._best[task_id]

    def finished(self, task_id: str) -> None:
        """A task has its result; with the last one of a shard that is done."""
        number = self._shard_of.pop(task_id)
        del self._best[task_id]
        self._left[number].discard(task_id)
        if not self._left[number]:
            self._finish(number)

    def pause(self) -> None:
        """End the iteration, also where it waits; a new one goes on with what is left."""
        self._iteration += 1
        self._changed.set()

    def _next(self, begun: set[int]) -> Shard | None:
        left = [shard for shard in [*self._claimed.values()] if shard.number not in begun]
        shard = left[0] if left else self._record.claim()
        if shard is not None:
            self._claimed[shard.number] = shard
        return shard

    def _tasks(self, shard: Shard) -> list[Task]:
        """The shard's tasks, the longest first, so that none of them is left alone at the end."""
        tasks = sorted(self._record.tasks_of(shard, self._settings), key=_characters, reverse=True)
        self._left[shard.number] = {task.id for task in tasks}
        self._shard_of |= dict.fromkeys(self._left[shard.number], shard.number)
        self._best |= {task.id: task.best for task in tasks}
        if not tasks:
            self._finish(shard.number)
        return tasks

    def _finish(self, number: int) -> None:
        del self._left[number]
        if not self._record.finish_shard(self._claimed.pop(number)):
            _log.warning("another worker has claimed shard %d, which was worked on here", number)
        self._changed.set()


def _characters(task: Task) -> int:
    return len(task.x) + sum(len(candidate.text) for candidate in task.candidates) + sum(map(len, task.context))
