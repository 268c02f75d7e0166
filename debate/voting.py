"""From ballots to one score a candidate: Borda, plurality, pairwise wins and Copeland.

Ballots that do not count (`debate.voting`) are left out; where none counts, nobody has a score (NaN). Pure maths: this
module does not know who votes, nor how a ballot was read. `rank_correlation` says how far two votes agree.

Which ballots count: rankings of candidates, checked before they are added up.

A ballot that is not what it should be is rejected with a reason and counted, never mended. This module does not know
how votes are added up, nor what text a ballot was read from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from debate.compat import is_compat
from debate.scoring.agreement import Correlation as Correlation
from debate.scoring.agreement import rank_correlation as rank_correlation
from debate.types import FloatArray

Normalise = Literal["seed", "span"]
Unranked = Literal["zero", "share"]


def borda_count(
    ballots: Rankings,
    n_candidates: int,
    normalise: Normalise = "seed",
    unranked: Unranked = "zero",
    *,
    compat: Literal["seed"] | None = None,
) -> FloatArray:
    """Borda scores on 0..10 from rankings, best first; (J,), all NaN when no ballot counts.

    With J candidates, V ballots that count, and `rank` from 0:

        seed   10 / (V * J)       * sum over ballots of (J - rank)        the last of all gets 10 / J (seed 000)
        span   10 / (V * (J - 1)) * sum over ballots of (J - 1 - rank)    the last of all gets 0, the first 10

    A partial ballot gives the candidates it leaves out nothing (`unranked="zero"`), or each the mean of the places
    that it leaves open (`"share"`, which keeps the sum of the scores the same). A single candidate scores 10.

    With `compat="seed"` every ballot is counted as it stands: an id twice scores twice, -1 is the last candidate, an id
    that is not there is an IndexError, and no ballots are a ZeroDivisionError.

    Raises ValueError for fewer than one candidate and unknown options.
    """
    if normalise not in get_args(Normalise):
        raise ValueError(f"unknown normalise {normalise!r}, expected one of {', '.join(get_args(Normalise))}")
    if unranked not in get_args(Unranked):
        raise ValueError(f"unknown unranked {unranked!r}, expected one of {', '.join(get_args(Unranked))}")
    if is_compat(compat, "seed"):
        return _borda_unchecked(ballots, n_candidates)
    valid = check_ballots(ballots, n_candidates).valid
    if not valid:
        return np.full(n_candidates, np.nan)
    last = 1.0 if normalise == "seed" or n_candidates == 1 else 0.0
    totals = np.zeros(n_candidates)  # (J,)
    for ballot in valid:
        totals += _points(ballot, n_candidates, last, unranked)
    return totals / (len(valid) * (n_candidates - 1 + last)) * 10.0


def plurality_count(
    choices: Iterable[int | None], n_candidates: int, *, compat: Literal["tot"] | None = None
) -> FloatArray:
    """How many voters chose each candidate; (J,), all NaN when nobody chose one.

    choices: index of the candidate each voter chose; None, or an index that is not there, is no vote. To have them
    named and counted, give `check_ballots` each choice as a ballot of one.

    With `compat="tot"` no votes are zeros, as in Tree of Thoughts.

    Raises ValueError for fewer than one candidate.
    """
    one_each = [[] if choice is None else [choice] for choice in choices]
    valid = check_ballots(one_each, n_candidates).valid
    if not valid and not is_compat(compat, "tot"):
        return np.full(n_candidates, np.nan)
    return np.bincount([choice for (choice,) in valid], minlength=n_candidates).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One judgement of two candidates, by index. `preferred` is one of the two, or None when they are equal."""

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


def _borda_unchecked(ballots: Rankings, n: int) -> FloatArray:
    totals = [0.0] * n
    for ballot in ballots:
        for rank, candidate in enumerate(ballot):
            totals[candidate] += n - rank
    largest = n * len(ballots)
    return np.array([total / largest * 10.0 for total in totals])  # (J,)


def _share(candidate: int, preferred: int | None) -> float:
    return 0.5 if preferred is None else float(candidate == preferred)


Ballot = Sequence[int]
"""Candidate indices from 0, best first. A partial one leaves candidates out at its end."""
Rankings = Sequence[Ballot] | NDArray[Any]
RejectionReason = Literal["empty", "too_long", "not_an_index", "negative", "out_of_range", "duplicate", "partial"]


@dataclass(frozen=True, slots=True)
class RejectedBallot:
    """A ballot that does not count. `index` is its place among those given, from 0."""

    index: int
    reason: RejectionReason
    message: str


@dataclass(frozen=True, slots=True)
class CheckedBallots:
    """The ballots that count, in their order, and those that do not."""

    valid: tuple[tuple[int, ...], ...]
    rejected: tuple[RejectedBallot, ...]

    @property
    def reasons(self) -> dict[RejectionReason, int]:
        """How many ballots were rejected for each reason."""
        return dict(Counter(ballot.reason for ballot in self.rejected))


def check_ballots(ballots: Rankings, n_candidates: int, *, partial: bool = True) -> CheckedBallots:
    """Sort out the rankings of `n_candidates` that can be counted; with `partial=False` all must be ranked.

    A ballot that counts from 1 names a candidate that is not there, or would be read shifted by one; so it is only
    rejected where it shows. Readers of replies say what they count from (`debate.parsing.ballots`).

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
