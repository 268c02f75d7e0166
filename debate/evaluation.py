"""The result of evaluating one task: its JSON form, feedback on a candidate, and the transcript as a chain of thought.

Scores are NaN where a candidate was not scored, never a made-up number. Texts name candidates by their index in the
task, from 1, because the labels of the debate mean nothing outside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar, cast, overload

import numpy as np

from debate import selection as _selection
from debate.files import json_text
from debate.scoring.distributions import moments, spread_of
from debate.scoring.distributions import why_unscored as why_label_unscored
from debate.scoring.tensor import component_means
from debate.types import (
    FORBID_UNKNOWN,
    UNSPOKEN,
    Displayed,
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
    check_choice,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pydantic import TypeAdapter

T = TypeVar("T")
FrameLibrary = Literal["pandas", "polars"]
"""What data frames are made by."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation(Displayed, OmitsEmpty):
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
        return verdict(self.choice, best)

    @property
    def by_component(self) -> FloatArray | None:
        """The mean score of each candidate on each component, (J, K), in the components' order and on their scale.

        It counts the cells that the scores count: those of agents that scored a candidate on all components, mean over
        the agents of a round and then over the rounds in which a quorum of them did. So a candidate's score is the mean
        of its row, weighted by the components' weights, and the row is NaN where the candidate is unscored. Of a
        balanced debate it is the mean of both orders. Of a task that was settled without a debate they are those of the
        silent round. None for evaluators without components.

        The quorum is not recorded: it is more than half of the agents, or the number nearest to that with which the
        same candidates are unscored.
        """
        tensor = self.tensor if self.tensor is not None else _silent_tensor(self)
        if tensor is not None:
            return component_means(tensor, _quorum_of(self, tensor))
        own = [each.by_component for each in self.members if each.evaluator == self.evaluator]
        means = [each for each in own if each is not None]
        return np.mean(means, axis=0) if means and len(means) == len(self.members) else None

    @property
    def scored_components(self) -> tuple[str, ...]:
        """The components of `by_component`: of a balanced debate those of its members."""
        return self.components or next((each.components for each in self.members), ())

    def feedback(self, j: int, *, scores: bool = True) -> str:
        """What the agents said of candidate `j`, worst component first: a textual gradient (arXiv 2305.03495).

        Where scores were read out, ± is the standard deviation of the mean of the agents' distributions: it holds how
        unsure each of them is, and how far they are apart. What several said in the same words is told once.

        Args:
            j: index of the candidate.
            scores: whether the numbers are told; without them the comments remain, and why there is no score.

        Raises:
            IndexError: when there is no such candidate.
        """
        if not 0 <= j < len(self.scores):
            raise IndexError(f"there is no candidate {j}: the task has {len(self.scores)}, counted from 0")
        lines = [_standing(self, j)] if scores or np.isnan(self.scores[j]) else []
        said = [[*_comments(debate, j), *_samples(debate, j, scores)] for debate in leaves(self)]
        told = iter(_each_once(said))
        for debate in leaves(self):
            lines += [*_component_lines(debate, j), *_talk_lines(debate, j)] if scores else []
            lines += next(told)
        return "\n".join(lines)

    def chain_of_thought(self, *, rounds: int | None = None, scores: bool = True, max_characters: int = 0) -> str:
        """The transcript as a block of text for another prompt, oldest turn first.

        What was said before in the same words is not said again: `the same as before`, or `the same as NAME`.

        Args:
            rounds: only the last so many rounds; None for all.
            scores: whether the scores are shown.
            max_characters: drop the oldest turns until the text fits; 0 for no limit.
        """
        spoken: list[_Told] = []
        for debate in leaves(self):
            first = 0 if rounds is None else max(0, debate.rounds_run - rounds)
            turns = [turn for turn in debate.transcript if turn.failure is None and turn.round >= first]
            spoken += [partial(_spoken, turn, debate.components if scores else ()) for turn in turns]
            spoken += [partial(_judged, debate, sample, scores) for sample in debate.judgments if sample.text]
        text = _in_order(spoken)
        while max_characters and len(spoken) > 1 and len(text) > max_characters:
            spoken.pop(0)
            text = _in_order(spoken)
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

    def __repr__(self) -> str:
        """Its scores and what came of them, without the tensor and the transcript."""
        scores = [*(f"{score:.3g}" for score in self.scores[:8]), *(["..."] if len(self.scores) > 8 else [])]
        told = f"{shortened(self.task_id)}, {shortened(self.evaluator)}, {self.status!r}, scores=[{', '.join(scores)}]"
        tied = f", tied={self.tied}" if self.tied else ""
        is_told = self.rounds_run or self.stop_reason in UNSPOKEN
        rounds = f", rounds_run={self.rounds_run}, stop_reason={self.stop_reason!r}" if is_told else ""
        error = "" if self.error is None else f", error={shortened(self.error)}"
        return f"Evaluation({told}, selected={self.selected}{tied}{rounds}{error})"

    def to_dataframe(self, library: FrameLibrary | None = None) -> Any:
        """A data frame with a row for each cell of the tensor.

        Columns: task, member, `r`, `i`, `j`, `k` (from 0), agent, component, score, spread. An evaluation without
        rounds has a row for each candidate. Members have rows of their own; `member` is the path to them.

        Args:
            library: what makes it; None takes pandas where it is installed, else polars.

        Raises:
            ConfigError: when that library is not installed.
        """
        return import_module("debate.notebook.frames").cells_frame([self], library)

    def plot(self) -> Figure:
        """The tensor as heat maps, one for each candidate and component, with rounds downward and agents across.

        Of an evaluation without rounds, a bar for each score. A notebook shows the figure; `.savefig(PATH)` writes it.

        Raises:
            ConfigError: when matplotlib is not installed: `pip install 'debate-eval[plots]'`.
        """
        return import_module("debate.notebook.plots").plot_evaluation(self)

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


