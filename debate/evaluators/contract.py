"""Checks of what an evaluator returns, so that a fault in it fails one task, with a sentence that says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import fields
from functools import cache
from typing import Any, cast, get_type_hints

import numpy as np

from debate.errors import ConfigError, EvaluatorError
from debate.evaluation import Evaluation, array_as_list
from debate.evaluators.base import Evaluator, Footprint
from debate.flow import Flow, RunContext
from debate.settings import type_check
from debate.types import Task

_MEMBERS = ("name", "scale", "models", "flow", "footprint", "check", "describe")
_ROUNDING = 1e-9


def check_evaluator(evaluator: Evaluator, field: str = "evaluator") -> None:
    """Refuse an object that is not an evaluator, before anything is loaded. `field` names it in the error.

    Raises:
        ConfigError: for a class instead of an instance, a missing member, or `models` that are not a set of names.
    """
    kind = type(evaluator).__name__
    if isinstance(evaluator, str):
        problem = f"must be an evaluator, got the text {evaluator!r}"
        raise ConfigError(problem, field=field, hint="make one, such as DebateEvaluator('general')")
    if isinstance(evaluator, type):
        name = cast("type[Any]", evaluator).__name__
        raise ConfigError(f"{name} is a class, not an evaluator", field=field, hint=f"make one: {name}(...)")
    missing = [member for member in _MEMBERS if not hasattr(evaluator, member)]
    if missing:
        raise ConfigError(f"{kind} is no evaluator: it has no `{missing[0]}`", field=field)
    if not isinstance(evaluator.models, set | frozenset):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"`models` of {kind} must be a frozenset of names, not {evaluator.models!r}", field=field)


def checked_footprint(evaluator: Evaluator, task: Task) -> Footprint:
    """The evaluator's footprint of a task. Raises EvaluatorError for anything else, and whatever `footprint` raises."""
    footprint = cast("object", evaluator.footprint(task))
    if not isinstance(footprint, Footprint):
        raise EvaluatorError(f"`footprint` returned {type(footprint).__name__}, not a Footprint")
    return footprint


def checked_flow(evaluator: Evaluator, task: Task, run: RunContext) -> Flow[Evaluation]:
    """The evaluator's flow on a task. Raises EvaluatorError for anything else, and whatever `flow` raises."""
    flow = cast("object", evaluator.flow(task, run))
    if not isinstance(flow, Generator):
        raise EvaluatorError(f"`flow` returned {type(flow).__name__}, not a generator")
    return cast("Flow[Evaluation]", flow)


def check_evaluation(found: object, task: Task) -> Evaluation:
    """The evaluation that a flow returned, with one score on its scale, or NaN, for each candidate of its task.

    Raises:
        EvaluatorError: naming what is wrong.
    """
    if not isinstance(found, Evaluation):
        raise EvaluatorError(f"the flow returned {type(found).__name__}, not an Evaluation")
    n = len(task.candidates)
    _require(found.task_id == task.id, f"the evaluation is of the task {found.task_id!r}, not {task.id!r}")
    for name in ("scores", "probabilities"):
        array = np.asarray(given := getattr(found, name))
        _require(array is given and array.dtype.kind in "fiu", f"`{name}` must be an array of numbers")
        _require(array.shape == (n,), f"`{name}` has shape {array.shape}, not ({n},): one for each candidate")
    for name, check in _checks():
        if not check(value := getattr(found, name)):
            shown = f"{value!r:.80}"
            raise EvaluatorError(f"`{name}` is {shown}, not {Evaluation.__annotations__[name]}")
    _require(len(found.statuses) in (0, n), f"there are {len(found.statuses)} `statuses` for {n} candidates")
    _require(found.selected is None or 0 <= found.selected < n, f"`selected` is {found.selected}, no candidate's index")
    _require(all(0 <= j < n for j in found.tied), f"`tied` is {found.tied}, not some candidates' indices")
    _check_range(found)
    _check_details(found)
    return found


@cache
def _checks() -> list[tuple[str, Callable[[Any], bool]]]:
    """The fields of an evaluation, each with the check of its type."""
    types = get_type_hints(Evaluation)
    return [(each.name, type_check(types[each.name])) for each in fields(Evaluation)]


def _check_range(found: Evaluation) -> None:
    low, high = found.scale.low, found.scale.high
    slack = _ROUNDING * max(1.0, abs(low), abs(high) if np.isfinite(high) else 0.0)
    wrong = (found.scores < low - slack) | (found.scores > high + slack) | np.isinf(found.scores)  # (J,); not for NaN
    if wrong.any():
        j = int(np.argmax(wrong))
        raise EvaluatorError(f"the score of candidate {j + 1} is {found.scores[j]:g}, not in {low:g} to {high:g}")


def _check_details(found: Evaluation) -> None:
    keys = [key for key in found.details if not isinstance(key, str)]  # pyright: ignore[reportUnnecessaryIsInstance]
    _require(not keys, f"`details` must have texts as keys, got {keys[:1]}")
    try:
        json.dumps(dict(found.details), default=array_as_list)
    except (TypeError, ValueError, RecursionError) as error:
        raise EvaluatorError(f"`details` must be plain data: {error}") from None
    for member in found.members:
        _check_details(member)


def _require(is_fine: bool, problem: str) -> None:
    if not is_fine:
        raise EvaluatorError(problem)
