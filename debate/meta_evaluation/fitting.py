"""Weights and a temperature for a run's debates, fitted to what people say; no model is asked.

Everything that is reported is held out: the tasks are divided into folds, and each is predicted by weights that were
fitted on the others, whose strength of regularization was chosen among these alone. What is proposed is fitted on all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from debate.errors import InputError
from debate.evaluation import verdict
from debate.meta_evaluation.aggregation import Aggregation, choice_of, debates_of
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.statistics import (
    Mean,
    Reliability,
    brier_score,
    clustered_mean,
    expected_calibration_error,
    fit_isotonic,
    fit_weights,
    paired_difference,
)
from debate.statistics.weights import Loss
from debate.types import FloatArray

Measure = Literal["pairs", "scores"]
"""What weights are held to: the share of pairs of candidates that they order as people do, or minus the mean absolute
distance to people's scores, after the best linear map to their scale."""
LEAST_TASKS = 10
ISOTONIC_TASKS = 200
_RIDGES = (0.001, 0.01, 0.1, 1.0, 10.0, math.inf)
"""Of the mean curvature of the loss; the last keeps the weights as they are."""
_TEMPERATURES = np.geomspace(1 / 50, 50, 401)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights as they are and as they were fitted, the largest 1.

    Attributes:
        names: of the components, or of the agents.
        old: those in force.
        new: fitted on all labeled tasks.
        lowest: the least that each came to among the folds.
        highest: the most.
        held_out_old: the measure under the old ones, mean over tasks; higher is better.
        held_out_new: under those that were fitted without the task.
        gain: the paired difference of the two.
    """

    names: tuple[str, ...]
    old: tuple[float, ...]
    new: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    held_out_old: Mean
    held_out_new: Mean
    gain: Mean

    @property
    def is_better(self) -> bool:
        """Whether the interval of the gain lies above 0."""
        return self.gain.interval[0] > 0


@dataclass(frozen=True, slots=True)
class Calibration:
    """Whether the winner's probability is how often the winner is right, before and after; all held out.

    Attributes:
        old: the temperature of the softmax in force.
        new: under which the outcomes are likeliest, fitted on all tasks with a winner.
        before: reliability table and expected calibration error, 10 bins of as many tasks.
        after: with the temperature of the other folds.
        brier_before: the mean squared distance of probability and outcome.
        brier_after: likewise.
        gain: by how much that falls.
        isotonic: the same table with an isotonic map of the probability in place of a temperature, which no setting
            takes; None below 200 tasks.
    """

    old: float
    new: float
    before: Reliability
    after: Reliability
    brier_before: Mean
    brier_after: Mean
    gain: Mean
    isotonic: Reliability | None

    @property
    def is_better(self) -> bool:
        """Whether the interval of the gain lies above 0."""
        return self.gain.interval[0] > 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit came to.

    Attributes:
        tasks: evaluated.
        labeled: those that it was fitted on: their labels order candidates, or score them, and all have scores.
        unscored: tasks with such labels, but with an unscored candidate, which are left out.
        measure: what the weights are held to.
        folds: their number.
        components: weights that a debate's setting `weights` takes.
        agents: weights of the agents, which no setting takes; None where there is one, or too few tasks that all
            agents scored.
        calibration: of the probability under the weights that are proposed; None below 10 tasks with a winner and a
            label that names the right ones.
        own_components: labeled tasks with components of their own, which share no weights and are left out.
    """

    tasks: int
    labeled: int
    unscored: int
    measure: Measure
    folds: int
    components: Weights
    agents: Weights | None
    calibration: Calibration | None
    own_components: int = 0

    @property
    def is_better(self) -> bool:
        """Whether anything is worth changing."""
        return self.components.is_better or (self.calibration is not None and self.calibration.is_better)

    def settings(self, *, force: bool = False) -> dict[str, object]:
        """What is worth changing as settings of a debate; all that was fitted with `force`."""
        found: dict[str, object] = {}
        if force or self.components.is_better:
            found["weights"] = dict(zip(self.components.names, self.components.new, strict=True))
        if self.calibration is not None and (force or self.calibration.is_better):
            found["softmax_temperature"] = self.calibration.new
        return found


