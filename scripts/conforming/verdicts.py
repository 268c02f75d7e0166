"""Whether what a function of ours does is what is recorded of the original.

    pass      it does the same
    original  it does otherwise on purpose; the original's rule (`originals.py`) or an option does the same
    differs   it does not, the record is of a fault, and here is why ours is right
    FAIL      anything else

It does not know the functions, only how they are called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np

from conforming.cases import Case, Input
from debate.errors import InputError, ReplyError

Kind = Literal["pass", "original", "differs", "FAIL"]


@dataclass(frozen=True, slots=True)
class Answer:
    """How this package answers the cases of one function."""

    call: Callable[[Input, bool], Any]
    """Called with the case's input, and whether the original's own rule is asked for."""
    option: str | None = None
    """What asks for it: a function of `originals.py`, or an option as one writes it; None when there is none."""
    refusals: Mapping[str, str | type[Exception]] = field(default_factory=dict[str, "str | type[Exception]"])
    """Exception of the original -> ours for the same cause: a class, or the reason of a `ReplyError`."""
    why: str = ""
    """Where ours differs from a fault: why it is right."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case came out."""

    kind: Kind
    detail: str = ""


def judge(case: Case, answer: Answer) -> Verdict:
    """Answer a case, if need be by the original's rule, and compare."""
    ours = _outcome(answer, case.input, literal=False)
    if _same_outcome(ours, case, answer.refusals):
        return Verdict("pass")
    if answer.option:
        literal = _outcome(answer, case.input, literal=True)
        if _same_outcome(literal, case, {}) or _same_outcome(literal, case, answer.refusals):
            return Verdict("original", answer.option)
    there = case.raises or _shown(case.returns)
    detail = f"ours {_shown(ours)}, there {there}"
    if case.is_bug and answer.why and not (isinstance(ours, Exception) and not _is_refusal(ours)):
        return Verdict("differs", f"{detail}: {answer.why}")
    return Verdict("FAIL", detail)


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same: numbers to within rounding, NaN as NaN, a bool only as a bool."""
    if isinstance(ours, np.ndarray | np.generic):
        return same(cast("Any", ours).tolist(), theirs)
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(ours) and math.isnan(theirs))
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        pairs = cast("tuple[list[Any], list[Any]]", (ours, theirs))
        return len(pairs[0]) == len(pairs[1]) and all(map(same, *pairs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        left, right = cast("tuple[dict[str, Any], dict[str, Any]]", (ours, theirs))
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(cast("object", ours) == cast("object", theirs))


def _outcome(answer: Answer, given: Input, *, literal: bool) -> Any:
    """What a function returned, or the exception that it raised."""
    try:
        return answer.call(given, literal)
    except Exception as error:
        return error


def _same_outcome(ours: Any, case: Case, refusals: Mapping[str, str | type[Exception]]) -> bool:
    if not isinstance(ours, Exception):
        return case.raises is None and same(ours, case.returns)
    if case.raises is None:
        return False
    like = refusals.get(case.raises)
    if isinstance(like, str):
        return isinstance(ours, ReplyError) and ours.reason == like
    return type(ours) is like if like else type(ours).__name__ == case.raises


def _is_refusal(error: Exception) -> bool:
    """Whether an exception is the package's word on the input, rather than an accident."""
    return isinstance(error, ReplyError | InputError) or type(error) is ValueError


def _shown(value: object) -> str:
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {str(value).partition(chr(10))[0]}"
    if isinstance(value, np.ndarray):
        value = cast("Any", value).tolist()
    return text if len(text := repr(value)) <= 100 else text[:97] + "..."
