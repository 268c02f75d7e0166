"""Turns ballots into one score per candidate: Borda, plurality, pairwise wins and Copeland.

Ballots are checked before they are added up: an invalid one is rejected with a reason and left out, never repaired.
Without a valid ballot all scores are NaN. `rank_correlation` measures how far two votes agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from debate.scoring.agreement import Correlation as Correlation
from debate.scoring.agreement import rank_correlation as rank_correlation
from debate.types import FloatArray, check_choice

Counting = Literal["from_one", "from_zero"]
Unranked = Literal["zero", "share"]


def borda_count(
    ballots: Rankings, n_candidates: int, counting: Counting = "from_one", unranked: Unranked = "zero"
) -> FloatArray:
    """Borda scores on 0..10 from rankings, best first; (J,), all NaN without a valid ballot.

    With J candidates, V valid ballots, and `rank` from 0:

        from_one    10 / (V * J)       * sum over ballots of (J - rank)        a unanimous last place gets 10 / J
        from_zero   10 / (V * (J - 1)) * sum over ballots of (J - 1 - rank)    a unanimous last place gets 0

    A partial ballot gives the candidates it leaves out nothing (`unranked="zero"`), or each the mean of the places
    that it leaves open (`"share"`, which keeps the sum of the scores the same). A single candidate scores 10.

    Raises ValueError for fewer than one candidate and unknown options.
    """
    check_choice("counting", counting, Counting)
    check_choice("unranked", unranked, Unranked)
    valid = check_ballots(ballots, n_candidates).valid
    if not valid:
        return np.full(n_candidates, np.nan)
    last = 1.0 if counting == "from_one" or n_candidates == 1 else 0.0
    totals = np.zeros(n_candidates)  # (J,)
    for ballot in valid:
        totals += _points(ballot, n_candidates, last, unranked)
    return totals / (len(valid) * (n_candidates - 1 + last)) * 10.0


def plurality_count(choices: Iterable[int | None], n_candidates: int) -> FloatArray:
    """How many voters chose each candidate; (J,), all NaN without a valid vote.

    choices: index of the candidate each voter chose; None, or an index out of range, is no vote. `check_ballots` names
    and counts those, given each choice as a ballot of one.

    Raises ValueError for fewer than one candidate.
    """
    one_each = [[] if choice is None else [choice] for choice in choices]
    valid = check_ballots(one_each, n_candidates).valid
    if not valid:
        return np.full(n_candidates, np.nan)
    return np.bincount([choice for (choice,) in valid], minlength=n_candidates).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of two candidates, by index. `preferred` is one of the two, or None when they are equal."""

    first: int
    second: int
    preferred: int | None


def pairwise_wins(comparisons: Sequence[Comparison], n_candidates: int) -> FloatArray:
    """How often each candidate was preferred to each other; (J, J), `wins[a, b]` for a over b, half a win for a tie.

    Raises ValueError for a comparison that is not between two of the candidates, or prefers neither of its two.
    """
    wins = np.zeros((n_candidates, n_candidates))  # (J, J)
    for n, each in enumerate(comparisons):
        pair = (each.first, each.second)
        if each.first == each.second or not all(0 <= j < n_candidates for j in pair):
            raise ValueError(f"comparison {n} is not between two of {n_candidates} candidates: {pair}")
        if each.preferred not in (*pair, None):
            raise ValueError(f"comparison {n} is between {pair} and prefers {each.preferred}")
        wins[pair] += _share(each.first, each.preferred)
        wins[pair[::-1]] += _share(each.second, each.preferred)
    return wins


def wins_of_rankings(ballots: Rankings, n_candidates: int) -> FloatArray:
    """How many ballots rank each candidate before each other; (J, J), `wins[a, b]` for a before b.

    What a partial ballot names comes before what it leaves out; among those left out it says nothing.
    """
    wins = np.zeros((n_candidates, n_candidates))  # (J, J)
    for ballot in check_ballots(ballots, n_candidates).valid:
        behind = set(range(n_candidates))
        for candidate in ballot:
            behind.discard(candidate)
            wins[candidate, list(behind)] += 1
    return wins