class _Rows(NamedTuple):
    """What weights are fitted on: differences of two candidates of which people prefer the first, or candidates."""

    x: FloatArray
    """(n, K)."""
    targets: FloatArray
    """(n,), 1 for pairs, else people's scores."""
    tasks: NDArray[np.intp]
    """(n,), place of the task."""

    def of(self, chosen: NDArray[np.bool_]) -> _Rows:
        return _Rows(self.x[chosen], self.targets[chosen], self.tasks[chosen])

    @property
    def counts(self) -> FloatArray:
        """(n,), so that every task counts as much."""
        return 1 / np.bincount(self.tasks)[self.tasks]


def fit(run: JudgedRun, folds: int = 5, seed: int = 0, *, force: bool = False) -> Fitted:
    """Fit weights of the components and of the agents, and the temperature of the softmax.

    Args:
        run: of debates, with labels.
        folds: each is predicted by a fit on the others.
        seed: of the division into folds.
        force: calibrate under the new weights also where they are not better.

    Raises:
        InputError: for a run without debates, or with fewer than 10 labeled tasks.
    """
    aggregation = Aggregation.of_run(run)
    if aggregation is None:
        raise InputError("holds no debates, whose weights could be fitted", file=run.directory.path)
    measure: Measure = "scores" if _are_scores(run.tasks) else "pairs"
    labeled = [task for task in run.tasks if _says_something(task, measure)]
    alike = [task for task in labeled if not task.own_weights]
    kept = [task for task in alike if not np.isnan(task.scores).any()]
    if len(kept) < (least := max(LEAST_TASKS, folds)):
        hint = "label some more; `best`, `ranking` or `scores` of a task's candidates count"
        problem = f"needs {least} scored tasks with labels that order or score their candidates, has {len(kept)}"
        if len(alike) < len(labeled):
            problem += f", besides {len(labeled) - len(alike)} with components of their own, which share no weights"
        raise InputError(problem, file=run.directory.path, hint=hint)
    fold = np.random.default_rng(seed).permutation(len(kept)) % folds  # (tasks,)
    names, scores = debates_of(kept[0])[0].components, _component_scores(kept, aggregation)
    components, by_fold = _fit(names, aggregation.weights, scores, kept, measure, fold)
    temperature = float(run.identity["evaluator"]["aggregation"]["softmax_temperature"])
    used = by_fold if force or components.is_better else None
    return Fitted(
        tasks=len(run.tasks),
        labeled=len(kept),
        unscored=len(alike) - len(kept),
        own_components=len(labeled) - len(alike),
        measure=measure,
        folds=folds,
        components=components,
        agents=_fit_agents(kept, aggregation, measure, fold),
        calibration=_calibrate(kept, aggregation, temperature, used, fold),
    )


# ---- weights


def _are_scores(tasks: Sequence[Judged]) -> bool:
    """Whether people scored the candidates wherever they said something of them, and ranked them nowhere."""
    said = [task.labels.together for task in tasks if task.labels.together.preference is not None]
    return bool(said) and all(each.scores and each.ranking is None for each in said)


def _preference(task: Judged, measure: Measure) -> FloatArray:
    """What people say of each candidate, best highest, (J,); NaN where nothing."""
    together = task.labels.together
    if measure == "scores" and together.scores:
        return np.mean(list(together.scores.values()), axis=0)
    return np.full(len(task.scores), np.nan) if together.preference is None else together.preference


def _says_something(task: Judged, measure: Measure) -> bool:
    said = _preference(task, measure)
    said = said[~np.isnan(said)]
    return said.size > 0 and (measure == "scores" or said.min() < said.max())


def _component_scores(tasks: Sequence[Judged], aggregation: Aggregation) -> list[FloatArray]:
    """The score of each component alone, (J, K) per task."""
    each = [replace(aggregation, weights=row, method="mk1") for row in np.eye(len(aggregation.weights))]
    columns = [one.scores_of(tasks, lambda tensor: tensor) for one in each]
    return [np.stack(found, axis=1) for found in zip(*columns, strict=True)]


def _agent_scores(tasks: Sequence[Judged], aggregation: Aggregation, n_agents: int) -> list[FloatArray]:
    """The score that each agent's turns alone come to, (J, I) per task."""
    columns = [aggregation.scores_of(tasks, lambda tensor, i=i: tensor[:, [i]]) for i in range(n_agents)]
    return [np.stack(found, axis=1) for found in zip(*columns, strict=True)]


