"""Evaluators inside an evaluator: each has a name, and one that fails does not make the others fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from debate.concurrency.exits import ends_more
from debate.errors import ConfigError
from debate.evaluation import Evaluation, failed
from debate.evaluators.base import BaseEvaluator, Evaluator, Footprint, RunContext, check_task
from debate.evaluators.contract import check_evaluation, check_evaluator, checked_flow
from debate.flow import Flow
from debate.types import (
    Failure,
    FloatArray,
    Judgment,
    LabelDistribution,
    Scale,
    SilentReadout,
    Task,
    Transcript,
    Turn,
)

_Cells = TypeVar("_Cells", Turn, SilentReadout)

TEN = Scale(0.0, 10.0)


def validate_members(members: Mapping[str, Evaluator], field: str) -> dict[str, Evaluator]:
    """The members sorted by name, so that results do not depend on the order in which they are listed.

    Raises:
        ConfigError: where there are none, for what is no evaluator, or where two are the same, whose answers would be
            equal.
    """
    if not members:
        raise ConfigError("needs at least one evaluator", field=field)
    by_name = dict(sorted(members.items()))
    seen: list[tuple[str, dict[str, Any]]] = []
    for name, member in by_name.items():
        check_evaluator(member, f"{field}.{name}")
        described = member.describe()
        twin = next((other for other, theirs in seen if theirs == described), None)
        if twin is not None and "function" not in described:  # the names of two functions may be the same
            problem = f"{twin} and {name} are the same evaluator, and would give the same answers"
            hint = "give them different models, templates or sampling, or one of them more samples"
            raise ConfigError(problem, field=field, hint=hint)
        seen.append((name, described))
    return by_name


def isolate_failures(member: Evaluator, task: Task, run: RunContext) -> Flow[Evaluation]:
    """A member's flow; an exception in it becomes a failed evaluation of that member alone."""
    try:
        return check_evaluation((yield from checked_flow(member, task, run)), task)
    except BaseException as error:
        if ends_more(error):
            raise
        failure = Failure("evaluator_error", f"{type(error).__name__}: {error}")
        return failed(task.id, member.name, len(task.candidates), failure, member.scale)


@dataclass(frozen=True, kw_only=True)
class EnsembleEvaluator(BaseEvaluator):
    """An evaluator that combines the evaluations of others."""

    @property
    def evaluators(self) -> tuple[Evaluator, ...]:
        """All evaluators that it may ask."""
        raise NotImplementedError

    @property
    def side_by_side(self) -> tuple[Evaluator, ...]:
        """Those of them that it asks at the same time."""
        return self.evaluators

    @property
    def scale(self) -> Scale:
        """The evaluators' scale if they share one, or else 0..10."""
        scales = {each.scale for each in self.evaluators}
        return scales.pop() if len(scales) == 1 else TEN

    @property
    def models(self) -> frozenset[str]:
        """Names of the models that the evaluators ask for."""
        return frozenset[str]().union(*(each.models for each in self.evaluators))

    @property
    def role_models(self) -> frozenset[str | None]:
        """Models that one of the evaluators asks with messages of other roles than a chat's; None is the run's own."""
        return frozenset[str | None]().union(*(getattr(each, "role_models", ()) for each in self.evaluators))

    @property
    def read_models(self) -> frozenset[str | None]:
        """Models whose probabilities one of the evaluators reads out; None is the run's own."""
        return frozenset[str | None]().union(*(getattr(each, "read_models", ()) for each in self.evaluators))

    @property
    def continued_models(self) -> frozenset[str | None]:
        """Those of them that one of the evaluators does not ask for a reply of their own; None is the run's own."""
        return frozenset[str | None]().union(*(getattr(each, "continued_models", ()) for each in self.evaluators))

    def check_task(self, task: Task) -> None:
        """Raise a `TaskError` for a task that one of the evaluators cannot evaluate."""
        check_task(self.evaluators, task)

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of the evaluators' prompts side by side."""
        each = [evaluator.footprint(task) for evaluator in self.side_by_side]
        return Footprint(
            characters=max(one.characters for one in each),
            replies=max(one.replies for one in each),
            max_tokens=max(one.max_tokens for one in each),
            prompts=sum(one.prompts for one in each),
            read_outs=max(one.read_outs for one in each),
        )

    def check(self) -> None:
        """Check every evaluator."""
        for evaluator in self.evaluators:
            evaluator.check()


