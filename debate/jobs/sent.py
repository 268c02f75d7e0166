"""What models were sent: the prompts of a recorded evaluation, rendered again.

A store keeps hashes of prompts. The evaluator is made again from what the run has recorded, and its flow is sent the
recorded answers, as when a run is resumed. A prompt whose hash is the recorded one is what was sent; another is not
shown. No model is asked, no module is imported that the run names, and nothing is recorded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from debate.backends import Call
from debate.backends.scripted import Scripted
from debate.config.construct import make_evaluator
from debate.config.settings import RunSettings
from debate.errors import CallError, ConfigError, DebateError
from debate.evaluators.base import Evaluator
from debate.evaluators.debate.control import ControlEvaluator
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.flow import Completion
from debate.jobs.debated import rounds_taken
from debate.profiles import Profile, profile_of
from debate.registry import EVALUATORS, asking
from debate.runtime.runner import Runner, Watch
from debate.settings import declarations
from debate.store import StoredRun
from debate.store.identity import AGGREGATION, differences, prompt_identity
from debate.store.task_journal import Replay
from debate.types import Failure, Sampling, Task

CHANGED = (
    "This prompt cannot be shown: the one that is made now is not the one that was sent, because a template, an "
    "included file, a setting or the version of this package has changed since."
)

_MOST_RETRIES = 10
"""Of a debate whose record does not say how often it asked again."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One call of a recorded evaluation.

    Attributes:
        call: its address in the evaluation.
        model: the name under which the run has it.
        about: what the call is about, as the evaluator says: round, agent, candidate and the like.
        messages: as they were sent, each with its `role` and `content`; empty where they cannot be shown.
        problem: why they cannot be shown; empty where they can.
    """

    call: str
    model: str
    about: Mapping[str, Any]
    messages: tuple[dict[str, str], ...] = ()
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        about = {key: value for key, value in self.about.items() if key != "task_id"}
        return {"call": self.call, "model": self.model, "about": about, "messages": list(self.messages),
                "problem": self.problem}  # fmt: skip


class Prompts:
    """The prompts of a run's evaluations, made again.

    Args:
        record: the run, from `Store.read`.
        identity: the run's, as its `run.json` has it, which says more than the store; None without one.
        evaluator: the run's own; None makes it from what the run has recorded.

    Raises:
        ConfigError: when the evaluator cannot be made again; the message says why.
    """

    def __init__(
        self, record: StoredRun, identity: Mapping[str, Any] | None = None, evaluator: Evaluator | None = None
    ) -> None:
        self._record = record
        self._described = _fuller(*(dict(each or {}).get("evaluator", {}) for each in (record.identity, identity)))
        self._evaluator = _evaluator_of(record, self._described) if evaluator is None else evaluator
        settings = record.identity.get("model_settings", {})
        models: Mapping[str, str] = record.identity.get("models", {})
        self._models = {name: _Absent(model, settings.get(name, {})) for name, model in models.items()}

    def of_task(self, task_id: str) -> list[Sent]:
        """What was sent about one task, in the order of the calls; empty where it has no evaluation."""
        return next((sent for _, sent in self._each(task_id)), list[Sent]())

    def of_all(self) -> Iterator[tuple[str, list[Sent]]]:
        """The same of every evaluated task, with its id, in the order of the tasks."""
        return self._each(None)

    def _each(self, task_id: str | None) -> Iterator[tuple[str, list[Sent]]]:
        runner = Runner(self._models, self._record.context)
        with _own_loop() as run:
            for task, evaluation, replay in self._record.replays(task_id):
                evaluator = self._taking(task, rounds_taken(json.loads(evaluation)))
                yield task.id, run(self._sent(runner, evaluator, task, replay))

    def _taking(self, task: Task, rounds: tuple[int, ...]) -> Evaluator:
        """The evaluator; of a debate one that takes as many rounds as were taken, where only the record says it."""
        evaluator = self._evaluator
        if isinstance(evaluator, ControlEvaluator):
            return replace(evaluator, rounds_of={task.id: rounds})
        if not isinstance(evaluator, DebateEvaluator) or AGGREGATION in self._described or _settings_of(self._record):
            return evaluator
        free: dict[str, Any] = {"rounds": max(1, *rounds), "convergence": None, "retries": _MOST_RETRIES}
        return replace(evaluator, **free)

    async def _sent(self, runner: Runner, evaluator: Evaluator, task: Task, replay: Replay) -> list[Sent]:
        found: list[Sent] = []

        def replayed(call: Call, answer: Completion | Failure) -> None:
            address = answer.call or ""
            about = (address, call.model, call.info)
            if replay.differs(address, call.prompt_hash):
                found.append(Sent(*about, problem=CHANGED))
            else:
                found.append(Sent(*about, tuple(call.messages)))

        await runner.evaluate(evaluator, task, replay, self._record.context, watch=Watch(replayed=replayed))
        return sorted(found, key=lambda sent: ([*map(int, sent.call.split("."))], sent.about.get("attempt", 0)))


@contextmanager
def _own_loop() -> Generator[Callable[[Coroutine[Any, Any, list[Sent]]], list[Sent]]]:
    """What runs a coroutine in a thread of its own, because a notebook's has an event loop already."""
    loop = asyncio.Runner()
    with ThreadPoolExecutor(1) as thread:
        try:
            yield lambda work: thread.submit(loop.run, work).result()
        finally:
            thread.submit(loop.close).result()


