"""The settings of a debate: checked when made, resolved once, described for the record.

Knows nothing of how a debate runs; `debate.evaluators.debate.evaluator` does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from debate.convergence import Over
from debate.errors import ConfigError
from debate.evaluators.base import Footprint
from debate.evaluators.debate.candidate_order import CandidateOrder
from debate.evaluators.debate.prompts import TEMPLATE_NAMES, check_templates
from debate.profiles import Component, Persona, Profile, load_profile
from debate.scoring.tensor import Method, normalize_tensor
from debate.templates import Templates
from debate.types import FloatArray, Sampling, Scale, Task

Mode = Literal["sequential", "simultaneous", "independent"]
CELL_SCALE = Scale(0.0, 10.0)
"""The scale of every cell of S, whatever the aggregation."""


@dataclass(frozen=True)
class DebateSettings:
    """What a debate of the profile's agents over at most `rounds` rounds is told.

    Raises:
        ProfileError, TemplateError, ConfigError: for settings that cannot work.
    """

    profile: Profile | str | Path = "general"
    """A profile, the name of a built-in one, or the path of a YAML file."""
    rounds: int = 3
    """R, at least 1."""
    weights: Sequence[float] | Mapping[str, float] | None = None
    """One a component, in their order or by name; None takes the profile's."""
    convergence: float | None = 0.1
    """Stop after a round whose CV is at most this; None never stops early."""
    over: Over = "agents"
    """Which coefficient of variation; see `debate.convergence`."""
    min_rounds: int = 1
    history: int | None = None
    """l: how many complete rounds an agent sees besides the current one; None is all."""
    mode: Mode = "sequential"
    """`sequential` (the article); `simultaneous`: agents of a round do not see each other in it; `independent`:
    nobody sees anybody, the control of equal budget."""
    candidate_order: CandidateOrder = "shuffle"
    method: Method = "article"
    quorum: int | None = None
    """Agents that must have scored for a round to count; None is more than half."""
    selection: Literal["argmax", "sample"] = "argmax"
    softmax_temperature: float = 1.0
    retries: int = 2
    """How often an unreadable reply is asked again."""
    history_scores: bool = True
    """Whether the history shows scores beside the comments."""
    blind_first_round: bool = False
    """Whether the agents do not see each other in the first round."""
    ties: Literal["first", "seeded"] = "first"
    token_budget: int | None = None
    """Stop after the round in which the debate's prompt and completion tokens reach this."""
    sampling: Sampling = Sampling(temperature=0.7)
    """What a persona does not set itself. Without `max_tokens`, room for the longest reply the schema allows."""
    comment_chars: int = 400
    """Longest comment on a candidate that the schema allows."""
    overall_chars: int = 600
    templates: Templates | str | Path | None = None
    """A folder whose templates go before the built-in ones."""
    name: str = field(default="debate", init=False)
    scale: Scale = field(init=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        if not isinstance(self.profile, Profile):
            set_(self, "profile", load_profile(self.profile))
        if not isinstance(self.templates, Templates):
            set_(self, "templates", Templates(self.templates))
        n_components, n_agents = len(self.components), len(self.personas)
        set_(self, "weights", _weights(self.weights, self._profile))
        set_(self, "scale", Scale(0.0, 10.0 * n_components if self.method == "mk1" else 10.0))
        checks = (
            ("rounds", self.rounds >= 1, "must be at least 1"),
            ("min_rounds", self.min_rounds >= 1, "must be at least 1"),
            ("convergence", self.convergence is None or self.convergence >= 0, "must be at least 0, or None"),
            ("history", self.history is None or self.history >= 0, "must be at least 0, or None"),
            ("quorum", self.quorum is None or 1 <= self.quorum <= n_agents, f"must lie in 1..{n_agents}, or be None"),
            ("softmax_temperature", 0 < self.softmax_temperature < math.inf, "must be above 0 and finite"),
            ("retries", self.retries >= 0, "must be at least 0"),
            ("token_budget", self.token_budget is None or self.token_budget > 0, "must be above 0, or None"),
            ("comment_chars", self.comment_chars >= 1, "must be at least 1"),
            ("overall_chars", self.overall_chars >= 1, "must be at least 1"),
            *(_among(self, name, allowed) for name, allowed in _CHOICES.items()),
        )
        for name, is_fine, rule in checks:
            if not is_fine:
                raise ConfigError(f"{rule}, got {getattr(self, name)!r}", field=name)
        _check_usable(self.component_weights, self.method)

    @property
    def personas(self) -> tuple[Persona, ...]:
        """The I agents, in speaking order."""
        return self._profile.personas

    @property
    def components(self) -> tuple[Component, ...]:
        """The K components."""
        return self._profile.components

    @property
    def models(self) -> frozenset[str]:
        """Models that personas name for themselves."""
        return frozenset(persona.model for persona in self.personas if persona.model is not None)

    @property
    def component_weights(self) -> FloatArray:
        """The weights in force, (K,)."""
        return np.array(self.weights, dtype=np.float64)

    @property
    def quorum_size(self) -> int:
        """How many agents must have scored for a round to count."""
        return self.quorum if self.quorum is not None else len(self.personas) // 2 + 1

    @property
    def prompt_templates(self) -> Templates:
        """The templates in force."""
        assert isinstance(self.templates, Templates)
        return self.templates

    @property
    def _profile(self) -> Profile:
        assert isinstance(self.profile, Profile)
        return self.profile

    @property
    def profile_name(self) -> str:
        """The profile's name."""
        return self._profile.name

    def sampling_of(self, persona: Persona, n_candidates: int) -> Sampling:
        """The persona's own sampling over the debate's, with room for the longest reply the schema allows."""
        defaults = self.sampling
        if defaults.max_tokens is None:
            defaults = replace(defaults, max_tokens=self._longest_reply(n_candidates))
        return persona.sampling.over(defaults)

    def footprint(self, task: Task) -> Footprint:
        """All turns of the last round see all turns before them; orders that differ share no beginning."""
        texts = [task.x, *task.context, *(candidate.text for candidate in task.candidates)]
        rules = 2000 + sum(len(component.description) for component in self.components)
        longest_role = max(len(persona.role) for persona in self.personas)
        longest_reply = max(
            self.sampling_of(persona, len(task.candidates)).max_tokens or 0 for persona in self.personas
        )
        return Footprint(
            characters=rules + longest_role + sum(map(len, texts)),
            replies=self.rounds * len(self.personas),
            max_tokens=longest_reply,
            prompts={"balanced": 2, "rotate": len(self.personas)}.get(self.candidate_order, 1),
        )

    def check(self) -> None:
        """Render every template once; raises `TemplateError` with file and line."""
        check_templates(self.prompt_templates, self._profile, CELL_SCALE)

    def describe(self) -> dict[str, Any]:
        """All settings, the profile and the templates' digest; under `aggregation` those that shape no prompt."""
        return {
            "evaluator": self.name,
            **{name: getattr(self, name) for name in _SHAPES_PROMPTS},
            "aggregation": {
                **{name: getattr(self, name) for name in _SHAPES_NO_PROMPT},
                "weights": self.component_weights.tolist(),
            },
            "sampling": self.sampling.to_dict(),
            "profile": self.profile_name,
            "personas": [_describe_persona(persona) for persona in self.personas],
            "components": [[component.name, component.description] for component in self.components],
            "templates": self.prompt_templates.fingerprint(*TEMPLATE_NAMES),
        }

    def _longest_reply(self, n_candidates: int) -> int:
        """Tokens of the longest reply the schema allows, at two characters a token."""
        scores = sum(len(component.name) + 16 for component in self.components)
        characters = self.overall_chars + n_candidates * (self.comment_chars + scores + 40) + 60
        return characters // 2


_SHAPES_PROMPTS = (
    "history", "mode", "candidate_order", "history_scores", "blind_first_round", "comment_chars", "overall_chars",
)  # fmt: skip
_SHAPES_NO_PROMPT = (
    "rounds", "convergence", "over", "min_rounds", "method", "quorum", "selection", "softmax_temperature", "retries",
    "ties", "token_budget",
)  # fmt: skip
"""Prompts never state the number of rounds, so a debate can be continued under another one."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "over": ("agents", "cells", "pooled"),
    "mode": ("sequential", "simultaneous", "independent"),
    "candidate_order": ("shuffle", "fixed", "rotate", "balanced"),
    "method": ("article", "weighted_mean", "mk1"),
    "selection": ("argmax", "sample"),
    "ties": ("first", "seeded"),
}


def _among(settings: DebateSettings, name: str, allowed: tuple[str, ...]) -> tuple[str, bool, str]:
    return name, getattr(settings, name) in allowed, f"must be one of {', '.join(allowed)}"


def _describe_persona(persona: Persona) -> dict[str, Any]:
    memory = persona.memory
    return {
        "name": persona.name,
        "role": persona.role,
        "model": persona.model,
        "sampling": persona.sampling.to_dict(),
        "agreement": persona.agreement,
        "memory": None if memory is None else memory.to_dict(),
    }


def _weights(weights: Sequence[float] | Mapping[str, float] | None, profile: Profile) -> tuple[float, ...]:
    names = [component.name for component in profile.components]
    if weights is None:
        return tuple(component.weight for component in profile.components)
    if isinstance(weights, Mapping):
        unknown = sorted(set(weights) - set(names))
        if unknown:
            raise ConfigError(f"{unknown[0]!r} is no component; there are {', '.join(names)}", field="weights")
        by_name = {component.name: component.weight for component in profile.components} | dict(weights)
        weights = [by_name[name] for name in names]
    try:
        vector = np.array(weights, dtype=np.float64)  # (K,)
    except (TypeError, ValueError):
        raise ConfigError(f"must be numbers, got {weights!r}", field="weights") from None
    if vector.shape != (len(names),):
        raise ConfigError(f"needs {len(names)} numbers, one a component, got {weights!r}", field="weights")
    return tuple(map(float, vector))


def _check_usable(weights: FloatArray, method: Method) -> None:
    """Aggregate one full mark, so that weights without a sum are refused before anything is asked."""
    try:
        normalize_tensor(np.full((1, 1, 1, len(weights)), CELL_SCALE.high), weights, method)
    except ValueError as error:
        raise ConfigError(str(error), field="weights") from None
