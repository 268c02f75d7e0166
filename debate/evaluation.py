"""The result of evaluating one task: its JSON form, feedback on a candidate, and the transcript as a chain of thought.

Scores are NaN where a candidate was not scored, never a made-up number. Texts name candidates by their index in the
task, from 1, because the labels of the debate mean nothing outside it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from debate import selection as _selection
from debate.files import json_text
from debate.scoring.distributions import spread_of
from debate.scoring.distributions import why_unscored as why_label_unscored
from debate.types import (
    FORBID_UNKNOWN,
    Failure,
    FloatArray,
    FloatOrNaN,
    Judgment,
    OmitsEmpty,
    Scale,
    ScoreStatus,
    SilentReadout,
    Status,
    StopReason,
    Transcript,
    Turn,
    Usage,
    Verdict,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation(OmitsEmpty):
    """What an evaluator found out about the J candidates of one task."""

    __pydantic_config__ = FORBID_UNKNOWN
    omitted = ("p_best", "before", "after")

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
    p_best: FloatArray | None = None
    """(J,), the probability of each candidate being the best, where scores were read out as distributions; see
    `debate.scoring.distributions.p_best`."""
    before: tuple[SilentReadout, ...] = ()
    """How each agent would have scored before anybody had spoken, where that was read out."""
    after: tuple[SilentReadout, ...] = ()
    """The same after the last turn."""
    components: tuple[str, ...] = ()
    """Names along K."""
    agents: tuple[str, ...] = ()
    """Names along I."""
    cv: tuple[FloatOrNaN, ...] = ()
    """Coefficient of variation, one per round; NaN when undefined."""
    rounds_run: int = 0
    stop_reason: StopReason | None = None
    failures: tuple[Failure, ...] = ()
    members: tuple[Evaluation, ...] = ()
    """The evaluations this one was made from, for evaluators that combine others."""
    order_agreement: bool | None = None
    """For a balanced debate: whether both candidate orders chose alike."""
    transcript: Transcript = Transcript()
    judgments: tuple[Judgment, ...] = ()
    """What a judge that does not debate replied, call by call."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else the evaluator found out, as plain data; its docstring says what."""
    usage: Usage = Usage()
    seconds: float = 0.0

    @property
    def spread(self) -> FloatArray | None:
        """Standard deviation of each cell, (R, I, J, K); NaN where unscored, None where no scores were read out."""
        read = {(turn.round, turn.agent): turn.distributions for turn in self.transcript if turn.distributions}
        if self.tensor is None or not read:
            return None
        spreads = np.full(self.tensor.shape, np.nan)  # (R, I, J, K)
        for (r, agent), distributions in read.items():
            spreads[r, self.agents.index(agent)] = spread_of(distributions)
        return spreads

    @property
    def choice(self) -> tuple[int, ...]:
        """What was chosen: the selected candidate and those that tie with it; empty when nothing was selected."""
        if self.selected is None:
            return ()
        return self.tied if self.selected in self.tied else (self.selected,)

    def verdict(self, best: Collection[int]) -> Verdict | None:
        """How the choice stands to a label, the indices of the right candidates; None without a label.

        `right` when all that was chosen is right, so that a tie among right candidates is, and any other tie is not.
        """
        if not best:
            return None
        if not self.choice:
            return "unscored"
        if set(self.choice) <= set(best):
            return "right"
        return "tied" if len(self.choice) > 1 else "wrong"

    def feedback(self, j: int) -> str:
        """What the agents said of candidate `j`, worst component first: a textual gradient (arXiv 2305.03495).

        Raises:
            IndexError: when there is no such candidate.
        """
        if not 0 <= j < len(self.scores):
            raise IndexError(f"there is no candidate {j}: the task has {len(self.scores)}, counted from 0")
        lines = [_standing(self, j)]
        for debate in _leaves(self):
            lines += _component_lines(debate, j)
            lines += _comment_lines(debate, j)
            lines += _sample_lines(debate, j)
        return "\n".join(lines)

    def chain_of_thought(self, *, rounds: int | None = None, scores: bool = True, max_characters: int = 0) -> str:
        """The transcript as a block of text for another prompt, oldest turn first.

        Args:
            rounds: only the last so many rounds; None for all.
            scores: whether the scores are shown.
            max_characters: drop the oldest turns until the text fits; 0 for no limit.
        """
        parts: list[str] = []
        for debate in _leaves(self):
            first = 0 if rounds is None else max(0, debate.rounds_run - rounds)
            turns = [turn for turn in debate.transcript if turn.failure is None and turn.round >= first]
            parts += [_spoken(turn, debate.components if scores else ()) for turn in turns]
            parts += [_replied(debate, sample, scores) for sample in debate.judgments if sample.text]
        while max_characters and len(parts) > 1 and len("\n\n".join(parts)) > max_characters:
            parts.pop(0)
        text = "\n\n".join(parts)
        return text[:max_characters] if max_characters else text

    def ranks(self) -> list[int | None]:
        """Rank of each candidate, 1 is best; tied candidates share one, the unscored have none."""
        return _selection.ranks(self.scores, self.scale.higher_is_better)

    def keep_best(self, n: int) -> list[int]:
        """Indices of the `n` best candidates, best first, in the direction of the scale; see `selection.keep_best`."""
        return _selection.keep_best(self.scores, n, self.scale.higher_is_better)

    def tied_at_cut(self, n: int) -> list[int]:
        """Candidates that share the score at which `keep_best(n)` cuts; see `selection.tied_at_cut`."""
        return _selection.tied_at_cut(self.scores, n, self.scale.higher_is_better)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with arrays as nested lists and NaN as None."""
        return plain(self)

    def to_json(self) -> str:
        """One line of JSON, in valid Unicode: half a surrogate pair in a raw reply stands as its escape."""
        return _json(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """The evaluation that `to_dict` was called on.

        Raises:
            ValueError: for what `to_dict` does not write: an unknown or missing key, a value of another type.
        """
        return from_plain(cls, data)


def why_unscored(turn: Turn, j: int, k: int) -> str | None:
    """Why a cell of a turn has no score: the reason of the turn's failure, `label_mass` or `abstained`; None with one.

    See `debate.scoring.distributions.why_unscored`. An agent that may abstain says why in its comments.
    """
    if not np.isnan(turn.scores[j, k]):
        return None
    if turn.failure is not None:
        return turn.failure.reason
    return why_label_unscored(turn.distributions[j][k]) if turn.distributions else "abstained"


def abstained_cells(evaluation: Evaluation) -> tuple[int, int]:
    """How many cells have no score because an agent abstained, and of how many; members' cells are counted, too."""
    turns = [turn for each in _leaves(evaluation) for turn in each.transcript]
    empty = [(turn, j, k) for turn in turns for j, k in np.argwhere(np.isnan(turn.scores)).tolist()]
    return sum(why_unscored(*cell) == "abstained" for cell in empty), sum(turn.scores.size for turn in turns)


