"""Rules by which a debate ends before anybody has spoken, decided from a silent round of all agents.

    p_best=P       the winner is the best candidate with a probability of at least P; 0.95 by default
    margin=M       the winner is ahead of the second by at least M standard deviations of their difference; 2
    agreement=A    at least the share A of the agents have the winner as their only best candidate; 1

`,model=NAME` may follow: that model reads for all agents, and their own models debate what it leaves open, as in a
cascade (FrugalGPT, arXiv 2305.05176). A task is never settled where a cell of the silent round has no score, where two
candidates share the best score, or where there is one candidate only, of which nothing can be in doubt. A live debate
and the choice of a threshold on recorded runs ask the same function, `measures`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast, get_args

import numpy as np

from debate.errors import ConfigError
from debate.scoring.distributions import p_best as probabilities_of_best
from debate.scoring.distributions import score_distributions
from debate.scoring.tensor import Method, normalize_tensor
from debate.selection import argmax, tied_best
from debate.types import FloatArray, SilentReadout

SettleName = Literal["p_best", "margin", "agreement"]
_THRESHOLDS: dict[SettleName, float] = {"p_best": 0.95, "margin": 2.0, "agreement": 1.0}
OWN_MODELS = "the agents' own models"
"""What a run's identity says where no other model reads the silent round."""
_FORM = "give NAME or NAME=THRESHOLD: p_best=0.95, margin=2 or agreement=1; ,model=NAME may follow"


@dataclass(frozen=True, slots=True)
class SettleRule:
    """When a silent round settles a task; `parse` and `str` are inverse.

    Attributes:
        name: what is measured; see the module.
        threshold: the task is settled when the measure is at least this.
        model: that reads for all agents; None is each agent's own.
    """

    name: SettleName
    threshold: float
    model: str | None = None

    @classmethod
    def parse(cls, text: str, where: str = "settle") -> Self:
        """The rule that a text names.

        Args:
            text: NAME or NAME=THRESHOLD, and `,model=NAME` where another model reads.
            where: the setting or flag, for errors.

        Raises:
            ConfigError: for a text of another form, or a threshold that cannot work.
        """
        head, comma, more = text.strip().partition(",")
        found, equals, given = head.partition("=")
        if found not in get_args(SettleName):
            raise ConfigError(f"there is no rule {found!r}", field=where, hint=_FORM)
        key, _, model = more.partition("=")
        if comma and (key != "model" or not model.strip()):
            raise ConfigError(f"{more!r} does not belong to {found!r}: only model=NAME may", field=where, hint=_FORM)
        name = cast("SettleName", found)
        threshold = _threshold(name, given, where) if equals else _THRESHOLDS[name]
        return cls(name, threshold, model.strip() or None)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        threshold = repr(self.threshold).removesuffix(".0")
        return f"{self.name}={threshold}" + (f",model={self.model}" if self.model else "")

    def settles(self, measured: Mapping[SettleName, float]) -> bool:
        """Whether what `measures` found settles the task; NaN never does."""
        return measured[self.name] >= self.threshold


def _threshold(name: SettleName, given: str, where: str) -> float:
    try:
        threshold = float(given)
    except ValueError:
        raise ConfigError(f"the threshold of {name} must be a number, got {given!r}", field=where) from None
    most = math.inf if name == "margin" else 1.0
    if not 0 < threshold <= most or math.isinf(threshold):
        bounds = "above 0" if name == "margin" else "above 0 and at most 1"
        raise ConfigError(f"the threshold of {name} must be {bounds}, got {given}", field=where)
    return threshold


@dataclass(frozen=True, slots=True)
class Pooling:
    """How the read-outs of agents become one score for each candidate.

    Attributes:
        weights: of the components, (K,).
        method: see `debate.scoring.normalize_tensor`.
        quorum: agents that must have scored.
    """

    weights: FloatArray
    method: Method
    quorum: int

    def scores(self, silent: Sequence[SilentReadout]) -> FloatArray:
        """One score for each candidate, (J,); NaN = unscored."""
        tensor = np.stack([each.scores for each in silent])[None]  # (1, I, J, K)
        return normalize_tensor(tensor, self.weights, self.method, self.quorum)

    def p_best(self, silent: Sequence[SilentReadout]) -> FloatArray:
        """Probability of each candidate being the best, (J,); an agent that could not be read out has no say."""
        n_candidates, n_components = silent[0].scores.shape
        unread = ((None,) * n_components,) * n_candidates
        cells = [each.distributions or unread for each in silent]
        return probabilities_of_best(cells, self.weights, quorum=self.quorum)


def measures(rounds: Sequence[Sequence[SilentReadout]], pooling: Pooling) -> dict[SettleName, float]:
    """What the rules compare with their thresholds; all NaN where the silent rounds leave no room for a rule.

    That is where a cell has no score, where two candidates share the best score, where there is only one, and where the
    rounds differ in their winner.

    Args:
        rounds: one silent round, or both of a balanced debate, one per candidate order. Each measure is their mean.
        pooling: how agents' scores are put together.
    """
    unknown = dict.fromkeys(_THRESHOLDS, math.nan)
    if not rounds or not all(map(_is_whole, rounds)) or len(rounds[0][0].scores) < 2:
        return unknown
    scores = [pooling.scores(silent) for silent in rounds]  # (J,) each
    winner = argmax(np.mean(scores, axis=0))
    if winner is None or any(tied_best(each) or argmax(each) != winner for each in scores):
        return unknown
    each = [_measured(silent, pooling, winner) for silent in rounds]
    return {name: float(np.mean([found[name] for found in each])) for name in unknown}


def _is_whole(silent: Sequence[SilentReadout]) -> bool:
    return bool(silent) and all(each.distributions and not np.isnan(each.scores).any() for each in silent)


def _measured(silent: Sequence[SilentReadout], pooling: Pooling, winner: int) -> dict[SettleName, float]:
    cells, weights = [each.distributions for each in silent], pooling.weights
    values, masses = score_distributions(cells, weights, quorum=pooling.quorum)  # (S,), (J, S)
    means = masses @ values  # (J,)
    variances = masses @ values**2 - means**2  # (J,)
    others = [j for j in range(len(means)) if j != winner]
    second = max(others, key=lambda j: means[j], default=winner)
    deviation = math.sqrt(max(float(variances[winner] + variances[second]), 1e-12))
    own = [normalize_tensor(each.scores[None, None], weights, pooling.method, 1) for each in silent]  # (J,) each
    for_winner = [argmax(scores) == winner and not tied_best(scores) for scores in own]
    return {
        "p_best": float(pooling.p_best(silent)[winner]),
        "margin": float(means[winner] - means[second]) / deviation,
        "agreement": float(np.mean(for_winner)),
    }
