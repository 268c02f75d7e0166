"""Rules by which a debate ends before its last round, decided from the scores of its rounds so far.

    cv=C,over=D    the agents agree: their coefficient of variation is at most C, 0.1 by default (Yucha 2024); over is
                   agents, cells or pooled: see `debate.convergence`
    ranking        the round ranks all candidates as the round before did, ties included
    change=D       the scores moved by at most D of the scale's width since the round before, on average; 0.05
    spread=S       the agents' scores of a cell have a sample standard deviation of at most S of the scale's width, on
                   average; 0.05
    rounds=N       N rounds were taken; 1
    none           never

A live debate and the trial of rules on recorded rounds ask the same method, `Rounds.stop_reason`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, cast, get_args

import numpy as np

from debate.convergence import Over, coefficient_of_variation, has_converged
from debate.errors import ConfigError
from debate.scoring.tensor import normalize_tensor
from debate.selection import ranks
from debate.types import FloatArray, StopReason

RuleName = Literal["cv", "ranking", "change", "spread", "rounds", "none"]
_THRESHOLDS: dict[RuleName, float] = {
    "cv": 0.1,
    "ranking": 0.0,
    "change": 0.05,
    "spread": 0.05,
    "rounds": 1.0,
    "none": 0.0,
}
_FORM = "give NAME or NAME=THRESHOLD: cv=0.1,over=agents, ranking, change=0.05, spread=0.05, rounds=2 or none"


@dataclass(frozen=True, slots=True)
class StopRule:
    """When a debate ends before its last round; `parse` and `str` are inverse.

    Attributes:
        name: what is measured after each round.
        threshold: the debate ends when the measure is at most this; for `rounds`, their number.
        over: which CV; it matters to `cv` alone.
    """

    name: RuleName
    threshold: float
    over: Over = "agents"

    @classmethod
    def parse(cls, text: str, over: Over = "agents", where: str = "stop_rule") -> Self:
        """The rule that a text names.

        Args:
            text: NAME or NAME=THRESHOLD; `,over=DEFINITION` may follow for `cv`.
            over: where the text names none.
            where: the setting or flag, for errors.

        Raises:
            ConfigError: for a text of another form, or a threshold that cannot work.
        """
        head, *more = text.strip().split(",")
        found, equals, given = head.partition("=")
        if found not in get_args(RuleName):
            raise ConfigError(f"there is no rule {found!r}", field=where, hint=_FORM)
        name = cast("RuleName", found)
        if equals and name in ("ranking", "none"):
            raise ConfigError(f"{name} takes no threshold, got {text!r}", field=where, hint=_FORM)
        for part in more:
            key, _, over_given = part.partition("=")
            if name != "cv" or key != "over" or over_given not in get_args(Over):
                problem = f"{part!r} does not belong to {name!r}: only cv takes over={'|'.join(get_args(Over))}"
                raise ConfigError(problem, field=where, hint=_FORM)
            over = cast("Over", over_given)
        threshold = _threshold(name, given, where) if equals else _THRESHOLDS[name]
        return cls(name, threshold, over)

    @classmethod
    def of_settings(cls, stop_rule: str | None, convergence: float | None, over: Over) -> Self:
        """The rule that a debate's settings of these names come to.

        Raises:
            ConfigError: as `parse`.
        """
        if stop_rule is not None:
            return cls.parse(stop_rule, over)
        return cls("none", 0.0, over) if convergence is None else cls("cv", convergence, over)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        if self.name in ("ranking", "none"):
            return self.name
        threshold = repr(self.threshold).removesuffix(".0")
        return f"{self.name}={threshold}" + (f",over={self.over}" if self.name == "cv" else "")


def _threshold(name: str, given: str, where: str) -> float:
    try:
        threshold = float(given)
    except ValueError:
        raise ConfigError(f"the threshold of {name} must be a number, got {given!r}", field=where) from None
    if not (math.isfinite(threshold) and threshold >= 0):
        raise ConfigError(f"the threshold of {name} must be at least 0, got {given}", field=where)
    if name == "rounds" and not (threshold >= 1 and threshold.is_integer()):
        raise ConfigError(f"rounds must be a whole number, at least 1, got {given}", field=where)
    return threshold


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """What a stop rule sees of a debate. Of later rounds than the one it is asked about it sees nothing.

    Attributes:
        tensor: S of the rounds so far, (R, I, J, K), NaN = unscored.
        is_whole: per round, whether no turn of it failed, (R,).
        weights: of the components, (K,); they rank the candidates.
        quorum: agents that must have scored for a round to count.
        width: of the scale of a cell.
    """

    tensor: FloatArray
    is_whole: Sequence[bool]
    weights: FloatArray
    quorum: int
    width: float
    _measured: dict[tuple[RuleName, Over, int], float] = field(
        default_factory=dict[tuple[RuleName, Over, int], float], init=False, repr=False
    )

    def stop_reason(self, rule: StopRule, r: int, min_rounds: int = 1) -> StopReason | None:
        """Why a debate under this rule ends after round `r`, from 0; None where it goes on.

        Under any rule but `none` a debate also ends after a round in which every agent abstained.
        """
        if rule.name == "none" or r + 1 < min_rounds:
            return None
        if self.is_whole[r] and np.isnan(self.tensor[r]).all():
            return "abstained"  # and would again, for all that has been said
        if rule.name == "rounds":
            return "stop_rule" if r + 1 >= rule.threshold else None
        if not has_converged(self.measure(rule, r), rule.threshold):
            return None
        return "converged" if rule.name == "cv" else "stop_rule"

    def measure(self, rule: StopRule, r: int) -> float:
        """What the rule compares with its threshold after round `r`; NaN where it is undefined, which ends no debate.

        For `ranking` it is 0 where nothing changed, and else 1.
        """
        key = (rule.name, rule.over, r)
        if key not in self._measured:
            self._measured[key] = self._measure(rule, r)
        return self._measured[key]

    def _measure(self, rule: StopRule, r: int) -> float:
        if rule.name == "cv":
            return coefficient_of_variation(self.tensor[r], rule.over, self.quorum)
        if rule.name == "spread":
            scored = self._of_agents(r, r)[0]  # (agents, J, K)
            return float(scored.std(axis=0, ddof=1).mean()) / self.width if len(scored) > 1 else math.nan
        if r == 0:
            return math.nan
        if rule.name == "change":
            before, now = self._of_agents(r - 1, r)  # (agents, J, K) each
            return float(np.abs(now - before).mean()) / self.width if now.size else math.nan
        before, now = (ranks(self._scores(at)) for at in (r - 1, r))
        return math.nan if None in before + now else float(before != now)

    def _of_agents(self, first: int, last: int) -> FloatArray:
        """The scores of rounds first..last, of the agents that scored every cell of them, none where too few did."""
        rounds = self.tensor[first : last + 1]  # (rounds, I, J, K)
        complete = ~np.isnan(rounds).any(axis=(0, 2, 3))  # (I,)
        return rounds[:, complete if complete.sum() >= self.quorum else np.zeros_like(complete)]

    def _scores(self, r: int) -> FloatArray:
        """What round `r` alone makes of the candidates, (J,)."""
        return normalize_tensor(self.tensor[r : r + 1], self.weights, "article", self.quorum)