class Evaluations(Displayed, list[Evaluation]):
    """A list of evaluations that a notebook shows as a table. `evaluate_batch` returns one."""

    __slots__ = ()

    def __repr__(self) -> str:
        """A line for each of the first evaluations."""
        lines = [f"  {each!r},\n" for each in list(self[:10])]
        more = f"  ... {len(self) - 10:,} more\n" if len(self) > 10 else ""
        return f"Evaluations([\n{''.join(lines)}{more}])" if self else "Evaluations([])"

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Evaluation: ...

    @overload
    def __getitem__(self, index: slice, /) -> Evaluations: ...

    def __getitem__(self, index: SupportsIndex | slice, /) -> Evaluation | Evaluations:
        """One evaluation, or several that are shown in the same way."""
        found = super().__getitem__(index)
        return Evaluations(found) if isinstance(found, list) else found

    def to_dataframe(self, which: Literal["tasks", "cells"] = "tasks", library: FrameLibrary | None = None) -> Any:
        """A data frame with a row for each evaluation, or for each cell of their tensors.

        Args:
            which: `tasks` has what `debate export --to tasks` writes, without what the task alone knows: its label and
                its group; `cells` has the columns of `Evaluation.to_dataframe`.
            library: as for `Evaluation.to_dataframe`.

        Raises:
            ConfigError: when that library is not installed.
        """
        check_choice("table", which, Literal["tasks", "cells"])
        frames = import_module("debate.notebook.frames")
        return (frames.found_frame if which == "tasks" else frames.cells_frame)(self, library)


def verdict(choice: Collection[int], best: Collection[int]) -> Verdict | None:
    """How a choice stands to the indices of the right candidates, as `Evaluation.verdict`; None without any."""
    if not best:
        return None
    if not choice:
        return "unscored"
    if set(choice) <= set(best):
        return "right"
    return "tied" if len(choice) > 1 else "wrong"


def share_right(choice: Collection[int], best: Collection[int]) -> float:
    """How right a choice is where one of those that tie is drawn, from 0 to 1: the share of it that is right.

    0 where nothing is chosen, NaN without a label.
    """
    if not best:
        return math.nan
    return len({*choice} & {*best}) / len(choice) if choice else 0.0


def why_unscored(turn: Turn, j: int, k: int) -> str | None:
    """Why a cell of a turn has no score: the reason of the turn's failure, `not_shown` for a candidate that the agent
    did not see, `label_mass` or `abstained`; None with one.

    See `debate.scoring.distributions.why_unscored`. An agent that may abstain says why in its comments.
    """
    if not np.isnan(turn.scores[j, k]):
        return None
    if turn.failure is not None:
        return turn.failure.reason
    if j not in turn.labels.values():
        return "not_shown"
    return why_label_unscored(turn.distributions[j][k]) if turn.distributions else "abstained"


