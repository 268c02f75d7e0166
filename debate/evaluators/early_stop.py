"""When a candidate needs no more samples, and a task no more candidates.

Samples are drawn in waves, so that a batching backend stays full: a sample of each candidate of a wave, then a check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from debate.scoring.reducers import summarize
from debate.settings import check_settings, documented, plain_values, setting
from debate.types import Scale


@documented
@dataclass(frozen=True, kw_only=True)
class EarlyStop:
    """Stops sampling once a value is high enough.

    A candidate with at least `min_samples` values is settled once their mean reaches `threshold`, and is not sampled
    again. With `over="task"`, the candidates after its wave are `skipped`: not sampled, and without a score.
    """

    threshold: float = setting(0.95, "Mean at which to stop, from 0 (the scale's worse end) to 1.", gt=0, le=1)
    min_samples: int = setting(2, "Samples that must have been read before a candidate may be settled.", ge=1)
    over: Literal["candidate", "task"] = setting("candidate", "What a settled candidate ends: its own samples, or all.")
    wave: int = setting(8, "Candidates sampled at once where `over` is task; all of them otherwise.", ge=1)

    def __post_init__(self) -> None:
        check_settings(self, "early_stop.")

    def waves(self, candidates: Sequence[int]) -> list[list[int]]:
        """The candidates in groups that are sampled together."""
        if self.over == "candidate":
            return [list(candidates)]
        return [list(candidates[start : start + self.wave]) for start in range(0, len(candidates), self.wave)]

    def is_settled(self, values: Sequence[float | None], scale: Scale) -> bool:
        """Whether a candidate with these values, None for failed samples, needs no more."""
        summary = summarize(values)
        return summary.n_ok >= self.min_samples and scale.to_unit(summary.mean) >= self.threshold

    def ends(self, values: Sequence[float | None], scale: Scale) -> bool:
        """Whether a candidate with these values ends the task."""
        return self.over == "task" and self.is_settled(values, scale)

    def describe(self) -> dict[str, Any]:
        """The settings as plain data."""
        return plain_values(self)
