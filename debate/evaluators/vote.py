"""The candidates compared with one another by ballots (Yao et al. 2023), as a flow.

    gather: for each ballot:  show the candidates in an order of its own, ask, read -> a ranking
    count the ballots -> scores

Ballots are counted by `debate.voting`. An unreadable one is asked again, and does not count if that fails too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, permutations
from typing import Any, ClassVar, Literal

import numpy as np

from debate.errors import ConfigError, ReplyError
from debate.evaluation import Evaluation
from debate.evaluators.base import Footprint, RunContext
from debate.evaluators.debate.candidate_order import label
from debate.evaluators.judge import TEMPLATE_HELP, JudgePrompts, JudgeSettings, check, judgment
from debate.evaluators.result import build_evaluation
from debate.flow import Completion, Flow, Parsed, gather
from debate.hashing import derive
from debate.parsing.schema import bounded_text, object_of
from debate.parsing.values import read_json_ballot
from debate.settings import documented, result_setting, setting
from debate.templates import Trusted
from debate.types import FloatArray, Judgment, Scale, Task
from debate.voting import (
    Comparison,
    Unranked,
    borda_count,
    copeland_score,
    pairwise_wins,
    plurality_count,
    wins_of_rankings,
)

BallotKind = Literal["ranking", "plurality", "pairwise"]
Count = Literal["borda", "borda_span", "copeland", "plurality"]
_COUNTS: Mapping[BallotKind, tuple[Count, ...]] = {
    "ranking": ("borda", "borda_span", "copeland", "plurality"),
    "plurality": ("plurality",),
    "pairwise": ("copeland",),
}
"""How each kind can be counted, the usual way first."""
_KEY: Mapping[BallotKind, str] = {"ranking": "ranking", "plurality": "best", "pairwise": "better"}
TIE = "tie"
ORDER = " > "
_MOST_PERMUTED = 5


@dataclass(frozen=True, slots=True)
class _Ballot:
    """One ballot: its number, and the candidates that it shows, in order."""

    number: int
    shown: tuple[int, ...]

    @property
    def labels(self) -> dict[str, int]:
        return {label(place): j for place, j in enumerate(self.shown)}


@documented
@dataclass(frozen=True, kw_only=True)
class VoteEvaluator(JudgeSettings):
    """Ranks the candidates by ballots: whole rankings, single choices, or comparisons of pairs.

    >>> VoteEvaluator(ballots=5, ballot="ranking", count="borda_span")

    Scores lie in 0..10 for Borda, `borda_span` (where a unanimous last place scores 0) and Copeland counts; plurality
    counts votes, 0..ballots. `details`: `ballots` {`valid`, `rejected`, `reasons`}.
    """

    ballots: int = result_setting(5, "How many ballots are cast; with `pairwise`, per pair.", ge=1)
    ballot: BallotKind = setting("ranking", "What a ballot holds: a ranking, one choice, or the better of a pair.")
    count: Count | None = result_setting(None, "How ballots are counted; None is the usual way of the kind of ballot.")
    unranked: Unranked = result_setting("zero", "What candidates that a ranking leaves out get; see `borda_count`.")
    shuffle: bool = setting(True, "Whether each ballot has its own seeded order, against position bias.")
    quorum: int = result_setting(1, "Ballots that must count for there to be scores; with `pairwise`, in all.", ge=1)
    template: str = setting("vote", TEMPLATE_HELP)
    name: str = field(default="vote", init=False)
    _temperature: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count not in (None, *_COUNTS[self.ballot]):
            ways = " or ".join(_COUNTS[self.ballot])
            raise ConfigError(f"{self.ballot} ballots are counted by {ways}, not {self.count!r}", field="count")
        if self.ballot != "pairwise" and self.quorum > self.ballots:
            raise ConfigError(f"must lie in 1..{self.ballots}, got {self.quorum}", field="quorum")

    @property
    def counting(self) -> Count:
        """The way of counting, given or usual for the kind of ballot."""
        return self.count or _COUNTS[self.ballot][0]

    @property
    def scale(self) -> Scale:
        """0..10, or 0..ballots where votes are counted."""
        return Scale(0.0, float(self.ballots) if self.counting == "plurality" else 10.0)

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Ask for every ballot, and count those that can be read."""
        prompts = JudgePrompts(
            self.prompt_templates, self.template, task, {"kind": self.ballot}, criteria=task.criteria
        )
        cast = self._to_cast(task, run)
        # By number, so that more of them stand behind those that are recorded when a run is resumed.
        cast.sort(key=lambda ballot: ballot.number)
        answers = yield from gather([self._ask(prompts, task, ballot) for ballot in cast])
        samples = [_sample(ballot, asked) for ballot, asked in zip(cast, answers, strict=True)]
        samples.sort(key=lambda sample: sorted(sample.candidates))
        counted = [sample for sample in samples if sample.failure is None]
        n = len(task.candidates)
        scores = np.full(n, np.nan if cast else self.scale.high)  # (J,); a single candidate of a pair wins unasked
        if len(counted) >= self.quorum:
            scores = self._scores(counted, n)
        details = {"ballots": _figures(samples)}
        return build_evaluation(self, task, run, scores=scores, judgments=samples, details=details)

    def _to_cast(self, task: Task, run: RunContext) -> list[_Ballot]:
        everybody = tuple(range(len(task.candidates)))
        groups = list(combinations(everybody, 2)) if self.ballot == "pairwise" else [everybody]
        return [
            _Ballot(number, self._order(group, derive(run.seed, "ballot", task.id, number, *group)))
            for group in groups
            for number in range(self.ballots)
        ]

    def _order(self, group: Sequence[int], seed: int) -> tuple[int, ...]:
        if not self.shuffle:
            return tuple(group)
        return tuple(int(j) for j in np.random.default_rng(seed).permutation(group))

    def _ask(self, prompts: JudgePrompts, task: Task, ballot: _Ballot) -> Flow[Parsed[tuple[int, ...]]]:
        texts = [{"label": Trusted(name), "text": task.candidates[j].text} for name, j in ballot.labels.items()]
        shown = [task.candidates[j].text for j in ballot.shown]
        question = prompts.question({"candidates": texts, "kind": self.ballot}, *shown)
        read, schema = partial(self._read, ballot.labels), self._schema(list(ballot.labels))
        about: dict[str, Any] = {"sample": ballot.number, "labels": ballot.labels}
        if self.ballot == "pairwise":
            about["pair"] = sorted(ballot.shown)
        more = self._more_tokens(len(shown))
        return self.ask(prompts, question, read, schema=schema, key=("vote", ballot.number), more_tokens=more, **about)

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of one prompt that shows all of the task, and one reply."""
        room = self._with_room(self._more_tokens(len(task.candidates))).max_tokens
        return replace(super().footprint(task), max_tokens=room or 0)

    def _more_tokens(self, n: int) -> int:
        """Room for a ranking of n candidates beyond the 100 characters that every reply has room for."""
        if self.ballot != "ranking":
            return 0
        return max(0, len(ORDER.join(map(label, range(n)))) - 100 + 1) // 2

    def _read(self, labels: Mapping[str, int], said: Completion) -> tuple[int, ...]:
        tie = TIE if self.ballot == "pairwise" else None
        ranking = read_json_ballot(said.text, _KEY[self.ballot], labels, finish_reason=said.finish_reason, tie=tie)
        if self.ballot != "ranking" and len(ranking) > 1:
            raise ReplyError("ambiguous", "Several candidates are named; name one.")
        return ranking

    def _schema(self, labels: Sequence[str]) -> dict[str, Any]:
        if self.ballot != "ranking":
            decision: dict[str, Any] = {"enum": [*labels, TIE] if self.ballot == "pairwise" else [*labels]}
        elif len(labels) <= _MOST_PERMUTED:  # every ranking, so that none can name a candidate twice
            decision = {"enum": [ORDER.join(each) for each in permutations(sorted(labels))]}
        else:
            one = f"({'|'.join(labels)})"
            decision = {"type": "string", "pattern": f"^{one}({ORDER}{one}){{{len(labels) - 1}}}$"}
        return object_of({"reasoning": bounded_text(self.reasoning_chars), _KEY[self.ballot]: decision})

    def _scores(self, counted: Sequence[Judgment], n: int) -> FloatArray:
        """Scores (J,) from the ballots that count."""
        if self.ballot == "pairwise":
            pairs = [(*ballot.candidates, next(iter(ballot.ranking), None)) for ballot in counted]
            return copeland_score(pairwise_wins([Comparison(i, j, better) for i, j, better in pairs], n))
        rankings = [sample.ranking for sample in counted]
        match self.counting:
            case "plurality":
                return plurality_count([ranking[0] for ranking in rankings], n)
            case "copeland":
                return copeland_score(wins_of_rankings(rankings, n)) if n > 1 else np.full(n, self.scale.high)
            case "borda":
                return borda_count(rankings, n, "from_one", self.unranked)
            case "borda_span":
                return borda_count(rankings, n, "from_zero", self.unranked)

    def check(self) -> None:
        """Render every template once; raises `TemplateError` with file and line."""
        about = {"candidates": [{"label": Trusted("A"), "text": "first"}], "kind": self.ballot}
        check(self.prompt_templates, self.template, {"kind": self.ballot}, about)

    def describe(self) -> dict[str, Any]:
        """The settings as plain data; those that shape no prompt stand under `aggregation`."""
        return self._describe(evaluator=self.name, aggregation={"count": self.counting})


def _sample(ballot: _Ballot, asked: Parsed[tuple[int, ...]]) -> Judgment:
    ranking, labels = asked.value or (), tuple(ballot.labels)
    return judgment(asked, candidates=ballot.shown, labels=labels, sample=ballot.number, ranking=ranking)


def _figures(samples: Sequence[Judgment]) -> dict[str, Any]:
    """Number of ballots that count, and the reasons why others do not."""
    reasons = Counter(
        sample.invalid_replies[-1].reason if sample.failure.reason == "unreadable_reply" else sample.failure.reason
        for sample in samples
        if sample.failure is not None
    )
    rejected = reasons.total()
    return {"valid": len(samples) - rejected, "rejected": rejected, "reasons": dict(sorted(reasons.items()))}
