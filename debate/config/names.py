"""Backends and evaluators that are given by name.

    backend      "built-in", or a model's name or folder: vLLM in this process
    evaluator    nothing       a debate
                 a profile     a debate of that profile: its name, its file, or a `Profile`
                 a name        that evaluator, with its defaults

A model's folder says which settings it wants, as for `debate run`; the bundled judge's asks for its own profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from debate import bundled_judge
from debate.backends.base import Backend, backends_by_name
from debate.backends.vllm.backend import VLLM
from debate.errors import ConfigError
from debate.evaluators.base import Evaluator
from debate.evaluators.contract import check_evaluator
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.profiles import Profile, is_profile_file, load_profile, profile_names
from debate.registry import EVALUATORS

GivenBackend = Backend | str | Path
"""A backend, or the model that vLLM runs in this process."""
GivenEvaluator = Evaluator | Profile | str | Path | None
"""An evaluator, or what names one."""


def named_backends(given: GivenBackend | Mapping[str, GivenBackend]) -> dict[str, Backend]:
    """A backend under its model's name, or several under the names that they are given.

    Raises:
        ConfigError: for what is no backend, and for a model that is not there.
    """
    if isinstance(given, Mapping):
        return backends_by_name({name: _backend(each) for name, each in given.items()})
    return backends_by_name(_backend(given))


def _backend(given: GivenBackend) -> Backend:
    return bundled_judge.backend(given) if isinstance(given, str | Path) else given


class NamedEvaluators:
    """The evaluators of one engine by their names. What is made once is kept, profiles in files apart.

    Args:
        backend: whose model's settings are taken.
    """

    def __init__(self, backend: Backend) -> None:
        self._model = backend.model if isinstance(backend, VLLM) else None
        self._made: dict[str, Evaluator] = {}

    def find(self, given: GivenEvaluator) -> Evaluator:
        """The evaluator that is given or named.

        Our profiles' names go before those of evaluators, which packages may add.

        Raises:
            ConfigError: for a name of neither, an evaluator that needs parameters, and what is no evaluator.
            ProfileError: for a profile's file that cannot be read.
        """
        if isinstance(given, Path) or (isinstance(given, str) and is_profile_file(given)):
            given = load_profile(given)
        if isinstance(given, Profile):
            return replace(cast("DebateEvaluator", self.find(None)), profile=given)
        if not (given is None or isinstance(given, str)):
            check_evaluator(given)
            return given
        name = given or "debate"
        if name not in self._made:
            self._made[name] = self._make(profile=name) if name in profile_names() else self._by_name(name)
        return self._made[name]

    def _by_name(self, name: str) -> Evaluator:
        if name not in EVALUATORS.entries and ":" not in name:
            raise ConfigError(
                f"there is neither a profile nor an evaluator {name!r}", field="evaluator", hint=_hint(name)
            )
        try:
            return self._make(evaluator=name)
        except ConfigError as error:
            if error.field != "options":
                raise
            made = getattr(EVALUATORS.load(name), "__name__", name)
            raise ConfigError(error.problem, field="evaluator", hint=f"make one: {made}(...)") from None

    def _make(self, **settings: Any) -> Evaluator:
        from debate.config.settings import RunSettings  # it declares every flag

        model = {} if self._model is None else {"model": self._model}
        return RunSettings.read(None, {**model, **settings}).make_evaluator()


def _hint(name: str) -> str:
    profiles, evaluators = profile_names(), [*EVALUATORS.entries]
    close = get_close_matches(name.lower(), [*profiles, *evaluators], n=1)
    known = f"profiles: {', '.join(profiles)}, or a file such as ./mine.yaml; evaluators: {', '.join(evaluators)}"
    return f"did you mean {close[0]!r}? {known}" if close else known