def abstained_cells(evaluation: Evaluation) -> tuple[int, int]:
    """How many cells have no score because an agent abstained, and of how many; members' cells are counted, too."""
    turns = [turn for each in leaves(evaluation) for turn in each.transcript]
    empty = [(turn, j, k) for turn in turns for j, k in np.argwhere(np.isnan(turn.scores)).tolist()]
    cells = sum(len(turn.labels) * turn.scores.shape[1] for turn in turns)
    return sum(why_unscored(*cell) == "abstained" for cell in empty), cells


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


def leaves(evaluation: Evaluation) -> Iterator[Evaluation]:
    """The evaluations that are made of no others."""
    if not evaluation.members:
        yield evaluation
    for member in evaluation.members:
        yield from leaves(member)


@dataclass(frozen=True, slots=True)
class _Said:
    """Words, and who said them, joined by what stands between."""

    who: str
    between: str
    text: str


class _Before:
    """What was said before in a text, about what, and who said it first."""

    def __init__(self) -> None:
        self._first: dict[tuple[Hashable, str], str] = {}

    def told(self, who: str, about: Hashable, text: str) -> str:
        """The words as they are where they are new; otherwise whose words they were."""
        first = self._first.get((about, text))
        if first is None or not text:
            self._first[about, text] = who
            return text
        return f"the same as {'before' if first == who else first}"


_Told = Callable[[_Before], str]


def _silent_tensor(evaluation: Evaluation) -> FloatArray | None:
    """The scores of the silent round that nothing followed, as one round (1, I, J, K); None for other evaluations."""
    if evaluation.stop_reason not in UNSPOKEN or not evaluation.before:
        return None
    return np.stack([each.scores for each in evaluation.before])[None]


def _quorum_of(evaluation: Evaluation, tensor: FloatArray) -> int:
    """The quorum nearest to more than half of the agents with which the same candidates are unscored."""
    n_agents, missing = tensor.shape[1], np.isnan(evaluation.scores)
    usual = n_agents // 2 + 1
    for quorum in sorted(range(1, n_agents + 1), key=lambda each: abs(each - usual)):
        if (np.isnan(component_means(tensor, quorum)).any(axis=1) == missing).all():
            return quorum
    return usual


def _standing(evaluation: Evaluation, j: int) -> str:
    score = evaluation.scores[j]
    if np.isnan(score):
        return f"Candidate {j + 1} was not scored: {why_no_score(evaluation, j)}."
    scale, rank = evaluation.scale, evaluation.ranks()[j]
    surely = "" if evaluation.p_best is None else f", the best with probability {evaluation.p_best[j]:.2f}"
    return (
        f"Candidate {j + 1} of {len(evaluation.scores)}: {score:.2f} on a scale of "
        f"{scale.low:g} to {_short(scale.high)}, rank {rank}{surely}."
    )


def why_no_score(evaluation: Evaluation, j: int) -> str:
    """Why a candidate was not scored, as the rest of a sentence."""
    turns = [turn for debate in leaves(evaluation) for turn in debate.transcript]
    reasons = [why_unscored(turn, j, k) for turn in turns for k in range(turn.scores.shape[1])]
    if set(reasons) == {"abstained"}:
        return "every agent abstained"
    return evaluation.error or (
        "too many agents abstained" if "abstained" in reasons else "no agent gave a readable score"
    )


def top_of_scale(evaluation: Evaluation) -> str:
    """` of 6.67`, which stands behind scores that do not go to 10; empty where they do, or the lowest are the best."""
    high = evaluation.scale.high
    return f" of {_short(high)}" if evaluation.scale.higher_is_better and high not in (10.0, np.inf) else ""


def _short(number: float) -> str:
    """With two decimals at most, except for what is below 1."""
    return f"{round(number, 2) if abs(number) >= 1 else number:g}"