def plain(value: Any) -> Any:
    """Plain data of an evaluation or of one of its parts: arrays as nested lists, what is not finite as None."""
    return _adapter(cast("type[Any]", type(value))).dump_python(value, mode="json", fallback=array_as_list)


@lru_cache(maxsize=32)
def _json(evaluation: Evaluation) -> str:
    """An evaluation's JSON. It is written twice soon after it is made: into the store and the results file."""
    return json_text(evaluation.to_dict())


def from_plain(kind: type[T], data: Any) -> T:
    """The value that `plain` was called on.

    Raises:
        ValueError: for data of another shape; names the place.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from None


@cache
def _adapter(kind: type[T]) -> TypeAdapter[T]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def array_as_list(value: Any) -> Any:
    """A numpy value of `details` as a list or number. Raises TypeError for what is no plain data."""
    if isinstance(value, np.ndarray | np.generic):
        return cast("Any", value).tolist()
    raise TypeError(f"details hold a {type(value).__name__}, which is no plain data")


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


def _leaves(evaluation: Evaluation) -> Iterator[Evaluation]:
    """The evaluations that are made of no others."""
    if not evaluation.members:
        yield evaluation
    for member in evaluation.members:
        yield from _leaves(member)


def _standing(evaluation: Evaluation, j: int) -> str:
    score = evaluation.scores[j]
    if np.isnan(score):
        return f"Candidate {j + 1} was not scored: {evaluation.error or 'no agent gave a readable score'}."
    scale, rank = evaluation.scale, evaluation.ranks()[j]
    return (
        f"Candidate {j + 1} of {len(evaluation.scores)}: {score:.2f} on a scale of "
        f"{scale.low:g} to {_short(scale.high)}, rank {rank}."
    )


def top_of_scale(evaluation: Evaluation) -> str:
    """` of 6.67`, which stands behind scores that do not go to 10; empty where they do, or the lowest are the best."""
    high = evaluation.scale.high
    return f" of {_short(high)}" if evaluation.scale.higher_is_better and high not in (10.0, np.inf) else ""


def _short(number: float) -> str:
    """With two decimals at most, except for what is below 1."""
    return f"{round(number, 2) if abs(number) >= 1 else number:g}"


def _component_lines(debate: Evaluation, j: int) -> list[str]:
    if debate.tensor is None or not debate.components:
        return []
    means, last = _mean(debate.tensor[:, :, j, :]), debate.tensor[-1, :, j, :]  # (K,), (I, K)
    order = [k for k in np.argsort(means, kind="stable").tolist() if not np.isnan(means[k])]
    return [f"{debate.components[k]} {means[k]:.1f}{_by_agent(debate.agents, last[:, k])}" for k in order]


def _by_agent(agents: Sequence[str], last: FloatArray) -> str:
    """The scores (I,) of the last round, each with its agent."""
    told = [f"{name} {value:g}" for name, value in zip(agents, last, strict=False) if not np.isnan(value)]
    return f" ({', '.join(told)})" if told else ""


def _comment_lines(debate: Evaluation, j: int) -> list[str]:
    """The newest comment of every agent, the one who scored the candidate lowest first."""
    newest = {turn.agent: turn for turn in debate.transcript if turn.failure is None}
    turns = sorted(newest.values(), key=lambda turn: float(turn.scores[j].mean()))
    return [f"- {turn.agent}: {_renumber(turn.comments[j], turn.labels)}" for turn in turns if turn.comments[j].strip()]


def _sample_lines(judged: Evaluation, j: int) -> list[str]:
    """What a judge that does not debate replied on the candidate, the lowest value first; ballots that rank it last."""
    about = [sample for sample in judged.judgments if j in sample.candidates and sample.text.strip()]
    about.sort(key=lambda sample: _favor(sample, j))
    return [f"- {_replied(judged, sample, True)}" for sample in about]


def _replied(judged: Evaluation, sample: Judgment, scores: bool) -> str:
    """One reply, with what it is about and what was read in it."""
    worth = f": {sample.value:g}" if scores and sample.value is not None else ""
    order = f": {' > '.join(str(j + 1) for j in sample.ranking)}" if scores and sample.ranking else ""
    labels = dict(zip(sample.labels, sample.candidates, strict=False))
    return f"{judged.evaluator}, {subject(sample)}{worth}{order}\n  {_renumber(sample.text, labels)}"


def subject(sample: Judgment) -> str:
    """What a reply is about: candidates from 1, and a step, where it is about one."""
    step = "" if sample.step is None else f", step {sample.step + 1}"
    return (
        f"candidate{'s' if len(sample.candidates) > 1 else ''} {', '.join(str(j + 1) for j in sample.candidates)}{step}"
    )


def _favor(sample: Judgment, j: int) -> float:
    """How well a reply speaks of a candidate: its value, or its place in a ballot, the first best."""
    if sample.value is not None:
        return sample.value
    return -float(sample.ranking.index(j) if j in sample.ranking else len(sample.candidates))


def _spoken(turn: Turn, components: Sequence[str]) -> str:
    lines = [f"{turn.agent} (round {turn.round + 1}): {_renumber(turn.overall, turn.labels)}".rstrip()]
    for j, comment in enumerate(turn.comments):
        marks = ", ".join(f"{name} {value:g}" for name, value in zip(components, turn.scores[j], strict=False))
        lines.append(f"- Candidate {j + 1}: {_renumber(comment, turn.labels)}" + (f" ({marks})" if marks else ""))
    return "\n".join(lines)


_NAMED = re.compile(r"\b([Cc]andidate|[Rr]esponse|[Aa]nswer) ([A-Z]{1,2})\b")


def _renumber(text: str, labels: Mapping[str, int]) -> str:
    """`candidate B` becomes the candidate's number in the task; a bare letter is left alone."""

    def number(match: re.Match[str]) -> str:
        j = labels.get(match[2])
        return match[0] if j is None else f"{match[1]} {j + 1}"

    return _NAMED.sub(number, text.strip())


def _mean(scores: FloatArray) -> FloatArray:
    """Mean over rounds and agents of (R, I, K), NaN where nobody scored; quiet about it."""
    scored = ~np.isnan(scores)
    total = np.where(scored, scores, 0.0).sum(axis=(0, 1))  # (K,)
    count = scored.sum(axis=(0, 1))  # (K,)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
