"""When a value needs no more samples, and a task no more values. Pure: knows values, not how they are made.

In waves, so that a batching backend stays full: one sample of every candidate under way, then a look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from debate.errors import ConfigError
from debate.scoring.reducers import summarize
from debate.types import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStop:
    """Stop once a value is high enough.

    A candidate of which at least `min_samples` were read gets no more once their mean reaches `threshold`. Where it
    does, `over="task"` leaves the candidates that come after its wave unread: they are `skipped`, and have no score.
    """

    threshold: float = 0.95
    """Of the scale, from 0 (its worse end) to 1."""
    min_samples: int = 2
    over: Literal["candidate", "task"] = "candidate"
    wave: int = 8
    """Candidates under way at once, `over="task"`; all of them otherwise."""

    def __post_init__(self) -> None:
        checks = (
            ("threshold", 0 < self.threshold <= 1, "must lie in (0, 1]"),
            ("min_samples", self.min_samples >= 1, "must be at least 1"),
            ("wave", self.wave >= 1, "must be at least 1"),
            ("over", self.over in ("candidate", "task"), "must be candidate or task"),
        )
        for name, is_fine, rule in checks:
            if not is_fine:
                raise ConfigError(f"{rule}, got {getattr(self, name)!r}", field=f"early_stop.{name}")

    def waves(self, candidates: Sequence[int]) -> list[list[int]]:
        """The candidates that are under way together."""
        if self.over == "candidate":
            return [list(candidates)]
        return [list(candidates[start : start + self.wave]) for start in range(0, len(candidates), self.wave)]

    def is_settled(self, values: Sequence[float | None], scale: Scale) -> bool:
        """Whether a candidate with these samples, failed ones as None, needs no more."""
        summary = summarize(values)
        return summary.n_ok >= self.min_samples and scale.to_unit(summary.mean) >= self.threshold

    def ends(self, values: Sequence[float | None], scale: Scale) -> bool:
        """Whether a candidate with these samples makes further ones needless."""
        return self.over == "task" and self.is_settled(values, scale)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        names = ("threshold", "min_samples", "over", "wave")
        return {name: getattr(self, name) for name in names}
