"""What silent rounds settled in a run, and from which certainty on they may.

The threshold is chosen on a run whose silent rounds were recorded: by `settle`, or by `silent_readouts`. Where people
labeled tasks, a choice is wrong when they name another; where nobody did, when the debate chose another in the end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from debate.errors import InputError
from debate.evaluation import from_plain, verdict
from debate.evaluators.debate.settling import OWN_MODELS, Pooling, SettleName, SettleRule, measures
from debate.meta_evaluation.aggregation import Aggregation, choice_of
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.meta_evaluation.people import decided, right_choices
from debate.statistics import Accuracy, Estimate, SelectiveThreshold, selective_threshold, wilson
from debate.types import UNSPOKEN, FloatArray, SilentReadout, Usage

Reference = Literal["labels", "debates"]
"""What the choice of a silent round is held to."""
ERROR = 0.05
"""Error of what is settled that is promised where nobody says another."""


@dataclass(frozen=True, slots=True)
class PartFigures:
    """The tasks that were settled, or those that were debated.

    Attributes:
        tasks: how many.
        right: how often their choice is right; None where people name no right candidates.
        uncached_prompt_tokens: that were not read from the prefix cache, mean per task.
        completion_tokens: decoded, mean per task.
        calls: mean per task.
    """

    tasks: int
    right: Accuracy | None
    uncached_prompt_tokens: float
    completion_tokens: float
    calls: float


@dataclass(frozen=True, slots=True)
class SettlingFigures:
    """The two parts of a run in which silent rounds settled some tasks.

    Attributes:
        rule: by which they did.
        share: of the tasks that were settled.
        settled: see `PartFigures`.
        debated: likewise.
    """

    rule: str
    share: Estimate
    settled: PartFigures
    debated: PartFigures


def settling_figures(run: JudgedRun) -> SettlingFigures | None:
    """The settled and the debated part of a run; None for a run without a rule that settles."""
    rule = run.identity.get("evaluator", {}).get("aggregation", {}).get("settle")
    if not rule:
        return None
    settled = [task for task in run.tasks if task.stop_reason in UNSPOKEN]
    debated = [task for task in run.tasks if task.stop_reason not in UNSPOKEN]
    return SettlingFigures(rule, wilson(len(settled), len(run.tasks)), _part(settled), _part(debated))


def _part(tasks: Sequence[Judged]) -> PartFigures:
    used, n = sum((task.usage for task in tasks), Usage()), max(len(tasks), 1)
    right = right_choices(tasks) if any(decided(task) for task in tasks) else None
    uncached = used.prompt_tokens - used.cached_tokens
    return PartFigures(len(tasks), right, uncached / n, used.completion_tokens / n, used.calls / n)


@dataclass(frozen=True, slots=True)
class SettleChoice:
    """A threshold that a rule may settle tasks by, and what it comes to on the run that it was chosen on.

    Attributes:
        measure: what is compared with the threshold.
        reference: what a silent choice was held to.
        found: the threshold with its promise.
        tasks: with a silent round.
        settled: how many of these it settles.
        rule: as the setting `settle` takes it; None where nothing can be promised.
    """

    measure: SettleName
    reference: Reference
    found: SelectiveThreshold
    tasks: int
    settled: int
    rule: str | None


def choose_settling(
    run: JudgedRun,
    error: float = ERROR,
    measure: SettleName = "p_best",
    confidence: float = 0.95,
    *,
    weights: Sequence[float] | None = None,
) -> SettleChoice:
    """Choose from which certainty on a silent round may settle a task, at a promised error of what it settles.

    See `debate.statistics.selective_threshold` for the guarantee and what it assumes.

    Args:
        run: of debates whose silent rounds were recorded.
        error: promised of the settled tasks, in (0, 1).
        measure: of the certainty.
        confidence: of the promise, in (0, 1).
        weights: of the components, (K,); None is the run's.

    Raises:
        InputError: for a run without a silent round.
    """
    rounds = list(silent_rounds(run, weights))
    if not rounds:
        hint = "record a run with --silent-readouts, or with --settle"
        raise InputError("has no silent round of any task", file=run.directory.path, hint=hint)
    reference: Reference = "labels" if any(decided(each.task) for each in rounds) else "debates"
    sure = np.array([each.measured[measure] for each in rounds])  # (n,)
    wrong = np.array([_is_wrong(each, reference) for each in rounds])  # (n,); NaN without a reference
    known = ~np.isnan(wrong) & ~(sure <= 0)  # thresholds are above 0
    found = selective_threshold(sure[known], wrong[known], error, confidence)
    if found.reason is not None:
        return SettleChoice(measure, reference, found, len(rounds), 0, None)
    given = run.identity["evaluator"].get("opening", "")
    model = None if given in ("", OWN_MODELS) else str(given)
    rule = SettleRule(measure, _written(found.threshold, sure), model)
    settled = sum(rule.settles(each.measured) for each in rounds)
    return SettleChoice(measure, reference, found, len(rounds), settled, str(rule))


def _written(threshold: float, sure: FloatArray) -> float:
    """The threshold with 6 decimals where that keeps the same tasks, else as it is."""
    short = math.floor(threshold * 1e6) / 1e6
    return short if short > 0 and (sure >= short).sum() == (sure >= threshold).sum() else threshold


@dataclass(frozen=True, slots=True)
class SilentRound:
    """A task with what its silent round chose, and how sure."""

    task: Judged
    choice: tuple[int, ...]
    measured: Mapping[SettleName, float]


def silent_rounds(run: JudgedRun, weights: Sequence[float] | None = None) -> Iterator[SilentRound]:
    """The tasks of a run whose agents were all read out before anybody spoke, by the run's weights or by others."""
    aggregation = Aggregation.of_run(run)
    if aggregation is None:
        return
    if weights is not None:
        aggregation = replace(aggregation, weights=np.array(weights, dtype=np.float64))
    by_id = {task.task_id: task for task in run.tasks}
    with run.directory.open_store() as store:
        for task_id, _, data in store.read(run.directory.name).result_data():
            task = by_id.get(task_id)
            rounds = [] if task is None else _read(json.loads(data))
            if task is None or not rounds or not all(rounds):
                continue
            of_task = aggregation.of_task(task)
            pooling = Pooling(of_task.weights, of_task.method, of_task.quorum_of(len(rounds[0])))
            scores = np.mean([pooling.scores(silent) for silent in rounds], axis=0)  # (J,)
            yield SilentRound(task, choice_of(scores), measures(rounds, pooling))


def _read(data: Mapping[str, Any]) -> list[list[SilentReadout]]:
    """The silent round of each candidate order."""
    debates: Sequence[Mapping[str, Any]] = data["members"] or [data]
    return [[from_plain(SilentReadout, each) for each in debate.get("before", ())] for debate in debates]


def _is_wrong(silent: SilentRound, reference: Reference) -> float:
    """1 or 0; NaN where the reference names no candidate, or all of them."""
    if reference == "labels":
        best = decided(silent.task)
        return math.nan if not best else float(verdict(silent.choice, best) != "right")
    chosen = silent.task.choice
    if silent.task.stop_reason in UNSPOKEN or len(chosen) in (0, len(silent.task.scores)):
        return math.nan
    return float(set(silent.choice) != set(chosen))
