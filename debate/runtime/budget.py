"""What a run may use: tokens over its whole life, seconds of this session. Checked before every call.

Calls under way when a budget is spent are finished and recorded; nothing new is asked. Knows nothing of what is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from debate.errors import BudgetExceededError, ConfigError
from debate.flow import Completion


class Budget:
    """Counts what is used against what was given; None is without limit.

    Args:
        tokens: prompt and completion tokens that the run's model may be paid for, all sessions of it together.
        seconds: since this was made.
        spent: tokens that earlier sessions used.
    """

    def __init__(
        self,
        tokens: int | None = None,
        seconds: float | None = None,
        *,
        spent: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, value in (("tokens", tokens), ("seconds", seconds)):
            if value is not None and value <= 0:
                raise ConfigError(f"must be above 0, or None, got {value}", field=name)
        self.tokens = tokens
        self.seconds = seconds
        self.spent = spent
        self._clock = clock
        self._began = clock()

    def check(self) -> None:
        """Refuse a further call.

        Raises:
            BudgetExceededError: when nothing is left.
        """
        hint = "the same command with a larger one goes on from here"
        if self.tokens is not None and self.spent >= self.tokens:
            raise BudgetExceededError(
                f"the run's budget of {self.tokens:,} tokens is used up ({self.spent:,})", hint=hint
            )
        if self.seconds is not None and self._clock() - self._began >= self.seconds:
            raise BudgetExceededError(
                f"the run's {self.seconds:g} seconds are over", hint="the same command goes on from here"
            )

    def spend(self, completion: Completion) -> None:
        """Count a reply; one out of a cache costs nothing."""
        if not completion.cached:
            self.spent += completion.usage.total_tokens
