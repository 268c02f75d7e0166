"""When a value needs no more samples, and a task no more values (seed 000). Pure: knows values, not how they are made.

In waves, so that a batching backend stays full: one sample of every candidate under way, then a look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from debate.compat import is_compat
from debate.errors import ConfigError
from debate.scoring.reducers import summarise
from debate.types import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStop:
    """Stop once a value is high enough.

    A candidate of which at least `min_samples` were read gets no more once their mean reaches `threshold`. Where it
    does, `over="task"` leaves the candidates that come after its wave unread: they are `skipped`, and have no score.

    With `compat="seed"` it is as in the document: one candidate after the other, what was not read is worth 0, a single
    sample may end the search, and the threshold is of 10 whatever the scale.
    """

    threshold: float = 0.95
    """Of the scale, from 0 (its worse end) to 1."""
    min_samples: int = 2
    over: Literal["candidate", "task"] = "candidate"
    wave: int = 8
    """Candidates under way at once, `over="task"`; all of them otherwise."""
    compat: Literal["seed"] | None = None

    def __post_init__(self) -> None:
        is_compat(self.compat, "seed")
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
        if self.over == "candidate" and self.compat is None:
            return [list(candidates)]
        size = 1 if self.compat else self.wave
        return [list(candidates[start : start + size]) for start in range(0, len(candidates), size)]

    def is_settled(self, values: Sequence[float | None], scale: Scale) -> bool:
        """Whether a candidate with these samples, failed ones as None, needs no more."""
        return summarise(values).n_ok >= self.min_samples and self._reaches(values, scale)

    def ends(self, values: Sequence[float | None], scale: Scale) -> bool:
        """Whether a candidate with these samples makes further ones needless."""
        if self.compat:
            return bool(values) and self._reaches(values, scale)
        return self.over == "task" and self.is_settled(values, scale)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        names = ("threshold", "min_samples", "over", "wave", "compat")
        return {name: getattr(self, name) for name in names}

    def _reaches(self, values: Sequence[float | None], scale: Scale) -> bool:
        summary = summarise(values)
        if not summary.n_ok:
            return False
        if self.compat:
            return summary.mean >= self.threshold * 10
        return scale.to_unit(summary.mean) >= self.threshold
