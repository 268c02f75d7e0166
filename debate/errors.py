"""Every exception the package raises, in one tree.

    DebateError
    ├── InputError            what the user gave is wrong; fix it and try again (exit code 2)
    │   ├── TaskError         a task or a line of an eval set
    │   ├── ProfileError      a profile file, a persona or a component
    │   ├── TemplateError     a template that does not parse or names something undefined
    │   └── ConfigError       an option, a model name, a setting
    │       ├── UnknownArgumentError     an argument of a name that there is not; a TypeError as well
    │       └── RunMismatchError         a run is to go on with prompts that are not those it recorded
    ├── EvaluatorError    an evaluator returned what it must not; its task fails
    ├── UnscoredError     a candidate has no score, and a `Judge` was told to raise then
    ├── ReplyError            a model's reply that cannot be read; the debate asks again
    ├── BackendError          the model could not be asked
    │   ├── CallError         this call alone failed; other calls may go on
    │   └── BackendUnavailableError      the backend is gone; nothing more can be asked (exit code 4)
    ├── EngineError           the engine was closed, or cannot be used from where it was called
    ├── StoreError            the store could not be read or written (exit code 5)
    ├── RunLockedError    another process works on this run (exit code 6)
    └── BudgetExceededError   the run has used what it was given; it can go on with more (exit code 3)

A failure inside one evaluation is a value (`debate.types.Failure`), not one of these: exceptions are for what
stops the caller. `ENDS_A_RUN` lists those that end every evaluation under way. This module imports nothing of ours.
"""

from __future__ import annotations

from pathlib import Path


class DebateError(Exception):
    """Root of the tree. `retryable` says whether the same call may succeed later; `hint` what to do next."""

    retryable: bool = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class InputError(DebateError):
    """What the user gave is wrong. Knows the file, the line and the field where that can be known.

    `problem` is the bare text of what is wrong; `message` is the same after the place: `FILE:LINE: FIELD: PROBLEM`.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = message
        self.file = None if file is None else str(file)
        self.line = line
        self.field = field
        place = ":".join(str(part) for part in (self.file, line) if part is not None)
        prefix = ": ".join(part for part in (place, field) if part)
        super().__init__(f"{prefix}: {message}" if prefix else message, hint=hint)


class TaskError(InputError):
    """A task, or a line of an eval set, that cannot be evaluated."""


class ProfileError(InputError):
    """A profile file, a persona or a score component that is not as it must be."""


class TemplateError(InputError):
    """A template that does not parse, names something undefined, or renders too much."""


class ConfigError(InputError):
    """An option, a model name or a setting that cannot be used."""


class UnknownArgumentError(ConfigError, TypeError):
    """A class of ours was called with an argument that it does not have."""


class EvaluatorError(DebateError):
    """What an evaluator returned is not what `debate.evaluators.base.Evaluator` says. Only its task fails."""


class UnscoredError(DebateError):
    """A candidate has no score, and `debate.Judge` was not told of one to put in its place. The message says why."""


class ReplyError(DebateError):
    """A model's reply that cannot be read. `reason` is a short code, the message is shown to the model."""

    retryable = True

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class BackendError(DebateError):
    """The model could not be asked."""


class CallError(BackendError):
    """One call failed for good. `reason` is a short code such as `context_length`."""

    def __init__(self, reason: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class BackendUnavailableError(BackendError):
    """The backend is gone: its process ended, or it cannot be started.

    `restartable` says whether starting it again may help: for an engine of ours that had worked, not for a server that
    was waited for in vain.
    """

    def __init__(self, message: str, *, hint: str | None = None, restartable: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.restartable = restartable


class RunMismatchError(ConfigError):
    """A run is to go on with prompts, personas or models that are not those of its record."""


class EngineError(DebateError):
    """The engine was closed while something was under way, or it was called from its own thread or a forked process."""


class StoreError(DebateError):
    """The store could not be read or written: the disk is full, the server is gone. What was committed is kept."""


class RunLockedError(DebateError):
    """Other processes work on this run, and it cannot be shared with them, or not for this. The message names them."""


class BudgetExceededError(DebateError):
    """The run, or the call, has used the tokens, the money or the seconds that it was given.

    `budget` is the one that says so.
    """

    def __init__(self, message: str, *, hint: str | None = None, budget: object = None) -> None:
        super().__init__(message, hint=hint)
        self.budget = budget


ENDS_A_RUN = (BackendUnavailableError, StoreError, BudgetExceededError, RunMismatchError)
"""Errors after which no evaluation of the run can go on; what is recorded stays, and the run can be resumed."""
