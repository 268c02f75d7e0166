"""Each candidate valued by itself, several times (Tree of Thoughts' `get_value`, seed 000), as a flow.

    gather: for each candidate, for each sample:  ask, read -> a value
    reduce the samples of a candidate -> its score

What a reply is worth is read by `debate.parsing.values`; samples are reduced by `debate.scoring.reducers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from debate.compat import is_compat
from debate.errors import ConfigError, ReplyError
from debate.evaluation import Evaluation
from debate.evaluators.base import RunContext
from debate.evaluators.early_stop import EarlyStop
from debate.evaluators.judge import JudgePrompts, JudgeSettings, check, names, rules
from debate.evaluators.result import build_evaluation
from debate.flow import Block, Completion, Flow, Generate, Parsed, gather, generate_parsed
from debate.parsing.values import JsonField, ValueReader
from debate.scoring.reducers import Reduction, confidence, reduce_samples, summarise
from debate.types import Judgment, Scale, ScoreStatus, Task

Duplicates = Literal["share", "zero", "evaluate"]


@dataclass(frozen=True, kw_only=True)
class ValueEvaluator(JudgeSettings):
    """The worth of each candidate, as the mean, sum or median of several samples.

    >>> ValueEvaluator(samples=5, reader=LabelMap({"sure": 20, "likely": 1, "impossible": 0.001}), reduce="sum")

    `details` of its evaluations: `n_ok`, `n_failed`, `std` and `confidence` of the samples, each a list of J, and
    `duplicate_of` {index: index of the equal candidate before it}.
    """

    samples: int = 3
    """How often each candidate is valued."""
    reader: ValueReader = JsonField("value")
    reduce: Reduction = "mean"
    duplicates: Duplicates = "share"
    """What a text gets that stands there before: `share` its score, `zero` 0 (Tree of Thoughts), or `evaluate` a score
    of its own."""
    early_stop: EarlyStop | None = None
    min_ok: int = 1
    """Samples that must have been read for a candidate to have a score."""
    template: str = "value"
    """Which set of templates asks: `value/system.j2`, `value/ask.j2`."""
    compat: Literal["tot"] | None = None
    """`tot`: samples that all failed are worth 0, as in Tree of Thoughts."""
    name: str = field(default="value", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        is_compat(self.compat, "tot")
        self._at_least("samples", 1)
        self._require("min_ok", 1 <= self.min_ok <= self.samples, f"must lie in 1..{self.samples}")
        self._one_of("reduce", ("mean", "sum", "median"))
        self._one_of("duplicates", ("share", "zero", "evaluate"))
        if self.early_stop is not None and self.reduce == "sum":
            hint = "candidates with fewer samples would have smaller sums; take the mean"
            raise ConfigError("does not go with an early stop", field="reduce", hint=hint)

    @property
    def scale(self) -> Scale:
        """The reader's; for sums as wide as the samples make it, and down to 0 where something is worth 0 unread."""
        scale = self.reader.scale
        if self.reduce == "sum":
            ends = (scale.low, scale.low * self.samples, scale.high, scale.high * self.samples)
            scale = Scale(min(ends), max(ends), scale.higher_is_better)
        if self.compat or self.duplicates == "zero":
            scale = Scale(min(scale.low, 0.0), max(scale.high, 0.0), scale.higher_is_better)
        return scale

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Value the candidates of `task`."""
        first = _first_of_equals(task) if self.duplicates != "evaluate" else tuple(range(len(task.candidates)))
        asked: dict[int, list[Parsed[float]]] = {j: [] for j in dict.fromkeys(first)}
        unread = yield from self._ask_all(_Questions(self, task), asked)
        return self._evaluation(task, run, first, asked, unread)

    def _ask_all(self, questions: _Questions, asked: dict[int, list[Parsed[float]]]) -> Flow[set[int]]:
        """Fill in what was asked of each candidate; returns those left unread."""
        stop = self.early_stop
        if stop is None:
            places = [(j, s) for j in asked for s in range(self.samples)]
            for (j, _), answer in zip(places, (yield from gather([questions.ask(*p) for p in places])), strict=True):
                asked[j].append(answer)
            return set()
        left = set(asked)
        for wave in stop.waves(list(asked)):
            left -= set(wave)
            yield from self._wave(questions, wave, asked)
            if any(stop.ends(_values(asked[j]), self.reader.scale) for j in wave):
                return left
        return set()

    def _wave(self, questions: _Questions, wave: Sequence[int], asked: dict[int, list[Parsed[float]]]) -> Flow[None]:
        """One sample of every candidate of a wave, then of those that need more."""
        assert self.early_stop is not None
        active = list(wave)
        for s in range(self.samples):
            answers = yield from gather([questions.ask(j, s) for j in active])
            for j, answer in zip(active, answers, strict=True):
                asked[j].append(answer)
            active = [j for j in active if not self.early_stop.is_settled(_values(asked[j]), self.reader.scale)]
            if not active:
                return

    def _evaluation(
        self,
        task: Task,
        run: RunContext,
        first: Sequence[int],
        asked: Mapping[int, Sequence[Parsed[float]]],
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
        samples = [_sample(j, s, answer) for j in asked for s, answer in enumerate(asked[j])]
        summaries = [summarise(_values(asked[original])) for original in first]
        trust = [confidence(_values(asked[original]), self.reader.scale) for original in first]
        return build_evaluation(
            self.name,
            self.scale,
            task,
            run,
            self.choosing,
            scores=scores,
            statuses=statuses,
            judgments=samples,
            failures=[sample.failure for sample in samples if sample.failure is not None],
            details={
                "n_ok": [summary.n_ok for summary in summaries],
                "n_failed": [summary.n_failed for summary in summaries],
                "std": [summary.std for summary in summaries],
                "confidence": trust,
                "duplicate_of": {str(j): original for j, original in enumerate(first) if j != original},
            },
            has_converged=bool(self.early_stop) and sum(map(len, asked.values())) < len(asked) * self.samples,
        )

    def _score(self, asked: Sequence[Parsed[float]], is_unread: bool) -> tuple[float, ScoreStatus]:
        if is_unread:
            return (0.0 if self.early_stop and self.early_stop.compat else np.nan), "skipped"
        values = _values(asked)
        if summarise(values).n_ok < self.min_ok:
            return (0.0 if self.compat else np.nan), "failed"
        return reduce_samples(values, self.reduce), "ok"

    def check(self) -> None:
        """Render every template once; raises `TemplateError` with file and line."""
        check(self.prompt_templates, self.template, self.prompt_rules, {"candidate": "candidate"})

    def describe(self) -> dict[str, Any]:
        """All settings; those that shape no prompt under `aggregation`."""
        return self._describe(
            *names(self.template),
            evaluator=self.name,
            reader=repr(self.reader),
            template=self.template,
            aggregation={
                "samples": self.samples,
                "reduce": self.reduce,
                "duplicates": self.duplicates,
                "early_stop": None if self.early_stop is None else self.early_stop.to_dict(),
                "min_ok": self.min_ok,
                "compat": self.compat,
            },
        )

    @property
    def prompt_rules(self) -> dict[str, Any]:
        """What the system message may use."""
        return rules(self.reader.scale, self.reader.instruction)


class _Questions:
    """The questions on one task's candidates, each rendered once."""

    def __init__(self, evaluator: ValueEvaluator, task: Task) -> None:
        self._evaluator = evaluator
        self._task = task
        self._prompts = JudgePrompts(evaluator.prompt_templates, evaluator.template, task, evaluator.prompt_rules)
        self._schema = evaluator.reader.schema(evaluator.reasoning_chars)
        self._blocks: dict[int, Block] = {}
        self._occurrence = _occurrences(task)

    def ask(self, j: int, s: int) -> Flow[Parsed[float]]:
        """Sample `s` of candidate `j`."""
        if j not in self._blocks:
            text = self._task.candidates[j].text
            self._blocks[j] = self._prompts.question({"candidate": text}, text)
        return generate_parsed(partial(self._call, j, s), self._read, self._evaluator.retries)

    def _call(self, j: int, s: int, attempt: int, error: ReplyError | None) -> Generate:
        # Equal texts have equal prompts: one that is valued by itself all the same is another sample.
        key = ("value", s, self._occurrence[j]) if self._occurrence[j] else ("value", s)
        prompt = self._prompts.prompt(self._blocks[j], error)
        return self._evaluator.request(self._task, prompt, self._schema, key, attempt, candidate=j, sample=s)

    def _read(self, said: Completion) -> float:
        return self._evaluator.reader(said.text, finish_reason=said.finish_reason)


def _first_of_equals(task: Task) -> tuple[int, ...]:
    """For each candidate, the first that has the same text."""
    first: dict[str, int] = {}
    return tuple(first.setdefault(candidate.text, j) for j, candidate in enumerate(task.candidates))


def _occurrences(task: Task) -> list[int]:
    """For each candidate, how many before it have the same text."""
    seen: dict[str, int] = {}
    found: list[int] = []
    for candidate in task.candidates:
        found.append(seen.get(candidate.text, 0))
        seen[candidate.text] = found[-1] + 1
    return found


def _values(asked: Sequence[Parsed[float]]) -> list[float | None]:
    return [answer.value for answer in asked]


def _sample(j: int, s: int, asked: Parsed[float]) -> Judgment:
    return Judgment(
        candidates=(j,),
        sample=s,
        value=asked.value,
        text=asked.text,
        failure=asked.failure,
        invalid_replies=asked.invalid_replies,
    )
