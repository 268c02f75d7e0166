"""Validates and improves a text in turns (Besta et al. 2023), as a flow.

Every attempt is recorded. The result may still be invalid, and says so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from debate.flow import Flow, call_function
from debate.types import Failure


@dataclass(frozen=True, slots=True)
class Attempt:
    """One text, and whether it is valid; None with the failure where that could not be told."""

    text: str
    is_valid: bool | None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Improved:
    """All attempts, the first text before any improvement."""

    attempts: tuple[Attempt, ...]

    @property
    def text(self) -> str:
        """The last text, valid or not."""
        return self.attempts[-1].text

    @property
    def is_valid(self) -> bool | None:
        """Whether the last text is valid."""
        return self.attempts[-1].is_valid


def validate_and_improve(
    text: str, validate: Callable[[str], Any], improve: Callable[[str], Any], tries: int = 3
) -> Flow[Improved]:
    """Improve a text until it is valid, at most `tries` times; so at most `tries + 1` validations.

    >>> engine.drive(validate_and_improve(draft, is_complete, complete))

    Args:
        text: the first text.
        validate: tells whether a text is valid; plain or async.
        improve: makes a better text of one: plain, async, or a flow that asks the model.
        tries: improvements at most; with 0 the text is only validated.

    A validator that raises ends the flow, with `is_valid` None; so does an improvement that raises.
    """
    attempts: list[Attempt] = []
    for left in range(tries, -1, -1):
        verdict = yield from call_function(validate, text)
        if isinstance(verdict, Failure):
            return Improved((*attempts, Attempt(text, None, verdict)))
        attempts.append(Attempt(text, bool(verdict)))
        if verdict or not left:
            break
        flow: Flow[Any] = improve(text) if inspect.isgeneratorfunction(improve) else call_function(improve, text)
        better = yield from flow
        if isinstance(better, Failure):
            attempts[-1] = Attempt(text, False, better)
            break
        text = better
    return Improved(tuple(attempts))
