"""Each candidate valued on its own, several times (Yao et al. 2023), as a flow.

    gather: for each candidate, for each sample:  ask, read -> a value
    reduce the samples of a candidate -> its score

What a reply is worth is read by `debate.parsing.values`; samples are reduced by `debate.scoring.reducers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import RunContext
from debate.evaluators.judge import TEMPLATE_HELP, JudgePrompts, ValueJudge, check
from debate.evaluators.result import build_evaluation
from debate.flow import Flow, gather
from debate.scoring.distributions import p_best, score_distributions
from debate.scoring.reducers import Reduction, confidence, reduce_samples, summarize
from debate.settings import check_settings, documented, plain_values, result_setting, setting
from debate.types import FloatArray, Judgment, LabelDistribution, Scale, ScoreStatus, Task

Duplicates = Literal["share", "zero", "evaluate"]
Ask = Callable[[int, int], Flow[Judgment]]


@documented
@dataclass(frozen=True, kw_only=True)
class EarlyStop:
    """Stops sampling once a value is high enough.

    Samples are drawn in waves, a sample of each candidate of a wave and then a check, so that a batching backend stays
    full. A candidate with at least `min_samples` values is settled once their mean reaches `threshold`, and is not
    sampled again. With `over="task"`, the candidates after its wave are `skipped`: not sampled, and without a score.
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

    def is_settled(self, values: Sequence[float | None], scale: Scale, min_ok: int = 1) -> bool:
        """Whether a candidate with these values, None for failed samples, needs no more; `min_ok` it must have."""
        summary = summarize(values)
        return summary.n_ok >= max(self.min_samples, min_ok) and scale.to_unit(summary.mean) >= self.threshold

    def ends(self, values: Sequence[float | None], scale: Scale, min_ok: int = 1) -> bool:
        """Whether a candidate with these values ends the task."""
        return self.over == "task" and self.is_settled(values, scale, min_ok)

    def describe(self) -> dict[str, Any]:
        """The settings as plain data."""
        return plain_values(self)


