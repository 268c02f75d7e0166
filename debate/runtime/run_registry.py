"""Chooses the run of the store that an evaluation is recorded in: by its name, or one per evaluator without a name.

Runs are opened when they are first needed and held until closed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debate.backends.base import Backend, models_identity
from debate.errors import ConfigError, RunMismatchError
from debate.evaluators.base import Evaluator
from debate.flow import RunContext
from debate.hashing import digest
from debate.journal import RunJournal

if TYPE_CHECKING:  # it loads SQLAlchemy
    from debate.store import Store, StoredRun


InRun = str | RunJournal | None
"""A run of the engine's store by name, one that the caller holds, or None for one of the engine's choice."""


def settings_digest(evaluator: Evaluator) -> str:
    """Digest of all settings, those that shape no prompt included.

    Raises:
        ConfigError: when `describe` returns something other than plain data.
    """
    return _described(evaluator)[1]


def _described(evaluator: Evaluator) -> tuple[dict[str, Any], str]:
    """The evaluator's settings and their digest."""
    try:
        found = evaluator.describe()
        return found, digest(found)
    except (TypeError, ValueError) as error:
        message = f"`describe` of {type(evaluator).__name__} must return plain data: {error}"
        raise ConfigError(message, field="evaluator") from None


Recorded = tuple[RunJournal | None, str]
"""A run's journal and the digest of the evaluator's settings; None where nothing is recorded."""


class RunRegistry:
    """The runs that one engine records into.

    Args:
        store: a store, its address, or None to record nothing.
        backends: by the name that calls ask for.
        context: seed and date of new runs.
    """

    def __init__(self, store: Store | str | Path | None, backends: Mapping[str, Backend], context: RunContext) -> None:
        self._given = store
        self._backends = backends
        self._context = context
        self._store: Store | None = None
        self._runs: dict[str, tuple[Any, StoredRun]] = {}
        """What shapes the prompts of each run that is held, and the run."""
        self._lock = threading.Lock()

    @property
    def has_store(self) -> bool:
        """Whether there is anything to record into."""
        return self._given is not None

    def records(self, run: InRun, evaluators: Sequence[Evaluator]) -> dict[int, Recorded]:
        """Where each evaluator is recorded, by `id(evaluator)`.

        Raises:
            ConfigError: for a run without a store.
            RunLockedError, RunMismatchError, StoreError: as `Store.run`.
        """
        if run is None and self._given is None:
            return dict.fromkeys(map(id, evaluators), (None, ""))
        described = {id(evaluator): _described(evaluator) for evaluator in evaluators}
        settings = {key: each for key, (_, each) in described.items()}
        if not (run is None or isinstance(run, str)):
            return {key: (run, each) for key, each in settings.items()}
        if self._given is None:
            raise ConfigError("a run needs a store", field="run", hint='Engine(..., store="sqlite:///FILE")')
        several = len(set(settings.values())) > 1
        with self._lock:
            return {key: (self._run(run, each, several=several), its) for key, (each, its) in described.items()}

    def close(self) -> None:
        """Release the runs, and close the store if it was opened here."""
        with self._lock:
            for _, record in self._runs.values():
                record.close()
            self._runs.clear()
            if self._store is not None and self._store is not self._given:
                self._store.close()
            self._store = None

    def _run(self, name: str | None, evaluator: dict[str, Any], *, several: bool) -> StoredRun:
        from debate.store.identity import differences, prompt_identity
        from debate.store.store import new_run_name

        identity = {"evaluator": evaluator, **models_identity(self._backends)}
        shapes_prompts = prompt_identity(identity)
        its_digest = digest(shapes_prompts)
        if name is None:
            key = f"(one per evaluator) {its_digest}"
            name = self._runs[key][1].name if key in self._runs else new_run_name()
        else:
            key = name = f"{name}/{its_digest[:8]}" if several else name
        if key in self._runs:
            before, held = self._runs[key]
            if before == shapes_prompts:
                return held
            if held.n_tasks():  # others may be at work on it, so it is not let go of
                problem = f"{name!r} was made with other settings: {'; '.join(differences(before, shapes_prompts)[:5])}"
                raise RunMismatchError(problem, field="run", hint="give what has other settings a `run` of its own")
            self._runs.pop(key)[1].close()
        record = self._opened_store().run(name, identity, seed=self._context.seed, today=self._context.today)
        self._runs[key] = (shapes_prompts, record)
        return record

    def _opened_store(self) -> Store:
        if self._store is None:
            from debate.store import Store

            assert self._given is not None
            self._store = self._given if isinstance(self._given, Store) else Store(self._given)
        return self._store
