"""The settings of a debate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field

from debate.convergence import Over
from debate.errors import ConfigError, TaskError
from debate.evaluators.base import Footprint, PromptingEvaluator, Readout
from debate.evaluators.debate.candidate_order import CandidateOrder
from debate.evaluators.debate.prompts import TEMPLATE_NAMES, check_templates
from debate.evaluators.debate.settling import OWN_MODELS, Pooling, SettleRule
from debate.parsing.debate_reply import HIGH, LOW, ReplyForm
from debate.profiles import Persona, Profile, load_profile
from debate.scoring.tensor import Method, highest_score, normalize_tensor
from debate.settings import describe_settings, result_setting, setting
from debate.stop_rules import StopRule
from debate.tasks.components import Component
from debate.types import FloatArray, Sampling, Scale, Task

TaskComponents = Literal["beside", "instead"]
Mode = Literal["sequential", "simultaneous", "independent"]
ReplyStyle = Literal["named", "compact"]
_SCORES: dict[Readout, Literal["number", "label", "none"]] = {"reply": "number", "expected": "label", "cells": "none"}
"""What stands for the scores in a reply."""
_END_CHARACTERS = 64
"""What the end of one cell's continuation takes of a KV cache, which comes in blocks of tokens."""
CELL_SCALE = Scale(float(LOW), float(HIGH))
"""The scale of every cell of S, whatever the aggregation."""


