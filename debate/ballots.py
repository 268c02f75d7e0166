"""Which ballots count: rankings of candidates, checked before they are added up.

A ballot that is not what it should be is rejected with a reason and counted, never mended. This module does not know
how votes are added up, nor what text a ballot was read from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, cast

from numpy.typing import NDArray

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