class _Absent(Scripted):
    """A model that is not there, with the settings that its calls' hashes hold."""

    def __init__(self, model: str, reply_settings: Mapping[str, Any]) -> None:
        super().__init__(_not_recorded, model=model)
        self.reply_settings = reply_settings


def _not_recorded(call: Call) -> str:
    raise CallError("not_recorded", "the store has no answer to this call")


# ---- the evaluator

_NOT_AGAIN = "the prompts of this run cannot be shown, because its evaluator cannot be made again from what is recorded"


def _fuller(stored: Mapping[str, Any], written: Mapping[str, Any]) -> Mapping[str, Any]:
    """What `run.json` says of the evaluator, if that is the evaluator of the store: it has all settings."""
    return stored if differences(prompt_identity(stored), prompt_identity(written)) else written


def _settings_of(record: StoredRun) -> Mapping[str, Any]:
    """The settings that the run was begun with; none of one that was begun in Python."""
    settings: Mapping[str, Any] = record.about.get("settings") or {}
    return settings if settings.keys() & {"model", "backend", "evaluator"} else {}


def _evaluator_of(record: StoredRun, described: Mapping[str, Any]) -> Evaluator:
    """The run's evaluator, from its settings, or from its identity where it was begun in Python.

    Raises:
        ConfigError: when it cannot be made again.
    """
    try:
        with asking(_refuse_import):
            made = _made(record, described)
        changed = differences(prompt_identity(described), prompt_identity(made.describe()))
    except DebateError as error:
        raise ConfigError(f"{_NOT_AGAIN}: {error.message}") from None
    except Exception as error:  # classes of other packages are made from what may not be all that they take
        raise ConfigError(f"{_NOT_AGAIN}: {type(error).__name__}: {error}") from None
    if changed:
        raise ConfigError(f"{_NOT_AGAIN}: it would differ in {'; '.join(changed[:3])}")
    return made


def _refuse_import(target: str) -> None:
    raise ConfigError(f"it is {target}, and nothing that a run names is imported to look at it")


def _made(record: StoredRun, described: Mapping[str, Any]) -> Evaluator:
    if not (settings := _settings_of(record)):
        return _from_identity(described)
    evaluator = RunSettings.read(None, settings).with_methods_of(record.identity).make_evaluator()
    control_of = described.get("control_of")
    return evaluator if control_of is None else ControlEvaluator.of(evaluator, {}, control_of)


def _from_identity(described: Mapping[str, Any]) -> Evaluator:
    name = str(described.get("evaluator"))
    known = {each.name for each in declarations(cast("type[Any]", EVALUATORS.load(name)))} - {"templates"}
    given = {**described, **described.get("aggregation", {})}
    values = {key: value for key, value in given.items() if key in known}
    if name != DebateEvaluator.name:
        if AGGREGATION not in described:
            raise ConfigError("it was begun in Python, and the store has only those settings that shape prompts")
        members = {key: _members(value) for key, value in values.items() if _is_members(value)}
        return EVALUATORS.load(name)(**values | members) if members else make_evaluator(name, _unusual(name, values))
    settings: dict[str, Any] = {**values, "profile": _profile_of(described), "sampling": Sampling(**given["sampling"])}
    if (control_of := described.get("control_of")) is not None:
        return ControlEvaluator(**settings, control_of=control_of)
    return DebateEvaluator(**settings)


def _is_members(value: Any) -> bool:
    """Whether a setting describes evaluators by name."""
    found = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else []
    return bool(found) and all(isinstance(each, dict) and "evaluator" in each for each in found)


def _members(described: Mapping[str, Any]) -> dict[str, Evaluator]:
    return {name: _from_identity(each) for name, each in described.items()}


def _unusual(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are not what the evaluator has where it is told nothing: what describes a default need not make it."""
    try:
        described = make_evaluator(name, {}).describe()
    except ConfigError:  # it must be told something
        return dict(values)
    usual = prompt_identity({**described.get("aggregation", {}), **described})
    return {key: value for key, value in values.items() if key not in usual or usual[key] != value}


def _profile_of(described: Mapping[str, Any]) -> Profile:
    """The profile that a debate's identity holds whole."""
    personas = [{key: value for key, value in each.items() if value is not None} for each in described["personas"]]
    components = [{"name": name, "description": text} for name, text in described["components"]]
    return profile_of({"name": described["profile"], "personas": personas, "components": components})
