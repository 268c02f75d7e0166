"""What the evaluators that ask a judge short questions have in common: model, sampling, templates, retries, choice.

Knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from debate.errors import ConfigError
from debate.evaluators.base import Footprint
from debate.evaluators.result import SelectionPolicy
from debate.flow import Generate, Prompt
from debate.prompts import Templates
from debate.types import Sampling, Task

_RULES_CHARACTERS = 2000


@dataclass(frozen=True, kw_only=True)
class JudgeSettings:
    """A judge that is asked short questions, each by itself.

    Raises:
        TemplateError, ConfigError: for settings that cannot work.
    """

    model: str | None = None
    """None is the run's model."""
    sampling: Sampling = Sampling()
    """What is None is taken from the evaluator's own defaults."""
    reasoning_chars: int = 600
    """Longest reasoning that the reply's schema allows."""
    retries: int = 2
    """How often an unreadable reply is asked again."""
    templates: Templates | str | Path | None = None
    """A folder whose templates go before the built-in ones."""
    selection: Literal["argmax", "sample"] = "argmax"
    ties: Literal["first", "seeded"] = "first"
    softmax_temperature: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.templates, Templates):
            object.__setattr__(self, "templates", Templates(self.templates))
        self._at_least("retries", 0)
        self._at_least("reasoning_chars", 1)
        self.choosing  # noqa: B018 - checks itself

    @property
    def models(self) -> frozenset[str]:
        """The judge's model, where it is not the run's."""
        return frozenset() if self.model is None else frozenset({self.model})

    @property
    def choosing(self) -> SelectionPolicy:
        """How a candidate is chosen."""
        return SelectionPolicy(self.selection, self.ties, self.softmax_temperature)

    @property
    def prompt_templates(self) -> Templates:
        """The templates in force."""
        assert isinstance(self.templates, Templates)
        return self.templates

    @property
    def drawing(self) -> Sampling:
        """The sampling in force, with room for the longest reply the schema allows (two characters a token)."""
        return self.sampling.over(Sampling(temperature=self._temperature, max_tokens=self._longest_reply))

    @property
    def _temperature(self) -> float:
        return 0.3

    @property
    def _longest_reply(self) -> int:
        return self.reasoning_chars // 2 + 100

    def footprint(self, task: Task) -> Footprint:
        """One prompt with all of the task, and one reply."""
        texts = [task.x, *task.context, *(candidate.text for candidate in task.candidates)]
        return Footprint(_RULES_CHARACTERS + sum(map(len, texts)), 1, self.drawing.max_tokens or 0)

    def request(
        self,
        task: Task,
        prompt: Prompt,
        schema: Mapping[str, Any] | None,
        key: tuple[str | int, ...],
        attempt: int,
        **info: Any,
    ) -> Generate:
        """A call of this judge's."""
        return Generate(
            prompt=prompt,
            sampling=self.drawing,
            schema=schema,
            model=self.model,
            sample_key=key,
            attempt=attempt,
            info={"task_id": task.id, "attempt": attempt, **info},
        )

    def _describe(self, *templates: str, aggregation: Mapping[str, Any], **own: Any) -> dict[str, Any]:
        """The settings that all judges have, and the evaluator's own."""
        return {
            **own,
            "model": self.model,
            "sampling": self.drawing.to_dict(),
            "reasoning_chars": self.reasoning_chars,
            "templates": self.prompt_templates.fingerprint(*templates),
            "aggregation": {
                "retries": self.retries,
                "selection": self.selection,
                "ties": self.ties,
                "softmax_temperature": self.softmax_temperature,
                **aggregation,
            },
        }

    def _at_least(self, name: str, least: int) -> None:
        value = getattr(self, name)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        self._require(name, is_whole and value >= least, f"must be a whole number, at least {least}")

    def _require(self, name: str, is_fine: bool, rule: str) -> None:
        if not is_fine:
            raise ConfigError(f"{rule}, got {getattr(self, name)!r}", field=name)

    def _one_of(self, name: str, allowed: tuple[str, ...]) -> None:
        self._require(name, getattr(self, name) in allowed, f"must be one of {', '.join(allowed)}")