def _rows(scores: Sequence[FloatArray], tasks: Sequence[Judged], measure: Measure) -> _Rows:
    x: list[FloatArray] = []
    targets: list[float] = []
    places: list[int] = []
    for n, (each, task) in enumerate(zip(scores, tasks, strict=True)):
        said = _preference(task, measure)
        if measure == "scores":
            found = [(each[j], float(said[j])) for j in np.flatnonzero(~np.isnan(said))]
        else:
            found = [(each[a] - each[b], 1.0) for a, b in np.argwhere(np.greater.outer(said, said))]
        x += [row for row, _ in found]
        targets += [target for _, target in found]
        places += [n] * len(found)
    return _Rows(np.array(x), np.array(targets), np.array(places))


class _Model(NamedTuple):
    """Weights, and for people's scores the linear map to their scale."""

    weights: FloatArray
    center: FloatArray
    level: float

    def predict(self, x: FloatArray) -> FloatArray:
        return (x - self.center) @ self.weights + self.level


def _model(rows: _Rows, old: FloatArray, measure: Measure, ridge: float) -> _Model:
    """Weights drawn to the old ones times the factor that suits best; an infinite ridge leaves these.

    Where every component speaks against people, none would have a weight, and the old ones stay.
    """
    counts, is_scores = rows.counts, measure == "scores"
    loss: Loss = "squared" if is_scores else "logistic"
    center: FloatArray = np.average(rows.x, axis=0, weights=counts) if is_scores else np.zeros(len(old))
    level = float(np.average(rows.targets, weights=counts)) if is_scores else 0.0
    x, targets = rows.x - center, rows.targets - level
    squares: FloatArray = (x**2).mean(axis=1)  # (n,)
    unit = float(squares @ counts / counts.sum()) * (1.0 if is_scores else 0.25) + 1e-9
    factor = fit_weights((x @ old)[:, None], targets, [0.0], 0.001 * unit, loss, counts)[0]
    weights = factor * old
    if not math.isinf(ridge):
        weights = fit_weights(x, targets, weights, ridge * unit, loss, counts)
    return _Model(weights if is_scores or weights.any() else old, center, level)


def _chosen(rows: _Rows, old: FloatArray, measure: Measure, fold: NDArray[np.intp]) -> _Model:
    """The model with the ridge that predicts each of the folds best from the others.

    Where a single fold is left, as inside of two, its tasks are divided by halves; one task alone chooses nothing, and
    the weights stay as they are.
    """
    of_rows = fold[rows.tasks]
    if np.unique(of_rows).size < 2:
        _, places = np.unique(rows.tasks, return_inverse=True)
        of_rows = places % 2
    if np.unique(of_rows).size < 2:
        return _model(rows, old, measure, math.inf)

    def loss(ridge: float) -> float:
        total = 0.0
        for f in np.unique(of_rows):
            test = rows.of(of_rows == f)
            found = _model(rows.of(of_rows != f), old, measure, ridge).predict(test.x)
            each = (test.targets - found) ** 2 if measure == "scores" else np.logaddexp(0, -found)
            total += float(each @ test.counts)
        return total

    return _model(rows, old, measure, min(_RIDGES, key=loss))


def _fit(
    names: tuple[str, ...],
    old: FloatArray,
    scores: Sequence[FloatArray],
    tasks: Sequence[Judged],
    measure: Measure,
    fold: NDArray[np.intp],
) -> tuple[Weights, FloatArray]:
    """The weights with their held-out worth, and those of each fold, (folds, K)."""
    rows = _rows(scores, tasks, measure)
    of_rows, worth, by_fold = fold[rows.tasks], np.full((len(tasks), 2), np.nan), list[FloatArray]()
    for f in np.unique(fold):
        rest, test = rows.of(of_rows != f), rows.of(of_rows == f)
        models = _model(rest, old, measure, math.inf), _chosen(rest, old, measure, fold)
        for side, model in enumerate(models):
            sums = np.bincount(test.tasks, _worth(test, model, measure) * test.counts, minlength=len(tasks))
            worth[fold == f, side] = sums[fold == f]
        by_fold.append(_scaled(models[1].weights, old))
    new = _scaled(_chosen(rows, old, measure, fold).weights, old)
    return Weights(
        names=names,
        old=tuple(old.tolist()),
        new=tuple(np.round(new, 4).tolist()),
        lowest=tuple(np.min(by_fold, axis=0).tolist()),
        highest=tuple(np.max(by_fold, axis=0).tolist()),
        held_out_old=clustered_mean(worth[:, 0]),
        held_out_new=clustered_mean(worth[:, 1]),
        gain=paired_difference(worth[:, 1], worth[:, 0]),
    ), np.array(by_fold)


