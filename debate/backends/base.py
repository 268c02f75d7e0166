"""What the runner asks of a backend. Knows no particular one, and nothing of debates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from debate.flow import Completion, Prompt
from debate.persona import Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to a model, complete: what a flow's `Generate` becomes once its seed is known."""

    model: str
    prompt: Prompt
    sampling: Sampling
    seed: int
    schema: Mapping[str, Any] | None = None
    """The reply's JSON schema."""
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`task_id`, `round` (from 0), `agent`, `attempt` (from 0), `labels` {label shown: candidate index} in the order
    shown; `sample` and `candidate` where they apply."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages: `[{"role": ..., "content": ...}]`."""
        return self.prompt.messages()


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a started backend can hold at once."""

    slots: int
    """Requests it works on side by side."""
    cache_tokens: int | None = None
    """Tokens its KV cache holds; None when unknown."""
    context_length: int | None = None
    """Most tokens one request may have, prompt and reply together."""


class Backend(Protocol):
    """A model that can be asked.

    `generate` raises `CallError` when this call failed for good and `BackendDead` when nothing more can be asked;
    cancelling it frees whatever it holds.
    """

    @property
    def model(self) -> str:
        """The model's name in seeds and records."""
        ...

    @property
    def capacity(self) -> Capacity:
        """Known once started."""
        ...

    async def start(self) -> None:
        """Load what there is to load. Called once, before the first call."""
        ...

    async def generate(self, call: Call) -> Completion:
        """Answer one call. Any number may be under way at once."""
        ...

    async def aclose(self) -> None:
        """Let go of everything. Safe to call twice, and before `start`."""
        ...
