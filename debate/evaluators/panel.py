"""Several evaluators judge the same candidates, and their scores are combined.

    gather: each member's own flow;  a member that failed is replaced by its reserve, if it has one
    combine what they scored by how far they agree -> scores

A member may be any evaluator, a debate too. The arithmetic is in `debate.scoring.agreement`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import numpy as np

from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator, Footprint, RunContext, check_task
from debate.evaluators.ensemble import common_scale, footprint, isolate_failures, models, rescale, validate_members
from debate.evaluators.result import SelectionPolicy, build_evaluation
from debate.flow import Flow, gather
from debate.scoring.agreement import RankMethod, Rule, agreement, combine, consensus
from debate.types import FloatArray, Scale, Task

By = Literal["scores", "ranks"]


@dataclass(frozen=True, kw_only=True)
class PanelEvaluator:
    """A panel of evaluators.

    >>> PanelEvaluator(members={"strict": ValueEvaluator(model="a"), "kind": ValueEvaluator(model="b")})

    Members on different scales are brought to 0..10. `details`: `members` {name: its place in `members`}, `votes` (how
    many members scored each candidate), `quorum`, `failed` {name: why}, `replaced` [name], `agreement` a candidate,
    `rules` (which made each score), `consensus` and `consensus_undefined` (why there is none).

    Raises:
        ConfigError: for settings that cannot work.
    """

    members: Mapping[str, Evaluator]
    by: By = "scores"
    """What agreement is: `scores`, how close the members' scores of one candidate are; `ranks`, how far they rank the
    candidates alike (rank correlation)."""
    formula: Literal["scale", "unscaled"] = "scale"
    """Of the agreement of scores; see `debate.scoring.agreement.agreement`."""
    ranks: RankMethod = "spearman"
    threshold: float | None = None
    """Above it `above` makes the score, else `below`. None is 0.8 for scores and 0.7 for ranks."""
    above: Rule = "mean"
    below: Rule | None = None
    """None is `worst` for scores, and for ranks `weighted` where there are weights, else `mean`."""
    weights: Mapping[str, float] | None = None
    """By member, for the rule `weighted`."""
    quorum: int | None = None
    """Members that must have scored a candidate; None is more than half."""
    reserves: Mapping[str, Evaluator] = field(default_factory=dict[str, Evaluator])
    """Who takes a member's place when it fails, by the member's name."""
    selection: Literal["argmax", "sample"] = "argmax"
    ties: Literal["first", "seeded"] = "first"
    softmax_temperature: float = 1.0
    name: str = field(default="panel", init=False)
    scale: Scale = field(init=False)

    def __post_init__(self) -> None:
        self.choosing  # noqa: B018 - checks itself
        set_ = object.__setattr__
        set_(self, "members", validate_members(self.members, "members"))
        if self.reserves:
            set_(self, "reserves", validate_members(self.reserves, "reserves"))
        for name in self.reserves.keys() - self.members.keys():
            raise ConfigError(f"{name!r} is no member; there are {', '.join(self.members)}", field="reserves")
        everybody = [*self.members.values(), *self.reserves.values()]
        set_(self, "scale", common_scale(everybody))
        n = len(self.members)
        if self.quorum is not None and not 1 <= self.quorum <= n:
            raise ConfigError(f"must lie in 1..{n}, or be None, got {self.quorum}", field="quorum")
        if "weighted" in (self.above, self.rule_below) and self.weights is None:
            raise ConfigError("the rule 'weighted' needs one a member", field="weights")
        if self.weights is not None:
            self._check_weights(self.weights)
        for name, allowed in (
            ("by", get_args(By)),
            ("formula", ("scale", "unscaled")),
            ("ranks", get_args(RankMethod)),
        ):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"must be one of {', '.join(allowed)}, got {getattr(self, name)!r}", field=name)
        for name, rule in (("above", self.above), ("below", self.rule_below)):
            if rule not in get_args(Rule):
                raise ConfigError(f"must be one of {', '.join(get_args(Rule))}, got {rule!r}", field=name)
        if self.formula == "scale" and self.by == "scores" and np.isinf(self.scale.high):
            raise ConfigError("the members' scale has no end; take formula='unscaled' or by='ranks'", field="formula")

    @property
    def choosing(self) -> SelectionPolicy:
        """How a candidate is chosen."""
        return SelectionPolicy(self.selection, self.ties, self.softmax_temperature)

    def _check_weights(self, weights: object) -> None:
        if not isinstance(weights, Mapping) or cast("Mapping[str, Any]", weights).keys() != self.members.keys():
            raise ConfigError(f"needs one for each of {', '.join(self.members)}", field="weights")
        for name, weight in cast("Mapping[str, Any]", weights).items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < np.inf:
                raise ConfigError(f"must be above 0 and finite, got {weight!r}", field=f"weights.{name}")

    @property
    def models(self) -> frozenset[str]:
        """Those of the members and their reserves."""
        return models(self.members) | models(self.reserves)

    @property
    def quorum_size(self) -> int:
        """Members that must have scored a candidate."""
        return self.quorum if self.quorum is not None else len(self.members) // 2 + 1

    @property
    def rule_below(self) -> Rule:
        """The rule in force below the threshold."""
        if self.below is not None:
            return self.below
        return "worst" if self.by == "scores" else "mean" if self.weights is None else "weighted"

    def check_task(self, task: Task) -> None:
        """Refuse a task that a member cannot evaluate."""
        check_task((*self.members.values(), *self.reserves.values()), task)

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Let every member evaluate `task`, and combine."""
        evaluations = list(
            (yield from gather([isolate_failures(member, task, run) for member in self.members.values()]))
        )
        first = dict(zip(self.members, evaluations, strict=True))
        replaced = [name for name in self.reserves if first[name].status == "failed"]
        reserves = yield from gather([isolate_failures(self.reserves[name], task, run) for name in replaced])
        seated = first | dict(zip(replaced, reserves, strict=True))
        matrix = np.stack([rescale(evaluation, self.scale) for evaluation in seated.values()])  # (M, J)
        votes = (~np.isnan(matrix)).sum(axis=0)  # (J,)
        scores, details = self._combine(matrix, list(self.members))
        scores = np.where(votes >= self.quorum_size, scores, np.nan)  # (J,)
        members = [*seated.values(), *(first[name] for name in replaced)]
        return build_evaluation(
            self.name,
            self.scale,
            task,
            run,
            self.choosing,
            scores=scores,
            failures=[failure for member in members for failure in member.failures],
            members=members,
            details={
                "members": {name: n for n, name in enumerate(seated)},
                "votes": votes.tolist(),
                "quorum": self.quorum_size,
                "failed": {name: each.error for name, each in seated.items() if each.status == "failed"},
                "replaced": replaced,
                **details,
            },
        )

    def _combine(self, matrix: FloatArray, names: list[str]) -> tuple[FloatArray, dict[str, Any]]:
        """Scores (J,) from those of the members (M, J), and how they came about."""
        weights = None if self.weights is None else [self.weights[name] for name in names]
        correlation = consensus(matrix, self.ranks) if len(matrix) > 1 else None
        agreed = agreement(matrix, self.scale if self.formula == "scale" and np.isfinite(self.scale.high) else None)
        if self.by == "ranks":
            basis: Any = np.nan if correlation is None else correlation
        else:
            basis = agreed
        limit = self.threshold if self.threshold is not None else 0.8 if self.by == "scores" else 0.7
        combined = combine(
            matrix,
            basis,
            limit,
            above=self.above,
            below=self.rule_below,
            weights=weights,
            higher_is_better=self.scale.higher_is_better,
        )
        details = {
            "agreement": agreed.tolist(),
            "rules": list(combined.rules),
            "consensus": None if correlation is None else float(correlation),
            "consensus_undefined": "one member" if correlation is None else correlation.reason,
        }
        return combined.scores, details

    def footprint(self, task: Task) -> Footprint:
        """All members side by side."""
        return footprint(self.members, task)

    def check(self) -> None:
        """Check every member."""
        for member in (*self.members.values(), *self.reserves.values()):
            member.check()

    def describe(self) -> dict[str, Any]:
        """The members' settings; how they are combined under `aggregation`."""
        return {
            "evaluator": self.name,
            "members": {name: member.describe() for name, member in self.members.items()},
            "reserves": {name: member.describe() for name, member in self.reserves.items()},
            "aggregation": {
                "by": self.by,
                "formula": self.formula,
                "ranks": self.ranks,
                "threshold": self.threshold,
                "above": self.above,
                "below": self.rule_below,
                "weights": None if self.weights is None else dict(self.weights),
                "quorum": self.quorum_size,
                "selection": self.selection,
                "ties": self.ties,
                "softmax_temperature": self.softmax_temperature,
            },
        }
