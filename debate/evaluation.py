"""The result of evaluating one task, and its JSON form.

Scores are NaN where a candidate was not scored, never a made-up number. Knows nothing of how the scores came about.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, cast

import numpy as np

from debate import feedback as _feedback
from debate import selection as _selection
from debate.types import (
    Failure,
    FloatArray,
    InvalidReply,
    Judgment,
    Memory,
    Scale,
    ScoreStatus,
    Status,
    StopReason,
    Transcript,
    Turn,
    Usage,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """What an evaluator found out about the J candidates of one task."""

    task_id: str
    evaluator: str
    """Name of the evaluator: `debate`, `value`, ..."""
    status: Status
    """`ok`; `partial` when something failed on the way and yet a score came out; `failed` when none did."""
    error: str | None = None
    """Why it failed or is partial, in one sentence."""
    scale: Scale = Scale()
    scores: FloatArray
    """(J,), on `scale`; NaN = unscored."""
    statuses: tuple[ScoreStatus, ...] = ()
    """How each candidate came by its score; empty for a debate, where a score is there or not."""
    probabilities: FloatArray
    """(J,), the softmax of the scores, best highest; 0 for an unscored candidate."""
    selected: int | None
    """Index of the winner, or of the sampled candidate; None when nothing was scored."""
    tied: tuple[int, ...] = ()
    """Candidates that share the best score; empty when one stands alone."""
    tensor: FloatArray | None = None
    """S, (R, I, J, K), with as many rounds as ran; NaN = unscored."""
    components: tuple[str, ...] = ()
    """Names along K."""
    agents: tuple[str, ...] = ()
    """Names along I."""
    cv: tuple[float, ...] = ()
    """Coefficient of variation, one a round; NaN when undefined."""
    rounds_run: int = 0
    stop_reason: StopReason | None = None
    failures: tuple[Failure, ...] = ()
    members: tuple[Evaluation, ...] = ()
    """The evaluations this one was made from, for evaluators that combine others."""
    order_agreement: bool | None = None
    """For a balanced debate: whether both candidate orders chose alike."""
    transcript: Transcript = Transcript()
    samples: tuple[Judgment, ...] = ()
    """What a judge that does not debate replied, call by call."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else the evaluator found out, as plain data; its docstring says what."""
    usage: Usage = Usage()
    seconds: float = 0.0

    def feedback(self, j: int) -> str:
        """What the agents said of candidate `j`, worst component first: a textual gradient (arXiv 2305.03495)."""
        return _feedback.feedback(self, j)

    def chain_of_thought(self, *, rounds: int | None = None, scores: bool = True, max_characters: int = 0) -> str:
        """The transcript as a block of text for another prompt.

        Args:
            rounds: only the last so many rounds; None for all.
            scores: whether the scores are shown.
            max_characters: drop the oldest turns until the text fits; 0 for no limit.
        """
        return _feedback.chain_of_thought(self, rounds=rounds, scores=scores, max_characters=max_characters)

    def keep_best(self, n: int) -> list[int]:
        """Indices of the `n` best candidates, best first, in the direction of the scale; see `selection.keep_best`."""
        return _selection.keep_best(self.scores, n, self.scale.higher_is_better)

    def tied_at_cut(self, n: int) -> list[int]:
        """Candidates that share the score at which `keep_best(n)` cuts; see `selection.tied_at_cut`."""
        return _selection.tied_at_cut(self.scores, n, self.scale.higher_is_better)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with arrays as nested lists and NaN as None."""
        return {spec.name: plain(getattr(self, spec.name)) for spec in fields(self)}

    def to_json(self) -> str:
        """One line of JSON, in valid Unicode: half a surrogate pair in a raw reply stands as its escape."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """The evaluation that `to_dict` was called on. Keys it does not know are an error."""
        values = dict(data)
        scale = values["scale"]
        high = math.inf if scale["high"] is None else scale["high"]
        values["scale"] = Scale(scale["low"], high, scale["higher_is_better"])
        for name in ("scores", "probabilities"):
            values[name] = _array(values[name])
        if values.get("tensor") is not None:
            values["tensor"] = _array(values["tensor"])
        values["cv"] = tuple(_number(value) for value in values["cv"])
        values["failures"] = tuple(Failure(**failure) for failure in values["failures"])
        values["members"] = tuple(cls.from_dict(member) for member in values["members"])
        values["transcript"] = Transcript(tuple(_turn(turn) for turn in values["transcript"]))
        values["usage"] = Usage(**values["usage"])
        values["samples"] = tuple(_sample(sample) for sample in values.get("samples", ()))
        values["statuses"] = tuple(values.get("statuses", ()))
        for name in ("tied", "components", "agents"):
            values[name] = tuple(values[name])
        return cls(**values)


def failed(task_id: str, evaluator: str, n_candidates: int, failure: Failure, scale: Scale | None = None) -> Evaluation:
    """An evaluation that came to nothing: every score NaN, nothing selected, and the reason."""
    return Evaluation(
        task_id=task_id,
        evaluator=evaluator,
        status="failed",
        error=failure.message,
        scale=scale or Scale(),
        scores=np.full(n_candidates, np.nan),  # (J,)
        probabilities=np.zeros(n_candidates),  # (J,)
        selected=None,
        stop_reason="failed",
        failures=(failure,),
    )


def plain(value: Any) -> Any:
    """Plain data of the package's own values: arrays as nested lists, what is not finite as None."""
    match value:
        case np.ndarray():
            return plain(cast("FloatArray", value).tolist())
        case float():
            return value if math.isfinite(value) else None
        case Evaluation():
            return value.to_dict()
        case Transcript():
            return [_plain_turn(turn) for turn in value]
        case Scale() | Failure() | Usage() | Memory() | InvalidReply() | Judgment():
            return {key: plain(item) for key, item in asdict(value).items()}
        case list() | tuple():
            return [plain(item) for item in cast("list[Any]", value)]
        case Mapping():
            return {key: plain(item) for key, item in cast("Mapping[str, Any]", value).items()}
        case _:
            return value


def _plain_turn(turn: Turn) -> dict[str, Any]:
    data = {spec.name: plain(getattr(turn, spec.name)) for spec in fields(turn)}
    return {**data, "labels": dict(turn.labels)}


def _turn(data: Mapping[str, Any]) -> Turn:
    values = dict(data)
    values["scores"] = _array(values["scores"])
    values["comments"] = tuple(values["comments"])
    values["failure"] = None if values["failure"] is None else Failure(**values["failure"])
    values["rejected"] = tuple(InvalidReply(**rejected) for rejected in values["rejected"])
    values["memories"] = tuple(as_memory(memory) for memory in values["memories"])
    return Turn(**values)


def _sample(data: Mapping[str, Any]) -> Judgment:
    values = dict(data)
    for name in ("candidates", "ranking", "labels"):
        values[name] = tuple(values[name])
    values["failure"] = None if values["failure"] is None else Failure(**values["failure"])
    values["rejected"] = tuple(InvalidReply(**rejected) for rejected in values["rejected"])
    return Judgment(**values)


def as_memory(data: Mapping[str, Any]) -> Memory:
    """The memory that `plain` was called on."""
    parts: dict[str, Any] = {key: _number(data[key]) for key in ("score", "relevance", "recency", "importance")}
    return Memory(**{**data, **parts})


def _number(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _array(nested: Any) -> FloatArray:
    return np.array(nested, dtype=np.float64)  # None becomes NaN