@dataclass(frozen=True)
class DebateSettings(PromptingEvaluator):
    """Settings of a debate between the profile's agents.

    Raises:
        ProfileError, TemplateError: for a profile or templates that cannot be read.
        ConfigError: for settings of the wrong type, out of bounds, or that do not fit the profile.
    """

    profile: Profile | str | Path = setting("general", "A built-in profile's name, or a YAML file.", file_type=str)
    rounds: int = result_setting(3, "Most rounds of a debate (R).", ge=1)
    weights: Sequence[float] | Mapping[str, float] | None = result_setting(
        None,
        "A weight per component, at least 0, in their order or by name; those left out, and None, take the profile's.",
        file_type=dict[str, Annotated[float, Field(ge=0)]] | None,
        is_hashable=False,
    )
    convergence: float | None = result_setting(
        0.1,
        "Stop after a round whose CV is at most this, or in which every agent abstained; None never stops early.",
        ge=0,
    )
    over: Over = result_setting("agents", "Which coefficient of variation is taken; see `debate.convergence`.")
    min_rounds: int = result_setting(1, "The first round after which a debate may converge.", ge=1)
    history: int | None = setting(None, "Complete rounds that an agent sees before the current one; None is all.", ge=0)
    mode: Mode = setting(
        "sequential",
        "sequential: each agent sees all earlier turns (Yucha 2024). simultaneous: agents do not see the other turns "
        "of their own round. independent: no agent sees another's turns, the control with an equal budget.",
    )
    candidate_order: CandidateOrder = setting(
        "shuffle",
        "shuffle: one seeded order per debate. fixed: the task's own. rotate: each agent sees another order. "
        "balanced: two debates, in an order and in its reverse, whose scores are averaged.",
    )
    method: Method = result_setting(
        "weighted_mean", "How scores are aggregated; see `debate.scoring.normalize_tensor`."
    )
    quorum: int | None = result_setting(
        None, "Agents that must have scored for a round to count; None is more than half.", ge=1
    )
    history_scores: bool = setting(True, "Whether the history shows scores beside the comments.")
    blind_first_round: bool = setting(False, "Whether the agents do not see each other's turns in the first round.")
    token_budget: int | None = result_setting(None, "Stop after the round that reaches this many tokens.", ge=1)
    sampling: Sampling = setting(
        Sampling(temperature=0.7),
        "Sampling that a persona does not set itself; without `max_tokens`, room for the longest reply of the schema.",
    )
    comment_chars: int = setting(400, "Longest comment on a candidate, in characters.", ge=1)
    overall_chars: int = setting(600, "Longest overall comment of a turn, in characters.", ge=1)
    readout: Readout = setting(
        "reply",
        "How a score is read. reply: as the number that was written. expected: as the mean over the model's "
        "probabilities of 0 to 10 at its place. cells: as such a mean after comments that were written without scores.",
        came_later=True,
    )
    reply: ReplyStyle = setting(
        "named",
        "How a reply gives scores. named: each beside its component's name. compact: as a list in the components' "
        "order.",
        came_later=True,
    )
    abstain: bool = setting(
        False, "Whether agents may leave a score, or all of them, open and say why.", came_later=True
    )
    silent_readouts: bool = setting(
        False,
        "Whether every agent's scores are also read without a word of its own, before the first turn and after the "
        "last.",
        came_later=True,
    )
    stop_rule: str | None = result_setting(
        None,
        "Stop by this rule in place of `convergence`: cv=0.1,over=agents, ranking, change=0.05, spread=0.05, rounds=2 "
        "or none; see `debate.stop_rules`.",
        came_later=True,
    )
    settle: str | None = result_setting(
        None,
        "Settle a task without a debate where a silent round of all agents leaves no doubt: p_best=0.95, margin=2 or "
        "agreement=1, and `,model=NAME` where another model is to read; see `debate.evaluators.debate.settling`.",
        came_later=True,
    )
    task_components: TaskComponents = setting(
        "beside",
        "Where a task has components of its own. beside: they are scored after the profile's. instead: they alone are "
        "scored.",
        came_later=True,
    )
    name: str = field(default="debate", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        n_agents = len(self.personas)
        if self.quorum is not None and self.quorum > n_agents:
            raise ConfigError(f"must lie in 1..{n_agents}, or be None, got {self.quorum}", field="quorum")
        if self.stop_rule is not None:
            object.__setattr__(self, "stop_rule", str(self.stops_by))
        if (rule := self.settles_by) is not None:
            object.__setattr__(self, "settle", str(rule))
            if rule.model is not None and self.silent_readouts:
                problem = f"names the model {rule.model!r}, and silent_readouts compares each agent with itself"
                raise ConfigError(problem, field="settle", hint="leave out the model, or silent_readouts")
        self._check_weights()
        if self.weights is not None and not isinstance(self.weights, Mapping):
            object.__setattr__(self, "weights", tuple(self.component_weights.tolist()))

    @cached_property
    def loaded_profile(self) -> Profile:
        """The profile, read from its file where only its name or path was given."""
        return self.profile if isinstance(self.profile, Profile) else load_profile(self.profile)

    def of_task(self, task: Task) -> Self:
        """These settings with the components of the task, and their weights; `self` for a task without its own.

        Raises:
            TaskError: for a component that has the name of one of the profile's, where both are scored.
        """
        if not task.components:
            return self
        self.check_task(task)
        is_beside = self.task_components == "beside"
        before = self.components if is_beside else ()
        weights = [*self.component_weights[: len(before)], *(component.weight for component in task.components)]
        profile = replace(self.loaded_profile, components=(*before, *task.components))
        return replace(self, profile=profile, weights=weights, templates=self.prompt_templates)

    def check_task(self, task: Task) -> None:
        """Refuse a task with a component that has the name of one of the profile's, where both are scored."""
        taken = {component.name.casefold() for component in self.components}
        for n, component in enumerate(task.components if self.task_components == "beside" else ()):
            if component.name.casefold() in taken:
                problem = f"{component.name!r} is a component of the profile {self.profile_name!r}, too"
                hint = "rename it, or score the task's components alone with the setting task_components=instead"
                raise TaskError(problem, field=f"components.{n}.name", hint=hint)

    @property
    def scale(self) -> Scale:
        """The scale of the aggregated scores; its end is the score of a candidate with the highest score in all cells.

        It is 10 for `weighted_mean`, and follows from the weights for the other methods.
        """
        return Scale(0.0, highest_score(self.component_weights, self.method, CELL_SCALE.high))

    @property
    def personas(self) -> tuple[Persona, ...]:
        """The I agents, in speaking order."""
        return self.loaded_profile.personas

    @property
    def components(self) -> tuple[Component, ...]:
        """The K components of a task without components of its own."""
        return self.loaded_profile.components

    @property
    def models(self) -> frozenset[str]:
        """Names of the models that personas and `settle` ask for."""
        asked = {*(persona.model for persona in self.personas), self.settles_by and self.settles_by.model}
        return frozenset(name for name in asked if name is not None)

    @property
    def read_models(self) -> frozenset[str | None]:
        """Models whose probabilities of labels are read; None is the run's own."""
        is_read = self.readout != "reply" or self.silent_readouts
        own = frozenset(persona.model for persona in self.personas)
        return (own if is_read else frozenset[str | None]()) | self.opening_models

    @property
    def continued_models(self) -> frozenset[str | None]:
        """Those of them that are to say the labels after words of ours or none, and not in a reply of their own."""
        is_continued = self.readout == "cells" or self.silent_readouts
        return self.read_models if is_continued else self.opening_models

    @property
    def opening_models(self) -> frozenset[str | None]:
        """Models that read the silent round by which a task may be settled."""
        rule = self.settles_by
        if rule is None:
            return frozenset()
        return frozenset(persona.model if rule.model is None else rule.model for persona in self.personas)

    @cached_property
    def component_weights(self) -> FloatArray:
        """The weight of each component, (K,)."""
        return np.array(_weights(self.weights, self.loaded_profile), dtype=np.float64)

    @property
    def quorum_size(self) -> int:
        """Number of agents that must have scored for a round to count."""
        return self.quorum if self.quorum is not None else len(self.personas) // 2 + 1

    @cached_property
    def stops_by(self) -> StopRule:
        """The rule by which a debate ends before its last round."""
        return StopRule.of_settings(self.stop_rule, self.convergence, self.over)

    @cached_property
    def settles_by(self) -> SettleRule | None:
        """The rule by which a silent round settles a task; None where every task is debated."""
        return None if self.settle is None else SettleRule.parse(self.settle)

    @property
    def opens_silently(self) -> bool:
        """Whether every agent is read out before anybody has spoken."""
        return self.silent_readouts or self.settle is not None

    @cached_property
    def pooling(self) -> Pooling:
        """How the agents of a silent round are put together."""
        return Pooling(self.component_weights, self.method, self.quorum_size)

    @property
    def profile_name(self) -> str:
        """The profile's name."""
        return self.loaded_profile.name

    def form(self, labels: tuple[str, ...]) -> ReplyForm:
        """What a reply on the candidates with these labels looks like."""
        return ReplyForm(
            labels,
            tuple(component.name for component in self.components),
            self.reply,
            _SCORES[self.readout],
            self.abstain,
            self.comment_chars,
            self.overall_chars,
        )

    def samplings(self, n_candidates: int) -> tuple[Sampling, ...]:
        """Each persona's sampling over the debate's, with room for the longest reply that the schema allows."""
        if n_candidates not in self._samplings:
            defaults = self.sampling
            if defaults.max_tokens is None:
                defaults = replace(defaults, max_tokens=self._longest_reply(n_candidates))
            self._samplings[n_candidates] = tuple(persona.sampling.over(defaults) for persona in self.personas)
        return self._samplings[n_candidates]

    @cached_property
    def _samplings(self) -> dict[int, tuple[Sampling, ...]]:
        """Those that were made, by the number of candidates."""
        return {}

    @cached_property
    def recalls(self) -> tuple[dict[str, Any] | None, ...]:
        """What each persona's recalls are asked with besides their queries; None for those without a memory."""
        memories = ((f"{self.profile_name}/{persona.name}", persona.memory) for persona in self.personas)
        return tuple(memory and {"collections": (own,), **memory.given()} for own, memory in memories)

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of a debate's prompts: the last one shows all turns; candidate orders share no prefix.

        The continuations of a read-out share the words of the reply before it, and each has an end of its own.
        """
        return self.of_task(task)._footprint(task)

    def _footprint(self, task: Task) -> Footprint:
        texts = [task.x, *task.background, *(candidate.text for candidate in task.candidates)]
        rules = 2000 + sum(len(component.description) for component in self.components)
        longest_role = max(len(persona.role) for persona in self.personas)
        samplings = self.samplings(len(task.candidates))
        turns = self.rounds * len(self.personas)
        read_outs = turns * (self.readout == "cells") + self.opens_silently + self.silent_readouts
        ends = _END_CHARACTERS * len(task.candidates) * len(self.components) if read_outs else 0
        return Footprint(
            characters=rules + longest_role + sum(map(len, texts)) + ends,
            replies=turns,
            read_outs=read_outs,
            max_tokens=max(sampling.max_tokens or 0 for sampling in samplings),
            prompts={"balanced": 2, "rotate": len(self.personas)}.get(self.candidate_order, 1),
        )

    def check(self) -> None:
        """Render every template once; raises `TemplateError` with file and line."""
        check_templates(self.prompt_templates, self.loaded_profile, CELL_SCALE)

    def describe(self) -> dict[str, Any]:
        """The settings, the profile and the templates' digest; those that shape no prompt stand under `aggregation`."""
        return describe_settings(
            self,
            evaluator=self.name,
            aggregation={"weights": self.component_weights.tolist(), "scale": [self.scale.low, self.scale.high]},
            sampling=self.sampling.to_dict(),
            profile=self.profile_name,
            personas=[_describe_persona(persona) for persona in self.personas],
            components=[[component.name, component.description] for component in self.components],
            templates=self.prompt_templates.fingerprint(*TEMPLATE_NAMES),
            **self._describe_opening(),
        )

    def _describe_opening(self) -> dict[str, Any]:
        """Who reads the silent round, where it is not asked anyway: a run that began without it cannot take it up."""
        rule, is_asked = self.settles_by, self.silent_readouts and self.candidate_order != "balanced"
        return {} if rule is None or is_asked else {"opening": rule.model or OWN_MODELS}

    def _check_weights(self) -> None:
        """Refuse weights that cannot be aggregated before a model is asked."""
        weights = self.component_weights  # (K,)
        for component, weight in zip(self.components, weights.tolist(), strict=True):
            if weight < 0:
                raise ConfigError(f"must be at least 0, got {weight:g}", field=f"weights.{component.name}")
        if not weights.any():
            raise ConfigError("sum to 0: at least one component must count", field="weights")
        try:
            normalize_tensor(np.full((1, 1, 1, len(weights)), CELL_SCALE.high), weights, self.method)
        except ValueError as error:
            raise ConfigError(str(error), field="weights") from None

    def _longest_reply(self, n_candidates: int) -> int:
        """Tokens of the longest reply that the schema allows, at two characters per token."""
        scores = 0 if self.readout == "cells" else sum(len(component.name) + 16 for component in self.components)
        characters = self.overall_chars + n_candidates * (self.comment_chars + scores + 40) + 60
        return characters // 2


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
        raise ConfigError(f"needs {len(names)} numbers, one per component, got {weights!r}", field="weights")
    return tuple(map(float, vector))