def _component_lines(debate: Evaluation, j: int) -> list[str]:
    if (silent := _silent_tensor(debate)) is not None:
        return _settled_lines(debate, silent[0, :, j])
    if debate.tensor is None or not debate.components:
        return []
    means, doubts = _mean(debate.tensor[:, :, j, :]), _doubts(debate, j)  # (K,) each
    by_agent = {turn.agent: turn for turn in debate.transcript.of_round(len(debate.tensor) - 1)}
    last = [by_agent[name] for name in debate.agents if name in by_agent]
    lines: list[str] = []
    for k in np.argsort(means, kind="stable").tolist():
        told = ", ".join(filter(None, (_of_agent(turn, j, k) for turn in last)))
        doubt = "" if np.isnan(doubts[k]) else f" ± {doubts[k]:.1f}"
        if told or not np.isnan(means[k]):
            mean = "has no score" if np.isnan(means[k]) else f"{means[k]:.1f}{doubt}"
            lines.append(f"{debate.components[k]} {mean}" + (f" ({told})" if told else ""))
    return lines


def _settled_lines(debate: Evaluation, scores: FloatArray) -> list[str]:
    """What the agents would have scored a candidate, (I, K), worst component first, and that nobody said why."""
    means = scores.mean(axis=0)  # (K,)
    why = (
        "a silent round left no doubt about the winner"
        if debate.stop_reason == "settled"
        else "they were only read out"
    )
    lines = [f"No agent said anything: {why}."]
    for k in np.argsort(means, kind="stable").tolist():
        told = ", ".join(f"{each.agent} {score:.1f}" for each, score in zip(debate.before, scores[:, k], strict=True))
        lines.append(f"{debate.components[k]} {means[k]:.1f} ({told})")
    return lines


def _of_agent(turn: Turn, j: int, k: int) -> str:
    """An agent with its score of a cell, or that it abstained; empty where it has none for another reason."""
    if np.isnan(turn.scores[j, k]):
        return f"{turn.agent} abstained" if why_unscored(turn, j, k) == "abstained" else ""
    return f"{turn.agent} {_mark(turn, j, k)}"


def _mark(turn: Turn, j: int, k: int) -> str:
    """A score in words: with one decimal where it was read out. Of a candidate that was not shown, it stays `nan`."""
    if why_unscored(turn, j, k) in ("abstained", "label_mass"):
        return "no score"
    return f"{turn.scores[j, k]:{'.1f' if turn.distributions else 'g'}}"


def _doubts(debate: Evaluation, j: int) -> FloatArray:
    """Standard deviations (K,) of the means of all distributions of a candidate's cells; NaN where none was read."""
    spread, tensor = debate.spread, debate.tensor
    if spread is None or tensor is None:
        return np.full(len(debate.components), np.nan)
    variance, scores = spread[:, :, j] ** 2, np.where(np.isnan(spread), np.nan, tensor)[:, :, j]  # (R, I, K)
    return np.sqrt(_mean(variance) + _mean((scores - _mean(scores)) ** 2))


def _talk_lines(debate: Evaluation, j: int) -> list[str]:
    """What talking changed, where the agents were read out before and after."""
    before, after = (means[j] for means in before_and_after(debate))
    told = f"mean score without a comment: {before:.1f} before the debate, {after:.1f} after it"
    return [] if np.isnan(before) else [told]


def before_and_after(debate: Evaluation) -> tuple[FloatArray, FloatArray]:
    """The means (J,) over agents and components of what was read out before anybody spoke, and after the last turn.

    Over the cells that have a score both times; NaN where none has.
    """
    after = {each.agent: each.scores for each in debate.after}
    pairs = [(each.scores, after[each.agent]) for each in debate.before if each.agent in after]  # (J, K) each
    if not pairs:
        return np.full(len(debate.scores), np.nan), np.full(len(debate.scores), np.nan)
    both = np.array(pairs).transpose(1, 0, 3, 2)  # (2, I, K, J)
    both[:, np.isnan(both).any(axis=0)] = np.nan
    return _mean(both[0]), _mean(both[1])


def _comments(debate: Evaluation, j: int) -> list[_Said]:
    """The newest comment of every agent, the one who scored the candidate lowest first, those without a score last."""
    newest = {turn.agent: turn for turn in debate.transcript if turn.failure is None}
    turns = sorted(newest.values(), key=lambda turn: _severity(turn, j))
    said = [(turn, turn.comments[j].strip() or _why_silent(turn)) for turn in turns]
    return [_Said(turn.agent, ": ", _renumber(text, turn.labels)) for turn, text in said if text]