def _worth(rows: _Rows, model: _Model, measure: Measure) -> FloatArray:
    """The measure of each row, (n,)."""
    found = model.predict(rows.x)
    if measure == "scores":
        return -np.abs(rows.targets - found)
    return np.where(np.abs(found) <= 1e-9, 0.5, (found > 0).astype(np.float64))


def _scaled(weights: FloatArray, old: FloatArray) -> FloatArray:
    """With the largest 1; the old ones where none is left."""
    return weights / weights.max() if weights.max() > 0 else old / old.max()


def _fit_agents(
    tasks: Sequence[Judged], aggregation: Aggregation, measure: Measure, fold: NDArray[np.intp]
) -> Weights | None:
    names = debates_of(tasks[0])[0].agents
    scores = _agent_scores(tasks, aggregation, len(names))
    whole = [n for n, each in enumerate(scores) if not np.isnan(each).any()]
    if len(names) < 2 or len(whole) < LEAST_TASKS or len(np.unique(fold[whole])) < 2:
        return None
    kept, old = [tasks[n] for n in whole], np.ones(len(names))
    return _fit(names, old, [scores[n] for n in whole], kept, measure, fold[whole])[0]


# ---- the winner's probability


def _calibrate(
    tasks: Sequence[Judged], aggregation: Aggregation, old: float, by_fold: FloatArray | None, fold: NDArray[np.intp]
) -> Calibration | None:
    """The calibration under the run's weights, or each task's under those of its fold."""
    folds = np.unique(fold)
    sides = [aggregation] if by_fold is None else [replace(aggregation, weights=each) for each in by_fold]
    scored = [side.scores_of(tasks, lambda tensor: tensor) for side in sides]
    place = [0] * len(tasks) if by_fold is None else np.searchsorted(folds, fold).tolist()  # (tasks,)
    found = [(n, _won(task, scored[place[n]][n])) for n, task in enumerate(tasks)]
    won = [(n, each) for n, each in found if each is not None]
    if len(won) < LEAST_TASKS:
        return None
    right, of = np.array([each[0] for _, each in won]), fold[[n for n, _ in won]]  # (n,) each
    gaps = np.full((len(won), max(len(each) for _, (_, each) in won)), -np.inf)
    for row, (_, (_, gap)) in zip(gaps, won, strict=True):
        row[: len(gap)] = gap
    before, after, mapped = _probability(gaps, old), np.empty(len(won)), np.empty(len(won))  # (n,) each
    for f in np.unique(of):
        rest = of != f
        after[~rest] = _probability(gaps[~rest], _temperature(gaps[rest], right[rest]))
        mapped[~rest] = fit_isotonic(before[rest], right[rest])(before[~rest])
    return Calibration(
        old=old,
        new=float(f"{_temperature(gaps, right):.4g}"),
        before=expected_calibration_error(before, right),
        after=expected_calibration_error(after, right),
        brier_before=brier_score(before, right),
        brier_after=brier_score(after, right),
        gain=paired_difference((before - right) ** 2, (after - right) ** 2),
        isotonic=expected_calibration_error(mapped, right) if len(won) >= ISOTONIC_TASKS else None,
    )


def _won(task: Judged, scores: FloatArray) -> tuple[float, FloatArray] | None:
    """Whether the winner is right, and how far each candidate is behind it, (J,); None without one winner or label."""
    best, choice = task.labels.together.choice, choice_of(scores)
    if len(choice) != 1 or len(best) in (0, len(scores)):
        return None
    return float(verdict(choice, best) == "right"), scores - scores[choice[0]]


def _probability(gaps: FloatArray, temperature: float) -> FloatArray:
    """The winners' probability by the softmax, (n,)."""
    return 1 / np.exp(gaps / temperature).sum(axis=1)


def _temperature(gaps: FloatArray, right: FloatArray) -> float:
    """The temperature of the softmax under which the outcomes are likeliest, from 1/50 to 50.

    Outcomes are drawn a little toward each other (Platt 1999): a few tasks that are all right ask for no certainty.
    """
    count = right.sum()
    target = np.where(right > 0, (count + 1) / (count + 2), 1 / (right.size - count + 2))  # (n,)

    def loss(temperature: float) -> float:
        p = np.clip(_probability(gaps, temperature), 1e-6, 1 - 1e-6)
        return -float((target * np.log(p) + (1 - target) * np.log(1 - p)).sum())

    return min(_TEMPERATURES.tolist(), key=loss)
