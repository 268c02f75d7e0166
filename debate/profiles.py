"""Who debates and what they score: personas, profiles, and the YAML files that profiles are read from."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

import numpy as np
from pydantic import TypeAdapter, ValidationError

from debate.data_files import data_folder
from debate.errors import ProfileError
from debate.flow import MemorySettings
from debate.tasks.components import DEFAULT_COMPONENTS, Component, Name, Text, check_together, check_types, check_unique
from debate.types import FloatArray, Sampling
from debate.yaml_files import Checked, Located, as_input_error, read_yaml


@dataclass(frozen=True, slots=True)
class Persona:
    """Who an agent is: a name and the role text, and what is its own in model, sampling and memory."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    name: Annotated[str, Name]
    role: Annotated[str, Text]
    _: KW_ONLY
    model: Annotated[str, Name] | None = None
    """Model this agent uses; None is the run's model."""
    sampling: Annotated[Sampling, Checked] = Sampling()
    agreement: int | None = None
    """Agreement intensity, 0..10: how readily it takes up the other agents' opinions (arXiv 2311.17371)."""
    memory: Annotated[MemorySettings, Checked] | None = None

    def __post_init__(self) -> None:
        check_types(self)
        for field in ("name", "role"):
            if not getattr(self, field).strip():
                raise ProfileError("must not be empty", field=field)
        if self.agreement is not None and not 0 <= self.agreement <= 10:
            raise ProfileError(f"must lie in [0, 10], got {self.agreement}", field="agreement")


@dataclass(frozen=True, slots=True)
class Profile:
    """The I personas who debate and the K components they score."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    name: Annotated[str, Name]
    personas: tuple[Annotated[Persona, Checked], ...]
    components: tuple[Annotated[Component, Checked], ...] = DEFAULT_COMPONENTS
    description: str = ""

    def __post_init__(self) -> None:
        for field in ("personas", "components"):
            if isinstance(given := getattr(self, field), Iterable):
                object.__setattr__(self, field, tuple(cast("Iterable[Any]", given)))
        check_types(self)
        if not self.personas:
            raise ProfileError("is empty: a profile needs at least one persona", field="personas")
        if not self.components:
            raise ProfileError("is empty: a profile needs at least one component", field="components")
        check_unique([persona.name for persona in self.personas], "personas", ProfileError)
        check_together(self.components, ProfileError)

    @property
    def weights(self) -> FloatArray:
        """The components' weights, shape (K,)."""
        return np.array([component.weight for component in self.components])  # (K,)


_BUILT_IN_NAME = re.compile(r"[a-z0-9_-]{1,64}")


def load_profile(name_or_path: str | Path) -> Profile:
    """A built-in profile by its name, or a user's own by the path of its YAML file.

    A `Path`, and a string that ends in `.yaml` or `.yml`, is a file; any other string is a built-in name. Without
    `components` in the file, `DEFAULT_COMPONENTS` apply. Raises `ProfileError`, with file, line and field where the
    fault is in the file.

    >>> [persona.name for persona in load_profile("general").personas]
    ['Critic', 'Supporter', 'Neutral Observer']
    """
    return _read_profile(profile_file(name_or_path))


def profile_file(name_or_path: str | Path) -> Path:
    """The YAML file of a profile, named as in `load_profile`. Raises `ProfileError` for an unknown name."""
    return Path(name_or_path) if is_profile_file(name_or_path) else _built_in_file(str(name_or_path))


def profile_names() -> list[str]:
    """The built-in profiles, by name, in alphabetical order."""
    return sorted(file.stem for file in data_folder("personas").glob("*.yaml") if _BUILT_IN_NAME.fullmatch(file.stem))


def is_profile_file(name_or_path: str | Path) -> bool:
    """Whether that is a profile's file, as `load_profile` takes it."""
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
    data = _normalized(located.data)
    if isinstance(data, dict):
        data = {"name": located.file.stem, **cast("dict[str, Any]", data)}
    return _checked_profile(data, located)


def profile_of(data: Mapping[str, Any]) -> Profile:
    """The profile that plain data describe, with the keys of a profile's file and a `name`.

    Raises:
        ProfileError: naming the key that cannot be read.
    """
    return _checked_profile(data, Located(data, {}, Path("the profile")))


def _checked_profile(data: Any, located: Located) -> Profile:
    try:
        return TypeAdapter(Annotated[Profile, Checked]).validate_json(json.dumps(data), strict=True)
    except ValidationError as found:
        raise as_input_error(found, located, Profile, ProfileError) from None


def _normalized(data: Any) -> Any:
    """The data with every text in one Unicode form (NFC), without blanks at its ends."""
    if isinstance(data, str):
        return unicodedata.normalize("NFC", data).strip()
    if isinstance(data, list):
        return [_normalized(each) for each in cast("list[Any]", data)]
    if isinstance(data, dict):
        return {key: _normalized(value) for key, value in cast("dict[str, Any]", data).items()}
    return data