def copeland_score(wins: FloatArray) -> FloatArray:
    """Copeland scores on 0..10: the share of opponents that a candidate beats, a tie counting half; (J,).

    A candidate beats another when it was preferred to it more often than the other way. Opponents it was never compared
    with do not count; one that was compared with nobody is NaN.

    wins: (J, J), from `pairwise_wins` or `wins_of_rankings`.
    """
    compared = (wins + wins.T) > 0  # (J, J)
    beaten = np.where(compared, (np.sign(wins - wins.T) + 1) / 2, 0.0).sum(axis=1)  # (J,)
    opponents = compared.sum(axis=1)  # (J,)
    return np.divide(10.0 * beaten, opponents, out=np.full(len(wins), np.nan), where=opponents > 0)


def _points(ballot: Sequence[int], n: int, last: float, unranked: Unranked) -> FloatArray:
    """What one ballot gives each candidate, with `last` points for the last of all; (J,)."""
    left_out = n - len(ballot)
    points = np.full(n, (left_out - 1) / 2 + last if unranked == "share" else 0.0)  # (J,)
    points[list(ballot)] = np.arange(n - 1, left_out - 1, -1) + last
    return points


def _share(candidate: int, preferred: int | None) -> float:
    return 0.5 if preferred is None else float(candidate == preferred)


Ballot = Sequence[int]
"""Candidate indices from 0, best first. A partial one leaves candidates out at its end."""
Rankings = Sequence[Ballot] | NDArray[Any]
RejectionReason = Literal["empty", "too_long", "not_an_index", "negative", "out_of_range", "duplicate", "partial"]


@dataclass(frozen=True, slots=True)
class RejectedBallot:
    """An invalid ballot. `index` is its position among those given, from 0."""

    index: int
    reason: RejectionReason
    message: str


@dataclass(frozen=True, slots=True)
class CheckedBallots:
    """The valid ballots, in their order, and the rejected ones."""

    valid: tuple[tuple[int, ...], ...]
    rejected: tuple[RejectedBallot, ...]

    @property
    def reasons(self) -> dict[RejectionReason, int]:
        """How many ballots were rejected for each reason."""
        return dict(Counter(ballot.reason for ballot in self.rejected))


def check_ballots(ballots: Rankings, n_candidates: int, *, partial: bool = True) -> CheckedBallots:
    """Separate valid rankings of `n_candidates` from invalid ones; with `partial=False` each must rank all.

    Raises ValueError for fewer than one candidate.
    """
    if n_candidates < 1:
        raise ValueError(f"there must be at least one candidate, got {n_candidates}")
    valid: list[tuple[int, ...]] = []
    rejected: list[RejectedBallot] = []
    for index, ballot in enumerate(ballots):
        ids: list[object] = list(cast("Iterable[object]", ballot))
        if fault := _fault(ids, n_candidates, partial):
            rejected.append(RejectedBallot(index, *fault))
        else:
            valid.append(tuple(int(cast("int", candidate)) for candidate in ids))
    return CheckedBallots(tuple(valid), tuple(rejected))


def _fault(ids: list[object], n: int, partial: bool) -> tuple[RejectionReason, str] | None:
    if not ids:
        return "empty", "the ballot names no candidate"
    if len(ids) > n:
        return "too_long", f"the ballot names {len(ids)} candidates, there are {n}"
    seen: set[int] = set()
    for candidate in ids:
        if isinstance(candidate, bool) or not isinstance(candidate, Integral):
            return "not_an_index", f"{candidate!r} is no index of a candidate"
        if not 0 <= (index := int(candidate)) < n:
            return "negative" if index < 0 else "out_of_range", f"candidate {index} is not among 0 to {n - 1}"
        if index in seen:
            return "duplicate", f"the ballot names candidate {index} twice"
        seen.add(index)
    if len(ids) < n and not partial:
        return "partial", f"the ballot names {len(ids)} of {n} candidates"
    return None
