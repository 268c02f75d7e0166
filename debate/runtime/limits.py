"""Limits a run: how many evaluations are open at once, and how many tokens and seconds they may use, at what cost.

A debate between two turns holds its prefix in the KV cache and nothing else. If more are opened than the cache holds at
full length, they evict each other's prefixes and every turn is prefilled anew; so admission is by tokens, and a new
evaluation waits while the open ones may still need the room. A fixed limit can be set instead. The length of replies is
not known beforehand: the upper bound is used until enough replies were seen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Self

from debate.backends.base import Capacity
from debate.errors import BudgetExceededError, ConfigError
from debate.evaluators.base import Footprint
from debate.flow import Completion
from debate.settings import check_value
from debate.types import Price, Usage, cost_of

_ENOUGH_REPLIES = 32
_HINT = (
    "what is recorded is kept: with a larger budget the same command, or the same call under the same `run`, goes on"
)


class Admission:
    """A gate, first come first served. `limit` counts evaluations; `cache_tokens` is the room they share."""

    def __init__(
        self,
        *,
        limit: int | None,
        cache_tokens: int | None,
        context_length: int | None = None,
        thinking_tokens: int = 0,
    ) -> None:
        self.open = 0
        """Number of admitted evaluations."""
        self._limit = limit
        self._room = None if limit is not None else cache_tokens
        self._context_length = context_length
        self._thinking_tokens = thinking_tokens
        self._first_in_line = asyncio.Lock()
        self._someone_left = asyncio.Event()
        self._reserved = 0
        self._characters = self._prompt_tokens = self._completion_tokens = self._replies = 0

    @classmethod
    def to(cls, capacity: Capacity, limit: int | None) -> Self:
        """Admission to a backend: without a limit, what its cache holds, or twice its slots where that is unknown."""
        if limit is None and capacity.cache_tokens is None:
            limit = 2 * capacity.slots
        return cls(
            limit=limit,
            cache_tokens=capacity.cache_tokens,
            context_length=capacity.context_length,
            thinking_tokens=capacity.thinking_tokens,
        )

    def anew(self) -> Admission:
        """Another admission with the same limits, in which nothing is open."""
        return Admission(
            limit=self._limit,
            cache_tokens=self._room,
            context_length=self._context_length,
            thinking_tokens=self._thinking_tokens,
        )

    async def enter(self, footprint: Footprint) -> int:
        """Wait for room. Returns the tokens reserved, to be given back to `leave`."""
        cost = self._cost(footprint)
        async with self._first_in_line:
            while not self._fits(cost):
                self._someone_left.clear()
                await self._someone_left.wait()
            self.open += 1
            self._reserved += cost
        return cost

    def leave(self, cost: int) -> None:
        """Give room back and let in who fits."""
        self.open -= 1
        self._reserved -= cost
        self._someone_left.set()

    def observe(self, prompt_characters: int, prompt_tokens: int, completion_tokens: int) -> None:
        """Learn from a reply how long prompts and replies really are."""
        self._characters += prompt_characters
        self._prompt_tokens += prompt_tokens
        self._completion_tokens += completion_tokens
        self._replies += 1

    def _fits(self, cost: int) -> bool:
        if self._limit is not None:
            return self.open < self._limit
        # One is always let in, whatever its size: it can only wait for itself.
        return self._room is None or self.open == 0 or self._reserved + cost <= self._room

    def _cost(self, footprint: Footprint) -> int:
        """Tokens of the evaluation's longest prompts and their replies."""
        is_known = self._characters and self._prompt_tokens
        prompt = footprint.characters / (self._characters / self._prompt_tokens if is_known else 3.0)
        # A quarter above the mean, once enough replies were seen.
        seen = 1.25 * self._completion_tokens / self._replies if self._replies >= _ENOUGH_REPLIES else 0.0
        tokens = int(prompt + footprint.replies * min(seen or footprint.max_tokens, footprint.max_tokens))
        tokens += self._thinking_tokens  # of the reply under way: no later prompt holds them
        longest = tokens if self._context_length is None else min(tokens, self._context_length)
        return footprint.prompts * longest


class Budget:
    """Counts the tokens and seconds that a run or a call such as `evaluate_batch` uses, and what they cost.

    None is without limit. A budget that is given to several calls is what all of them together may use.

    Args:
        tokens: most prompt and completion tokens of all sessions and processes of the run together.
        seconds: since this was made.
        cost: what all sessions and processes of the run may cost together, by `prices`.
        prices: of the models, by their names in the engine.
        spent: tokens that earlier sessions used.
        others: tokens that other processes have used for the same run; whoever hears of more sets it anew.
        cost_before: what earlier sessions cost.

    Raises:
        ConfigError: for a limit that is not above 0.
    """

    def __init__(
        self,
        tokens: int | None = None,
        seconds: float | None = None,
        cost: float | None = None,
        *,
        prices: Mapping[str, Price] | None = None,
        spent: int = 0,
        others: int = 0,
        cost_before: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tokens: int | None = check_value("tokens", tokens, int | None, gt=0)
        self.seconds: float | None = check_value("seconds", seconds, float | None, gt=0)
        self.cost: float | None = check_value("cost", cost, float | None, gt=0)
        self.prices: Mapping[str, Price] = prices or {}
        self.spent = spent
        self.others = others
        self.cost_before = cost_before
        self.cost_of_others = 0.0
        """As `others`, in money."""
        self.used: dict[str, Usage] = {}
        """What replies used since this was made, by model; those out of a cache count nothing."""
        self._clock = clock
        self._began = clock()

    def check(self) -> None:
        """Refuse a further call.

        Raises:
            BudgetExceededError: when nothing is left.
        """
        if self.tokens is not None and (spent := self.spent + self.others) >= self.tokens:
            message = f"the budget of {self.tokens:,} tokens is used up ({spent:,})"
            raise BudgetExceededError(message, hint=_HINT, budget=self)
        if self.cost is not None and (cost := self.cost_so_far) >= self.cost:
            message = f"the run's {self.cost:g} of --max-cost are spent ({cost:.4g})"
            raise BudgetExceededError(message, hint=_HINT, budget=self)
        if self.seconds is not None and self._clock() - self._began >= self.seconds:
            raise BudgetExceededError(f"the budget's {self.seconds:g} seconds are over", hint=_HINT, budget=self)

    @property
    def cost_so_far(self) -> float:
        """What all sessions and processes of the run cost, as far as that is known here."""
        return self.cost_before + self.cost_of_others + cost_of(self.used, self.prices)

    def check_prices(self, models: Iterable[str]) -> None:
        """Refuse a limit of the cost where a model has no price.

        Raises:
            ConfigError: naming the model.
        """
        for name in models if self.cost is not None else ():
            if name not in self.prices:
                hint = "--price IN,OUT per million tokens, or `price` of one of several `models`; 0,0 where it is free"
                raise ConfigError(f"needs the price of {name!r}", field="max_cost", hint=hint)

    def spend(self, completion: Completion, model: str = "") -> None:
        """Count a reply of a model; one out of a cache costs nothing."""
        if not completion.cached:
            self.spent += completion.usage.total_tokens
            self.used[model] = self.used.get(model, Usage()) + completion.usage
