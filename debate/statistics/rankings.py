"""Rankings from pairs, and how far two sides rank systems alike."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate.statistics.intervals import NOWHERE, Estimate, check_range, cluster_codes, normal_quantile
from debate.types import FloatArray, score_array

ELO = 400 / math.log(10)
"""Points of the Elo scale for one unit of skill."""
_RIDGE = 0.01
_RUN_OFF = 12.0
"""Log odds that no finite number of games makes likely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill(Estimate):
    """One player's skill, in units of log odds around the mean of all players; times `ELO`, in points of Elo.

    `n` counts the player's games.

    Attributes:
        player: the name.
    """

    player: Hashable


@dataclass(frozen=True, slots=True)
class Ranking:
    """The skills of all players, the best first.

    Attributes:
        skills: one for each player.
        style: the effect of each style column for one standard deviation of it, in log odds.
        n: number of games.
        left_out: games without an outcome, or with a style that is not known.
        ridge: what holds the skills together where the games do not identify them, otherwise 0.
        reason: why there is a ridge; None without one.
    """

    skills: tuple[Skill, ...]
    style: tuple[Estimate, ...]
    n: int
    left_out: int
    ridge: float
    reason: str | None


def bradley_terry(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    outcomes: ArrayLike,
    clusters: ArrayLike | None = None,
    style: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Ranking:
    """Skills b with P(i beats j) = 1 / (1 + exp(b_j - b_i)) (Bradley and Terry 1952), by Newton's steps.

    A tie is half a win for each. With style columns the skills are those at equal style (LMArena's style control).
    Where some players only ever win or lose against the others, the games do not identify the skills: a small ridge
    holds them together, and `reason` says so. Intervals are percentiles of whole clusters drawn again.

    Args:
        first: (n,), the names of the first players.
        second: (n,), the names of the second players; nobody plays against themselves.
        outcomes: (n,), 1 where the first wins, 0 where the second wins, 1/2 for a tie; NaN is left out.
        clusters: (n,), a label for each game, such as its task.
        style: (n, S), differences first - second in what should not count, such as `(a - b) / (a + b)` of lengths.
        confidence: in (0, 1).
        draws: of the bootstrap; 0 for no intervals.
        seed: of the bootstrap.

    Raises:
        ValueError: for shapes that do not fit, and outcomes outside [0, 1].
    """
    won = score_array(outcomes, "(n,)", "outcomes")
    check_range("outcomes", won, 0.0, 1.0)
    normal_quantile(confidence)  # checks it
    extra = score_array(np.zeros((won.size, 0)) if style is None else style, "(n, S)", "style")
    if not len(first) == len(second) == won.size == len(extra):
        raise ValueError(f"all must have one length, got {len(first)}, {len(second)}, {won.size} and {len(extra)}")
    present = ~(np.isnan(won) | np.isnan(extra).any(axis=1))
    players = list(dict.fromkeys([*first, *second]))
    games = _Games(players, first, second, won, extra, present)
    codes, n_clusters = cluster_codes(clusters, present)
    value, ridge = games.fit(np.ones(games.n))
    rng, found = np.random.default_rng(seed), np.zeros((0, value.size))
    if draws and n_clusters > 1:
        drawn = (np.bincount(rng.integers(n_clusters, size=n_clusters), minlength=n_clusters) for _ in range(draws))
        found = np.array([games.fit(weights[codes].astype(np.float64), value)[0] for weights in drawn])
    ends = [NOWHERE] * value.size
    if found.size:
        low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
        ends = list(zip(low.tolist(), high.tolist(), strict=True))
    return games.ranking(value, ends, ridge, int((~present).sum()))


class _Games:
    """The games as rows of a logistic regression without intercept."""

    def __init__(
        self,
        players: list[Hashable],
        first: Sequence[Hashable],
        second: Sequence[Hashable],
        won: FloatArray,
        style: FloatArray,
        present: NDArray[np.bool_],
    ) -> None:
        places = {player: place for place, player in enumerate(players)}
        rows = np.flatnonzero(present)
        self.n, self.players = rows.size, players
        self._ends = np.array([[places[first[row]], places[second[row]]] for row in rows], dtype=np.intp).reshape(-1, 2)
        if (self._ends[:, 0] == self._ends[:, 1]).any():
            raise ValueError("nobody plays against themselves")
        self._won = won[rows]
        spread = style[rows].std(axis=0) if rows.size else np.ones(style.shape[1])  # (S,)
        style_rows = np.divide(style[rows], spread, out=np.zeros((rows.size, style.shape[1])), where=spread > 0)
        sides = np.eye(len(players))
        self._x = np.hstack([sides[self._ends[:, 0]] - sides[self._ends[:, 1]], style_rows])  # (games, P + S)

    def fit(self, weights: FloatArray, start: FloatArray | None = None) -> tuple[FloatArray, float]:
        """Skills around their mean and effects of style, (P + S,), and the ridge that was needed."""
        ridge = 0.0 if self._is_identified(weights) else _RIDGE
        beta = self._newton(weights, ridge, start)
        if not ridge and np.abs(beta).max(initial=0.0) > _RUN_OFF:  # a style column decides every game
            ridge = _RIDGE
            beta = self._newton(weights, ridge, None)
        return beta, ridge

    def _newton(self, weights: FloatArray, ridge: float, start: FloatArray | None) -> FloatArray:
        count, size = len(self.players), self._x.shape[1]
        beta = np.zeros(size) if start is None else start
        center = np.zeros((size, size))
        center[:count, :count] = 1.0 / max(count, 1)  # keeps the mean of the skills at 0 and changes nothing else
        for _ in range(100):
            p = 1 / (1 + np.exp(-self._x @ beta))  # (games,)
            slope = self._x.T @ (weights * (self._won - p)) - ridge * beta - center @ beta
            curve = (self._x * (weights * p * (1 - p))[:, None]).T @ self._x + center
            step = np.linalg.solve(curve + max(ridge, 1e-9) * np.eye(size), slope)
            beta = beta + step / max(
                1.0, float(np.abs(step).max(initial=0.0))
            )  # one unit at most, so it cannot run off
            if np.abs(step).max(initial=0.0) < 1e-9:
                break
        return beta

    def _is_identified(self, weights: FloatArray) -> bool:
        """Whether everybody beats everybody, directly or over others (Ford 1957)."""
        count = len(self.players)
        beats = np.eye(count, dtype=np.bool_)
        played = weights > 0
        wins, losses = played & (self._won > 0), played & (self._won < 1)
        beats[self._ends[wins, 0], self._ends[wins, 1]] = True
        beats[self._ends[losses, 1], self._ends[losses, 0]] = True
        for _ in range(count.bit_length()):
            beats = (beats.astype(np.float64) @ beats) > 0
        return bool(beats.all())

    def ranking(self, value: FloatArray, ends: list[tuple[float, float]], ridge: float, left_out: int) -> Ranking:
        """The result, best first."""
        count = len(self.players)
        games = np.bincount(self._ends.ravel(), minlength=count).tolist()
        gap = None if not ends or not math.isnan(ends[0][0]) else "an interval takes draws of two clusters"
        skills = [
            Skill(each, end, n, gap, player=player)
            for each, end, n, player in zip(value.tolist(), ends, games, self.players, strict=False)
        ]
        style = [Estimate(float(value[i]), ends[i], self.n, gap, left_out) for i in range(count, value.size)]
        best_first = tuple(sorted(skills, key=lambda skill: -skill.estimate))
        unknown = "not identified: some players only win or only lose against the others, or a style decides all"
        return Ranking(best_first, tuple(style), self.n, left_out, ridge, unknown if ridge else None)


# ---- systems


def soft_pairwise_accuracy(human: ArrayLike, judge: ArrayLike, draws: int = 1000, seed: int = 0) -> Estimate:
    """How far people and judge are sure of the same things about systems (Thompson et al. 2024, arXiv 2409.09598).

        1 - mean over pairs of systems of |p_human - p_judge|

    p is the one-sided p-value of a paired permutation test that the one system is better; the same signs are flipped
    for all pairs and both sides. There is no interval: the systems are few and not a sample.

    Args:
        human: (S, n), the score of each system on each item; NaN where unscored. A pair of systems is compared on the
            items that both have on that side.
        judge: (S, n), likewise.
        draws: of the permutation test.
        seed: of the permutation test.

    Raises:
        ValueError: for shapes that differ, infinite scores, and fewer than one draw.
    """
    people, judged = score_array(human, "(S, n)", "human"), score_array(judge, "(S, n)", "judge")
    if people.shape != judged.shape:
        raise ValueError(f"both sides must have one shape, got {people.shape} and {judged.shape}")
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    flipped = np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, people.shape[1]))  # (draws, n)
    sides = [_better(each, flipped) for each in (people, judged)]  # (pairs,) each
    apart = np.abs(sides[0] - sides[1])
    known = ~np.isnan(apart)
    left_out = int((~known).sum())
    if not known.any():
        return Estimate(math.nan, NOWHERE, 0, "no two systems have an item in common", left_out)
    value = float(1 - apart[known].mean())
    return Estimate(value, NOWHERE, int(known.sum()), "the systems are not a sample", left_out)


def _better(scores: FloatArray, flipped: FloatArray) -> FloatArray:
    """The p-value, for each pair of systems, that the first is no better; (pairs,), NaN without a common item."""
    first, second = np.triu_indices(len(scores), 1)
    differences = scores[first] - scores[second]  # (pairs, n)
    known = ~np.isnan(differences)
    filled = np.where(known, differences, 0.0)
    sums, seen = flipped @ filled.T, filled.sum(axis=1)  # (draws, pairs), (pairs,)
    close = 1e-9 * np.abs(filled).sum(axis=1)  # so that rounding does not decide between equal sums
    p = (sums >= seen - close).mean(axis=0)  # (pairs,)
    return np.where(known.any(axis=1), p, np.nan)
