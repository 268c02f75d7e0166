"""The scales of scorers, and how a function carries its own.

It does not know which scorers there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from debate.errors import ConfigError
from debate.types import Scale

Scorer = TypeVar("Scorer", bound=Callable[..., float])

ERRORS = Scale(0.0, math.inf, higher_is_better=False)
"""Counts of errors: 0 is perfect, and there is no worst."""
F1 = Scale(0.0, 10.0)
"""The harmonic mean of two scores on 0..10."""


def scored_on(scale: Scale) -> Callable[[Scorer], Scorer]:
    """Say on which scale a scorer's results lie; `scale_of` tells it again.

    @scored_on(ERRORS)
    def my_errors(answer: str) -> float: ...
    """

    def mark(scorer: Scorer) -> Scorer:
        setattr(scorer, "scale", scale)  # noqa: B010 - a function has no such attribute for the type checker
        return scorer

    return mark


def scale_of(scorer: Callable[..., Any]) -> Scale:
    """The scale that a scorer was marked with.

    Raises:
        ConfigError: when it was not.
    """
    scale = getattr(scorer, "scale", None)
    if not isinstance(scale, Scale):
        name = getattr(scorer, "__name__", repr(scorer))
        raise ConfigError(f"the scorer {name} does not say on which scale it scores", hint="mark it with scored_on")
    return scale
