"""Who debates and what they score: personas, components, and the profile that holds them.

They check themselves when made and never change. Knows nothing of files: `debate.profiles` reads those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

import numpy as np

from debate.errors import ConfigError, ProfileError
from debate.types import FloatArray


@dataclass(frozen=True, slots=True)
class Component:
    """One thing that every candidate is scored on, with the sentence that tells the agent what it means."""

    name: str
    description: str
    weight: float = 1.0
    """In [0, 1], as the article has it."""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ProfileError("must not be empty", field="name")
        if not (math.isfinite(self.weight) and 0.0 <= self.weight <= 1.0):
            raise ProfileError(f"must lie in [0, 1], got {self.weight}", field="weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the model draws its tokens. None leaves a value to the evaluator, or to the model's own default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        checks = (
            ("temperature", self.temperature, 0.0, math.inf),
            ("top_p", self.top_p, 0.0, 1.0),
            ("top_k", self.top_k, -1, math.inf),  # 0 and -1 are every token, in vLLM
            ("min_p", self.min_p, 0.0, 1.0),
            ("max_tokens", self.max_tokens, 1, math.inf),
        )
        for name, value, low, high in checks:
            if value is not None and not (low <= value <= high and math.isfinite(value)):
                raise ConfigError(f"must lie in [{low}, {high}], got {value}", field=name)

    def over(self, defaults: Sampling) -> Sampling:
        """These settings, with what is None taken from `defaults`."""
        mine = self.to_dict()
        return Sampling(**{**defaults.to_dict(), **mine})

    def to_dict(self) -> dict[str, Any]:
        """What is set, by name."""
        names = ("temperature", "top_p", "top_k", "min_p", "max_tokens")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """Which memories an agent recalls before its turn."""

    collections: tuple[str, ...] = ()
    """Collections to search; empty means the agent's own, `profile/persona`."""
    k: int = 5
    max_tokens: int | None = None
    """Of all their texts together."""
    weights: tuple[float, float, float] | None = None
    """Of relevance, recency and importance; None takes those of the memory."""
    min_score: float | None = None
    """Only memories with at least this score."""
    kinds: tuple[str, ...] = ()
    """Only `episodic`, `semantic` or `reflection` ones; empty is all."""
    sources: tuple[str, ...] = ()
    """Only from these sources; empty is all."""
    exclude_sources: tuple[str, ...] = ()
    """Not from these, besides the task itself, which never reminds an agent of its own earlier debate."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Only memories whose metadata has all these values."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ProfileError(f"must be at least 1, got {self.k}", field="k")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ProfileError(f"must be at least 1, got {self.max_tokens}", field="max_tokens")
        if self.weights is not None and not all(0 <= weight < math.inf for weight in self.weights):
            raise ProfileError(f"must be at least 0 and finite, got {self.weights}", field="weights")
        for kind in self.kinds:
            if kind not in ("episodic", "semantic", "reflection"):
                raise ProfileError(f"must be episodic, semantic or reflection, got {kind!r}", field="kinds")

    def to_dict(self) -> dict[str, Any]:
        """What is set, as plain data."""
        values = {spec.name: _listed(getattr(self, spec.name)) for spec in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, [], {})}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


@dataclass(frozen=True, slots=True)
class Persona:
    """Who an agent is: a name and the role text, and what is its own in model, sampling and memory."""

    name: str
    role: str
    _: KW_ONLY
    model: str | None = None
    """Model this agent uses; None is the run's model."""
    sampling: Sampling = Sampling()
    agreement: int | None = None
    """Agreement intensity, 0..10: how readily it takes up the other agents' opinions (arXiv 2311.17371)."""
    memory: MemorySettings | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ProfileError("must not be empty", field="name")
        if not self.role.strip():
            raise ProfileError("must not be empty", field="role")
        if self.agreement is not None and not 0 <= self.agreement <= 10:
            raise ProfileError(f"must lie in 0..10, got {self.agreement}", field="agreement")


@dataclass(frozen=True, slots=True)
class Profile:
    """The I personas who debate and the K components they score."""

    name: str
    personas: tuple[Persona, ...]
    components: tuple[Component, ...]
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "personas", tuple(self.personas))
        object.__setattr__(self, "components", tuple(self.components))
        if not self.personas:
            raise ProfileError("is empty: a profile needs at least one persona", field="personas")
        if not self.components:
            raise ProfileError("is empty: a profile needs at least one component", field="components")
        _check_unique([persona.name for persona in self.personas], "personas")
        _check_unique([component.name for component in self.components], "components")

    @property
    def weights(self) -> FloatArray:
        """The components' weights, shape (K,)."""
        return np.array([component.weight for component in self.components])  # (K,)


def _check_unique(names: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for n, name in enumerate(names):
        if name.casefold() in seen:
            raise ProfileError(f"the name {name!r} stands twice", field=f"{where}.{n}.name")
        seen.add(name.casefold())