@documented
@dataclass(frozen=True, kw_only=True)
class ValueEvaluator(ValueJudge):
    """Scores each candidate on its own, by the mean, sum or median of several samples.

    >>> ValueEvaluator(samples=5, reader=LabelMap({"sure": 20, "likely": 1, "impossible": 0.001}), reduce="sum")

    `details`: `n_ok`, `n_failed`, `std` and `confidence` of the samples, each a list of length J, and `duplicate_of`
    {index: index of the first candidate with the same text}.

    With a `readout`, a sample is the expectation of a distribution over whole numbers, and what is pooled is doubt too:
    a candidate's pooled distribution is the mean of those of its samples (a linear opinion pool, Stone 1961). `details`
    then has `spread`, the pooled distributions' standard deviations, and `Evaluation.p_best` is the probability that a
    value drawn from a candidate's is above those drawn from the others', ties shared. Both are of single values,
    whichever way `reduce` makes a score of them.
    """

    samples: int = result_setting(3, "How often each candidate is valued.", ge=1)
    reduce: Reduction = result_setting("mean", "How the samples of a candidate make its score.")
    duplicates: Duplicates = result_setting(
        "share",
        "What a candidate with the text of an earlier one gets. share: its score. zero: 0 (Yao et al. 2023). "
        "evaluate: samples of its own.",
    )
    early_stop: EarlyStop | None = result_setting(None, "When to stop sampling; None is never.")
    min_ok: int = result_setting(1, "Samples that must have been read for a candidate to have a score.", ge=1)
    template: str = setting("value", TEMPLATE_HELP)
    name: str = field(default="value", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_ok > self.samples:
            raise ConfigError(f"must lie in 1..{self.samples}, got {self.min_ok}", field="min_ok")
        if self.early_stop is not None and self.reduce == "sum":
            hint = "candidates with fewer samples would have smaller sums; take the mean"
            raise ConfigError("does not go with an early stop", field="reduce", hint=hint)

    @property
    def scale(self) -> Scale:
        """The reader's scale; times `samples` for sums, and with 0 in it where duplicates score 0."""
        scale = self.reader.scale
        if self.reduce == "sum":
            ends = (scale.low, scale.low * self.samples, scale.high, scale.high * self.samples)
            scale = Scale(min(ends), max(ends), scale.higher_is_better)
        if self.duplicates == "zero":
            scale = Scale(min(scale.low, 0.0), max(scale.high, 0.0), scale.higher_is_better)
        return scale

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Value the candidates of `task`."""
        texts = [candidate.text for candidate in task.candidates]
        first = list(map(texts.index, texts)) if self.duplicates != "evaluate" else list(range(len(texts)))
        asked: dict[int, list[Judgment]] = {j: [] for j in dict.fromkeys(first)}
        unread = yield from self._ask_all(self._asker(task), asked)
        return self._evaluation(task, run, first, asked, unread)

    def _asker(self, task: Task) -> Ask:
        """Sample `s` of candidate `j` of the task, as a flow; each question is rendered once."""
        prompts = JudgePrompts(self.prompt_templates, self.template, task, self.prompt_rules, criteria=task.criteria)
        texts = [candidate.text for candidate in task.candidates]
        questions = [prompts.question({"candidate": text}, text) for text in texts]
        occurrence = [texts[:j].count(text) for j, text in enumerate(texts)]

        def ask(j: int, s: int) -> Flow[Judgment]:
            # Candidates with equal texts have equal prompts: where each is sampled, they need keys of their own.
            key = ("value", s, occurrence[j]) if occurrence[j] else ("value", s)
            return self.value(prompts, questions[j], key=key, candidate=j, sample=s)

        return ask

    def _ask_all(self, ask: Ask, asked: dict[int, list[Judgment]]) -> Flow[set[int]]:
        """Sample every candidate into `asked`; returns those that an early stop skipped."""
        stop = self.early_stop
        if stop is None:
            # By sample, so that more of them stand behind those that are recorded when a run is resumed.
            places = [(j, s) for s in range(self.samples) for j in asked]
            for (j, _), answer in zip(places, (yield from gather([ask(*p) for p in places])), strict=True):
                asked[j].append(answer)
            return set()
        left = set(asked)
        for wave in stop.waves(list(asked)):
            left -= set(wave)
            yield from self._wave(ask, wave, asked)
            if any(stop.ends(_values(asked[j]), self.reader.scale, self.min_ok) for j in wave):
                return left
        return set()

    def _wave(self, ask: Ask, wave: Sequence[int], asked: dict[int, list[Judgment]]) -> Flow[None]:
        """Sample every candidate of a wave, again and again those that are not settled."""
        assert self.early_stop is not None
        active = list(wave)
        for s in range(self.samples):
            answers = yield from gather([ask(j, s) for j in active])
            for j, answer in zip(active, answers, strict=True):
                asked[j].append(answer)
            about = (self.reader.scale, self.min_ok)
            active = [j for j in active if not self.early_stop.is_settled(_values(asked[j]), *about)]
            if not active:
                return

    def _evaluation(
        self,
        task: Task,
        run: RunContext,
        first: Sequence[int],
        asked: Mapping[int, Sequence[Judgment]],
        unread: set[int],
    ) -> Evaluation:
        scores = np.full(len(first), np.nan)  # (J,)
        statuses: list[ScoreStatus] = []
        for j, original in enumerate(first):
            scores[j], status = self._score(asked[original], original in unread)
            if j != original:
                scores[j] = 0.0 if self.duplicates == "zero" else scores[original]
                status = "duplicate" if self.duplicates == "zero" or status == "ok" else status
            statuses.append(status)
        samples = [sample for of_candidate in asked.values() for sample in of_candidate]
        values = [_values(asked[original]) for original in first]
        summaries = [summarize(each) for each in values]
        details = {
            "n_ok": [summary.n_ok for summary in summaries],
            "n_failed": [summary.n_failed for summary in summaries],
            "std": [summary.std for summary in summaries],
            "confidence": [confidence(each, self.reader.scale) for each in values],
            "duplicate_of": {str(j): original for j, original in enumerate(first) if j != original},
        }
        read = [] if self.readout == "reply" else self._distributions(first, asked)
        parts: dict[str, Any] = {"scores": scores, "statuses": statuses, "judgments": samples}
        if read:
            parts["p_best"] = p_best(read, quorum=self.min_ok)
            details["spread"] = _spread(*score_distributions(read, quorum=self.min_ok))
        stop = "converged" if self.early_stop and len(samples) < len(asked) * self.samples else None
        return build_evaluation(self, task, run, **parts, details=details, stop_reason=stop)

    def _distributions(
        self, first: Sequence[int], asked: Mapping[int, Sequence[Judgment]]
    ) -> list[list[list[LabelDistribution | None]]]:
        """What each sample says of each candidate, (samples, J, 1); None where there is no sample."""
        zero = LabelDistribution({"0": 1.0})

        def said(s: int, j: int, original: int) -> LabelDistribution | None:
            if j != original and self.duplicates == "zero":
                return zero
            return asked[original][s].distribution if s < len(asked[original]) else None

        return [[[said(s, j, original)] for j, original in enumerate(first)] for s in range(self.samples)]

    def _score(self, asked: Sequence[Judgment], is_unread: bool) -> tuple[float, ScoreStatus]:
        if is_unread:
            return np.nan, "skipped"
        values = _values(asked)
        if summarize(values).n_ok < self.min_ok:
            return np.nan, "failed"
        return reduce_samples(values, self.reduce), "ok"

    def check(self) -> None:
        """Render every template once; raises `TemplateError` with file and line."""
        check(self.prompt_templates, self.template, self.prompt_rules, {"candidate": "candidate"})


def _spread(values: FloatArray, masses: FloatArray) -> list[float]:
    """Standard deviation of each candidate's distribution, masses (J, S) of values (S,)."""
    means = masses @ values  # (J,)
    return np.sqrt((masses * (values - means[:, None]) ** 2).sum(axis=1)).tolist()


def _values(samples: Sequence[Judgment]) -> list[float | None]:
    return [sample.value for sample in samples]
