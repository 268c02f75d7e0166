"""Several evaluators judge the same candidates, and their scores are combined.

    gather: each member's own flow;  a member that failed is replaced by its reserve, if it has one
    combine the scores by a rule that depends on the members' agreement

A member may be any evaluator, also a debate. The arithmetic is in `debate.scoring.agreement`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np

from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator, RunContext
from debate.evaluators.ensemble import EnsembleEvaluator, isolate_failures, rescale, validate_members
from debate.evaluators.result import build_evaluation
from debate.flow import Flow, gather
from debate.scoring.agreement import RankMethod, Rule, agreement, combine, consensus
from debate.settings import REQUIRED, describe_settings, documented, result_setting, setting
from debate.types import FloatArray, Task


@documented
@dataclass(frozen=True, kw_only=True)
class PanelEvaluator(EnsembleEvaluator):
    """A panel of evaluators.

    >>> PanelEvaluator(members={"strict": ValueEvaluator(model="a"), "kind": ValueEvaluator(model="b")})

    Scores on different scales are mapped to 0..10. `details`: `members` {name: index in `members`}, `votes` (number of
    members that scored each candidate), `quorum`, `failed` {name: error}, `replaced` [name], `agreement` per candidate,
    `rules` (the rule of each score), `consensus` and `consensus_undefined` (why there is none). `Evaluation.p_best` is
    the mean of those of the members that scored, where all of them have one; of the scored candidates it sums to 1.

    Raises:
        ConfigError: for settings that cannot work.
    """

    members: Mapping[str, Evaluator] = setting(REQUIRED, "The evaluators, by name.", is_hashable=False)
    by: Literal["scores", "ranks"] = result_setting(
        "scores",
        "What agreement is. scores: how close the members' scores of a candidate are. ranks: the correlation of the "
        "members' rankings of the candidates.",
    )
    formula: Literal["scale", "unscaled"] = result_setting(
        "scale", "How agreement of scores is computed; see `debate.scoring.agreement.agreement`."
    )
    ranks: RankMethod = result_setting("spearman", "Which rank correlation is taken.")
    threshold: float | None = result_setting(
        None, "With more agreement, `above` makes the score, else `below`; None is 0.8 for scores and 0.7 for ranks."
    )
    above: Rule = result_setting("mean", "The rule that makes the score where agreement is above the threshold.")
    below: Rule | None = result_setting(
        None, "The rule below it; None is worst for scores, and for ranks weighted where there are weights, else mean."
    )
    weights: Mapping[str, float] | None = result_setting(
        None, "A weight per member, for the rule weighted.", is_hashable=False
    )
    quorum: int | None = result_setting(None, "Members that must score a candidate; None is more than half.", ge=1)
    reserves: Mapping[str, Evaluator] = setting(
        dict, "The evaluator that replaces a failed member, by its name.", is_hashable=False
    )
    name: str = field(default="panel", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "members", validate_members(self.members, "members"))
        if self.reserves:
            object.__setattr__(self, "reserves", validate_members(self.reserves, "reserves"))
        for name in self.reserves.keys() - self.members.keys():
            raise ConfigError(f"{name!r} is no member; there are {', '.join(self.members)}", field="reserves")
        n = len(self.members)
        if self.quorum is not None and self.quorum > n:
            raise ConfigError(f"must lie in 1..{n}, or be None, got {self.quorum}", field="quorum")
        if "weighted" in (self.above, self.rule_below) and self.weights is None:
            raise ConfigError("the rule 'weighted' needs a weight per member", field="weights")
        if self.weights is not None:
            self._check_weights(self.weights)
            if "weighted" not in (self.above, self.rule_below):
                problem = f"is not used by the rules {self.above!r} and {self.rule_below!r}"
                raise ConfigError(problem, field="weights", hint="set above or below to weighted")
        if self.formula == "scale" and self.by == "scores" and np.isinf(self.scale.high):
            raise ConfigError("the members' scale has no end; take formula='unscaled' or by='ranks'", field="formula")

    @property
    def evaluators(self) -> tuple[Evaluator, ...]:
        """The members and their reserves."""
        return (*self.members.values(), *self.reserves.values())

    @property
    def side_by_side(self) -> tuple[Evaluator, ...]:
        """The members; a reserve only takes the place of one that has failed."""
        return tuple(self.members.values())

    def _check_weights(self, weights: object) -> None:
        if not isinstance(weights, Mapping) or cast("Mapping[str, Any]", weights).keys() != self.members.keys():
            raise ConfigError(f"needs one for each of {', '.join(self.members)}", field="weights")
        for name, weight in cast("Mapping[str, Any]", weights).items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < np.inf:
                raise ConfigError(f"must be above 0 and finite, got {weight!r}", field=f"weights.{name}")

    @property
    def quorum_size(self) -> int:
        """Number of members that must have scored a candidate."""
        return self.quorum if self.quorum is not None else len(self.members) // 2 + 1

    @property
    def rule_below(self) -> Rule:
        """The rule below the threshold, given or derived."""
        if self.below is not None:
            return self.below
        return "worst" if self.by == "scores" else "mean" if self.weights is None else "weighted"

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Let every member evaluate `task`, and combine their scores."""
        evaluations = yield from gather([isolate_failures(member, task, run) for member in self.members.values()])
        first = dict(zip(self.members, evaluations, strict=True))
        replaced = [name for name in self.reserves if first[name].status == "failed"]
        reserves = yield from gather([isolate_failures(self.reserves[name], task, run) for name in replaced])
        seated = first | dict(zip(replaced, reserves, strict=True))
        matrix = np.stack([rescale(evaluation, self.scale) for evaluation in seated.values()])  # (M, J)
        votes = (~np.isnan(matrix)).sum(axis=0)  # (J,)
        scores, combining = self._combine(matrix, list(self.members))
        scores = np.where(votes >= self.quorum_size, scores, np.nan)  # (J,)
        members = [*seated.values(), *(first[name] for name in replaced)]
        details = {
            "members": {name: n for n, name in enumerate(seated)},
            "votes": votes.tolist(),
            "quorum": self.quorum_size,
            "failed": {name: each.error for name, each in seated.items() if each.status == "failed"},
            "replaced": replaced,
            **combining,
        }
        best = _p_best(list(seated.values()), scores)
        return build_evaluation(self, task, run, scores=scores, members=members, details=details, p_best=best)

    def _combine(self, matrix: FloatArray, names: list[str]) -> tuple[FloatArray, dict[str, Any]]:
        """Scores (J,) from the members' scores (M, J), and the details of how they were combined."""
        weights = None if self.weights is None else [self.weights[name] for name in names]
        correlation = consensus(matrix, self.ranks) if len(matrix) > 1 else None
        agreed = agreement(matrix, self.scale if self.formula == "scale" and np.isfinite(self.scale.high) else None)
        basis: Any = agreed if self.by == "scores" else np.nan if correlation is None else correlation
        usual = 0.8 if self.by == "scores" else 0.7
        combined = combine(
            matrix,
            basis,
            usual if self.threshold is None else self.threshold,
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

    def describe(self) -> dict[str, Any]:
        """The members' settings; how they are combined stands under `aggregation`."""
        return describe_settings(
            self,
            evaluator=self.name,
            members={name: member.describe() for name, member in self.members.items()},
            reserves={name: member.describe() for name, member in self.reserves.items()},
            aggregation={
                "below": self.rule_below,
                "weights": None if self.weights is None else dict(self.weights),
                "quorum": self.quorum_size,
            },
        )


def _p_best(seated: Sequence[Evaluation], scores: FloatArray) -> FloatArray | None:
    """Mean of the probabilities of being the best (J,), over members that did not fail; None where one has none."""
    found = [member.p_best for member in seated if member.status != "failed"]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    mean = np.where(np.isnan(scores), 0.0, np.mean(known, axis=0))  # (J,)
    return mean / mean.sum() if mean.any() else mean
