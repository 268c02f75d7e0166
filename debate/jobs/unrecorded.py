"""Engines out of settings for what records nothing: one question, a server, a tool for agents, a scorer."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from debate.backends import Backend
from debate.bundled_judge import BUILT_IN
from debate.config.settings import RunSettings
from debate.engine import Engine
from debate.jobs.run import recalling
from debate.runtime.limits import Budget
from debate.runtime.runner import TurnObserver

S = TypeVar("S", bound=RunSettings)


def unrecorded_settings(config: Path | None, flags: Mapping[str, Any], kind: type[S]) -> S:
    """The settings; the bundled judge recalls from its own memories unless others are given.

    Raises as `RunSettings.read` does.
    """
    settings = kind.read(config, flags)
    if settings.model == BUILT_IN and settings.evaluator == "debate" and "memory" not in settings.model_fields_set:
        settings = kind.read(config, {**flags, "memory": BUILT_IN})
    return settings


@contextmanager
def unrecorded_engine(
    settings: RunSettings,
    backends: Mapping[str, Backend],
    note: Callable[[str], None],
    *,
    on_turn: TurnObserver | None = None,
    budget: Budget | None = None,
    is_traced: bool = False,
) -> Generator[Engine]:
    """An engine over the backends, not yet started, that is closed at the end; its memory with it.

    Args:
        settings: its memory, seed and limits.
        backends: what `settings.open_backends` gave.
        note: is told what a user should know, of a memory that holds nothing.
        on_turn: is told of every turn.
        budget: what all that is evaluated may use; None is no limit.
        is_traced: whether it makes spans of OpenTelemetry.

    Raises:
        ConfigError, StoreError: for a memory that cannot be used.
    """
    with (
        recalling(settings.memory, time.time(), backends, note) as memory,
        Engine(
            dict(backends),
            memory=memory,
            seed=settings.seed,
            max_concurrency=settings.max_concurrency,
            on_turn=on_turn,
            budget=budget,
            task_seconds=settings.task_seconds,
            tracing=is_traced,
        ) as engine,
    ):
        yield engine
