"""What a run has recorded of one task, and goes on recording: the journal that one evaluation is driven with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, delete

from debate.errors import RunMismatchError
from debate.evaluation import Evaluation
from debate.flow import Call, Completion, Recall
from debate.journal import Address, Answer, CallKey, format_address
from debate.store.database import Database
from debate.store.fork import Inherited
from debate.store.serialization import (
    Row,
    about_call,
    call_row,
    cell_columns,
    doubt_columns,
    evaluation_row,
    label_columns,
    text_rows,
    thinking_columns,
    turn_rows,
)
from debate.store.tables import CALLS, EVALUATIONS, TEXTS, TURNS


@dataclass(frozen=True, slots=True)
class Kept:
    """A recorded answer: that of the latest retry generation of its call and attempt."""

    retry_generation: int
    prompt_hash: str
    answer: Answer
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the call was about, as `about_call` has it."""


Recorded = Mapping[tuple[str, int], Kept]
"""By (address, attempt)."""


@dataclass(slots=True)
class SqlTaskJournal:
    """A task's record in the store. Made by `StoredRun.open`."""

    database: Database
    run_id: int
    position: int
    task_id: str
    metadata: Mapping[str, Any]
    """The task's."""
    settings: str
    recorded: Recorded
    inherited: Inherited
    finished: Evaluation | None = None
    is_stale: bool = False
    """Whether an evaluation under other settings is recorded, which a new one replaces."""
    current_generation: int = 0
    reopened: frozenset[str] = frozenset()
    _has_left_the_record: bool = False

    def retry_generation(self, address: Address) -> int:
        """The task's generation for calls that are asked again, else that of the recorded answer."""
        place = format_address(address)
        if place in self.reopened:
            return self.current_generation
        if not self.current_generation:
            return 0
        return max((kept.retry_generation for (at, _), kept in self.recorded.items() if at == place), default=0)

    def get(
        self, key: CallKey, prompt_hash: str, seed: int | None = None, info: Mapping[str, Any] | None = None
    ) -> Answer | None:
        """The recorded answer; one of an older generation is none where the call is asked again.

        Once a call was asked anew, the prompts of later turns may hold another history than the recorded ones. Their
        answers still count, if the call is about the same.
        """
        place = (format_address(key.address), key.attempt)
        kept = self.recorded.get(place)
        if kept is not None and kept.retry_generation == key.retry_generation:
            is_same = kept.info.items() <= about_call(info or {}).items()
            if kept.prompt_hash == prompt_hash or (self._has_left_the_record and is_same):
                return kept.answer
            raise self._changed(place[0])
        self._has_left_the_record = True
        return None if place[0] in self.reopened else self.inherited.get((prompt_hash, seed))

    def _changed(self, address: str) -> RunMismatchError:
        return RunMismatchError(
            f"task {self.task_id!r}: the prompt of call {address} is not the one that was recorded",
            hint="a template, an included file, a setting that decides which calls are made, or the version of this "
            "package has changed: undo that, or begin another run; one that the command line begins with --fork keeps "
            "the calls that still fit",
        )

    async def put(self, key: CallKey, call: Call | Recall, answer: Answer) -> None:
        """Record an answer; committed when this returns."""
        texts = [(TEXTS, row) for row in text_rows(answer)] if isinstance(answer, Completion) else []
        await self.database.ainsert((CALLS, self._keyed(call_row(key, call, answer))), *texts)

    async def finish(self, evaluation: Evaluation) -> None:
        """Record the evaluation and its turns; those under other settings go."""
        made = {**evaluation_row(evaluation, self.settings), **label_columns(evaluation, self.metadata)}
        row = {**made, **doubt_columns(evaluation), **cell_columns(evaluation), **thinking_columns(evaluation)}
        rows = [(EVALUATIONS, self._keyed(row)), *((TURNS, self._keyed(turn)) for turn in turn_rows(evaluation))]
        if not self.is_stale:
            await self.database.ainsert(*rows)
            return

        def replace(connection: Connection) -> None:
            delete_evaluation(connection, self.run_id, self.position)
            for table, each in rows:
                connection.execute(table.insert(), each)

        await self.database.arun(replace)

    def _keyed(self, row: Row) -> dict[str, Any]:
        return {"run_id": self.run_id, "position": self.position, **row}


class Replay:
    """The record of a task, to be sent to a fresh flow that changes nothing; a `debate.journal.Journal`.

    An answer is found whatever its prompt was; `differs` tells of which calls another prompt was recorded.
    """

    def __init__(self, kept: SqlTaskJournal) -> None:
        self._kept = kept
        self._differing: set[tuple[str, str]] = set()

    def differs(self, address: str, prompt_hash: str) -> bool:
        """Whether the call at that address was recorded with another prompt than it was given now."""
        return (address, prompt_hash) in self._differing

    def retry_generation(self, address: Address) -> int:
        """That of the answer that counts."""
        return self._kept.retry_generation(address)

    def get(
        self, key: CallKey, prompt_hash: str, seed: int | None = None, info: Mapping[str, Any] | None = None
    ) -> Answer | None:
        """The recorded answer, or the one that was taken over from another run."""
        address = format_address(key.address)
        found = self._kept.recorded.get((address, key.attempt))
        if found is None or found.retry_generation != key.retry_generation:
            return self._kept.inherited.get((prompt_hash, seed))
        if found.prompt_hash != prompt_hash:
            self._differing.add((address, prompt_hash))
        return found.answer

    async def put(self, key: CallKey, call: Call | Recall, answer: Answer) -> None:
        """Record nothing."""


def delete_evaluation(connection: Connection, run_id: int, position: int) -> None:
    """Delete the evaluation of a task, with its turns."""
    for table in (EVALUATIONS, TURNS):
        connection.execute(delete(table).where((table.c.run_id == run_id) & (table.c.position == position)))