def _why_silent(turn: Turn) -> str:
    """What an agent said of all candidates together, where it abstained from the whole turn."""
    return turn.overall.strip() if np.isnan(turn.scores).all() else ""


def _severity(turn: Turn, j: int) -> float:
    scored = turn.scores[j][~np.isnan(turn.scores[j])]
    return float(scored.mean()) if len(scored) else np.inf


def _samples(judged: Evaluation, j: int, scores: bool) -> list[_Said]:
    """What a judge that does not debate replied on the candidate, the lowest value first; ballots that rank it last."""
    about = [sample for sample in judged.judgments if j in sample.candidates and sample.text.strip()]
    about.sort(key=lambda sample: _favor(sample, j))
    return [_replied(judged, sample, scores) for sample in about]


def _replied(judged: Evaluation, sample: Judgment, scores: bool) -> _Said:
    """One reply, with what it is about and what was read in it."""
    worth = f": {worth_of(sample)}" if scores and sample.value is not None else ""
    order = f": {' > '.join(str(j + 1) for j in sample.ranking)}" if scores and sample.ranking else ""
    labels = dict(zip(sample.labels, sample.candidates, strict=False))
    return _Said(f"{judged.evaluator}, {subject(sample)}{worth}{order}", "\n  ", _renumber(sample.text, labels))


def _judged(judged: Evaluation, sample: Judgment, scores: bool, before: _Before) -> str:
    """One reply as a part of a chain of thought."""
    said = _replied(judged, sample, scores)
    return f"{said.who}{said.between}{before.told(judged.evaluator, subject(sample), said.text)}"


def _each_once(said: Sequence[Sequence[_Said]]) -> list[list[str]]:
    """The lines of several groups; what was said in the same words is told where it is first said, with all names."""
    who: dict[tuple[str, str], list[str]] = {}
    for each in (each for group in said for each in group):
        names = who.setdefault((each.between, each.text), [])
        names += [each.who] if each.who not in names else []
    lines: list[list[str]] = []
    for group in said:
        new = dict.fromkeys((each.between, each.text) for each in group)
        names = {key: who.pop(key) for key in new if key in who}
        lines.append([f"- {', '.join(each)}{between}{text}" for (between, text), each in names.items()])
    return lines


def _in_order(spoken: Sequence[_Told]) -> str:
    before = _Before()
    return "\n\n".join([each(before) for each in spoken])


def worth_of(sample: Judgment) -> str:
    """The value of a reply; one that was read out with its standard deviation; empty where there is none."""
    if sample.value is None:
        return ""
    if sample.distribution is None:
        return f"{sample.value:g}"
    return f"{sample.value:.3g} ± {moments(sample.distribution)[1]:.2g}"


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


def _spoken(turn: Turn, components: Sequence[str], before: _Before) -> str:
    """One turn as a part of a chain of thought."""
    overall = before.told(turn.agent, None, _renumber(turn.overall, turn.labels))
    lines = [f"{turn.agent} (round {turn.round + 1}): {overall}".rstrip()]
    for j, comment in enumerate(turn.comments):
        if j not in turn.labels.values():
            continue  # the agent did not see it
        marks = ", ".join(f"{name} {_mark(turn, j, k)}" for k, name in enumerate(components))
        told = before.told(turn.agent, j, _renumber(comment, turn.labels))
        lines.append(f"- Candidate {j + 1}: {told}" + (f" ({marks})" if marks else ""))
    return "\n".join(lines)


_NAMED = re.compile(r"\b([Cc]andidate|[Rr]esponse|[Aa]nswer) ([A-Z]{1,2})\b")


def _renumber(text: str, labels: Mapping[str, int]) -> str:
    """`candidate B` becomes the candidate's number in the task; a bare letter is left alone."""

    def number(match: re.Match[str]) -> str:
        j = labels.get(match[2])
        return match[0] if j is None else f"{match[1]} {j + 1}"

    return _NAMED.sub(number, text.strip())


def _mean(scores: FloatArray) -> FloatArray:
    """Mean over the first two axes, as rounds and agents of (R, I, K), NaN where nobody scored; quiet about it."""
    scored = ~np.isnan(scores)
    total = np.where(scored, scores, 0.0).sum(axis=(0, 1))  # (K,)
    count = scored.sum(axis=(0, 1))  # (K,)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
