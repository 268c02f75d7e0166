"""The values of the domain: what is evaluated, by whom, and what was said.

They check themselves when made and never change. They know nothing of prompts, models or files, and
import nothing of ours but the errors.

Axes, here and everywhere: r rounds R, i agents I, j candidates J, k components K.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from debate.errors import ConfigError, ProfileError, TaskError

FloatArray = NDArray[np.float64]
Status = Literal["ok", "partial", "failed"]
StopReason = Literal["converged", "max_rounds", "token_budget", "failed"]


@dataclass(frozen=True, slots=True)
class Scale:
    """The range a score lives in, and its direction. Scales are mixed through `to_unit` alone."""

    low: float = 0.0
    high: float = 10.0
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ConfigError(f"a scale needs low < high, got {self.low} and {self.high}", field="scale")

    def to_unit(self, score: float) -> float:
        """Map a score to 0..1, where 1 is best."""
        unit = (score - self.low) / (self.high - self.low)
        return unit if self.higher_is_better else 1.0 - unit


@dataclass(frozen=True, slots=True)
class Candidate:
    """One response to be judged."""

    text: str
    id: str | None = None
    generator: str | None = None
    """Name of the model or person that wrote it, where known."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        _check_text(self.text, "text")
        _check_text(self.id or "", "id")
        _check_text(self.generator or "", "generator")


@dataclass(frozen=True, init=False)
class Task:
    """An input `x` and the candidate responses to it.

    Strings are accepted as candidates. Without an `id`, the task is named by a hash of its content, which is the
    same in every process. `context` holds further texts about the input (a reference, earlier steps).

    >>> Task("What is 2 + 2?", ["4", "5"])
    """

    x: str
    candidates: tuple[Candidate, ...]
    id: str
    context: tuple[str, ...]
    metadata: Mapping[str, Any]
    has_given_id: bool

    def __init__(
        self,
        x: str,
        candidates: Sequence[str | Candidate],
        id: str | None = None,  # noqa: A002 - pinned name
        context: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(candidates, str):
            raise TaskError("must be a list of responses, not one string", field="candidates")
        if not candidates:
            raise TaskError("is empty: a task needs at least one candidate", field="candidates")
        if isinstance(context, str):
            raise TaskError("must be a list of texts, not one string", field="context")
        if id is not None and (not isinstance(id, str) or not id.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TaskError("must be a non-empty string", field="id")
        _check_text(id or "", "id")
        _check_text(x, "x")
        for n, text in enumerate(context):
            _check_text(text, f"context.{n}")
        checked = tuple(_as_candidate(candidate, n) for n, candidate in enumerate(candidates))
        set_ = object.__setattr__
        set_(self, "x", x)
        set_(self, "candidates", checked)
        set_(self, "context", tuple(context))
        set_(self, "metadata", dict(metadata or {}))
        set_(self, "has_given_id", id is not None)
        set_(self, "id", id if id is not None else _content_id(x, checked, tuple(context)))


def _as_candidate(candidate: str | Candidate, n: int) -> Candidate:
    if isinstance(candidate, Candidate):
        return candidate
    _check_text(candidate, f"candidates.{n}")
    return Candidate(candidate)


def _check_text(text: object, where: str) -> None:
    if not isinstance(text, str):
        raise TaskError(f"must be a string, got {type(text).__name__}", field=where)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TaskError(
            f"is not valid Unicode: lone surrogate at character {error.start}",
            field=where,
            hint="the text was cut inside a character; repair or drop that character",
        ) from None


def _content_id(x: str, candidates: tuple[Candidate, ...], context: tuple[str, ...]) -> str:
    content = [x, [[c.text, c.id, c.generator] for c in candidates], list(context)]
    canonical = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode("utf-8"), digest_size=8).hexdigest()


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

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ProfileError(f"must be at least 1, got {self.k}", field="k")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ProfileError(f"must be at least 1, got {self.max_tokens}", field="max_tokens")


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


@dataclass(frozen=True, slots=True)
class Usage:
    """What was asked of the model, in tokens and calls. Adds with `+`."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that were read from the prefix cache."""
    completion_tokens: int = 0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
        )

    @property
    def total_tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong inside an evaluation, kept as a value. `reason` is a short code."""

    reason: str
    message: str
    round: int | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A reply that could not be read, kept whole, with why."""

    text: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Memory:
    """A recalled memory and the parts of its score."""

    text: str
    id: str = ""
    collection: str = ""
    score: float = math.nan
    relevance: float = math.nan
    recency: float = math.nan
    importance: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """What one agent said in one round. All arrays follow the task's own candidate order, whatever was shown."""

    round: int
    """From 0."""
    agent: str
    labels: Mapping[str, int]
    """Label shown -> candidate index, in the order shown."""
    scores: FloatArray
    """(J, K), NaN where the turn failed."""
    overall: str = ""
    comments: tuple[str, ...] = ()
    """One a candidate; empty when the turn failed."""
    failure: Failure | None = None
    rejected: tuple[Rejected, ...] = ()
    """Replies that could not be read, before this one or until the tries ran out."""
    memories: tuple[Memory, ...] = ()
    neutralised: int = 0
    """Control strings in the prompt's content that were broken; see `Completion.neutralised`."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """All turns of a debate, in the order taken."""

    turns: tuple[Turn, ...] = ()

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    def __len__(self) -> int:
        return len(self.turns)

    def of_round(self, round: int) -> tuple[Turn, ...]:  # noqa: A002
        """The turns of one round, from 0."""
        return tuple(turn for turn in self.turns if turn.round == round)