def rescale(evaluation: Evaluation, scale: Scale) -> FloatArray:
    """An evaluation's scores (J,) on `scale`, which is its own or 0..10 with 10 best."""
    scores = evaluation.scale.hold(evaluation.scores)  # (J,)
    if evaluation.scale == scale:
        return scores
    units = [10.0 * evaluation.scale.to_unit(score) for score in scores.tolist()]
    return np.array(units, dtype=np.float64)  # (J,); NaN stays NaN


def scatter_candidates(evaluation: Evaluation, indices: Sequence[int], n: int) -> Evaluation:
    """An evaluation of the candidates at `indices` as one of all `n` of the task; the others are `skipped`."""
    statuses = dict(zip(indices, evaluation.statuses or ("ok",) * len(indices), strict=True))
    tensor = evaluation.tensor
    return replace(
        evaluation,
        scores=_spread(evaluation.scores, indices, n),
        probabilities=_spread(evaluation.probabilities, indices, n, missing=0.0),
        statuses=tuple(statuses.get(j, "skipped") for j in range(n)),
        selected=None if evaluation.selected is None else indices[evaluation.selected],
        tied=tuple(indices[j] for j in evaluation.tied),
        tensor=None if tensor is None else _spread(tensor, indices, n, axis=2),
        p_best=None if evaluation.p_best is None else _spread(evaluation.p_best, indices, n, missing=0.0),
        before=tuple(_spread_cells(each, indices, n) for each in evaluation.before),
        after=tuple(_spread_cells(each, indices, n) for each in evaluation.after),
        transcript=Transcript(tuple(_spread_turn(turn, indices, n) for turn in evaluation.transcript)),
        judgments=tuple(_spread_judgment(judgment, indices) for judgment in evaluation.judgments),
        members=tuple(scatter_candidates(member, indices, n) for member in evaluation.members),
    )


def _spread(array: FloatArray, indices: Sequence[int], n: int, *, axis: int = 0, missing: float = np.nan) -> FloatArray:
    """An array with all `n` candidates along `axis`; those that are not at `indices` have the value `missing`."""
    wide = np.full((*array.shape[:axis], n, *array.shape[axis + 1 :]), missing)
    wide[(slice(None),) * axis + (list(indices),)] = array
    return wide


def _spread_turn(turn: Turn, indices: Sequence[int], n: int) -> Turn:
    comments = dict(zip(indices, turn.comments, strict=False))  # a failed turn has none
    return replace(
        _spread_cells(turn, indices, n),
        labels={label: indices[j] for label, j in turn.labels.items()},
        comments=tuple(comments.get(j, "") for j in range(n)) if comments else (),
    )


def _spread_cells(read: _Cells, indices: Sequence[int], n: int) -> _Cells:
    """Scores, and their distributions where they were read out; without any probability for the others."""
    nothing = (LabelDistribution({}, 0.0),) * read.scores.shape[1]
    rows = dict(zip(indices, read.distributions, strict=False))
    wide = tuple(rows.get(j, nothing) for j in range(n)) if rows else ()
    return replace(read, scores=_spread(read.scores, indices, n), distributions=wide)


def _spread_judgment(sample: Judgment, indices: Sequence[int]) -> Judgment:
    candidates = tuple(indices[j] for j in sample.candidates)
    return replace(sample, candidates=candidates, ranking=tuple(indices[j] for j in sample.ranking))
