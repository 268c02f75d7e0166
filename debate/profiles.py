"""Who debates and what they score: components, personas, profiles, and the YAML files that profiles are read from."""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import AfterValidator, Field, ValidationError

from debate.data_files import data_folder
from debate.errors import InputError, ProfileError
from debate.types import FloatArray, Sampling
from debate.yaml_files import FileModel, Located, as_input_error, read_yaml


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


DEFAULT_COMPONENTS: tuple[Component, ...] = (
    Component(
        "confidence",
        "How firmly, and how rightly so, the response commits to what it says: "
        "0 is evasive or sure of what is wrong, 10 is as sure as the facts allow.",
    ),
    Component(
        "relevance",
        "How closely the response keeps to what was asked: 0 is beside the point, 10 is all of it to the point.",
    ),
    Component(
        "accuracy",
        "How correct the statements and the reasoning of the response are: 0 is wrong throughout, 10 is free of error.",
    ),
    Component(
        "completeness",
        "How much of what was asked the response covers: 0 is none of it, 10 is every part in the depth it needs.",
    ),
    Component(
        "timeliness",
        "How well the response holds as of today's date: 0 is out of date where that matters, "
        "10 is up to date, or does not depend on the date.",
    ),
)
"""The five score components of the article, for a profile that names none; each has weight 1."""

_BUILT_IN_NAME = re.compile(r"[a-z0-9_-]{1,64}")


def load_profile(name_or_path: str | Path) -> Profile:
    """A built-in profile by its name, or a user's own by the path of its YAML file.

    A `Path`, and a string that ends in `.yaml` or `.yml`, is a file; any other string is a built-in name. Without
    `components` in the file, `DEFAULT_COMPONENTS` apply. Raises `ProfileError`, with file, line and field where the
    fault is in the file.

    >>> [persona.name for persona in load_profile("general").personas]
    ['Critic', 'Supporter', 'Neutral Observer']
    """
    return _read_profile(name_or_path if _is_file(name_or_path) else _built_in_file(str(name_or_path)))


def profile_names() -> list[str]:
    """The built-in profiles, by name, in alphabetical order."""
    return sorted(file.stem for file in data_folder("personas").glob("*.yaml") if _BUILT_IN_NAME.fullmatch(file.stem))


def _is_file(name_or_path: str | Path) -> bool:
    return isinstance(name_or_path, Path) or str(name_or_path).lower().endswith((".yaml", ".yml"))


def _built_in_file(name: str) -> Path:
    if any(separator in name for separator in ("/", "\\", os.sep)):
        raise ProfileError(f"{name[:60]!r} is not a profile file", hint="a profile file ends in .yaml or .yml")
    # Checked as text, before any folder is looked into.
    if not _BUILT_IN_NAME.fullmatch(name):
        raise ProfileError(f"{name[:60]!r} cannot be the name of a profile", hint=_names_hint(name[:60].lower()))
    if name not in profile_names():
        raise ProfileError(f"there is no built-in profile {name!r}", hint=_names_hint(name))
    return data_folder("personas") / f"{name}.yaml"


def _names_hint(name: str) -> str:
    names = profile_names()
    close = get_close_matches(name, names, n=1)
    known = f"built-in profiles: {', '.join(names)}; your own is given by its path, such as ./mine.yaml"
    return f"did you mean {close[0]!r}? {known}" if close else known


def _read_profile(path: str | Path) -> Profile:
    located = read_yaml(path, ProfileError)
    data = located.data
    if isinstance(data, dict):
        data = {"name": located.file.stem, **cast("dict[str, Any]", data)}
    try:
        file = _ProfileModel.model_validate(data)
    except ValidationError as found:
        raise as_input_error(found, located, _ProfileModel, ProfileError) from None
    return _to_profile(file, located)


def _clean(text: str) -> str:
    """In one Unicode form (NFC), without blanks at the ends."""
    if any(unicodedata.category(character) == "Cs" for character in text):
        raise ValueError("is not valid Unicode: it holds a lone surrogate")
    return unicodedata.normalize("NFC", text).strip()


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


def _without_controls(text: str) -> str:
    if found := next((c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp")), None):
        raise ValueError(f"a name must not hold the control character {found!a}")
    return text


_OptionalText = Annotated[str, AfterValidator(_clean)]
_Text = Annotated[_OptionalText, AfterValidator(_not_empty)]
_Name = Annotated[_Text, AfterValidator(_without_controls)]


class _ComponentModel(FileModel):
    name: _Name
    description: _Text
    weight: float = Field(default=1.0, ge=0, le=1)


class _SamplingModel(FileModel):
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=-1)  # 0 and -1 are every token, in vLLM
    min_p: float | None = Field(default=None, ge=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)


class _WeightsModel(FileModel):
    relevance: float = Field(default=1.0, ge=0)
    recency: float = Field(default=0.1, ge=0)
    importance: float = Field(default=0.1, ge=0)


class _MemoryModel(FileModel):
    collections: list[_Name] = Field(default=[])
    k: int = Field(default=5, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    weights: _WeightsModel | None = None
    min_score: float | None = None
    kinds: list[Literal["episodic", "semantic", "reflection"]] = Field(default=[])
    sources: list[_Name] = Field(default=[])
    exclude_sources: list[_Name] = Field(default=[])
    metadata: dict[str, Any] = Field(default={})


class _PersonaModel(FileModel):
    name: _Name
    role: _Text
    model: _Name | None = None
    sampling: _SamplingModel = _SamplingModel()
    agreement: int | None = Field(default=None, ge=0, le=10)
    memory: _MemoryModel | None = None


class _ProfileModel(FileModel):
    name: _Name
    description: _OptionalText = ""
    components: list[_ComponentModel] = Field(default=[], min_length=1)
    personas: list[_PersonaModel] = Field(min_length=1)


def _to_profile(model: _ProfileModel, located: Located) -> Profile:
    components = [Component(each.name, each.description, each.weight) for each in model.components]
    try:
        return Profile(
            model.name,
            tuple(_to_persona(each) for each in model.personas),
            tuple(components) or DEFAULT_COMPONENTS,
            model.description,
        )
    except InputError as error:  # the types know the field, not the file
        field = error.field or ""
        line = located.line_of(tuple(int(part) if part.isdigit() else part for part in field.split(".")))
        raise ProfileError(error.problem, file=located.file, line=line, field=field, hint=error.hint) from None


def _to_persona(model: _PersonaModel) -> Persona:
    memory = model.memory
    return Persona(
        model.name,
        model.role,
        model=model.model,
        sampling=Sampling(**model.sampling.model_dump()),
        agreement=model.agreement,
        memory=memory and _to_memory(memory),
    )


def _to_memory(model: _MemoryModel) -> MemorySettings:
    weights = model.weights
    return MemorySettings(
        collections=tuple(model.collections),
        k=model.k,
        max_tokens=model.max_tokens,
        weights=weights and (weights.relevance, weights.recency, weights.importance),
        min_score=model.min_score,
        kinds=tuple(model.kinds),
        sources=tuple(model.sources),
        exclude_sources=tuple(model.exclude_sources),
        metadata=model.metadata,
    )
